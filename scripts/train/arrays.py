#!/usr/bin/env python3
"""Makes crates/release/tests/data/events.npz, the rows of events.csv there as arrays of NumPy, of several
types and orders.

    pip install numpy && python3 scripts/train/arrays.py
"""

import csv
from pathlib import Path

import numpy

FOLDER = Path(__file__).resolve().parents[2] / "crates" / "release" / "tests" / "data"


def main():
    with open(FOLDER / "events.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    minutes = numpy.array([float(row["minutes"]) for row in rows])
    user = numpy.array([int(row["user"]) for row in rows])
    both = numpy.stack([minutes, user], axis=1)
    arrays = {
        "minutes": minutes,
        "user": user.astype(">i4"),
        "shop": numpy.array([row["shop"] for row in rows]),
        "shop_as_bytes": numpy.array([row["shop"].encode() for row in rows]),
        "late": numpy.array([row["late"] == "true" for row in rows]),
        "both": both,
        "both_by_columns": numpy.asfortranarray(both.astype("f4")),
        "both_in_half": both.astype("f2"),
        "both_as_objects": both.astype(object),
    }
    numpy.savez_compressed(FOLDER / "events.npz", **arrays)


main()
