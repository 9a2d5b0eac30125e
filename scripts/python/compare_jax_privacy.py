#!/usr/bin/env python3
"""Times rows of correlated noise for JAX: antinoise.jax compared with jax-privacy, both BLTs of order 4, on
the same cores.

    python scripts/python/compare_jax_privacy.py [--dim 10000000] [--threads 1] [--rounds 9] [--json]

Run it with a Python that has antinoise, jax, optax and jax-privacy. Each variant has a process of its own,
bound to the same `--threads` cores. In every round each makes one row in turn while the others wait, so that
other work on the machine affects all in the same way. Printed are the median, the smallest and the largest
time of a row, in nanoseconds per coordinate, and the median of the rounds' ratios.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median

from rounds import as_json

THEIRS = "jax-privacy's BLT, jitted, float32"


def of_antinoise(what: str, dim: int, threads: int) -> Callable[[], object]:
    import jax
    import jax.numpy as jnp
    import numpy as np

    import antinoise as an
    from antinoise.jax import Noise

    arithmetic = "grid" if "grid" in what else "plain"
    plan = an.plan(
        100_000, 100, steps=1_000, epsilon=4, delta=1e-6, dim=dim, mechanism="blt:4", arithmetic=arithmetic
    )
    if "NumPy" in what:
        stream, row = an.NoiseStream(plan, dim, an.Key.from_os(), threads=threads), np.empty(dim, np.float32)
        return lambda: stream.next_into(row)
    noise = Noise(jnp.zeros(dim, jnp.float32), plan, an.Key.from_os(), threads=threads, external_batches=True)
    if arithmetic == "plain":
        return lambda: jax.block_until_ready(noise.next())
    sums = np.zeros(dim)
    return lambda: jax.block_until_ready(noise.noisy_mean(sums))


def of_jax_privacy(dim: int) -> Callable[[], object]:
    import jax
    import jax.numpy as jnp
    from jax_privacy import noise_addition
    from jax_privacy.matrix_factorization import buffered_toeplitz

    with jax.enable_x64(True):
        blt = buffered_toeplitz.BufferedToeplitz.build(
            buf_decay=[0.9, 0.8, 0.7, 0.6], output_scale=[0.1, 0.1, 0.1, 0.1]
        )
        matrix = blt.inverse_as_streaming_matrix()
        transform = noise_addition.matrix_factorization_privatizer(
            matrix, stddev=1.0, prng_key=0, dtype=jnp.float32
        )
        gradient = jnp.zeros(dim, jnp.float32)
        # The update overwrites the memory of the previous state.
        update, state = jax.jit(transform.update, donate_argnums=(1,)), [transform.init(gradient)]

    def step() -> None:
        with jax.enable_x64(True):
            noisy, state[0] = update(gradient, state[0])
            jax.block_until_ready((noisy, state[0]))

    return step


CONTESTANTS = [
    THEIRS,
    "antinoise, plain, into NumPy memory",
    "antinoise, plain, a jax.Array",
    "antinoise, a noisy mean on the grid, a jax.Array",
]


def contest(what: str, dim: int, threads: int) -> None:
    """Makes a row for each line on standard input, and prints its time and its processor time."""
    make = of_jax_privacy(dim) if what == THEIRS else of_antinoise(what, dim, threads)
    for _ in range(3):
        make()
    print("ready", flush=True)
    for _ in sys.stdin:
        start, used = time.perf_counter(), time.process_time()
        make()
        found = time.perf_counter() - start, time.process_time() - used
        print(*(1e9 * seconds / dim for seconds in found), flush=True)


def compare(dim: int, threads: int, rounds: int, in_json: bool) -> None:
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    os.environ |= {"JAX_PLATFORMS": "cpu", "OMP_NUM_THREADS": str(threads)}
    if threads == 1:
        os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    running = {}
    for what in CONTESTANTS:
        command = [
            sys.executable,
            "-W",
            "ignore",
            __file__,
            "--contestant",
            what,
            "--dim",
            str(dim),
            "--threads",
            str(threads),
        ]
        running[what] = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert running[what].stdout.readline() == "ready\n"
    times: dict[str, list[float]] = {what: [] for what in CONTESTANTS}
    for _ in range(rounds):
        for what, process in running.items():
            process.stdin.write("\n")
            process.stdin.flush()
            times[what].append(float(process.stdout.readline().split()[in_json]))
    for process in running.values():
        process.stdin.close()
        process.wait()
    if in_json:
        in_seconds = {what: [1e-9 * dim * row for row in rows] for what, rows in times.items()}
        setting = f"BLT of 4 buffers, {dim:,} coordinates, {threads} thread"
        print(as_json("Correlated noise", setting, CONTESTANTS[2], in_seconds))
        return
    print(
        f"{dim} coordinates, {threads} thread(s), {rounds} rounds; nanoseconds a coordinate: median (least to"
        " greatest)"
    )
    for what, found in times.items():
        ratio = median(theirs / ours for theirs, ours in zip(times[THEIRS], found, strict=True))
        print(f"{what:48} {median(found):7.2f} ({min(found):.2f} to {max(found):.2f})  {ratio:5.1f}x")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dim", type=int, default=10_000_000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--contestant", choices=CONTESTANTS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.contestant:
        contest(options.contestant, options.dim, options.threads)
    else:
        compare(options.dim, options.threads, options.rounds, options.json)


if __name__ == "__main__":
    main()
