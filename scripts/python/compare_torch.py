#!/usr/bin/env python3
"""Times rows of noise for PyTorch: antinoise into a tensor, compared with PyTorch's own normals and
antinoise's Rust, on the same cores.

    python scripts/python/compare_torch.py [--dim 10000000] [--threads 1] [--rounds 9] [--json]

Run it with a Python that has antinoise and torch, best on a quiet machine. In every round PyTorch, NumPy and
antinoise make one row each; Rust is timed before and after them by `antinoise bench noise`, which runs the
same code. Printed are the median, the smallest and the largest time of a row, in nanoseconds per
coordinate.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median

import numpy as np
import torch
from rounds import as_json, seconds

import antinoise as an

THEIRS, BLT = "PyTorch's normal_()", "BLT of 4 buffers into a tensor"
INDEPENDENT, NUMPY = "independent into a tensor", "NumPy's standard_normal"


def contestants(dim: int, threads: int) -> dict[str, Callable[[], object]]:
    generator, normals = np.random.default_rng(), np.empty(dim, np.float32)
    made: dict[str, Callable[[], object]] = {
        THEIRS: torch.empty(dim).normal_,
        NUMPY: lambda: generator.standard_normal(dtype=np.float32, out=normals),
    }
    for name, mechanism, arithmetic in (
        (INDEPENDENT, "identity", "plain"),
        (BLT, "blt:4", "plain"),
        ("BLT of 4 buffers, on the grid", "blt:4", "grid"),
    ):
        plan = an.plan(
            100_000,
            100,
            steps=1_000,
            epsilon=4,
            delta=1e-6,
            dim=dim,
            mechanism=mechanism,
            arithmetic=arithmetic,
        )
        stream, row, sums = (
            an.NoiseStream(plan, dim, an.Key.from_os(), threads=threads),
            torch.empty(dim),
            torch.zeros(dim, dtype=torch.float64),
        )

        def step(
            stream: an.NoiseStream = stream,
            row: torch.Tensor = row,
            sums: torch.Tensor | None = sums if arithmetic == "grid" else None,
        ) -> None:
            stream.next_into(row) if sums is None else stream.add_to_sum(sums, row)

        made[name] = step
    return made


def rust(dim: int, threads: int) -> dict[str, float]:
    command = [
        sys.executable,
        "-m",
        "antinoise",
        "bench",
        "noise",
        "--dim",
        str(dim),
        "--threads",
        str(threads),
        "--json",
    ]
    times: dict[str, float] = json.loads(
        subprocess.run(command, capture_output=True, text=True, check=True).stdout
    )["ns_per_coordinate"]
    return {name: times[name] for name in ("identity", "blt:4")}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    arguments.add_argument("--dim", type=int, default=10_000_000)
    arguments.add_argument("--threads", type=int, default=1)
    arguments.add_argument("--rounds", type=int, default=9)
    arguments.add_argument("--json", action="store_true")
    how = arguments.parse_args()
    torch.set_num_threads(how.threads)
    if how.json:
        all, setting = contestants(how.dim, how.threads), f"{how.dim:,} coordinates, {how.threads} thread"
        steps = {name: all[name] for name in (INDEPENDENT, THEIRS, NUMPY)}
        times = seconds(steps, how.rounds, clock=time.process_time)
        print(as_json("Independent noise", setting, INDEPENDENT, times))
        return
    before, steps = rust(how.dim, how.threads), contestants(how.dim, how.threads)
    of_rows = seconds(steps, how.rounds, warm=1)
    times = {name: [1e9 * row / how.dim for row in rows] for name, rows in of_rows.items()}
    after = rust(how.dim, how.threads)
    for name, found in times.items():
        print(f"{name:40} {median(found):6.2f} ns ({min(found):.2f} to {max(found):.2f})")
    for name, found in before.items():
        print(f"Rust, {name:34} {found:6.2f} and {after[name]:.2f} ns")
    ratios = [theirs / ours for theirs, ours in zip(times[THEIRS], times[BLT])]
    print(f"{THEIRS} / {BLT}: {median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    main()
