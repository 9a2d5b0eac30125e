#!/usr/bin/env python3
"""Times the checks that each step takes its own batch and that examples take part as the plan says.

    python scripts/python/guard_cost.py [--batch 64] [--rounds 9] [--workers 0]

Run it with a Python that has antinoise and torch. A multilayer perceptron (64-64-10) trains on 1,437 examples
of 64 numbers, the size of the digits, for four epochs per round; times are processor times of a single
thread. Rounds of four kinds take turns: with timers around the functions of the guard; with the same timers
around functions that do nothing, which is the cost of the timers; with the guard alone; and without it.
Printed are the guard's share of a step by the timers, without their own cost, and the excess of a step with
the guard over one without: medians and quartiles of the rounds.
"""

import argparse
import time
from collections.abc import Callable
from contextlib import ExitStack
from statistics import median, quantiles
from typing import Any
from unittest.mock import patch

import torch
from torch import nn
from torch.utils.data import TensorDataset

import antinoise as an
from antinoise.torch import CorrelatedNoise, clipped_sum_, clipping
from antinoise.torch.data import batches, participations

EXAMPLES, EPOCHS = 1_437, 4
# The functions of the guard, and their results where they do nothing.
PARTS: list[tuple[Any, dict[str, Any]]] = [
    (batches.BatchSampler, {"_check_turn": None, "check_handed": None, "use": None}),
    (participations.StepExamples, {"take_named": None, "of_step": None, "record": None}),
    (batches, {"mark": None}),
    (clipping, {"sources_of": frozenset()}),
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


def replaced(*, timers: bool, nothing: bool) -> ExitStack:
    """Replaces the guard's functions: by timed ones if `timers`, by ones that do nothing if `nothing`."""
    stack = ExitStack()
    for where, names in PARTS:
        for name, result in names.items():
            function = (lambda *args, result=result: result) if nothing else getattr(where, name)
            stack.enter_context(patch.object(where, name, timed(function) if timers else function))
    if nothing:
        # Replaced too: to know the batch's size it would draw the batch, which `of_step` then does not do.
        stack.enter_context(patch.object(CorrelatedNoise, "_check_batch", lambda *args: None))
    return stack


def round_of(plan: an.Plan, data: TensorDataset, workers: int, **how: bool) -> tuple[float, float]:
    """Microseconds of a step, and the microseconds that the timers found in it."""
    model = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run = CorrelatedNoise(model, plan, an.Key.from_os(), threads=1).attach(optimizer)
    with replaced(**how):
        spent[0], start = 0.0, time.thread_time()
        for x, y in run.loader(data, num_workers=workers):
            clipped_sum_(model, nn.functional.cross_entropy, x, y, plan.clip_norm)
            optimizer.step()
        whole = time.thread_time() - start
    return 1e6 * whole / run.step, 1e6 * spent[0] / run.step


def shown(shares: list[float]) -> str:
    low, _, high = quantiles(shares, n=4)
    return f"{100 * median(shares):.2f}% ({100 * low:.2f} to {100 * high:.2f})"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    arguments.add_argument("--batch", type=int, default=64)
    arguments.add_argument("--rounds", type=int, default=9)
    arguments.add_argument("--workers", type=int, default=0)
    how = arguments.parse_args()
    torch.set_num_threads(1)
    data = TensorDataset(torch.rand(EXAMPLES, 64), torch.randint(0, 10, (EXAMPLES,)))
    for setting in ("cyclic", "poisson"):
        plan = an.plan(
            EXAMPLES,
            how.batch,
            epochs=EPOCHS,
            epsilon=4,
            delta=1e-5,
            setting=setting,
            mechanism="banded-toeplitz:4",
            dim=4_810,
        )
        round_of(plan, data, how.workers, timers=False, nothing=False)
        found = []
        for _ in range(how.rounds):
            kinds = [(timers, nothing) for timers in (True, False) for nothing in (False, True)]
            guard, timers, whole, bare = (
                round_of(plan, data, how.workers, timers=timers, nothing=nothing) for timers, nothing in kinds
            )
            found.append(
                (
                    (guard[1] - timers[1]) / whole[0],
                    whole[0] / bare[0] - 1,
                    guard[1] - timers[1],
                    timers[1],
                    whole[0],
                )
            )
        shares, ratios, *times = zip(*found)
        net, own, step = map(median, times)
        print(
            f"{setting}: {net:.0f} of {step:.0f} microseconds, {shown(shares)} of a step (timers: {own:.0f}"
            f" more); against no guard {shown(ratios)} more"
        )


if __name__ == "__main__":
    main()
