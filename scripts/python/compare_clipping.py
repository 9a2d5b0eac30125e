#!/usr/bin/env python3
"""Times a private step of the small CNN in PyTorch: clipped_sum_ and Opacus, alternating in one process.

    PYTHONPATH=python python3 scripts/python/compare_clipping.py [--threads 1] [--rounds 15] [--micro-batch 125] [--json]

The model is that of antinoise-train, `Model::cnn` on 28x28 images: 26,010 parameters; images are random, a
batch has 500. A step clips, sums, adds noise (torch's in every variant, since only clipping is compared) and
takes a step of SGD with momentum. Each round runs every variant once, in random order. Printed are the median
and the middle half of each variant's time divided by that of Opacus's ghost clipping in the same round. If
Opacus is not installed, its variants are left out and times are divided by those of a step without privacy.
"""

import argparse
import copy
import random
import statistics
import time
import warnings

import torch
from rounds import as_json, seconds
from torch import nn

from antinoise.torch import clipped_sum_
from antinoise.torch.held_sums import drop_sums, held_sum

BATCH, CLIP_NORM = 500, 1.0
loss = nn.functional.cross_entropy


def cnn():
    model = nn.Sequential(
        nn.Conv2d(1, 16, 8, 2, padding=3), nn.MaxPool2d(2, 1), nn.Tanh(),
        nn.Conv2d(16, 32, 4, 2), nn.MaxPool2d(2, 1), nn.Tanh(),
        nn.Flatten(), nn.Linear(512, 32), nn.Tanh(), nn.Linear(32, 10),
    )  # fmt: skip
    assert sum(p.numel() for p in model.parameters()) == 26010
    return model


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=1e-6, momentum=0.9)


def plain(model, images, labels):
    optimizer = sgd(model)

    def step():
        optimizer.zero_grad()
        loss(model(images), labels).backward()
        optimizer.step()

    return step


def own(how, microbatch_size, model, images, labels):
    optimizer, how = sgd(model), how | {"microbatch_size": microbatch_size}

    def step():
        clipped_sum_(model, loss, images, labels, CLIP_NORM, **how)
        for p in model.parameters():
            total = held_sum(p).total * how.get("grid_spacing", 1.0)
            p.grad = ((total + torch.randn_like(total)) / BATCH).to(p.dtype)
        drop_sums(model.parameters())
        optimizer.step()

    return step


def opacus(mode, model, images, labels):
    from opacus import PrivacyEngine

    data = torch.utils.data.TensorDataset(images, labels)
    private, optimizer, *rest = PrivacyEngine().make_private(
        module=model,
        optimizer=sgd(model),
        criterion=nn.CrossEntropyLoss(),
        data_loader=torch.utils.data.DataLoader(data, batch_size=BATCH),
        noise_multiplier=1.0,
        max_grad_norm=CLIP_NORM,
        grad_sample_mode=mode,
        poisson_sampling=False,
    )
    criterion = rest[0] if mode == "ghost" else nn.CrossEntropyLoss()

    def step():
        optimizer.zero_grad()
        criterion(private(images), labels).backward()
        optimizer.step()

    return step


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--micro-batch", type=int, default=125)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    random.seed(0)
    model, images, labels = cnn(), torch.rand(BATCH, 1, 28, 28), torch.arange(BATCH) % 10
    ways = {
        "antinoise ghost": lambda *how: own({"norms": "ghost"}, options.micro_batch, *how),
        "antinoise per example": lambda *how: own({"norms": "per_example"}, options.micro_batch, *how),
        "antinoise exact": lambda *how: own({"grid_spacing": 2.0**-18}, options.micro_batch, *how),
        "Opacus ghost": lambda *how: opacus("ghost", *how),
        "Opacus hooks": lambda *how: opacus("hooks", *how),
        "without privacy": plain,
    }
    steps = {}
    for name, make in ways.items():
        try:
            steps[name] = make(copy.deepcopy(model), images, labels)
        except ImportError:
            print(f"left out: {name}")
    clock = time.process_time if options.json else time.perf_counter
    times = seconds(steps, options.rounds, clock=clock)
    base = "Opacus ghost" if "Opacus ghost" in steps else "without privacy"
    if options.json:
        setting = f"26,010 parameters, batch {BATCH}, {options.threads} thread"
        print(as_json("A private step of a CNN", setting, "antinoise ghost", times))
        return
    print(f"a step of the CNN, batch {BATCH}, {options.threads} threads, {options.rounds} rounds")
    print(f"{'':21}  median ms  over {base} (middle half)")
    for name, found in times.items():
        low, middle, high = statistics.quantiles([own / other for own, other in zip(found, times[base])])
        print(f"{name:21}  {1e3 * statistics.median(found):9.1f}  {middle:.2f} ({low:.2f} to {high:.2f})")


if __name__ == "__main__":
    main()
