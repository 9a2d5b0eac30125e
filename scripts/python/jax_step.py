#!/usr/bin/env python3
"""Times a private step in JAX: in one jitted function, in its parts, by jax-privacy, and without privacy.

    python scripts/python/jax_step.py [--rounds 15] [--batch 256] [--microbatch 64] [--threads 1] [--processor]

Run it with a Python that has antinoise, jax, optax and jax-privacy. The models are multilayer perceptrons of
64 inputs and 10 classes with one hidden layer; data are random; SGD with momentum, noise by a BLT of 4
buffers on the plan's grid (jax-privacy's: independent, in single precision). All variants are in one process,
bound to as many cores as `--threads`; each round runs every variant once, in random order. Printed are
medians and the middle half of a step's milliseconds, and the median of its ratio to the step without privacy
in the same round.
"""

import argparse
import os
import random
import time
from collections.abc import Callable
from statistics import median, quantiles

from rounds import seconds

HIDDEN = {"small": 32, "large": 8_192}


def variants(hidden: int, batch: int, microbatch: int) -> tuple[int, dict[str, Callable[[], object]]]:
    import jax
    import jax.numpy as jnp
    import numpy as np
    import optax
    from jax_privacy.clipping import clipped_grad as theirs

    import antinoise as an
    from antinoise.jax import JittedStep, Noise, clipped_sum

    made = np.random.default_rng(0)
    shapes = {"in": (64, hidden), "out": (hidden, 10)}
    params = {n: jnp.asarray(made.normal(size=s) / s[0] ** 0.5, jnp.float32) for n, s in shapes.items()}
    x = jnp.asarray(made.normal(size=(batch, 64)), jnp.float32)
    y = jnp.asarray(made.integers(0, 10, batch), jnp.int32)
    optimizer = optax.sgd(1e-3, momentum=0.9)
    dim = sum(p.size for p in params.values())
    plan = an.plan(100 * batch, batch, steps=1_000, epsilon=4, delta=1e-8, dim=dim, mechanism="blt:4")

    def loss(params, example):
        x, y = example
        return optax.softmax_cross_entropy_with_integer_labels(jnp.tanh(x @ params["in"]) @ params["out"], y)

    def mean_loss(params, batch):
        return jax.vmap(loss, in_axes=(None, 0))(params, batch).mean()

    @jax.jit
    def update(params, state, mean):
        updates, state = optimizer.update(mean, state, params)
        return optax.apply_updates(params, updates), state

    @jax.jit
    def plain(params, state):
        return update(params, state, jax.grad(mean_loss)(params, (x, y)))

    gradient = theirs(
        lambda params, x, y: loss(params, (x, y)),
        l2_clip_norm=1.0,
        batch_argnums=(1, 2),
        keep_batch_dim=False,
        microbatch_size=microbatch,
    )

    @jax.jit
    def independent(params, state, random_key):
        random_key, mine = jax.random.split(random_key)
        sums, keys = gradient(params, x, y), jax.random.split(mine, len(params))
        mean = {
            name: (sums[name] + plan.noise_std * jax.random.normal(one, sums[name].shape)) / batch
            for name, one in zip(sums, keys, strict=True)
        }
        return *update(params, state, mean), random_key

    def noise():
        return Noise(params, plan, an.Key.from_os(), threads=1, external_batches=True)

    in_parts, whole = noise(), JittedStep(loss, optimizer, noise(), microbatch_size=microbatch)

    def parts(params, state):
        sums = clipped_sum(loss, params, (x, y), plan.clip_norm, microbatch_size=microbatch)
        return update(params, state, in_parts.noisy_mean(sums))

    steps = {
        "without privacy, jitted": plain,
        "jax-privacy, independent noise, jitted, float32": independent,
        "clipped_sum, noisy_mean and a jitted update": parts,
        "JittedStep": lambda params, state: whole(params, state, (x, y)),
    }
    held = {name: [params, optimizer.init(params)] for name in steps}
    held["jax-privacy, independent noise, jitted, float32"].append(jax.random.key(0))

    def run(name: str) -> None:
        held[name] = list(jax.block_until_ready(steps[name](*held[name])))

    return dim, {name: lambda name=name: run(name) for name in steps}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--microbatch", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--processor", action="store_true", help="processor time, on a machine with other work"
    )
    options = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.threads])
    os.environ["JAX_PLATFORMS"] = "cpu"
    if options.threads == 1:
        os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    random.seed(0)
    for name, hidden in HIDDEN.items():
        dim, steps = variants(hidden, options.batch, options.microbatch)
        clock = time.process_time if options.processor else time.perf_counter
        found = seconds(steps, options.rounds, clock=clock)
        print(f"{name}: {dim:,} parameters, batch {options.batch}, {options.rounds} rounds")
        base = found["without privacy, jitted"]
        for what, times in found.items():
            low, middle, high = quantiles(times, n=4)
            ratio = median(own / plain for own, plain in zip(times, base, strict=True))
            print(f"  {what:48} {1e3 * middle:8.2f} ms ({1e3 * low:.2f} to {1e3 * high:.2f}) {ratio:6.2f}x")


if __name__ == "__main__":
    main()
