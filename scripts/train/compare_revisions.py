#!/usr/bin/env python3
"""Times a private step of the small CNN at another revision and here, in one run on the same cores.

    python3 scripts/train/compare_revisions.py 95f10aa [--threads 2] [--rounds 15]

95f10aa is the last revision with sums in single precision and plain noisy sums: the comparison with it shows
the cost of sums in double precision and noisy sums on a grid together. The other revision is built in
target/revisions. Rounds take turns; each gives the shortest of its 40 steps, which other work on the machine
disturbs least. Prints the quotient of each round.
"""

import argparse
import os
import re
import statistics
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "target" / "revisions"


def build(source, target):
    command = ["cargo", "build", "--release", "--quiet", "-p", "antinoise-train", "--example", "step_cost"]
    subprocess.run(command, cwd=source, env={**os.environ, "CARGO_TARGET_DIR": str(target)}, check=True)
    return target / "release" / "examples" / "step_cost"


def best(binary, threads):
    environment = {**os.environ, "RAYON_NUM_THREADS": str(threads)}
    text = subprocess.run([binary], env=environment, check=True, capture_output=True, text=True).stdout
    return float(re.search(r"private step.* ([\d.]+) ms", text)[1])


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before", help="a revision of this repository")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    source = FOLDER / options.before
    if not source.exists():
        git = ["git", "worktree", "add", "--quiet", "--detach", source, options.before]
        subprocess.run(git, cwd=ROOT, check=True)
    other = build(source, FOLDER / "target")
    own = build(ROOT, Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")))
    rounds = [(best(other, options.threads), best(own, options.threads)) for _ in range(options.rounds)]
    before, after = zip(*rounds)
    quotients = sorted(after / before for before, after in rounds)
    quarter = len(quotients) // 4
    print(f"a private step of the CNN, batch 500, {options.threads} threads, {options.rounds} rounds")
    print(f"{options.before}: {statistics.median(before):.2f} ms, here: {statistics.median(after):.2f} ms")
    print(
        f"quotient: median {statistics.median(quotients):.3f}, "
        f"middle half {quotients[quarter]:.3f} to {quotients[-1 - quarter]:.3f}"
    )


if __name__ == "__main__":
    main()
