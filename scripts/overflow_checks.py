#!/usr/bin/env python3
"""The cost of overflow checks: times two builds of the command line at the same work, on one thread.

    cargo build --release && cp target/release/antinoise with
    (take `overflow-checks` out of Cargo.toml, build again)
    python3 scripts/overflow_checks.py target/release/antinoise with                   processor time, in nine alternating rounds
    python3 scripts/overflow_checks.py target/release/antinoise with --instructions    instructions executed, by valgrind

Prints the median over rounds of the ratio of the times (second build over first), and the ratio of the
smallest times. Numbers of instructions do not depend on other work of the machine. A check that never fails
adds one or two cheap instructions, so that the ratio of instructions is above that of times.
"""

import argparse
import os
import re
import resource
import statistics
import subprocess
import tempfile

NOISE = "noise --steps 40 --dim 20000 --key-file KEY --out OUT --strategy"
WORK = {
    "design: 16 bands, 600 steps": "loss --strategy banded:16 --steps 600",
    "design: dense, 100 steps": "loss --strategy dense --steps 100",
    "design: Toeplitz, 1000 steps, 10 turns": (
        "loss --strategy toeplitz --steps 1000 --participation cyclic:100,10"
    ),
    "design: BLT, 10^6 steps, 16 turns": (
        "loss --strategy blt --steps 1000000 --participation min-sep:62500,16"
    ),
    "accountant: 10^5 sampled steps": (
        "account --noise-multiplier 1 --sampling-rate 0.01 --steps 100000 --delta 1e-6"
    ),
    "plan: Poisson batches": (
        "plan --examples 2400 --batch-size 100 --epochs 4 --epsilon 4 --delta 1e-5 --setting poisson"
    ),
    "noise: independent": f"{NOISE} identity",
    "noise: 16 bands": f"{NOISE} banded-toeplitz:16",
    "noise: BLT of 4": f"{NOISE} blt:4",
    "noise: dense": f"{NOISE} dense",
    "training: logistic, 12 steps": (
        "train --model logistic --epochs 1 --mechanism blt:4 --repeats 1 --learning-rate 0.1 --out OUT"
    ),
}


def run(command, folder, before=()):
    """Processor time of a command, in seconds."""
    os.makedirs(folder)
    key, out = os.path.join(folder, "key"), os.path.join(folder, "out.npy")
    with open(key, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        file.write(bytes(range(32)))
    words = [{"KEY": key, "OUT": out}.get(word, word) for word in command.split()]
    start = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    environment = {**os.environ, "RAYON_NUM_THREADS": "1"}
    done = subprocess.run(
        [*before, *words, "--json"], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - start, done.stderr


def instructions(command, folder):
    _, said = run(
        command,
        folder,
        ("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"),
    )
    return int(re.search(r"I\s+refs:\s+([\d,]+)", said)[1].replace(",", ""))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("builds", nargs=2, type=os.path.abspath)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--instructions", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name, command in WORK.items():
            measure = instructions if options.instructions else lambda *how: run(*how)[0]
            rounds = range(1 if options.instructions else options.rounds)
            pairs = [
                [
                    measure(f"{build} {command}", f"{folder}/{name}-{i}-{j}")
                    for j, build in enumerate(options.builds)
                ]
                for i in rounds
            ]
            ratios = [after / before for before, after in pairs]
            least = [min(column) for column in zip(*pairs)]
            print(
                f"{name}: {statistics.median(ratios):.4f}, of the least {least[1] / least[0]:.4f}", flush=True
            )


if __name__ == "__main__":
    main()
