#!/usr/bin/env python3
"""Trains classifiers of texts with correlated noise, with DP-SGD and without privacy.

    cargo build --release && python3 scripts/train/texts.py [--epsilon 1,4] [--features 2048] [--epochs 10] [--repeats 3]

The data are the one-line descriptions of Debian's packages (`apt-cache dumpavail`, on a machine with package
lists); the class is one of the ten largest sections. Packages come in the order of their names' SHA-256, and
the last fifth are test rows. Words are hashed, logistic regression, learning rates searched. Prints rows of
docs/results/tables.md.
"""

import argparse
import csv
import hashlib
import json
import subprocess
import tempfile
from pathlib import Path

PROGRAM = Path(__file__).resolve().parents[2] / "target" / "release" / "antinoise"
# Given here and not read from the data, as a schema requires.
SECTIONS = ["devel", "doc", "haskell", "libdevel", "libs", "net", "perl", "python", "rust", "utils"]


def packages(sections):
    """Name, section and description of each package in these sections."""
    dump = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True, check=True).stdout
    for entry in dump.split("\n\n"):
        fields = dict(
            line.split(": ", 1) for line in entry.splitlines() if ": " in line and not line.startswith(" ")
        )
        if fields.get("Section") in sections and "Description" in fields:
            yield fields["Package"], fields["Section"], fields["Description"]


def write(path, sections=SECTIONS, most=None):
    """Writes the packages of these sections, at most `most` of them, and returns how many."""
    rows = sorted(packages(sections), key=lambda row: hashlib.sha256(row[0].encode()).digest())[:most]
    if not rows:
        raise SystemExit("no package lists here: apt-get update")
    with open(path, "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["section", "description"])
        out.writerows(row[1:] for row in rows)
    return len(rows)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--epsilon", default="1,4")
    parser.add_argument("--features", type=int, default=2048)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "packages.csv"
        print(
            f"{write(table)} packages\n\n| epsilon | mechanism | test accuracy | learning rate | seconds a"
            " run |\n|---|---|---|---|---|"
        )
        for epsilon in options.epsilon.split(","):
            command = [PROGRAM, "train", "--data", f"csv:{table}", "--label", "section=" + ",".join(SECTIONS)]
            command += [
                "--text",
                f"description={options.features}",
                "--epsilon",
                epsilon,
                "--delta",
                "1e-5",
                "--epochs",
                options.epochs,
            ]
            command += ["--test-rows", "last", "--compare"]
            command += [
                "--repeats",
                options.repeats,
                "--without-noise",
                "--out",
                Path(folder) / f"run-{epsilon}",
                "--json",
            ]
            run = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, text=True)
            if run.returncode:
                raise SystemExit(run.returncode)
            for row in json.loads(run.stdout)["runs"]:
                accuracy, error = 100 * row["test_accuracy"], 100 * (row["standard_error"] or 0)
                print(
                    f"| {epsilon} | {row['mechanism']} | {accuracy:.2f} +- {error:.2f} |"
                    f" {row['learning_rate']:g} | {row['seconds']:.1f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
