#!/usr/bin/env python3
"""The examples of examples/README.md: every file is listed once, and what is listed exists.

    python3 scripts/examples.py

The tests of the Python package run the Python examples.
"""

import re
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "examples" / "README.md"
FILES = ["examples/*.py", "crates/*/examples/*.rs", "crates/*/examples/*/main.rs"]
LINE = re.compile(r"^\| \[.*?\]\((.*?)\) \| .+ \|$", flags=re.M)


def listed():
    """What is wrong with the list."""
    here = Counter(path.relative_to(ROOT) for pattern in FILES for path in ROOT.glob(pattern))
    named = Counter(
        (LIST.parent / name).resolve().relative_to(ROOT) for name in LINE.findall(LIST.read_text())
    )
    wrong = [f"{path} is not listed in examples/README.md" for path in here - named]
    return wrong + [
        f"examples/README.md lists {path}, which is twice there or absent" for path in named - here
    ]


if __name__ == "__main__":
    faults = listed()
    print("\n".join(faults) or f"{len(LINE.findall(LIST.read_text()))} examples are listed")
    sys.exit(bool(faults))
