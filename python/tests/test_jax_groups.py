"""JAX: groups of parameters that are clipped separately, and sums over the whole tree."""

import math

import pytest
from conftest import small_plan

jax = pytest.importorskip("jax")
import jax.numpy as jnp
import numpy as np

import antinoise as an
from antinoise._groups import Groups
from antinoise.jax import ClippedSum, Noise, clipped_sum

NAMES = ("first.b", "first.w", "last.w")


def tree():
    made = np.random.default_rng(0)
    shapes = {"first": {"b": (5,), "w": (4, 5)}, "last": {"w": (5, 3)}}
    return jax.tree.map(
        lambda s: jnp.asarray(made.normal(size=s), jnp.float32),
        shapes,
        is_leaf=lambda s: isinstance(s, tuple),
    )


def loss(params, x):
    return jnp.sum(jnp.tanh(x @ params["first"]["w"] + params["first"]["b"]) @ params["last"]["w"]) * jnp.max(
        jnp.abs(x)
    )


def lengths(tree, groups):
    squares = [float(np.square(np.asarray(leaf, np.float64)).sum()) for leaf in jax.tree.leaves(tree)]
    return [
        math.sqrt(sum(s for s, n in zip(squares, NAMES, strict=True) if groups.of[n] == g))
        for g in range(len(groups.norms))
    ]


ASKED = [
    "layer",
    ["first.b", "first.w", "last"],
    [("first.b", "last"), "first.w"],
    {"first": 0.3, "last": 0.9},
]


@pytest.mark.parametrize("asked", ASKED)
def test_groups_are_clipped_as_a_loop_clips_them(asked):
    x = (
        np.random.default_rng(1).normal(size=(20, 4)).astype(np.float32)
        * np.logspace(-3, 0.5, 20, dtype=np.float32)[:, None]
    )
    groups, clip = Groups.made(asked, NAMES, 1.0), 0
    wanted = jax.tree.map(lambda p: np.zeros(p.shape), tree())
    for row in x:
        gradient = jax.grad(loss)(tree(), row)
        found = lengths(gradient, groups)
        clip += sum(length > norm for length, norm in zip(found, groups.norms, strict=True))
        factors = [min(1.0, groups.norms[groups.of[n]] / max(found[groups.of[n]], 1e-300)) for n in NAMES]
        scaled = [
            np.asarray(g, np.float64) * f for g, f in zip(jax.tree.leaves(gradient), factors, strict=True)
        ]
        wanted = jax.tree.map(np.add, wanted, jax.tree.unflatten(jax.tree.structure(gradient), scaled))
    got = clipped_sum(loss, tree(), x, 1.0, microbatch_size=7, groups=asked)
    assert 5 < clip < 20 * len(groups.norms) and got.clip_norm == 1.0
    for a, b in zip(jax.tree.leaves(got.total), jax.tree.leaves(wanted), strict=True):
        assert a.dtype == np.float64 and np.allclose(a, b, rtol=1e-4, atol=1e-5)


def test_one_example_moves_groups_by_the_clip_norm_in_all():
    made, tested, long = np.random.default_rng(3), 0, 0
    for case in range(24):
        clip, asked = 10.0 ** made.uniform(-3, 3), ASKED[case % 3]
        if case % 2:
            asked = dict(
                zip(
                    ("first.b", "first.w", "last"),
                    clip * made.dirichlet((1, 1, 1)) ** 0.5 * (1 - 1e-15),
                    strict=True,
                )
            )
        groups = Groups.made(asked, NAMES, clip)
        x = np.asarray(10.0 ** made.uniform(-3, 12) * made.normal(size=(6, 4)), np.float32)
        without = x.copy()
        without[case % 6] = np.nan
        whole, rest = (
            clipped_sum(loss, tree(), v, clip, microbatch_size=6, groups=asked).total for v in (x, without)
        )
        moved = lengths(jax.tree.map(lambda a, b: np.asarray(a) - np.asarray(b), whole, rest), groups)
        assert all(own <= norm * (1 + 2**-20) for own, norm in zip(moved, groups.norms, strict=True))
        assert math.hypot(*moved) <= clip * (1 + 2**-20)
        tested, long = tested + 1, long + (math.hypot(*moved) > 0.5 * clip)
    assert tested == 24 and long > 8


@pytest.mark.parametrize(
    "groups, message",
    [
        ("layers", "groups is 'layers' but must be 'layer', groups of names"),
        (["first"], "last.w is in 0 groups but must be in one"),
        (
            {"first": 0.8, "last": 0.8},
            "root of the sum of the groups' squared clip norms is 1.13.* but must be at most clip_norm, 1.0",
        ),
    ],
)
def test_groups_that_are_wrong_are_refused(groups, message):
    with pytest.raises(ValueError, match=message):
        clipped_sum(loss, tree(), np.ones((3, 4), np.float32), 1.0, groups=groups)


def test_a_sum_that_is_not_of_the_whole_tree_is_refused():
    """If two parts of the parameters were clipped separately, one example would move the sums by 1.41 clip
    norms together.
    """
    plan, params = small_plan(dim=40), tree()
    noise = Noise(params, plan, an.Key.from_seed_insecure(3), external_batches=True)
    x = np.ones((20, 4), np.float32)
    parts = {
        n: clipped_sum(lambda part, row, n=n: loss(params | {n: part}, row), params[n], x, 1.0)
        for n in params
    }
    fixed = clipped_sum(lambda part, row: loss(params | part, row), {"first": params["first"]}, x, 1.0)
    for wrong in (parts["first"], parts["last"], fixed, parts, ClippedSum({**params, "last": {}}, 20, 1.0)):
        with pytest.raises(ValueError, match="sums is a tree .* but must have the parameters' structure"):
            noise.noisy_mean(wrong)
    assert noise.step == 0
    noise.noisy_mean(clipped_sum(loss, params, x, 1.0))
    assert noise.step == 1
