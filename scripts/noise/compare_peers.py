#!/usr/bin/env python3
"""Times antinoise's noise compared with torch, numpy and jax-privacy, in one run on the same cores.

    python3 scripts/noise/compare_peers.py [--dim 10000000] [--threads 1] [--rounds 3]

Peers are installed from PyPI into .venv/noise-peers (git ignores it) on the first run. Each round times every
library once, in turn; the smallest time of all rounds counts, so that other work on the machine does not
matter. Times are nanoseconds per number.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".venv" / "noise-peers"
PEERS = ["numpy==2.4.*", "torch==2.*", "jax==0.10.*", "jax-privacy==2.*"]


def best(dim, call, repeats=10):
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times) / dim * 1e9


def time_numpy(dim):
    import numpy as np

    generator = np.random.default_rng()
    single, double = np.empty(dim, np.float32), np.empty(dim)
    return {
        "normal f32": best(dim, lambda: generator.standard_normal(dtype=np.float32, out=single)),
        "normal f64": best(dim, lambda: generator.standard_normal(out=double)),
    }


def time_torch(dim, threads):
    import torch

    torch.set_num_threads(threads)
    single, double = torch.empty(dim), torch.empty(dim, dtype=torch.float64)
    return {"normal f32": best(dim, single.normal_), "normal f64": best(dim, double.normal_)}


def time_jax(dim):
    import jax
    import jax.numpy as jnp
    from jax_privacy import noise_addition
    from jax_privacy.matrix_factorization import buffered_toeplitz, toeplitz

    jax.config.update("jax_enable_x64", True)
    blt = buffered_toeplitz.BufferedToeplitz.build(
        buf_decay=[0.9, 0.8, 0.7, 0.6], output_scale=[0.1, 0.1, 0.1, 0.1]
    )
    matrices = {
        "blt:4": blt.inverse_as_streaming_matrix(),
        "banded-toeplitz:16": toeplitz.inverse_as_streaming_matrix(1 / jnp.arange(1.0, 17.0)),
    }
    times = {}
    for name, matrix in matrices.items():
        privatizer = noise_addition.matrix_factorization_privatizer(
            matrix, stddev=1.0, prng_key=0, dtype=jnp.float32
        )
        gradient = jnp.zeros(dim, jnp.float32)
        update = jax.jit(privatizer.update, donate_argnums=(1,))
        state = [privatizer.init(gradient)]

        def step():
            noise, state[0] = update(gradient, state[0])
            jax.block_until_ready((noise, state[0]))

        times[name] = best(dim, step, 6)
    return times


def measure(peer, dim, threads):
    """The time of one library, in a process of its own, so that memory and threads of other libraries do not
    matter.
    """
    if peer == "antinoise":
        command = [*TIMINGS, str(dim), str(threads)]
    else:
        python = FOLDER / "bin" / "python"
        command = [str(python), __file__, "--peer", peer, "--dim", str(dim), "--threads", str(threads)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


TIMINGS = ["cargo", "run", "--release", "--quiet", "-p", "antinoise-noise", "--example", "timings", "--"]


def install():
    if not (FOLDER / "bin" / "python").exists():
        venv.create(FOLDER, with_pip=True)
        subprocess.run([FOLDER / "bin" / "pip", "install", "--quiet", *PEERS], check=True)


def compare(options):
    install()
    subprocess.run([*TIMINGS[:-1], "--", "1000", "1"], check=True, stdout=subprocess.DEVNULL)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.threads])
    found = {}
    for _ in range(options.rounds):
        for peer in ["antinoise", "numpy", "torch", "jax-privacy"]:
            for what, value in measure(peer, options.dim, options.threads).items():
                better = max if "bytes" in what else min
                found[peer, what] = better(value, found.get((peer, what), value))
    print(f"{options.dim} numbers, {options.threads} thread(s), best of {options.rounds} rounds")
    for peer, what in found:
        if peer != "antinoise":
            ours, theirs = found["antinoise", what], found[peer, what]
            print(f"{what:20} {peer:12} {theirs:8.3f} ns  antinoise {ours:7.3f} ns  {theirs / ours:6.1f}x")
    ours = {what: value for (peer, what), value in found.items() if peer == "antinoise"}
    grid = ours["blt:4 on a grid"]
    print(f"blt:4 on a grid {grid:.3f} ns, {grid / ours['blt:4']:.2f}x the plain stream")
    if "banded-toeplitz:64" in ours:
        ahead, ring = ours["banded-toeplitz:64"], ours["banded-toeplitz:64 one step a pass"]
        print(
            f"64 bands {ahead:.3f} ns with look-ahead, {ring:.3f} ns with a plain ring: {ring / ahead:.1f}x"
        )
    memory = found["antinoise", "memory_bytes_per_second"]
    share = found["antinoise", "blt:4 bytes_per_second"] / memory
    print(f"memory {memory / 1e9:.1f} GB/s; a blt:4 step moves its state and output at {share:.0%} of it")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dim", type=int, default=10_000_000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer", choices=["numpy", "torch", "jax-privacy"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer is None:
        return compare(options)
    timers = {
        "numpy": lambda: time_numpy(options.dim),
        "torch": lambda: time_torch(options.dim, options.threads),
        "jax-privacy": lambda: time_jax(options.dim),
    }
    json.dump(timers[options.peer](), sys.stdout)
    return None


if __name__ == "__main__":
    main()
