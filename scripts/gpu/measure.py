#!/usr/bin/env python3
"""Measures private steps of PyTorch on one device, and checks the bits of their noise.

    python scripts/gpu/measure.py --device cuda --parameters 1e8,1e9 --out docs/results/gpu.md
    python scripts/gpu/measure.py --device cpu --parameters 1e4,1e5 --out /tmp/gpu.md     # checks the script
    python scripts/gpu/measure.py --device cpu --overlap 2e6                             # noise made ahead, alone

Run it with a Python that has antinoise, PyTorch and, for the comparison, Opacus. Noise is made on the host.
It is checked first: the noisy means on the device have the bits of a stream in the host's memory, with rows
made ahead and without. A compiled model is compiled once for cut batches of many sizes (on CUDA by Inductor,
whose kernels are Triton's). Then steps of SGD of multilayer perceptrons are timed, alone and one after the
other: the median of three, after one to warm up; memory is the peak on the device. All that fails stops the
script, and no page is written.
"""

import argparse
import gc
import statistics
import time
import warnings
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import TensorDataset

import antinoise as an
from antinoise.torch import CorrelatedNoise, clipped_sum_

# Assumed where there is no device to measure: PCI Express 4 with 16 lanes, of which 20 of 32 GB/s are usual.
ASSUMED_BYTES_PER_SECOND = 20e9
LAYERS, BATCH, ROUNDS = 6, 64, 3
loss = functional.cross_entropy


def name_of(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU: no GPU was had"


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def perceptron(parameters: float, device: torch.device) -> nn.Sequential:
    """A model of about this number of parameters, in layers of one width."""
    torch.manual_seed(0)
    width = max(8, round((parameters / LAYERS) ** 0.5))
    layers = [layer for _ in range(LAYERS) for layer in (nn.Linear(width, width, bias=False), nn.Tanh())]
    return nn.Sequential(*layers, nn.Linear(width, 10)).to(device)


def batch_of(model: nn.Sequential, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.randn(BATCH, model[0].in_features, generator=torch.Generator().manual_seed(1))
    return x.to(device), torch.arange(BATCH, device=device) % 10


def plan_for(model: nn.Module, mechanism: str, **how) -> an.Plan:
    dim = sum(p.numel() for p in model.parameters())
    given = dict(steps=1_000, epsilon=4, delta=1e-6, dim=dim, mechanism=mechanism) | how
    return an.plan(100 * BATCH, BATCH, **given)


def bits(device: torch.device) -> int:
    """The number of noisy means on the device that have the bits of the stream on the host: all, or an
    error.
    """
    compared = 0
    for prefetch in (False, True):
        model = perceptron(1e4, device)
        plan, key = plan_for(model, "blt:3"), an.Key.from_seed_insecure
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        how = dict(prefetch=prefetch, external_batches=True)
        CorrelatedNoise(model, plan, key(3), **how).attach(optimizer)
        dim = sum(p.numel() for p in model.parameters())
        stream, row = an.NoiseStream(plan, dim, key(3)), np.empty(dim, np.float32)
        for _ in range(4):
            clipped_sum_(model, loss, *batch_of(model, device), plan.clip_norm)
            held = [noise_sum(p) for p in model.parameters()]
            optimizer.step()
            stream.add_to_sum(np.concatenate(held), row)
            wanted = (row.astype(np.float64) / plan.expected_batch_size).astype(np.float32)
            found = np.concatenate([p.grad.detach().cpu().numpy().reshape(-1) for p in model.parameters()])
            if not np.array_equal(found, wanted):
                raise SystemExit(f"noisy means on {device} differ from the host's, prefetch={prefetch}")
            compared += dim
    return compared


def noise_sum(p: torch.Tensor) -> np.ndarray:
    from antinoise.torch.held_sums import held_sum

    # A copy: the noisy sum takes the place of the sum.
    return held_sum(p).total.cpu().numpy().reshape(-1).copy()


def compiled(device: torch.device) -> tuple[int, int]:
    """The graphs that were compiled in the first step, none before PyTorch 2.14, and the sizes of batches
    that all later steps took without another one.
    """
    from torch._dynamo.utils import counters

    counters.clear()
    model = perceptron(1e4, device)
    plan = plan_for(model, "identity", setting="poisson", max_batch_size="auto", steps=8, delta=1e-5)
    fast = torch.compile(model, backend="inductor" if device.type == "cuda" else "eager", dynamic=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    noise = CorrelatedNoise(model, plan, an.Key.from_seed_insecure(4)).attach(optimizer)
    x = torch.randn(plan.examples, model[0].in_features)
    graphs, sizes = [], set()
    for a, b in noise.loader(TensorDataset(x, torch.arange(len(x)) % 10)):
        sizes.add(len(a))
        how = dict(microbatch_size=plan.max_batch_size, norms="ghost")
        clipped_sum_(fast, loss, a.to(device), b.to(device), plan.clip_norm, **how)
        optimizer.step()
        graphs.append(counters["stats"]["unique_graphs"])
    compiles = torch.__version__ >= "2.14"
    if bool(graphs[0]) != compiles or graphs != len(graphs) * [graphs[0]] or len(sizes) < 3:
        raise SystemExit(
            f"graphs compiled by step are {graphs} but must be as many in all, {'not ' * compiles}0, for sizes"
            f" {sizes}"
        )
    return graphs[0], len(sizes)


def private_step(mechanism: str, prefetch: bool):
    def made(model, device):
        x, y = batch_of(model, device)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
        plan = plan_for(model, mechanism)
        how = dict(prefetch=prefetch, external_batches=True)
        noise = CorrelatedNoise(model, plan, an.Key.from_os(), **how).attach(optimizer)

        def step():
            clipped_sum_(model, loss, x, y, plan.clip_norm, norms="ghost")
            optimizer.step()
            optimizer.zero_grad()
            return noise

        return step

    return made


def plain_step(model, device):
    x, y = batch_of(model, device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)

    def step():
        loss(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def opacus_step(model, device):
    from opacus import PrivacyEngine

    x, y = batch_of(model, device)
    loader = torch.utils.data.DataLoader(TensorDataset(x, y), batch_size=BATCH)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        private, optimizer, criterion, _ = PrivacyEngine().make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=1e-4),
            criterion=nn.CrossEntropyLoss(),
            data_loader=loader,
            noise_multiplier=1.0,
            max_grad_norm=1.0,
            poisson_sampling=False,
            grad_sample_mode="ghost",
        )

    def step():
        criterion(private(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


VARIANTS = {
    "without privacy": plain_step,
    "correlated noise (blt:4), made in the step": private_step("blt:4", False),
    "correlated noise (blt:4), made ahead": private_step("blt:4", True),
    "independent noise, made ahead": private_step("identity", True),
    "Opacus, ghost clipping": opacus_step,
}


def measured(make, parameters: float, device: torch.device) -> tuple[float, float]:
    """Seconds of a step, and the peak of the device's memory in bytes (0 on the CPU)."""
    model = perceptron(parameters, device)
    step = make(model, device)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    times = []
    for _ in range(1 + ROUNDS):
        wait(device)
        begun = time.perf_counter()
        step()
        wait(device)
        times.append(time.perf_counter() - begun)
    peak = torch.cuda.max_memory_allocated(device) if device.type == "cuda" else 0
    del model, step
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
    return statistics.median(times[1:]), float(peak)


def bandwidth(device: torch.device) -> float | None:
    """Bytes a second from pinned memory to the device; None where there is no device."""
    if device.type != "cuda":
        return None
    source = torch.empty(2**28, dtype=torch.uint8, pin_memory=True)
    target = torch.empty(2**28, dtype=torch.uint8, device=device)
    times = []
    for _ in range(5):
        wait(device)
        begun = time.perf_counter()
        target.copy_(source, non_blocking=True)
        wait(device)
        times.append(time.perf_counter() - begun)
    return 2**28 / statistics.median(times)


def overlap(parameters: float, device: torch.device, rounds: int = 9) -> str:
    """A line on what a step takes without noise, with noise made in the step, and made ahead while the model
    works: all in turn, in one process.
    """
    ways = {
        "noise made in the step": private_step("blt:4", False),
        "noise made ahead": private_step("blt:4", True),
    }
    steps = {}
    for name, make in ways.items():
        model = perceptron(parameters, device)
        steps[name] = make(model, device)
    model = perceptron(parameters, device)
    x, y = batch_of(model, device)
    dim = sum(p.numel() for p in model.parameters())
    clean = torch.optim.SGD(model.parameters(), lr=1e-4)

    def without() -> None:
        """Clipping and the step alone: the sum takes the place of the noisy mean."""
        from antinoise.torch.held_sums import drop_sums, held_sum

        clipped_sum_(model, loss, x, y, 1.0, norms="ghost")
        for p in model.parameters():
            p.grad = (held_sum(p).total / BATCH).to(p.dtype)
        drop_sums(model.parameters())
        clean.step()
        clean.zero_grad()

    steps["without noise"] = without
    stream = an.NoiseStream(plan_for(model, "blt:4"), dim, an.Key.from_os(), threads=1)
    row = np.empty(dim, np.int32)
    steps["noise alone, one thread"] = lambda: stream._make_ahead_into(row)
    found = {name: [] for name in steps}
    for at in range(rounds + 2):
        for name, step in steps.items():
            wait(device)
            begun = time.perf_counter()
            step()
            wait(device)
            if at >= 2:
                found[name].append(1e3 * (time.perf_counter() - begun))
    shown = []
    for name, times in found.items():
        low, middle, high = statistics.quantiles(times, n=4)
        shown.append(f"{name} {middle:.1f} ms ({low:.1f} to {high:.1f})")
    rate = bandwidth(device)
    how = "measured" if rate else "assumed, not measured"
    copy = 4e3 * dim / (rate or ASSUMED_BYTES_PER_SECOND)
    return (
        f"{dim:,} parameters, batch {BATCH}, {rounds} rounds in turn, median (quartiles): {'; '.join(shown)}. Copying a"
        f" row to a device would take {copy:.2f} ms at {(rate or ASSUMED_BYTES_PER_SECOND) / 1e9:.0f} GB/s ({how})."
    )


def page(options: argparse.Namespace, device: torch.device) -> str:
    same, (graphs, sizes) = bits(device), compiled(device)
    lines = [
        "# On a GPU",
        "",
        f"Device: {name_of(device)}. PyTorch {torch.__version__}. Written by `scripts/gpu/all.sh`.",
        "",
        f"- {same:,} coordinates of noisy means have the bits of the host's stream, made ahead and in the step.",
        f"- A compiled model has {graphs} graphs, all of the first step, for cut batches of {sizes} sizes.",
        f"- {overlap(min(options.parameters), device, 5)}",
        "",
        f"Multilayer perceptrons of {LAYERS} layers, batch {BATCH}, median of {ROUNDS} steps; peak of the device's"
        " memory:",
        "",
        "| parameters | | seconds | relative to plain | GB |",
        "|---|---|---|---|---|",
    ]
    for parameters in options.parameters:
        plain = None
        for name, make in VARIANTS.items():
            try:
                seconds, peak = measured(make, parameters, device)
            except ImportError:
                lines.append(f"| {parameters:.0e} | {name} | not installed | | |")
                continue
            plain = plain or seconds
            memory = f"{peak / 1e9:.2f}" if peak else ""
            lines.append(f"| {parameters:.0e} | {name} | {seconds:.4f} | {seconds / plain:.2f} | {memory} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=["cuda", "cpu"], required=True)
    parser.add_argument("--parameters", default="1e8,1e9")
    parser.add_argument(
        "--overlap",
        type=float,
        help="measure noise made ahead alone, for a model of this number of parameters",
    )
    parser.add_argument("--threads", type=int, default=1, help="of PyTorch, on the CPU")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("device is cuda but must be cpu here: PyTorch finds no GPU")
    options.parameters = [float(number) for number in options.parameters.split(",")]
    torch.set_num_threads(options.threads)
    device = torch.device(options.device)
    if options.overlap:
        print(overlap(options.overlap, device))
        return
    if options.out is None:
        parser.error("out is absent but must be given, without --overlap")
    written = page(options, device)
    options.out.write_text(written)
    print(written)


if __name__ == "__main__":
    main()
