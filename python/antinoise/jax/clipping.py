"""Sums of clipped gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from .._groups import Asked, Groups
from .._relied import relied
from .._sums import SHORTER


@dataclass(frozen=True)
class ClippedSum:
    """The sum of a batch's clipped gradients, a tree of float64, how many examples are in it, and clipped to what. It is no tree of
    gradients to an optimizer, which must not see it: `Noise.release` makes one."""

    total: Any
    examples: int
    clip_norm: float


Tracer: Any = relied("jax", "jax.core", "Tracer")
enable_x64: Callable[[bool], AbstractContextManager[None]] = relied("jax", "jax", "enable_x64")


@partial(jax.jit, static_argnums=0)
def _gradients(loss: Callable[[Any, Any], jax.Array], params: Any, portion: Any) -> Any:
    """Of each example of a portion, in the parameters' precision."""
    return jax.vmap(jax.grad(loss), in_axes=(None, 0))(params, portion)


@partial(jax.jit, static_argnums=4)
def _added(totals: Any, gradients: Any, count: jax.Array, most: jax.Array, groups: tuple[int, ...]) -> Any:
    """Totals and the first `count` gradients, each group of leaves clipped to its length in `most`: in double precision, which must be enabled."""
    gradients = jax.tree.map(lambda g: g.astype(jnp.float64), gradients)
    # Along axes, so that nothing need be laid out otherwise than it is.
    squares = [jnp.square(g).sum(range(1, g.ndim)) for g in jax.tree.leaves(gradients)]
    found = [sum(s for s, group in zip(squares, groups, strict=True) if group == number) for number in range(len(most))]
    lengths = jnp.sqrt(jnp.stack(found))
    factors = jnp.where(lengths <= most[:, None], 1.0, most[:, None] / lengths)
    # What is not finite in one group adds to none.
    kept = jnp.isfinite(lengths).all(0) & (jnp.arange(lengths.shape[1]) < count)

    def add(total: jax.Array, g: jax.Array, group: int) -> jax.Array:
        # What is not finite is left out, not multiplied by zero.
        wide = (-1, *[1] * (g.ndim - 1))
        terms = jnp.where(kept.reshape(wide), factors[group].reshape(wide) * g, 0.0)
        return total + terms.sum(0)

    return jax.tree.map(add, totals, gradients, jax.tree.unflatten(jax.tree.structure(totals), groups))


def _portion(batch: Any, start: int, count: int, micro_batch: int) -> Any:
    """`count` examples from `start` on, filled up with the first of them: computed alike wherever an example lies, and left out."""
    places = jnp.where(jnp.arange(micro_batch) < count, start + jnp.arange(micro_batch), start)
    return jax.tree.map(lambda leaf: leaf[places], batch)


def clipped_sum(
    loss: Callable[[Any, Any], jax.Array],
    params: Any,
    batch: Any,
    clip_norm: float,
    *,
    micro_batch: int = 64,
    groups: Asked = None,
) -> ClippedSum:
    """The sum of the gradients of `loss(params, example)`, each clipped to `clip_norm`. `batch` is a tree whose leaves have the examples in
    their first dimension; `example` is the same tree without it.

    Gradients are taken example by example (`jax.vmap`) in portions of `micro_batch`, the last one filled up, in the precision that `loss`
    has; lengths, factors and sums are in double precision, which is enabled for them alone. There one example moves the sum by at most
    clip_norm (1 + 2^-20): what plans allow for. It does so when its gradient is replaced by zero and the others' keep their bits, which is
    what the statement compares; XLA may round a gradient otherwise at another place of its portion, so that where an example is to be
    *absent*, and others move up, only portions of 1 keep the others' bits. An example whose gradient is not finite adds nothing.

    `groups` clips groups of leaves apart, to norms whose squares add up to clip_norm^2 at most, so that one example moves the sum by no more than
    above: `"layer"` (leaves with one parent), groups of names (a leaf's name is its path, as in `dense.kernel`; a parent's name stands for all that is
    in it), or the norm of each group, as in `antinoise.torch.clipped_sum_`.

    It compiles what it needs, and is called outside of `jax.jit`: in there double precision is off, unless it is on for the whole program.
    """
    if not clip_norm > 0 or not math.isfinite(clip_norm):
        raise ValueError(f"clip_norm is {clip_norm} but must be a finite number above 0")
    if micro_batch < 1:
        raise ValueError(f"micro_batch is {micro_batch} but must be at least 1")
    leaves = jax.tree.leaves((params, batch))
    if any(isinstance(leaf, Tracer) for leaf in leaves):
        raise ValueError("params and batch are traced but must be arrays: call clipped_sum outside of transformations")
    counts = {len(leaf) for leaf in jax.tree.leaves(batch)}
    if len(counts) != 1:
        raise ValueError(f"batch is of {sorted(counts)} examples but must be of one number in all its leaves")
    for leaf in jax.tree.leaves(params):
        platforms = {device.platform for device in leaf.devices()} if isinstance(leaf, jax.Array) else set()
        if platforms - {"cpu", "gpu", "cuda", "rocm"}:
            # A TPU makes double precision of pairs of single ones: fewer digits and less range than the proof needs.
            raise ValueError(f"platform is {sorted(platforms)} but must be cpu or gpu, which have double precision")
    examples, batch = counts.pop(), jax.tree.map(jnp.asarray, batch)
    names = [jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in jax.tree_util.tree_flatten_with_path(params)[0]]
    grouped = Groups.made(groups, names, clip_norm)
    of = tuple(grouped.of[name] for name in names)
    with enable_x64(True):
        totals = jax.tree.map(lambda p: jnp.zeros_like(p, dtype=jnp.float64), params)
        most = jnp.asarray([SHORTER * norm for norm in grouped.norms], jnp.float64)
    for start in range(0, examples, micro_batch):
        count = min(micro_batch, examples - start)
        gradients = _gradients(loss, params, _portion(batch, start, count, micro_batch))
        with enable_x64(True):
            totals = _added(totals, gradients, jnp.int64(count), most, of)
    return ClippedSum(totals, examples, float(clip_norm))
