"""Clipped sums in JAX, compared with loops over examples."""

import numpy as np
import pytest

# Before JAX: the module sets the variables that choose JAX's devices.
from jax_run import DIM, PLAN, AxisType, X, Y, flat, jax, jnp, key, layouts, loss, noise_of, same, tree

import antinoise as an
from antinoise.jax import clipped_grad, clipped_sum


def naive(params, x, y, clip_norm, loss=loss):
    """The sum by NumPy of gradients, each example in a portion of its own."""
    total, lengths = np.zeros(DIM), []
    for i in range(len(x)):
        g = flat(jax.grad(loss)(params, (x[i], y[i]))).astype(np.float64)
        lengths.append(np.linalg.norm(g))
        total += g * min(1.0, clip_norm / lengths[-1])
    return total, lengths


def test_clipped_grad_has_the_form_of_grad():
    def of_batch(params, x, y):
        return jnp.sum(jax.vmap(lambda x, y: loss(params, (x, y)))(x, y))

    def of_one(y, params, x):
        return loss(params, (x, y))

    wanted = clipped_sum(loss, tree(), (X, Y), 1.0)
    gradient = clipped_grad(of_batch, l2_clip_norm=1.0, batch_argnums=(1, 2))
    turned = clipped_grad(of_one, 1, l2_clip_norm=1.0, batch_argnums=(2, 0), keep_batch_dim=False)
    for found in (gradient(tree(), X, Y), turned(Y, tree(), X)):
        assert (found.examples, found.clip_norm) == (20, 1.0)
        assert np.allclose(flat(found.total), flat(wanted.total), rtol=1e-6, atol=1e-6)
    assert same(flat(turned(Y, tree(), X).total), flat(wanted.total))
    with pytest.raises(
        ValueError, match="argnums and batch_argnums are 0 and .2,. but must name each argument"
    ):
        clipped_grad(of_batch, l2_clip_norm=1.0, batch_argnums=2)
    with pytest.raises(ValueError, match="arguments are 2 but must be 3"):
        gradient(tree(), X)


@pytest.mark.parametrize("microbatch_size", [1, 7, 64])
def test_a_clipped_sum_is_that_of_a_loop(microbatch_size):
    clip_norm = float(np.median(naive(tree(), X, Y, 1.0)[1]))
    total, lengths = naive(tree(), X, Y, clip_norm)
    assert sum(length > clip_norm for length in lengths) == 10
    got = clipped_sum(loss, tree(), (X, Y), clip_norm, microbatch_size=microbatch_size)
    assert (got.examples, got.clip_norm) == (20, clip_norm)
    assert {leaf.dtype for leaf in jax.tree.leaves(got.total)} == {np.dtype(np.float64)}
    assert np.allclose(flat(got.total), total, rtol=1e-4, atol=1e-5)
    assert not jax.config.jax_enable_x64


def elementwise(params, example):
    x, y = example
    return jnp.sum((params["w"] * y - 1) ** 2) * params["s"] + jnp.sum(params["b"] * x)


@pytest.mark.parametrize(
    "kind, loss", [(AxisType.Auto, loss), (AxisType.Explicit, elementwise)], ids=["auto", "explicit"]
)
def test_sums_and_noisy_means_of_a_mesh(kind, loss):
    for name, params, _ in list(layouts(kind))[2:5]:
        sums = clipped_sum(loss, params, (X, Y), 1.0)
        assert np.allclose(flat(sums.total), naive(tree(), X, Y, 1.0, loss)[0], rtol=1e-4, atol=1e-5), name
        out = np.empty(DIM, np.float32)
        an.NoiseStream(PLAN, DIM, key()).add_to_sum(flat(sums.total), out)
        mean = noise_of(params, PLAN, key()).noisy_mean(sums)
        assert same(flat(mean), out / np.float32(20)) and mean["w"].sharding == params["w"].sharding


def test_one_example_moves_the_sum_by_its_clip_norm():
    for clip_norm in (0.1, 3.0):
        whole = flat(clipped_sum(loss, tree(), (X, Y), clip_norm, microbatch_size=1).total)
        for i in range(3):
            rest = [n for n in range(20) if n != i]
            without = flat(clipped_sum(loss, tree(), (X[rest], Y[rest]), clip_norm, microbatch_size=1).total)
            moved = np.linalg.norm(whole - without)
            assert (1 - 2**-19) * clip_norm < moved <= clip_norm * (1 + 2**-20)


def test_sums_are_in_double_precision():
    """One large coordinate and many small gradients, which single precision would lose next to it."""
    params = {"w": jnp.zeros(2, jnp.float32)}
    x = np.full((600, 2), 1e-9, np.float32)
    x[0] = (1.0, 0)
    got = clipped_sum(lambda p, x: p["w"] @ x, params, x, 2.0).total["w"]
    assert abs(float(np.asarray(got)[0]) - (1 + 599 * float(np.float32(1e-9)))) < 1e-14


@pytest.mark.parametrize("wrong", [np.inf, np.nan, 3e38])
def test_what_is_not_finite_adds_nothing(wrong):
    x = X.copy()
    x[3], rest = wrong, [n for n in range(20) if n != 3]
    want = flat(clipped_sum(loss, tree(), (X[rest], Y[rest]), 1.0).total)
    got = flat(
        clipped_sum(
            lambda p, e: loss(p, e) * jnp.where(jnp.abs(e[0]).max() > 1e5, jnp.inf, 1.0), tree(), (x, Y), 1.0
        ).total
    )
    assert np.isfinite(got).all() and np.abs(got).max() > 0.1 and np.allclose(got, want, atol=1e-5)


def test_an_empty_batch_is_a_sum_of_zeros():
    got = clipped_sum(loss, tree(), (X[:0], Y[:0]), 1.0)
    assert got.examples == 0 and not flat(got.total).any() and flat(got.total).dtype == np.float64


def test_sums_in_single_precision_are_taken_from_who_answers_for_them():
    noise, stream, out = (
        noise_of(tree(), PLAN, key(), trust_float32_sums=True),
        an.NoiseStream(PLAN, DIM, key()),
        np.empty(DIM, np.float32),
    )
    stream.add_to_sum(flat(tree()).astype(np.float64), out)
    assert same(flat(noise.noisy_mean(tree())), (out.astype(np.float64) / 20).astype(np.float32))
    assert (
        noise.statement.startswith(PLAN.statement)
        and "Assumed, not proved: that one example moves the sums" in noise.statement
    )
    assert noise_of(tree(), PLAN, key()).statement == PLAN.statement


def test_a_large_leaf_is_summed_as_a_small_one():
    """From a size on gradients are added one after the other; both ways are within a part of 2^-50."""
    made, found = np.random.default_rng(3), []
    x, scale = made.normal(size=(70, 3)).astype(np.float32), made.normal(size=2**14).astype(np.float32)
    for size in (2**14 - 1, 2**14):
        params = {"w": jnp.zeros((3, size)), "b": jnp.zeros(3)}
        loss = lambda p, x, size=size: ((x @ p["w"]) * scale[:size]).sum() + p["b"] @ x  # noqa: E731
        x[5] = np.nan
        mask = np.arange(70) != 7
        found.append(clipped_sum(loss, params, x, 2.0, mask=mask, microbatch_size=32).total)
    rows = np.delete(x, [5, 7], 0).astype(np.float64)
    for size, total in zip((2**14 - 1, 2**14), found, strict=True):
        gradients = rows[:, :, None] * scale[:size].astype(np.float64)
        lengths = np.sqrt((gradients**2).sum((1, 2)) + (rows**2).sum(1))
        factors = np.minimum(1, 2.0 * (1 - 2.0**-20) / lengths)
        assert np.allclose(total["w"], (factors[:, None, None] * gradients).sum(0), rtol=1e-6, atol=1e-8)
        assert np.allclose(total["b"], factors @ rows, rtol=1e-6)
