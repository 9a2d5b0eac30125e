"""Plays as tables of lines by speaker, for `antinoise train --characters`."""

import csv
import hashlib
from pathlib import Path

# The characters of the vocabulary, numbered from 1; 0 stands for all others.
CHARACTERS = "\n !&',-.:;?ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
# The part of a speaker by the hash of the name, as in the crate antinoise-federated: training otherwise.
PARTS = {0: "test", 1: "validation"}


def part_of(speaker):
    first = hashlib.sha256(speaker.encode()).digest()[:2]
    return PARTS.get(int.from_bytes(first, "little") % 10, "training")


def lines(plays):
    """The speaker and the text of each line: NAME: opens a speech, an empty line ends it."""
    speaker, opens = None, True
    for line in Path(plays).read_text().splitlines():
        if opens and line.endswith(":") and line != ":":
            speaker, opens = line[:-1], False
        elif not line:
            opens = True
        else:
            opens = False
            yield speaker, line


def write(plays, folder):
    """Writes training.csv and test.csv into the folder; returns the options that name them."""
    for part in ("training", "test"):
        with (folder / f"{part}.csv").open("w", newline="") as file:
            rows = (row for row in lines(plays) if part_of(row[0]) == part)
            csv.writer(file).writerows([("speaker", "line"), *rows])
    return ["--data", f"csv:{folder / 'training.csv'}", "--test", folder / "test.csv"]
