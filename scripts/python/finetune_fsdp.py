#!/usr/bin/env python3
"""Fine-tunes a character transformer of 10.8 million parameters privately, sharded by FSDP2 over two
processes.

    python scripts/python/finetune_fsdp.py TEXT [--capitals] [--cache pretrained.pt] [--epsilon 8] [--steps 32] [--batch 32] [--seeds 3]
    python scripts/python/finetune_fsdp.py --smoke

Run it with a Python that has antinoise and PyTorch. The first half of TEXT is public: on it the model is
trained without privacy, and cached. Of the second half (with --capitals: put in capitals, so that it is
unlike the public text) steps x batch examples of 65 characters are private: on them it is fine-tuned in one
epoch, once with correlated noise without amplification and once with independent noise amplified by Poisson
sampling, at the same epsilon. For each, rates are tried on seed 0, doubled and halved until neither neighbour
is better, or --rates are tried, by text that is held out for that; losses are of other text that is held out.
Rates are chosen by looking at private text, which the statement does not cover.

Then a checkpoint that two processes saved in the middle is resumed by one.
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from finetune import ALPHABET, WAYS, asked, best_rate, drawn, noise_of, parts, plan_of, text_of, with_error
from torch import Tensor, multiprocessing, nn
from torch.distributed.fsdp import fully_shard
from torch.nn import functional
from torch.utils.data import TensorDataset

import antinoise as an
from antinoise.torch import CorrelatedNoise, clipped_sum_

PROCESSES, FIRST_RATE = 2, 0.25


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm, self.to_heads, self.from_heads = (
            nn.LayerNorm(width),
            nn.Linear(width, 3 * width),
            nn.Linear(width, width),
        )
        self.inner = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = (
            self.to_heads(self.norm(x)).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        )
        seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.from_heads(seen.transpose(1, 2).flatten(2))
        return x + self.inner(x)


class Transformer(nn.Module):
    def __init__(self, width: int, layers: int, heads: int, length: int) -> None:
        super().__init__()
        self.character, self.place = nn.Embedding(ALPHABET, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(layers)])
        self.norm, self.last = nn.LayerNorm(width), nn.Linear(width, ALPHABET)

    def forward(self, x: Tensor) -> Tensor:
        # Positions are repeated for each example: ghost norms need examples in the first dimension of every
        # input.
        places = torch.arange(x.shape[1]).expand_as(x)
        return self.last(self.norm(self.blocks(self.character(x) + self.place(places))))


def loss(output: Tensor, y: Tensor) -> Tensor:
    return functional.cross_entropy(output.flatten(0, -2), y.flatten())


@dataclass(frozen=True)
class Task:
    """The arguments of each process."""

    width: int
    layers: int
    heads: int
    length: int
    pretraining: int
    batch: int
    steps: int
    held_out: int
    rates: int
    capitals: bool
    epsilon: float
    seeds: int
    text: Path | None
    pretrained: Path
    folder: Path

    def model(self) -> Transformer:
        return Transformer(self.width, self.layers, self.heads, self.length)

    def tuned(self) -> Transformer:
        """The model with which fine-tuning begins."""
        model = self.model()
        model.load_state_dict(torch.load(self.pretrained, weights_only=True))
        return model

    def parts(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        return parts(text_of(self.text), self.length, self.steps * self.batch, self.held_out, self.capitals)

    def plan(self, way: str) -> an.Plan:
        dim = sum(p.numel() for p in self.model().parameters())
        return plan_of(way, self.steps * self.batch, self.batch, self.steps, self.epsilon, dim)


def pretrain(task: Task) -> None:
    """Trains the model on public text, without privacy."""
    torch.manual_seed(0)
    text = task.parts()[0]
    model, start = task.model(), time.perf_counter()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1)
    rates = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-3, total_steps=task.pretraining)
    last: list[float] = []
    for _ in range(task.pretraining):
        rows = drawn(text, task.length, 16)
        optimizer.zero_grad()
        value = loss(model(rows[:, :-1]), rows[:, 1:])
        value.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        rates.step()
        last = [*last[-19:], value.item()]
    torch.save(model.state_dict(), task.pretrained)
    print(
        f"pre-trained in {time.perf_counter() - start:.0f} s: loss {statistics.mean(last):.3f} on public"
        " text",
        flush=True,
    )


@torch.no_grad()
def loss_of(model: nn.Module, data: TensorDataset) -> float:
    """The mean loss over all processes, each with its share of the rows."""
    rank, own = dist.get_rank(), len(data) // PROCESSES
    x, y = (t[rank * own : (rank + 1) * own] for t in data.tensors)
    values = torch.tensor([loss(model(a), b).item() for a, b in zip(x.split(32), y.split(32))]).mean()
    dist.all_reduce(values)
    return float(values) / PROCESSES


@dataclass
class Times:
    clipping: list[float]
    noise: list[float]
    whole: list[float]
    coordinates: int = 0


def steps_of(
    noise: CorrelatedNoise,
    model: nn.Module,
    data: TensorDataset,
    optimizer: torch.optim.Optimizer,
    plan: an.Plan,
    times: Times | None,
) -> Iterator[str]:
    """The training loop; after each step, yields a description of the next step and the run."""
    stamps: list[float] = []
    optimizer.register_step_pre_hook(lambda *_: stamps.append(time.perf_counter()))
    noise.attach(optimizer)
    optimizer.register_step_pre_hook(lambda *_: stamps.append(time.perf_counter()))
    for x, y in noise.loader(data):
        start = time.perf_counter()
        clipped_sum_(model, loss, x, y, plan.clip_norm, microbatch_size=16, norms="ghost")
        optimizer.step()
        optimizer.zero_grad()
        if times is not None:
            before, after = stamps[-2:]
            times.clipping.append(before - start)
            times.noise.append(after - before)
            times.whole.append(time.perf_counter() - start)
        yield f"next step {noise.step} of the run {noise.token[:16]}"


def tune(
    task: Task, way: str, rate: float, seed: int, data: TensorDataset, times: Times, middle: bool = False
) -> nn.Module:
    """A complete private run. If `middle` is given, saves a checkpoint at that step, and the model one step
    later.
    """
    torch.manual_seed(seed)
    model, plan = task.tuned(), task.plan(way)
    for block in model.blocks:
        fully_shard(block)
    fully_shard(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    # A key from a seed makes the table reproducible; without one, rank 0 draws it from the operating system.
    noise = CorrelatedNoise(model, plan, an.Key.from_seed_insecure(seed), run=f"{way} {rate}")
    times.coordinates = noise.coordinates
    for where in steps_of(noise, model, data, optimizer, plan, times):
        if middle and noise.step == task.steps // 2:
            dcp.save({"noise": noise, "model": model}, checkpoint_id=task.folder / "middle")
            if dist.get_rank() == 0:
                print(f"checkpoint of {PROCESSES} processes: {where}", flush=True)
        if middle and noise.step == task.steps // 2 + 1:
            dcp.save({"model": model}, checkpoint_id=task.folder / "later")
    return model


def work(rank: int, task: Task) -> None:
    """The work of one process: all runs, one after the other."""
    dist.init_process_group(
        "gloo", init_method=f"file://{task.folder}/peers", rank=rank, world_size=PROCESSES
    )
    torch.set_num_threads(1)
    private, choose, test = map(asked, task.parts()[1:])

    def say(text: str) -> None:
        if rank == 0:
            print(text, flush=True)

    start = time.perf_counter()
    rows = [f"| before fine-tuning | | | {loss_of(task.tuned(), test):.4f} |"]
    say(f"before fine-tuning: {loss_of(task.tuned(), choose):.3f}")
    for way in WAYS:
        times, tested = Times([], [], []), {}

        def losses(
            rate: float, way: str = way, times: Times = times, tested: dict[float, float] = tested
        ) -> float:
            first = way == "correlated" and rate == FIRST_RATE
            model = tune(task, way, rate, 0, private, times, middle=first)
            tested[rate], value = loss_of(model, test), loss_of(model, choose)
            say(f"{way}, seed 0, rate {rate:g}: {value:.3f} after {time.perf_counter() - start:.0f} s")
            return value

        rate, _ = best_rate(losses, FIRST_RATE, task.rates)
        others = [loss_of(tune(task, way, rate, seed, private, times), test) for seed in range(1, task.seeds)]
        rows.append(
            f"| {way} | {noise_of(task.plan(way)):.4f} | {rate:g} | {with_error([tested[rate], *others])} |"
        )
        whole, noise = statistics.median(times.whole), statistics.median(times.noise)
        say(
            f"{way}: {whole:.2f} s a step (median of {len(times.whole)}), of which noise {noise:.2f} s"
            f" ({noise / whole:.0%})"
        )
        say(
            f"  rank 0 makes noise for {times.coordinates} coordinates; {time.perf_counter() - start:.0f} s"
            " since the start"
        )
    say("\n| | noise, by the plan | rate | loss |\n|---|---|---|---|\n" + "\n".join(rows) + "\n")
    dist.destroy_process_group()


def resume(task: Task) -> None:
    """Resumes the checkpoint of several processes in one process."""
    model, later, plan = task.model(), task.model(), task.plan("correlated")
    noise = CorrelatedNoise(model, plan, run=f"correlated {FIRST_RATE}")
    dcp.load({"noise": noise, "model": model}, checkpoint_id=task.folder / "middle")
    optimizer = torch.optim.SGD(model.parameters(), lr=FIRST_RATE)
    print(f"resumed by one: next step {noise.step}, noise for {noise.coordinates} coordinates")
    middle = [p.detach().clone() for p in model.parameters()]
    print("  and after it " + next(steps_of(noise, model, asked(task.parts()[1]), optimizer, plan, None)))
    dcp.load({"model": later}, checkpoint_id=task.folder / "later")
    moved, apart = (
        max(float((p - q).detach().abs().max()) for p, q in zip(model.parameters(), others))
        for others in (middle, later.parameters())
    )
    print(
        f"the step moves a parameter by {moved:.1e} at most; those of {PROCESSES} processes differ after it"
        f" by {apart:.1e} at most"
    )


def elsewhere(task: Task) -> None:
    """Predicted noise for other sizes: correlated noise divided by independent noise."""
    dim = sum(p.numel() for p in task.model().parameters())
    epsilons = (1.0, 2.0, 4.0, 8.0, 16.0)
    print(
        "| examples, batch, steps | "
        + " | ".join(f"epsilon {e:g}" for e in epsilons)
        + " |\n|---"
        + "|---" * len(epsilons)
        + "|"
    )
    examples = task.steps * task.batch
    for sizes in ((examples, task.batch), (4 * examples, task.batch), (examples, 4 * task.batch)):
        noise = [[noise_of(plan_of(way, *sizes, task.steps, e, dim)) for way in WAYS] for e in epsilons]
        print(
            f"| {sizes[0]}, {sizes[1]}, {task.steps} | " + " | ".join(f"{a / b:.2f}" for a, b in noise) + " |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("text", nargs="?", type=Path)
    parser.add_argument("--cache", type=Path, help="where the pre-trained model is, or is put")
    parser.add_argument("--epsilon", type=float, default=8.0)
    parser.add_argument("--steps", type=int, default=32)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rates", type=int, default=4, help="so many are tried for each way at most")
    parser.add_argument("--pretraining", type=int, default=500, help="steps of pre-training")
    parser.add_argument(
        "--capitals", action="store_true", help="the private text is in capitals, unlike the public"
    )
    parser.add_argument("--smoke", action="store_true", help="a tiny model and text that is made up: seconds")
    given = parser.parse_args()
    if given.text is None and not given.smoke:
        parser.error("TEXT or --smoke must be given")
    with tempfile.TemporaryDirectory() as folder:
        cache = given.cache or Path(folder) / "pretrained.pt"
        shared: Any = dict(text=given.text, pretrained=cache, folder=Path(folder), epsilon=given.epsilon)
        shared |= dict(rates=given.rates, capitals=given.capitals)
        if given.smoke:
            task = Task(16, 2, 2, 16, pretraining=20, batch=16, steps=6, held_out=32, seeds=2, **shared)
        else:
            sizes = dict(
                pretraining=given.pretraining,
                batch=given.batch,
                steps=given.steps,
                held_out=256,
                seeds=given.seeds,
            )
            task = Task(384, 6, 6, 64, **sizes, **shared)
        if not task.pretrained.exists():
            torch.set_num_threads(PROCESSES)
            pretrain(task)
        print(task.plan("correlated").statement.split("\n\n")[0], flush=True)
        multiprocessing.spawn(work, (task,), nprocs=PROCESSES)
        resume(task)
        elsewhere(task)


if __name__ == "__main__":
    main()
