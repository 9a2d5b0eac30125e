#!/usr/bin/env python3
"""Checks docs/papers.md: its counts against its rows, and that every file named in it exists."""

import re
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STATES = ["whole", "in part", "not yet", "not offered"]
PATH = re.compile(r"`([\w./-]+/[\w.-]+\.(?:rs|py|md|json))`")


def cells(line):
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def faults(text):
    """What is wrong with the page, as sentences."""
    found, counts, stated, subject = [], Counter(), {}, None
    for line in text.splitlines():
        if line.startswith("## "):
            subject = line.removeprefix("## ")
        row = cells(line) if line.startswith("| ") else []
        if subject is None and len(row) == 6 and row[0] != "subject":
            stated[re.sub(r"\[(.*)\]\(.*\)", r"\1", row[0])] = [int(number) for number in row[1:]]
        elif subject and len(row) == 5 and row[4] != "state":
            state = next((state for state in STATES if re.match(rf"{state}\b", row[4])), None)
            if state is None:
                found.append(f"{row[0]}: no state: {row[4]!r}")
            for name in (subject, "all"):
                counts[name, state] += 1
        elif subject and row and row[4:] != ["state"]:
            found.append(f"{len(row)} cells: {line}")
    for name in sorted({name for name, _ in counts} | set(stated)):
        numbers = [counts[name, state] for state in STATES]
        if stated.get(name) != [sum(numbers), *numbers]:
            found.append(f"{name}: {stated.get(name)} stated, {[sum(numbers), *numbers]} rows")
    names = sorted(set(PATH.findall(text)))
    found += [
        f"no file {name}" for name in names if not any((ROOT / at / name).is_file() for at in ("", "crates"))
    ]
    return found


if __name__ == "__main__":
    if wrong := faults((ROOT / "docs" / "papers.md").read_text()):
        sys.exit("\n".join(wrong))
