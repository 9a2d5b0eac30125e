#!/usr/bin/env python3
"""The examples of examples/README.md: every file is listed once, and what is listed exists.

    python3 scripts/examples.py        compares the list with the files
    python3 scripts/examples.py rust   also runs the short Rust examples, which `cargo test --release` builds

The tests of the Python package run the Python examples.
"""

import os
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILT = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve() / "release" / "examples"
LIST = ROOT / "examples" / "README.md"
FILES = ["examples/*.py", "crates/*/examples/*.rs", "crates/*/examples/*/main.rs"]
LINE = re.compile(r"^\| \[.*?\]\((.*?)\) \| .+ \|$", flags=re.M)
# Names, and words of the output.
SHORT = {
    "stream": "after step 101 of 200: the mean of a noisy sum is",
    "account": "three models of the same data: epsilon",
    "daily_counts": "visits in 30 days, from",
    "train_table": "test rows are right",
}
MOST_SECONDS = 60


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


def run():
    """What is wrong with the Rust examples that are run."""
    wrong = []
    for name, words in SHORT.items():
        begun = time.monotonic()
        done = subprocess.run([BUILT / name], cwd=ROOT, capture_output=True, text=True)
        seconds = time.monotonic() - begun
        print(f"{name}: {seconds:.1f} s")
        if done.returncode or words not in done.stdout or seconds > MOST_SECONDS:
            wrong.append(f"{name} must print {words!r} within {MOST_SECONDS} s:\n{done.stdout}{done.stderr}")
    return wrong


if __name__ == "__main__":
    faults = listed() + (run() if sys.argv[1:] == ["rust"] else [])
    print("\n".join(faults) or f"{len(LINE.findall(LIST.read_text()))} examples are listed")
    sys.exit(bool(faults))
