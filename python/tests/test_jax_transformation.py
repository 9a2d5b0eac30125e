"""Noise of JAX as a transformation of Optax's updates, in functions that are jitted."""

import os
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

# Before JAX: the module sets the variables that choose JAX's devices.
from jax_run import DIM, PLAIN, PLAN, flat, jax, jnp, key, noise_of, rows, same, tree

optax = pytest.importorskip("optax")

import antinoise as an
from antinoise.jax import Noise, add_noise, noise_addition_transform


def test_noise_enters_a_jitted_step_as_an_argument():
    for dtype, trust in ((jnp.float64, False), (jnp.float32, True)):
        with jax.enable_x64(dtype == jnp.float64):
            params, noise = tree(), noise_of(tree(), PLAIN, key())
            tx = optax.chain(add_noise(PLAIN, trust_float32_sums=trust), optax.scale(-1.0))
            sums = jax.tree.map(partial(jnp.asarray, dtype=dtype), params)
            updates, _ = jax.jit(tx.update)(sums, tx.init(params), params, noise=noise.next())
        want = -((flat(sums) + rows(PLAIN, 1)[0].astype(dtype)) / 20).astype(np.float32)
        assert flat(updates).dtype == np.float32 and np.allclose(flat(updates), want, rtol=1e-6)
        assert np.array_equal(flat(updates), want) or dtype == jnp.float32


def test_a_step_without_its_noise_is_refused():
    params, tx = tree(), add_noise(PLAIN, trust_float32_sums=True)
    row = noise_of(params, PLAIN, key()).next()
    for given, message in (
        ({}, "noise is absent but must be the step's row"),
        ({"noise": {"w": row["w"]}}, "noise is a tree .* but must have the sums' structure"),
        (
            {"noise": row | {"w": row["w"][0]}},
            r"noise is of shape \(12,\) but must be of the sums' shape, \(8, 12\)",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            tx.update(params, tx.init(params), params, **given)
    with pytest.raises(ValueError, match="sum is of dtype float32 but must be float64"):
        add_noise(PLAIN).update(params, optax.EmptyState(), params, noise=row)
    with jax.enable_x64(True):
        double = jax.tree.map(lambda p: p.astype(jnp.float64), params)
    # what JAX would make of it
    with pytest.raises(ValueError, match="sum is of dtype float32 but must be float64"):
        jax.jit(add_noise(PLAIN).update)(double, optax.EmptyState(), params, noise=row)


@pytest.mark.parametrize("plan", [PLAN, PLAIN], ids=["grid", "plain"])
@pytest.mark.parametrize("double", [False, True])
def test_the_transformation_adds_the_streams_noise_under_jit(plan, double):
    with jax.enable_x64(double):
        params = tree()
        noise, stream = (
            noise_of(params, plan, key(), trust_float32_sums=not double),
            an.NoiseStream(plan, DIM, key()),
        )
        tx = noise_addition_transform(noise, sensitivity=1.0)
        state, update, out = tx.init(params), jax.jit(tx.update), np.empty(DIM, np.float32)
        for step in range(3):
            sums = jax.tree.map(
                lambda p, step=step: p.astype(jnp.float64 if double else jnp.float32) * (step + 1), params
            )
            got, state = update(sums, state)
            stream.add_to_sum(flat(sums).astype(np.float64), out)
            assert (
                same(flat(got), out.astype(np.float64) if double else out)
                and int(state.step) == step + 1 == noise.step
            )


def test_sums_in_double_precision_reach_a_callback_as_they_are(monkeypatch):
    """A callback may run where double precision is not enabled: in a thread of XLA's, as with JittedStep, or
    after the function was compiled. JAX would round its arguments to single precision there.
    """
    params, seen, add = tree(), [], Noise._add_to_sum_into

    def watched(noise, leaves, row):
        seen.append(np.concatenate([np.ravel(leaf) for leaf in leaves]))
        add(noise, leaves, row)

    monkeypatch.setattr(Noise, "_add_to_sum_into", watched)
    with jax.enable_x64(True):
        tx = noise_addition_transform(noise_of(params, PLAN, key()), sensitivity=1.0)
        sums = jax.tree.map(lambda p: p.astype(jnp.float64) / 3, params)
        state = tx.init(params)
        update = jax.jit(tx.update).lower(sums, state).compile()
    for _ in range(PLAN.steps):
        _, state = update(sums, state)
    jax.effects_barrier()
    assert flat(sums).dtype == np.float64 and not np.array_equal(flat(sums), flat(sums).astype(np.float32))
    assert len(seen) == PLAN.steps and all(same(sum, flat(sums)) for sum in seen)


def test_the_transformation_refuses_a_step_again_and_one_past_the_last():
    params = tree()
    noise = noise_of(params, PLAN, key(), trust_float32_sums=True)
    tx = noise_addition_transform(noise, sensitivity=1.0)
    first, update = tx.init(params), jax.jit(tx.update)
    _, state = update(params, first)
    jax.effects_barrier()
    with pytest.raises(Exception, match="step is 0 but must be 1, which comes next"):
        jax.block_until_ready(update(params, first))
    for _ in range(PLAN.steps - 1):
        _, state = update(params, state)
    jax.effects_barrier()
    with pytest.raises(Exception, match="all 24 steps of this stream have been made"):
        jax.block_until_ready(update(params, state))
    assert noise.step == PLAN.steps
    with pytest.raises(ValueError, match="sum is of dtype float32 but must be float64"):
        tx = noise_addition_transform(noise_of(params, PLAN, key()), sensitivity=1.0)
        jax.jit(tx.update)(params, tx.init(params))


def test_a_row_is_not_compiled_into_a_step():
    params, noise, tx = tree(), noise_of(tree(), PLAIN, key()), add_noise(PLAIN, trust_float32_sums=True)
    row, state = noise.next(), optax.EmptyState()
    wrong = [
        lambda s: tx.update(s, state, params, noise=row)[0],
        lambda s: noise.next(),
        lambda s: noise.noisy_mean(params),
    ]
    for step, what in zip(
        wrong,
        (
            "a constant of the traced function",
            "asked for in a traced function",
            "asked for in a traced function",
        ),
    ):
        for traced in (
            jax.jit(step),
            lambda s, step=step: jax.lax.scan(lambda c, _: (c, step(s)), 0, None, length=2),
        ):
            with pytest.raises(ValueError, match=f"noise is {what}"):
                traced(params)
    assert noise.step == 1
    with pytest.raises(ValueError, match="noise is a constant of the traced function"):
        jax.vmap(wrong[0])(jax.tree.map(lambda p: jnp.stack([p, p]), params))
    assert same(flat(noise.next()), rows(PLAIN, 2)[1])


SCRIPT = """
import dataclasses, jax, jax.numpy as jnp, numpy as np, antinoise as an
from jax_privacy.experimental import execution_plan
from antinoise.jax import Noise, noise_addition_transform
config = execution_plan.BandMFExecutionPlanConfig.default(
    num_bands=2, iterations=8, strategy_optimization_steps=5, epsilon=None, delta=None, noise_multiplier=1.0, sampling_prob=0.5)
theirs = config.plan
params = {"w": jnp.zeros(4), "b": jnp.zeros(())}
gradient = theirs.clipped_grad(lambda p, x, y: ((x @ p["w"] + p["b"] - y) ** 2).mean(), argnums=0, batch_argnums=(1, 2))
plan = an.plan(examples=40, batch_size=10, steps=8, epsilon=4, delta=1e-5, setting="poisson", mechanism="banded-toeplitz:2",
               clip_norm=gradient.sensitivity(), dim=5)
key = an.Key.from_seed_insecure(1)
noise = Noise(params, plan, key, trust_float32_sums=True)
mine = dataclasses.replace(theirs, noise_addition_transform=noise_addition_transform(noise, sensitivity=gradient.sensitivity()))
x, y = np.random.default_rng(0).normal(size=(40, 4)).astype("f"), np.ones(40, "f")
state, update = mine.noise_addition_transform.init(params), jax.jit(mine.noise_addition_transform.update)
stream, out, steps = an.NoiseStream(plan, 5, an.Key.from_seed_insecure(1)), np.empty(5, "f"), 0
flat = lambda tree: np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)])
for examples in noise.batches():
    sums = gradient(params, x[examples], y[examples])
    noisy, state = update(sums, state)
    stream.add_to_sum(flat(sums).astype("d"), out)
    assert np.array_equal(flat(noisy), out) and np.abs(out).max() > 0
    params = jax.tree.map(lambda p, n: p - 0.01 * n, params, noisy)
    steps += 1
assert steps == 8
"""


def test_jax_privacy_takes_the_transformation():
    pytest.importorskip("jax_privacy")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ,
    )
    assert done.returncode == 0, done.stderr
