"""Noise inside jitted steps, as optax transformations."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax  # type: ignore[import-untyped]
from numpy.typing import NDArray

from .. import Plan
from .._relied import relied
from .._sums import refuse_single
from .clipping import Tracer
from .layout import Leaf
from .noise import Noise, is_traced

io_callback: Callable[..., Any] = relied("jax", "jax.experimental", "io_callback")


def precision_of(dtype: Any) -> Any:
    """The dtype that values of a dtype will have: with double precision off, JAX converts float64 to
    float32.
    """
    return relied("jax", "jax.dtypes", "canonicalize_dtype")(dtype)


def to_words(leaf: jax.Array) -> jax.Array:
    """A leaf for a callback: of one in double precision the bits, in words of 32 bits. JAX rounds numbers in
    double precision to single where a callback's thread does not have double precision enabled.
    """
    return jax.lax.bitcast_convert_type(leaf, jnp.uint32) if leaf.dtype == np.float64 else leaf


def from_words(words: Any, leaf: Leaf, dtype: Any) -> NDArray[Any]:
    """What `to_words` was given: an array of this dtype with the leaf's shape."""
    found = np.ascontiguousarray(words).reshape(-1)
    if found.dtype != (np.uint32 if dtype == np.float64 else dtype):
        raise RuntimeError(f"sum in the callback is of dtype {found.dtype} but must be of {dtype}")
    made: NDArray[Any] = found.view(dtype).reshape(leaf.shape)
    return made


def back(words: jax.Array, dtype: Any) -> jax.Array:
    """What `to_words` or `on_host_to_words` was given, of this dtype."""
    return jax.lax.bitcast_convert_type(words, dtype) if dtype == np.float64 else words


def on_host_to_words(part: NDArray[Any]) -> NDArray[Any]:
    """`to_words` of an array in the host's memory."""
    if part.dtype != np.float64:
        return part
    return np.ascontiguousarray(part).reshape(-1).view(np.uint32).reshape(*part.shape, 2)


def _refuse_single(leaf: Any, trusted: bool) -> None:
    found = precision_of(leaf.dtype)
    refuse_single("sum", found, found == np.float64, trusted)


def add_noise(plan: Plan, *, trust_float32_sums: bool = False) -> optax.GradientTransformationExtraArgs:
    """An optax transformation that turns sums of clipped gradients into the noisy mean, for a step that is
    one jitted function.

        tx = optax.chain(add_noise(plan), optax.adam(1e-3))
        # row = noise.next() is an argument of the jitted function.
        updates, state = tx.update(sums, state, params, noise=row)

    It cannot check that each row is used for one step only, nor which batch the sums are of.

    Args:
        plan: A plan with `arithmetic="plain"`: an addition on a device is not on a grid.
        trust_float32_sums: Accept sums in single precision (see `Noise`). Float64 sums need
            `jax_enable_x64`.

    Returns:
        A transformation whose `update` takes `noise`, a row of `Noise.next` with the sums' shapes.

    Raises:
        ValueError: The plan's arithmetic is not plain. In `update`: `noise` is absent, of other shapes or a
            constant of the traced function, or sums are in single precision.
    """
    if plan.arithmetic != "plain":
        must_be = (
            "plain: on a grid sum and noise are added in whole numbers, by Noise.noisy_mean(sums), outside of"
            " the jitted step"
        )
        raise ValueError(f"arithmetic of the plan is {plan.arithmetic} but must be {must_be}")

    def update(
        sums: Any, state: optax.EmptyState, params: Any = None, *, noise: Any = None, **_: Any
    ) -> tuple[Any, optax.EmptyState]:
        if noise is None:
            raise ValueError("noise is absent but must be the step's row, Noise.next()")
        given: Any = jax.tree.structure(noise)
        if given != jax.tree.structure(sums):
            raise ValueError(
                f"noise is a tree {given} but must have the sums' structure, {jax.tree.structure(sums)}"
            )

        def mean(total: jax.Array, row: jax.Array, like: jax.Array) -> jax.Array:
            # A constant would be compiled into the function, and every step would get the same noise.
            if is_traced(total) and not isinstance(row, Tracer):
                raise ValueError(
                    "noise is a constant of the traced function but must be one of its arguments, another row"
                    " in each step"
                )
            _refuse_single(total, trust_float32_sums)
            # Broadcasting would give several coordinates the same noise.
            if total.shape != row.shape:
                raise ValueError(
                    f"noise is of shape {row.shape} but must be of the sums' shape, {total.shape}"
                )
            return ((total + row) / plan.expected_batch_size).astype(like.dtype)

        return jax.tree.map(mean, sums, noise, noise if params is None else params), state

    return optax.GradientTransformationExtraArgs(lambda params: optax.EmptyState(), update)


class NoiseState(NamedTuple):
    """The next step."""

    step: jax.Array


def noise_addition_transform(noise: Noise, *, sensitivity: float) -> optax.GradientTransformation:
    """Replaces jax-privacy's transformation of that name: adds noise to a sum of clipped gradients, without
    dividing.

        mine = noise_addition_transform(noise, sensitivity=gradient.sensitivity())
        theirs = dataclasses.replace(theirs, noise_addition_transform=mine)  # jax-privacy's execution plan

    Noise is added on the host, on the plan's grid if it has one, by an ordered callback, so that it serves
    a jitted step. Such callbacks run on one device only.

    Args:
        noise: The run's noise.
        sensitivity: Bound on how far one example moves the sum (L2), above 0 and at most the plan's clip
            norm.

    Returns:
        A transformation whose state counts steps. A state that is used twice, or after the plan's last
        step, is an error, and no noisy sum is made.

    Raises:
        ValueError: `sensitivity` is out of range, or the parameters are on several devices.
    """
    plan = noise.plan
    if not 0 < sensitivity <= plan.clip_norm:
        raise ValueError(
            f"sensitivity is {sensitivity} but must be above 0 and at most the plan's clip norm,"
            f" {plan.clip_norm}"
        )
    layout = noise._layout
    layout.check_one_device()

    def made(dtypes: list[Any], step: Any, words: list[Any]) -> list[Any]:
        if int(step) != noise.step:
            raise ValueError(
                f"step is {int(step)} but must be {noise.step}, which comes next: a step's noise is for"
                " one sum"
            )
        row = layout.row()
        sums = [from_words(*each) for each in zip(words, layout.leaves, dtypes, strict=True)]
        noise._add_to_sum_into(sums, row)
        cut = [row[leaf.offset :][: leaf.size].reshape(leaf.shape) for leaf in layout.leaves]
        return [on_host_to_words(part.astype(dtype)) for part, dtype in zip(cut, dtypes, strict=True)]

    def init(params: Any) -> NoiseState:
        layout.check("params", params)
        return NoiseState(jnp.asarray(noise.step, jnp.int32))

    def update(sums: Any, state: NoiseState, params: Any = None) -> tuple[Any, NoiseState]:
        leaves = layout.check("sums", sums)
        for leaf in leaves:
            _refuse_single(leaf, noise._trusted)
        dtypes = [precision_of(leaf.dtype) for leaf in leaves]
        words = [to_words(jnp.asarray(leaf, dtype)) for leaf, dtype in zip(leaves, dtypes, strict=True)]
        shapes = [jax.ShapeDtypeStruct(each.shape, each.dtype) for each in words]  # type: ignore[no-untyped-call]
        noisy = io_callback(partial(made, dtypes), shapes, state.step, words, ordered=True)
        noisy = [back(each, dtype) for each, dtype in zip(noisy, dtypes, strict=True)]
        return jax.tree_util.tree_unflatten(layout.tree, noisy), NoiseState(state.step + 1)

    return optax.GradientTransformation(init, update)
