#!/usr/bin/env python3
"""Compares mechanisms for DP-FedAvg of a character model on plays by speaker, and writes docs/results/shakespeare.md.

    python3 scripts/train/shakespeare.py ../shared/data/shakespeare.txt
    python3 scripts/train/shakespeare.py PLAYS --program target/release/examples/fedavg --out /tmp/shakespeare.md

PLAYS is a text in which a line NAME: opens a speech and an empty line ends it: tiny Shakespeare, in the public domain.

For each mechanism the server's learning rate is searched by halves and doubles, with the first seed, until the least loss on the
validation speakers is on no edge; then all seeds run at that rate, and the test speakers are reported. The setting (model, cohort,
rounds, clip norm, local steps) was chosen by training without privacy and with independent noise, before any correlated noise ran.
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
LOCAL = ["--local-rate", "3", "--local-batch", "8", "--local-steps", "4", "--clip-norm", "1", "--momentum", "0.9"]
SETTINGS = {
    "speakers": ["--users", "speakers", "--characters", "4000", "--cohort", "46", "--min-sep", "5", "--rounds", "100"],
    "stretches": ["--users", "stretches", "--characters", "1280", "--cohort", "70", "--min-sep", "10", "--rounds", "100"],
}
NAMES = {
    "none": "no noise",
    "blt:4": "BLT, 4 buffers",
    "banded-toeplitz": "banded Toeplitz, {bands} bands",
    "honaker-full": "tree (Honaker, full)",
    "identity": "independent noise",
}
FIRST_RATES = {"none": 0.8}


def runs(program, plays, setting, mechanism, rates, seeds):
    bands = setting[setting.index("--min-sep") + 1]
    spec = f"banded-toeplitz:{bands}" if mechanism == "banded-toeplitz" else mechanism
    words = [program, "--data", plays, *MODEL, *LOCAL, *setting, "--mechanism", spec]
    words += ["--rates", ",".join(map(str, rates)), "--seeds", ",".join(map(str, seeds))]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def best_rate(losses):
    """The rate of least validation loss."""
    return min(losses, key=losses.get)


def search(run, first):
    """Doubles and halves until the best is on no edge."""
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


def row(mechanism, setting, results, rate, searched):
    bands = setting[setting.index("--min-sep") + 1]
    accuracy, loss = ([result[name] for result in results] for name in ("accuracy", "loss"))
    (a, a_error), (l, l_error) = mean_and_error(accuracy), mean_and_error(loss)
    rms = results[0]["rms_loss"]
    rms = "" if rms is None else f"{rms:.3f}"
    name = NAMES[mechanism].format(bands=bands)
    return f"| {name} | {rms} | {100 * a:.2f} ± {100 * a_error:.2f}% | {l:.4f} ± {l_error:.4f} | {rate:g} | {len(searched)} |"


def table(program, plays, unit, seeds):
    setting, rows, users, parameters = SETTINGS[unit], [], 0, 0
    for mechanism in NAMES:
        run = lambda rates: runs(program, plays, setting, mechanism, rates, seeds[:1]) if rates else []
        rate, searched = search(run, FIRST_RATES.get(mechanism, 0.2))
        results = runs(program, plays, setting, mechanism, [rate], seeds)
        users, parameters = results[0]["users"], results[0]["parameters"]
        rows.append(row(mechanism, setting, results, rate, searched))
        print(unit, rows[-1], {r: round(x, 4) for r, x in sorted(searched.items())}, flush=True)
    return rows, users, parameters


HEAD = """| mechanism | predicted RMS loss | accuracy | loss, nats | server rate | rates tried |
|---|---|---|---|---|---|"""


def page(tables, seeds):
    (speakers, n_speakers, parameters), (stretches, n_stretches, _) = tables["speakers"], tables["stretches"]
    return f"""# Shakespeare by speaker

DP-FedAvg of a character LSTM of {parameters:,} parameters on tiny Shakespeare: the next character, foretold for speakers who took no
part. Epsilon 8, delta 1e-5, zero-out adjacency, external sampler (min-sep). Means of {len(seeds)} seeds and their standard errors. Written by

```
python3 scripts/train/shakespeare.py ../shared/data/shakespeare.txt
```

80% of the speakers train, 10% choose the server's rate, 10% are reported, by the hash of their names. What is chosen by the
validation speakers and reported of the test speakers is taken to be public: no statement covers it. Symbols are a vocabulary of 64
that is told beforehand. A user shuffles its sequences of 40 characters and makes at most 4 local steps of rate 3 on 8 of them; the
update is clipped to 1; the server runs SGD with momentum 0.9, and strategies are designed for `momentum:0.9`. Each mechanism has the
server's rate that is best for it. The predicted RMS loss is that of the plan, with its noise, for a clip norm of 1 and divided by the
cohort.

## The user is a speaker

{n_speakers} users, 46 in a round of 100, at least 5 rounds apart, 20 times at most.

{HEAD}
{chr(10).join(speakers)}

## The user is a stretch of 1,280 characters

A speaker's text cut into stretches, each a user of its own: {n_stretches} users, 70 in a round of 100, at least 10 rounds apart, 10 times at
most. The statement then protects a stretch, not all that a speaker says: this is what the same mechanisms do with a larger population.

{HEAD}
{chr(10).join(stretches)}
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plays")
    parser.add_argument("--program", help="the example fedavg, built; else it is built")
    parser.add_argument("--out", default=str(ROOT / "docs/results/shakespeare.md"))
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    program = arguments.program
    if program is None:
        subprocess.run(["cargo", "build", "--release", "-p", "antinoise-train", "--example", "fedavg"], cwd=ROOT, check=True)
        program = str(ROOT / "target/release/examples/fedavg")
    seeds = list(range(1, arguments.seeds + 1))
    tables = {unit: table(program, arguments.plays, unit, seeds) for unit in SETTINGS}
    Path(arguments.out).write_text(page(tables, seeds))


if __name__ == "__main__":
    sys.exit(main())
