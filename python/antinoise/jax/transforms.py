"""Noise inside of jitted steps, as transformations of optax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax  # type: ignore[import-untyped]

from .. import Plan
from .._relied import relied
from .._sums import refuse_single
from .clipping import Tracer
from .noise import Noise, is_traced

io_callback: Callable[..., Any] = relied("jax", "jax.experimental", "io_callback")


def _precision(leaf: Any) -> Any:
    """The dtype that numbers of a leaf will have: JAX takes float64 for float32 where double precision is off."""
    return relied("jax", "jax.dtypes", "canonicalize_dtype")(leaf.dtype)


def _refuse_single(leaf: Any, trusted: bool) -> None:
    found = _precision(leaf)
    refuse_single("sum", found, found == np.float64, trusted)


def add_noise(plan: Plan, *, trust_float32_sums: bool = False) -> optax.GradientTransformationExtraArgs:
    """Makes the noisy mean of the sums of clipped gradients that come in, for a step that is one jitted function:

        tx = optax.chain(add_noise(plan), optax.adam(1e-3))
        updates, state = tx.update(sums, state, params, noise=row)      # row = noise.next(), an argument of the function

    For plans whose release is `plain`: addition on a device is not on a grid. Sums are of float64, with `jax_enable_x64`, or someone
    answers for them (`Noise.statement`). Each row is for one step.
    """
    if plan.release != "plain":
        must_be = "plain: on a grid sum and noise are added in whole numbers, by Noise.release(sums), outside of the jitted step"
        raise ValueError(f"release of the plan is {plan.release} but must be {must_be}")

    def update(sums: Any, state: optax.EmptyState, params: Any = None, *, noise: Any = None, **_: Any) -> tuple[Any, optax.EmptyState]:
        if noise is None:
            raise ValueError("noise is absent but must be the step's row, Noise.next()")
        given: Any = jax.tree.structure(noise)
        if given != jax.tree.structure(sums):
            raise ValueError(f"noise is a tree {given} but must be the sums', {jax.tree.structure(sums)}")

        def mean(total: jax.Array, row: jax.Array, like: jax.Array) -> jax.Array:
            # Compiled into the function, it would be every step's.
            if is_traced(total) and not isinstance(row, Tracer):
                raise ValueError("noise is a constant of the traced function but must be one of its arguments, another row in each step")
            _refuse_single(total, trust_float32_sums)
            # Broadcast, noise would be shared by coordinates.
            if total.shape != row.shape:
                raise ValueError(f"noise is of shape {row.shape} but must be of the sums', {total.shape}")
            return ((total + row) / plan.expected_batch_size).astype(like.dtype)

        return jax.tree.map(mean, sums, noise, noise if params is None else params), state

    return optax.GradientTransformationExtraArgs(lambda params: optax.EmptyState(), update)


class NoiseState(NamedTuple):
    """Which step comes next."""

    step: jax.Array


def noise_addition_transform(noise: Noise, *, sensitivity: float) -> optax.GradientTransformation:
    """Takes the place of jax-privacy's transformation of that name, in an execution plan or alone: adds noise to the sum of clipped
    gradients that comes in, on the plan's grid if it has one, and does not divide.

        mine = dataclasses.replace(theirs, noise_addition_transform=noise_addition_transform(noise, sensitivity=gradient.sensitivity()))

    `sensitivity` is how far one example can move that sum: at most the plan's clip norm. The noise is made on the host, by an ordered
    callback, so that it serves a jitted step; such callbacks run on one device only. The state counts steps: one that does not come next,
    because a state was used twice or the plan is at its end, is an error, and nothing comes out.
    """
    plan = noise.plan
    if not 0 < sensitivity <= plan.clip_norm:
        raise ValueError(f"sensitivity is {sensitivity} but must be above 0 and at most the plan's clip norm, {plan.clip_norm}")
    layout = noise._layout
    if len(layout.pieces) != len(layout.leaves):
        raise ValueError(f"params is a tree in {len(layout.pieces)} pieces but must be on one device, for ordered callbacks")

    def made(step: Any, leaves: list[Any]) -> list[Any]:
        if int(step) != noise.step:
            raise ValueError(f"step is {int(step)} but must be {noise.step}, which comes next: a step's noise is for one sum")
        row = layout.row()
        noise._release_into([np.asarray(leaf) for leaf in leaves], row)
        cut = [row[leaf.offset :][: leaf.size].reshape(leaf.shape) for leaf in layout.leaves]
        return [part.astype(np.asarray(leaf).dtype, copy=False) for part, leaf in zip(cut, leaves, strict=True)]

    def init(params: Any) -> NoiseState:
        layout.check("params", params)
        return NoiseState(jnp.asarray(noise.step, jnp.int32))

    def update(sums: Any, state: NoiseState, params: Any = None) -> tuple[Any, NoiseState]:
        leaves = layout.check("sums", sums)
        for leaf in leaves:
            _refuse_single(leaf, noise._trusted)
        shapes = [jax.ShapeDtypeStruct(leaf.shape, _precision(leaf)) for leaf in leaves]  # type: ignore[no-untyped-call]
        noisy = io_callback(made, shapes, state.step, leaves, ordered=True)
        return jax.tree_util.tree_unflatten(layout.tree, noisy), NoiseState(state.step + 1)

    return optax.GradientTransformation(init, update)
