#!/usr/bin/env python3
"""The federated rounds of scripts/train/shakespeare.py in Flower: a speaker is a user with the own lines, and
the server has momentum, a cooldown and zeroing of large updates. Writes its part of
docs/results/shakespeare.md.

    python scripts/python/flower_shakespeare.py PLAYS [--seeds 10]

Run it with a Python that has antinoise and flwr. The LSTM of a round's speakers is computed in NumPy, all at
once, and answers in one process; all else is Flower's strategy FedAvg in `CorrelatedNoise`. Learning rates
are those that were found for the same rounds in Rust.
"""

import argparse
import logging
import os
import sys
import tempfile
from pathlib import Path

os.environ["FLWR_TELEMETRY_ENABLED"] = "0"
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # its products are small

import numpy as np
import one_process

import antinoise as an
from antinoise.flower import ServerOptimizer

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "train"))
import shakespeare
import speeches

ROUNDS, COHORT, MIN_SEP, ZERO_BEYOND = 100, 46, 5, 100.0
LOCAL_RATE, LOCAL_BATCH, LOCAL_STEPS = 3.0, 8, 4
MOST_CHARACTERS, LENGTH, SYMBOLS, EMBEDDING, HIDDEN = 4000, 40, 64, 8, 32
NUMBERS = {character: 1 + i for i, character in enumerate(speeches.CHARACTERS)}
SHAPES = {
    "embedding": (SYMBOLS, EMBEDDING),
    "input": (EMBEDDING, 4 * HIDDEN),
    "hidden": (HIDDEN, 4 * HIDDEN),
    "bias": (1, 4 * HIDDEN),
    "output": (HIDDEN, SYMBOLS),
    "output_bias": (1, SYMBOLS),
}


def sequences(text):
    """Given characters, characters to predict, and which of these there are: sequences x length."""
    numbers = np.array([1, *(NUMBERS.get(c, 0) for c in text)])
    count = -(-(len(numbers) - 1) // LENGTH)
    room = np.zeros((2, count * LENGTH), np.int64)
    room[0, : len(numbers) - 1], room[1, : len(numbers) - 1] = numbers[:-1], numbers[1:]
    there = np.arange(count * LENGTH) < len(numbers) - 1
    return *room.reshape(2, count, LENGTH), there.reshape(count, LENGTH)


def speakers(plays):
    """The sequences of each training speaker, and those of all test speakers."""
    texts = {"training": {}, "test": {}, "validation": {}}
    for speaker, line in speeches.lines(plays):
        texts[speeches.part_of(speaker)].setdefault(speaker, []).append(f"{line}\n")
    training = {name: sequences("".join(text)[:MOST_CHARACTERS]) for name, text in texts["training"].items()}
    test = [sequences("".join(text)) for text in texts["test"].values()]
    return training, [np.concatenate(part) for part in zip(*test)]


def parts(flat):
    """The matrices of models x parameters."""
    found, start = {}, 0
    for name, (rows, columns) in SHAPES.items():
        found[name] = flat[:, start : start + rows * columns].reshape(-1, rows, columns)
        start += rows * columns
    return found


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def states(weights, given):
    """Inputs, and gates and states by step, of models x sequences."""
    models, count, length = given.shape
    x = np.take_along_axis(weights["embedding"], given.reshape(models, -1, 1), axis=1)
    drive = (x @ weights["input"] + weights["bias"]).reshape(models, count, length, -1)
    h = c = np.zeros((models, count, HIDDEN), np.float32)
    steps = []
    for t in range(length):
        z = drive[:, :, t] + h @ weights["hidden"]
        i, f, g, o = np.split(z, 4, axis=2)
        i, f, g, o = sigmoid(i), sigmoid(f), np.tanh(g), sigmoid(o)
        before, c = c, f * c + i * g
        squashed = np.tanh(c)
        steps.append((i, f, g, o, before, squashed, h))
        h = o * squashed
    return x, steps, np.stack([*(step[6] for step in steps[1:]), h], axis=2)


def scores(weights, h):
    """The logits of models x characters."""
    return h.reshape(len(h), -1, HIDDEN) @ weights["output"] + weights["output_bias"]


def gradient(flat, given, wanted, there):
    """Gradients of the mean loss of each model over the sequences of its own batch."""
    weights, models = parts(flat), len(flat)
    x, steps, h = states(weights, given)
    logits = scores(weights, h)
    logits -= logits.max(axis=2, keepdims=True)
    d = np.exp(logits)
    d /= d.sum(axis=2, keepdims=True)
    flat_wanted, flat_there = wanted.reshape(models, -1, 1), there.reshape(models, -1, 1)
    np.put_along_axis(d, flat_wanted, np.take_along_axis(d, flat_wanted, axis=2) - 1, axis=2)
    d *= flat_there / np.maximum(flat_there.sum(axis=1, keepdims=True), 1)
    d = d.astype(np.float32)
    flat_h = h.reshape(models, -1, HIDDEN)
    found = {"output": flat_h.transpose(0, 2, 1) @ d, "output_bias": d.sum(axis=1, keepdims=True)}
    of_h = (d @ weights["output"].transpose(0, 2, 1)).reshape(h.shape)
    hidden = weights["hidden"].transpose(0, 2, 1)
    dh, dc = np.zeros_like(of_h[:, :, 0]), np.zeros_like(of_h[:, :, 0])
    drives, found["hidden"] = [], np.zeros_like(weights["hidden"])
    for t in reversed(range(len(steps))):
        i, f, g, o, before, squashed, h_before = steps[t]
        dh = dh + of_h[:, :, t]
        dc = dc + dh * o * (1 - squashed**2)
        gates = [dc * g * i * (1 - i), dc * before * f * (1 - f), dc * i * (1 - g**2)]
        dz = np.concatenate([*gates, dh * squashed * o * (1 - o)], axis=2)
        drives.append(dz)
        found["hidden"] += h_before.transpose(0, 2, 1) @ dz
        dh, dc = dz @ hidden, dc * f
    drive = np.stack(drives[::-1], axis=2).reshape(models, -1, 4 * HIDDEN)
    found["input"] = x.transpose(0, 2, 1) @ drive
    found["bias"] = drive.sum(axis=1, keepdims=True)
    each = np.eye(SYMBOLS, dtype=np.float32)[given.reshape(models, -1)]
    found["embedding"] = each.transpose(0, 2, 1) @ (drive @ weights["input"].transpose(0, 2, 1))
    return np.concatenate([found[name].reshape(models, -1) for name in SHAPES], axis=1)


def batch(data, made):
    """The batches of a user's local steps: given, wanted and there, empty where there is no step."""
    count = len(data[0])
    order, groups = made.permutation(count), -(-count // LOCAL_BATCH)
    room = [np.zeros((LOCAL_STEPS, LOCAL_BATCH, LENGTH), part.dtype) for part in data]
    for step, rows in enumerate(np.array_split(order, groups)[:LOCAL_STEPS]):
        for to, part in zip(room, data):
            to[step, : len(rows)] = part[rows]
    return room


def trained(start, users, made):
    """The models of users after their local steps, each from `start`."""
    given, wanted, there = (np.stack(part) for part in zip(*(batch(user, made) for user in users)))
    models = np.repeat(start[None], len(users), axis=0)
    for step in range(LOCAL_STEPS):
        models = models - LOCAL_RATE * gradient(models, given[:, step], wanted[:, step], there[:, step])
    return models.astype(np.float32)


def accuracy(model, test):
    """The share of the test characters that are predicted."""
    given, wanted, there = test
    weights, right = parts(model[None]), 0
    for first in range(0, len(given), 512):
        some = slice(first, first + 512)
        predicted = scores(weights, states(weights, given[None, some])[2])[0].argmax(axis=1)
        right += (predicted == wanted[some].ravel())[there[some].ravel()].sum()
    return float(right / there.sum())


def initial(made):
    """Random parameters, as in the crate antinoise-federated: embeddings of up to 1, open forget gates."""
    bound = 1 / np.sqrt(HIDDEN)
    found = {name: made.uniform(-bound, bound, shape) for name, shape in SHAPES.items()}
    found["embedding"] = made.uniform(-1, 1, SHAPES["embedding"])
    found["output_bias"], found["bias"] = np.zeros((1, SYMBOLS)), np.zeros((1, 4 * HIDDEN))
    found["bias"][:, HIDDEN : 2 * HIDDEN] = 1
    return np.concatenate([found[name].ravel() for name in SHAPES]).astype(np.float32)


def run(plan, optimizer, users, test, made, folder):
    """The test accuracy of one training."""
    answers = lambda start, names: trained(start, [users[name] for name in names], made)  # noqa: E731
    model = one_process.trained(plan, optimizer, users, answers, initial(made), ZERO_BEYOND, folder)
    return accuracy(model, test)


def measured(case, users, test, seeds):
    """The test accuracies of a mechanism."""
    mechanism, momentum, rate = case
    optimizer = ServerOptimizer(rate, momentum=momentum, schedule="cooldown:0.25,0.05")
    plan = an.plan(
        examples=len(users),
        batch_size=COHORT,
        steps=ROUNDS,
        epsilon=8.0,
        delta=1e-5,
        setting="federated",
        min_sep=MIN_SEP,
        dim=sum(rows * columns for rows, columns in SHAPES.values()),
        mechanism=mechanism,
        workload=optimizer.workload(ROUNDS),
    )
    row = {"mechanism": mechanism, "momentum": momentum, "rate": rate, "accuracy": []}
    for seed in range(seeds):
        with tempfile.TemporaryDirectory() as folder:
            row["accuracy"].append(run(plan, optimizer, users, test, np.random.default_rng(seed), folder))
        print(mechanism, seed, row["accuracy"][-1], flush=True)
    return row


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("plays")
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    logging.getLogger("flwr").setLevel(logging.ERROR)
    users, test = speakers(options.plays)
    rows = [measured(case, users, test, options.seeds) for case in shakespeare.CASES_OF_COMMAND]
    shakespeare.store(shakespeare.stored() | {"flower": rows})
    shakespeare.write_page()


if __name__ == "__main__":
    main()
