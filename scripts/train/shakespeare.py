#!/usr/bin/env python3
"""Compares mechanisms for DP-FedAvg of a character model on plays by speaker, and writes
docs/results/shakespeare.md.

    python3 scripts/train/shakespeare.py ../shared/data/shakespeare.txt
    python3 scripts/train/shakespeare.py PLAYS --program target/release/examples/fedavg --out /tmp/shakespeare.md

PLAYS is a text in which a line NAME: opens a speech and an empty line ends it: tiny Shakespeare, in the
public domain.

For each mechanism the server's learning rate is searched by halves and doubles, with the first seed, until
the rate of smallest validation loss is not at an edge of the rates tried; then all seeds run at that rate. A
mechanism that is optimised is also designed for weight decay in addition to the momentum, which is doubled
until the mean validation loss grows; the test loss is reported for the decay of smallest validation loss. The
setting (model, cohort, rounds, clip norm, local steps) was chosen by training without privacy and with
independent noise, before any correlated noise ran.
"""

import argparse
import json
import math
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODEL = ["--embedding", "8", "--hidden", "32", "--length", "40"]
LOCAL = [
    "--local-rate",
    "3",
    "--local-batch",
    "8",
    "--local-steps",
    "4",
    "--clip-norm",
    "1",
    "--momentum",
    "0.9",
]
SETTINGS = {
    "speakers": [
        "--users",
        "speakers",
        "--characters",
        "4000",
        "--cohort",
        "46",
        "--min-sep",
        "5",
        "--rounds",
        "100",
    ],
    "stretches": [
        "--users",
        "stretches",
        "--characters",
        "1280",
        "--cohort",
        "70",
        "--min-sep",
        "10",
        "--rounds",
        "100",
    ],
    "twice": [
        "--users",
        "stretches",
        "--characters",
        "1280",
        "--cohort",
        "15",
        "--min-sep",
        "10",
        "--max-participations",
        "2",
        "--rounds",
        "100",
    ],
}
# More bands than the separation help if users come less often than it allows.
BANDS = {"speakers": [5], "stretches": [10], "twice": [10, 30]}
# Weight decays for which strategies are designed: they model that training forgets early noise.
DAMPINGS = [0, 0.1, 0.2, 0.4]
FIRST_RATES = {"none": 0.8}


def mechanisms(unit):
    """Specification and name of each mechanism, and whether it is optimised."""
    banded = [(f"banded-toeplitz:{bands}", f"banded Toeplitz, {bands} bands", True) for bands in BANDS[unit]]
    tree, independent = (
        ("honaker-full", "tree (Honaker, full)", False),
        (
            "identity",
            "independent noise",
            False,
        ),
    )
    return [("none", "no noise", False), ("blt:4", "BLT, 4 buffers", True), *banded, tree, independent]


def runs(program, plays, setting, mechanism, damping, rates, seeds):
    words = [program, "--data", plays, *MODEL, *LOCAL, *setting, "--mechanism", mechanism]
    words += ["--workload", f"momentum:0.9,{damping}" if damping else "momentum:0.9"]
    words += ["--rates", ",".join(map(str, rates)), "--seeds", ",".join(map(str, seeds))]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def best_rate(losses):
    """The learning rate of smallest validation loss."""
    return min(losses, key=losses.get)


def search(run, first):
    """The results by learning rate: doubles and halves until the best rate is not at an edge."""
    found = {}
    wanted = [first / 2, first, first * 2]
    while True:
        for result in run([rate for rate in wanted if rate not in found]):
            loss = result["validation_loss"]
            found[result["rate"]] = math.inf if loss is None else loss
        best = best_rate(found)
        wanted = [best / 2, best, best * 2]
        if all(rate in found for rate in wanted):
            return best, found


def mean_and_error(values):
    return statistics.mean(values), statistics.stdev(values) / math.sqrt(len(values))


def mean(results, name):
    return statistics.mean(result[name] for result in results)


def with_error(results, name, digits, scale=1):
    middle, error = mean_and_error([scale * result[name] for result in results])
    return f"{middle:.{digits}f} ± {error:.{digits}f}"


def designs(run, rate, is_designed):
    """For each damping (weight decay of the design), the best rate and the results of all seeds, until more
    damping is worse.
    """
    found, dampings = {}, list(DAMPINGS if is_designed else [0])
    for damping in dampings:
        rate, _ = search(lambda rates: run(damping, rates, 1) if rates else [], rate)
        found[damping] = rate, run(damping, [rate], None)
        if is_designed and damping == dampings[-1] == least(found):
            dampings.append(2 * damping)
    return found


def least(found):
    """The damping of smallest validation loss."""
    return min(found, key=lambda damping: mean(found[damping][1], "validation_loss"))


def row(name, found):
    damping = least(found)
    (_, undamped), (rate, results) = found[0], found[damping]
    rms = undamped[0]["rms_loss"]
    rms = "" if rms is None else f"{rms:.3f}"
    before = with_error(undamped, "loss", 4) if len(found) > 1 else ""
    decay = f"{damping:g}" if len(found) > 1 else ""
    after = f"{with_error(results, 'loss', 4)} | {with_error(results, 'accuracy', 2, 100)}%"
    return f"| {name} | {rms} | {before} | {decay} | {after} | {rate:g} |"


def ahead(rows):
    """The best private mechanism and its lead over the next one, paired by seed."""
    private = sorted(
        ((name, found[least(found)][1]) for name, found in rows if name != "no noise"),
        key=lambda item: mean(item[1], "loss"),
    )
    (best, first), (second, next_) = private[:2]
    by_seed = {result["seed"]: result["loss"] for result in next_}
    difference, error = mean_and_error([by_seed[result["seed"]] - result["loss"] for result in first])
    return f"Least loss: {best}; next: {second}, {difference:.4f} ± {error:.4f} behind over the same seeds."


def table(program, plays, unit, seeds):
    rows, users, parameters = [], 0, 0
    for mechanism, name, is_designed in mechanisms(unit):

        def run(damping, rates, count):
            return runs(program, plays, SETTINGS[unit], mechanism, damping, rates, seeds[:count])

        found = designs(run, FIRST_RATES.get(mechanism, 0.2), is_designed)
        users, parameters = found[0][1][0]["users"], found[0][1][0]["parameters"]
        rows.append((name, found))
        tried = {
            damping: round(mean(results, "validation_loss"), 4) for damping, (_, results) in found.items()
        }
        print(unit, row(name, found), tried, flush=True)
    lines = [HEAD, *(row(*found) for found in rows), "", ahead(rows)]
    return "\n".join(lines), users, parameters


HEAD = """| mechanism | predicted RMS loss | loss, nats, as predicted | damping | loss, nats, at that damping | accuracy | server rate |
|---|---|---|---|---|---|---|"""


def page(tables, seeds):
    (speakers, n_speakers, parameters), (stretches, n_stretches, _) = tables["speakers"], tables["stretches"]
    twice, n_twice, _ = tables["twice"]
    return f"""# Shakespeare by speaker

DP-FedAvg of a character LSTM of {parameters:,} parameters on tiny Shakespeare: predicting the next character for speakers who took no
part. Epsilon 8, delta 1e-5, zero-out adjacency, external sampler (min-sep). Means of {len(seeds)} seeds and their standard errors. Written by

```
python3 scripts/train/shakespeare.py ../shared/data/shakespeare.txt
```

80% of the speakers train, 10% choose the server's rate and the damping, 10% are reported, by the hash of their names. What is chosen by the
validation speakers and reported of the test speakers is taken to be public: no statement covers it. Symbols are a vocabulary of 64
that is fixed beforehand. The first 4,000 characters of a training speaker are used. A user shuffles its sequences of 40 characters and makes at most 4 local steps of rate 3 on 8 of them; the
update is clipped to 1; the server runs SGD with momentum 0.9.

Epsilon 8 is that of one training. Each row is the best of a dozen or more trainings on the same users (rates, dampings, seeds), which epsilon
does not pay for, and keys came from seeds: an experiment on public text, not a publication. The tree and independent noise have no damping to choose.

The predicted RMS loss is that of the plan for `momentum:0.9`, with its noise, for a clip norm of 1 and divided by the cohort. It counts the
noise of all rounds alike; training forgets what early noise did. So a strategy is also designed for `momentum:0.9,DAMPING`, as if the server
had that much weight decay, and the damping is the one that the validation speakers choose, as they choose the server's rate.

## The user is a speaker

{n_speakers} users, 46 in a round of 100, at least 5 rounds apart, 20 times at most.

{speakers}

## The user is a stretch of 1,280 characters

A speaker's text cut into stretches, each a user of its own: {n_stretches} users, 70 in a round of 100, at least 10 rounds apart, 10 times at
most. The statement then protects a stretch, not all that a speaker says: this is what the same mechanisms do with a larger population.

{stretches}

## The same, where a user may come twice

{n_twice} users, 15 in a round of 100, at least 10 rounds apart, twice at most: fewer times than the separation allows.

{twice}
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plays")
    parser.add_argument("--program", help="the example fedavg, built; else it is built")
    parser.add_argument("--out", default=str(ROOT / "docs/results/shakespeare.md"))
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    program = arguments.program
    if program is None:
        subprocess.run(
            ["cargo", "build", "--release", "-p", "antinoise-federated", "--example", "fedavg"],
            cwd=ROOT,
            check=True,
        )
        program = str(ROOT / "target/release/examples/fedavg")
    seeds = list(range(1, arguments.seeds + 1))
    tables = {unit: table(program, arguments.plays, unit, seeds) for unit in SETTINGS}
    Path(arguments.out).write_text(page(tables, seeds))


if __name__ == "__main__":
    sys.exit(main())
