"""A small tree of parameters on four CPU devices of one machine, for tests with JAX."""

import os

import numpy as np
import pytest
from conftest import small_plan

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
os.environ["JAX_PLATFORMS"] = "cpu"
pytest.importorskip("jax")
pytest.importorskip("optax")

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import antinoise as an
from antinoise.jax import Noise

DIM = 8 * 12 + 8 + 1
PLAN = small_plan(dim=DIM)
PLAIN = small_plan(dim=DIM, arithmetic="plain")


def key():
    return an.Key.from_seed_insecure(3)


def tree():
    made = np.random.default_rng(0)
    return {
        n: jnp.asarray(made.normal(size=s), jnp.float32) for n, s in (("b", (8,)), ("s", ()), ("w", (8, 12)))
    }


def flat(tree):
    return np.concatenate([np.asarray(leaf).ravel() for leaf in jax.tree.leaves(tree)])


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.size > 0 and a.tobytes() == b.tobytes()


def rows(plan, count):
    stream, made = an.NoiseStream(plan, DIM, key()), np.empty((count, DIM), np.float32)
    for row in made:
        stream.next_into(row)
    return made


def layouts(kind=AxisType.Auto):
    mesh, params = jax.make_mesh((2, 2), ("x", "y"), axis_types=(kind, kind)), tree()

    def put(b, w):
        return {
            "b": jax.device_put(params["b"], NamedSharding(mesh, b)),
            "s": jax.device_put(params["s"], NamedSharding(mesh, P())),
            "w": jax.device_put(params["w"], NamedSharding(mesh, w)),
        }

    yield "one device", params, DIM
    yield "replicated", put(P(), P()), DIM
    yield "rows over four", put(P(("x", "y")), P(("x", "y"))), DIM
    yield "blocks", put(P("x"), P("x", "y")), DIM
    yield "columns, replicated", put(P(), P(None, "y")), DIM
    yield "columns turned", put(P("y"), P(None, ("y", "x"))), DIM


LAYOUTS = list(layouts())


def noise_of(*what, **how):
    """Noise for sums of batches from elsewhere."""
    return Noise(*what, external_batches=True, **how)


X = np.random.default_rng(4).normal(size=(20, 8)).astype(np.float32) * 3
Y = np.random.default_rng(5).normal(size=(20, 12)).astype(np.float32)


def loss(params, example):
    x, y = example
    return jnp.sum((jnp.tanh((x + params["b"]) @ params["w"]) * params["s"] - y) ** 2)
