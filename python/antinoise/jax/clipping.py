"""Sums of clipped per-example gradients in JAX."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._groups import Asked, Groups
from .._relied import relied
from .._sums import SHORTER


@dataclass(frozen=True)
class ClippedSum:
    """The sum of a batch's clipped gradients (a tree of float64 arrays), its number of examples, and the
    clip norm.

    It is deliberately not a pytree of gradients, so that no optimizer accepts it: `Noise.noisy_mean` turns it
    into one.
    """

    total: Any
    examples: int
    clip_norm: float


Tracer: Any = relied("jax", "jax.core", "Tracer")
enable_x64: Callable[[bool], AbstractContextManager[None]] = relied("jax", "jax", "enable_x64")


# Numbers of a leaf from which on gradients are added one after the other.
_LARGE = 2**14


@partial(jax.jit, static_argnums=0)
def gradients_of(loss: Callable[[Any, Any], jax.Array], params: Any, portion: Any) -> Any:
    """Per-example gradients of a portion, in the parameters' precision."""
    return jax.vmap(jax.grad(loss), in_axes=(None, 0))(params, portion)


@partial(jax.jit, static_argnums=4)
def added(totals: Any, gradients: Any, present: jax.Array, most: jax.Array, groups: tuple[int, ...]) -> Any:
    """Adds the gradients of the examples that are `present` to `totals`, each group of leaves clipped to its
    norm in `most`. Double precision must be enabled.
    """
    # Sums along axes, without reshaping, keep the arrays' shardings.
    squares = [jnp.square(g.astype(jnp.float64)).sum(range(1, g.ndim)) for g in jax.tree.leaves(gradients)]
    found = [
        sum(s for s, group in zip(squares, groups, strict=True) if group == number)
        for number in range(len(most))
    ]
    lengths = jnp.sqrt(jnp.stack(found))
    factors = jnp.where(lengths <= most[:, None], 1.0, most[:, None] / lengths)
    # An example that is not finite in one group is left out of all groups.
    kept = jnp.isfinite(lengths).all(0) & present

    def of_one(g: jax.Array, group: int, number: Any) -> jax.Array:
        # Values that are not finite are replaced, since 0 times infinity is NaN.
        return jnp.where(kept[number], factors[group, number] * g[number].astype(jnp.float64), 0.0)

    def of_all(g: jax.Array, group: int) -> jax.Array:
        wide = (-1, *[1] * (g.ndim - 1))
        terms = factors[group].reshape(wide) * g.astype(jnp.float64)
        return jnp.where(kept.reshape(wide), terms, 0.0).sum(0)

    def summed(total: jax.Array, g: jax.Array, group: int) -> jax.Array:
        # XLA on a CPU sums a first dimension by columns. That is slow for large leaves.
        if total.size < _LARGE:
            return total + of_all(g, group)
        add = lambda number, sum: sum + of_one(g, group, number)  # noqa: E731
        portion: jax.Array = jax.lax.fori_loop(0, len(kept), add, jnp.zeros_like(total))
        return total + portion

    return jax.tree.map(summed, totals, gradients, jax.tree.unflatten(jax.tree.structure(totals), groups))


def portion_of(batch: Any, start: Any, count: Any, microbatch_size: int) -> Any:
    """`count` examples from `start`, padded with the first of them to `microbatch_size`, so that each portion
    has one shape; padding is left out of sums.
    """
    places = jnp.where(jnp.arange(microbatch_size) < count, start + jnp.arange(microbatch_size), start)
    return jax.tree.map(lambda leaf: leaf[places], batch)


def clipped_sum(
    loss: Callable[[Any, Any], jax.Array],
    params: Any,
    batch: Any,
    clip_norm: float,
    *,
    mask: ArrayLike | None = None,
    microbatch_size: int = 64,
    groups: Asked = None,
) -> ClippedSum:
    """Clips each example's gradient of `loss` and returns their sum.

    Lengths, factors and sums are in double precision, which is enabled for them alone, so that one example
    moves the sum by at most clip_norm (1 + 2^-20), which plans allow for. That bound compares batches in
    which one gradient is replaced by zero and all others keep their bits. XLA may round a gradient
    differently at another position of its portion; to compare batches from which an example is *absent*, so
    that later examples change position, use `microbatch_size=1`. An example whose gradient is not finite adds
    nothing.

    It compiles its own functions. Call it outside `jax.jit`: inside, double precision is off unless enabled
    for the whole program.

    Args:
        loss: `loss(params, example)`, a scalar; `example` is `batch` without the first dimension.
        params: A tree of arrays.
        batch: A tree of arrays with the examples in the first dimension of each.
        clip_norm: Bound on the L2 norm of each example's gradient: the plan's.
        mask: Which examples of `batch` count, one boolean for each; the others add nothing, whatever they
            hold. By default all count.
        microbatch_size: Number of examples in one call of `jax.vmap`; the last portion is padded.
        groups: Clips groups of leaves separately, to norms whose squares add up to at most clip_norm^2.
            `"layer"`: leaves with one parent. A list of names, or a mapping of names to norms, as in
            `antinoise.torch.clipped_sum_`; a leaf's name is its path (`dense.kernel`), and a parent's name
            stands for all of its leaves.

    Returns:
        A `ClippedSum`, for `Noise.noisy_mean`.

    Raises:
        ValueError: An argument is out of range, or arrays are on a TPU, which has no true double precision.
    """
    if not clip_norm > 0 or not math.isfinite(clip_norm):
        raise ValueError(f"clip_norm is {clip_norm} but must be a finite number above 0")
    check_microbatch_size(microbatch_size)
    examples = number_of_examples("clipped_sum", params, batch)
    check_platforms(params)
    batch, masked = jax.tree.map(jnp.asarray, batch), mask_of(mask, examples)
    of, norms = groups_of(groups, params, clip_norm)
    with enable_x64(True):
        totals = jax.tree.map(lambda p: jnp.zeros_like(p, dtype=jnp.float64), params)
        most = jnp.asarray(norms, jnp.float64)
    for start in range(0, examples, microbatch_size):
        count = min(microbatch_size, examples - start)
        present = np.zeros(microbatch_size, bool)
        present[:count] = masked[start : start + count]
        gradients = gradients_of(loss, params, portion_of(batch, start, count, microbatch_size))
        with enable_x64(True):
            totals = added(totals, gradients, jnp.asarray(present), most, of)
    return ClippedSum(totals, int(masked.sum()), float(clip_norm))


def check_microbatch_size(microbatch_size: int) -> None:
    if microbatch_size < 1:
        raise ValueError(f"microbatch_size is {microbatch_size} but must be at least 1")


def number_of_examples(function: str, params: Any, batch: Any) -> int:
    """The number of examples of `batch`; refuses traced arrays and leaves of several numbers."""
    if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((params, batch))):
        raise ValueError(
            f"params and batch are traced but must be arrays: call {function} outside of transformations"
        )
    counts = {len(leaf) for leaf in jax.tree.leaves(batch)}
    if len(counts) != 1:
        raise ValueError(f"batch is of {sorted(counts)} examples but must be of one number in all its leaves")
    return counts.pop()


def check_platforms(params: Any) -> None:
    """Refuses parameters on devices without double precision."""
    for leaf in jax.tree.leaves(params):
        platforms = {device.platform for device in leaf.devices()} if isinstance(leaf, jax.Array) else set()
        if platforms - {"cpu", "gpu", "cuda", "rocm"}:
            # A TPU emulates double precision by pairs of singles: fewer digits and less range than the proof
            # needs.
            raise ValueError(
                f"platform is {sorted(platforms)} but must be cpu or gpu, which have double precision"
            )


def groups_of(asked: Asked, params: Any, clip_norm: float) -> tuple[tuple[int, ...], list[float]]:
    """The group of each leaf of `params`, and the lengths to which the groups are clipped."""
    names = [
        jax.tree_util.keystr(path, simple=True, separator=".")
        for path, _ in jax.tree_util.tree_flatten_with_path(params)[0]
    ]
    grouped = Groups.made(asked, names, clip_norm)
    return tuple(grouped.of[name] for name in names), [SHORTER * norm for norm in grouped.norms]


def mask_of(mask: ArrayLike | None, examples: int) -> NDArray[np.bool_]:
    """`mask` as an array; all True by default. Refuses another shape or type."""
    if mask is None:
        return np.ones(examples, bool)
    found = np.asarray(mask)
    if found.dtype != np.bool_ or found.shape != (examples,):
        raise ValueError(
            f"mask is of {found.dtype} and shape {found.shape} but must be of booleans, shape ({examples},)"
        )
    return found


def clipped_grad(
    fun: Callable[..., jax.Array],
    argnums: int = 0,
    *,
    l2_clip_norm: float,
    batch_argnums: int | Sequence[int] = 1,
    keep_batch_dim: bool = True,
    microbatch_size: int = 64,
    groups: Asked = None,
) -> Callable[..., ClippedSum]:
    """`clipped_sum` in the form of `jax.grad` and of jax-privacy's `clipped_grad`.

        gradient = clipped_grad(loss, l2_clip_norm=plan.clip_norm, batch_argnums=(1, 2))
        updates, state = optimizer.update(noise.noisy_mean(gradient(params, x, y)), state, params)

    Args:
        fun: `fun(*arguments)`, a scalar: the loss of an example.
        argnums: Number of the argument that gradients are taken of.
        l2_clip_norm: Bound on the L2 norm of each example's gradient: the plan's.
        batch_argnums: Numbers of the arguments with examples in the first dimension: all others.
        keep_batch_dim: Whether `fun` gets an example with a first dimension of 1.
        microbatch_size, groups: As in `clipped_sum`.

    Returns:
        A function of the same arguments, and of `mask` as in `clipped_sum`, that returns a `ClippedSum`. It
        is called outside of `jax.jit`, and compiles its own functions once.

    Raises:
        ValueError: `argnums` and `batch_argnums` are not all of the function's arguments, once each.
    """
    of_one, batched = of_one_example(fun, argnums, batch_argnums, keep_batch_dim)

    def gradient(*arguments: Any, mask: ArrayLike | None = None) -> ClippedSum:
        if len(arguments) != 1 + len(batched):
            raise ValueError(f"arguments are {len(arguments)} but must be {1 + len(batched)}")
        batch = tuple(arguments[number] for number in batched)
        how: dict[str, Any] = dict(mask=mask, microbatch_size=microbatch_size, groups=groups)
        return clipped_sum(of_one, arguments[argnums], batch, l2_clip_norm, **how)

    return gradient


def of_one_example(
    fun: Callable[..., jax.Array], argnums: int, batch_argnums: int | Sequence[int], keep_batch_dim: bool
) -> tuple[Callable[[Any, Any], jax.Array], tuple[int, ...]]:
    """`fun` as a loss of parameters and one example, the tuple of its other arguments; and their numbers."""
    batched = (batch_argnums,) if isinstance(batch_argnums, int) else tuple(batch_argnums)
    if sorted((argnums, *batched)) != list(range(1 + len(batched))):
        raise ValueError(
            f"argnums and batch_argnums are {argnums} and {batched} but must name each argument of fun once"
        )

    def loss(params: Any, example: tuple[Any, ...]) -> jax.Array:
        arguments = dict(zip(batched, example, strict=True)) | {argnums: params}
        return fun(*(arguments[number] for number in range(1 + len(batched))))

    def of_one(params: Any, example: Any) -> jax.Array:
        return loss(params, jax.tree.map(lambda leaf: leaf[None], example) if keep_batch_dim else example)

    return of_one, batched
