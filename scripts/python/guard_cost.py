#!/usr/bin/env python3
"""Times what it costs to see to it that each step takes its own batch, and its examples take part as the plan
says.

    python scripts/python/guard_cost.py [--batch 64] [--rounds 9] [--workers 0]

Run it with a Python that has antinoise and torch. A multilayer perceptron (64-64-10) trains on as many
examples as the digits have (1,437 of 64 numbers), for four epochs a round; the calls of the guard are timed
within the steps that they are part of, in processor time of the one thread. Printed are the median, the least
and the greatest share of a round's time, and microseconds of a step.
"""

import argparse
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import torch
from torch import nn
from torch.utils.data import TensorDataset

import antinoise as an
from antinoise.torch import CorrelatedNoise, batches, clipped_sum_, clipping, noise, participations, sums

EXAMPLES, EPOCHS = 1_437, 4
# Where each part of the guard is called.
PARTS = [
    (batches.BatchSampler, ("_check_turn", "check_handed", "use")),
    (participations.StepExamples, ("take_named", "of_step", "record")),
    (batches, ("mark",)),
    (clipping, ("clips",)),
    (noise, ("sources_of",)),
    (sums, ("drop_sources",)),
]
spent = [0.0]


def timed(function: Callable[..., Any]) -> Callable[..., Any]:
    def wrapped(*args: Any, **how: Any) -> Any:
        start = time.thread_time()
        try:
            return function(*args, **how)
        finally:
            spent[0] += time.thread_time() - start

    return wrapped


def round_of(plan: an.Plan, data: TensorDataset, workers: int) -> tuple[float, float, int]:
    """Processor seconds of a run, those of them in the guard, and steps."""
    model = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run = CorrelatedNoise(model, plan, an.Key.from_os(), threads=1).attach(optimizer)
    spent[0], start = 0.0, time.thread_time()
    for x, y in run.loader(data, num_workers=workers):
        clipped_sum_(model, nn.functional.cross_entropy, x, y, plan.clip_norm)
        optimizer.step()
    return time.thread_time() - start, spent[0], run.step


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    arguments.add_argument("--batch", type=int, default=64)
    arguments.add_argument("--rounds", type=int, default=9)
    arguments.add_argument("--workers", type=int, default=0)
    how = arguments.parse_args()
    torch.set_num_threads(1)
    for where, names in PARTS:
        for name in names:
            setattr(where, name, timed(getattr(where, name)))
    data = TensorDataset(torch.rand(EXAMPLES, 64), torch.randint(0, 10, (EXAMPLES,)))
    for setting in ("cyclic", "poisson"):
        plan = an.plan(EXAMPLES, how.batch, epochs=EPOCHS, epsilon=4, delta=1e-5, setting=setting, mechanism="banded-toeplitz:4", dim=4_810)
        round_of(plan, data, how.workers)
        rounds = [round_of(plan, data, how.workers) for _ in range(how.rounds)]
        shares, each = [100 * guard / whole for whole, guard, _ in rounds], [1e6 * guard / steps for _, guard, steps in rounds]
        step = median(1e6 * whole / steps for whole, _, steps in rounds)
        print(f"{setting}: {median(shares):.2f}% of a step ({min(shares):.2f} to {max(shares):.2f}), {median(each):.0f} of {step:.0f} microseconds")


if __name__ == "__main__":
    main()
