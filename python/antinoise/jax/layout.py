"""Positions of a row's coordinates: in which parameter, and on which of this process's devices."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from .clipping import Tracer, enable_x64

# The part of an array on a device: (start, stop) in each dimension.
Box = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Leaf:
    """A parameter; `offset` is its first coordinate in a row."""

    name: str
    shape: tuple[int, ...]
    dtype: Any
    sharding: jax.sharding.Sharding
    offset: int

    @property
    def size(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True)
class Piece:
    """A box of a leaf that devices of this process hold, and its positions (`start` to `stop`) in this
    process's part of a row.
    """

    leaf: int
    box: Box
    shape: tuple[int, ...]
    start: int
    stop: int


def box_of(index: tuple[slice, ...], shape: tuple[int, ...]) -> Box:
    """The box of a JAX index: a slice for each dimension."""
    return tuple(part.indices(size)[:2] for part, size in zip(index, shape, strict=True))


def ranges_of(offset: int, shape: tuple[int, ...], box: Box) -> list[tuple[int, int]]:
    """Ranges of coordinates of a box, row by row, in an array of shape `shape` whose first coordinate is
    `offset`.
    """
    if 0 in (stop - start for start, stop in box):
        return []
    strides = [math.prod(shape[d + 1 :]) for d in range(len(shape))]
    # Trailing dimensions that are whole are contiguous with the part of the dimension before them.
    whole = len(shape)
    while whole > 0 and box[whole - 1] == (0, shape[whole - 1]):
        whole -= 1
    if whole == 0:
        return [(offset, offset + math.prod(shape))]
    first, last = box[whole - 1]
    starts = np.array([offset + first * strides[whole - 1]])
    for d in reversed(range(whole - 1)):
        starts = (np.arange(*box[d])[:, None] * strides[d] + starts).reshape(-1)
    length = (last - first) * strides[whole - 1]
    return [(int(start), int(start) + length) for start in starts]


class Layout:
    """The row of a tree of parameters: leaves in the tree's order, each piece once, however many devices
    hold it.
    """

    def __init__(self, params: Any) -> None:
        found, self.tree = jax.tree_util.tree_flatten_with_path(params)
        self.leaves: list[Leaf] = []
        self.dim = 0
        for path, leaf in found:
            name = jax.tree_util.keystr(path)
            if not isinstance(leaf, jax.Array) or isinstance(leaf, Tracer):
                raise ValueError(
                    f"{name or 'params'} is {type(leaf)} but must be a jax.Array, outside of transformations"
                )
            if not jnp.issubdtype(leaf.dtype, jnp.floating):
                raise ValueError(f"{name or 'params'} is of dtype {leaf.dtype} but must be of a floating one")
            self.leaves.append(Leaf(name, leaf.shape, leaf.dtype, leaf.sharding, self.dim))
            self.dim += leaf.size
        if self.dim == 0:
            raise ValueError("params is a tree without numbers but must have some")
        self._find_pieces()

    def _find_pieces(self) -> None:
        self.pieces: dict[tuple[int, Box], Piece] = {}
        self.ranges: list[tuple[int, int]] = []
        self.held = 0
        for i, leaf in enumerate(self.leaves):
            for index in leaf.sharding.addressable_devices_indices_map(leaf.shape).values():
                box = box_of(index or (), leaf.shape)
                if (i, box) in self.pieces:
                    continue
                shape = tuple(stop - start for start, stop in box)
                self.pieces[i, box] = Piece(i, box, shape, self.held, self.held + math.prod(shape))
                self.held += math.prod(shape)
                for start, stop in ranges_of(leaf.offset, leaf.shape, box):
                    if self.ranges and self.ranges[-1][1] == start:
                        start = self.ranges.pop()[0]
                    self.ranges.append((start, stop))

    def shapes(self) -> list[list[Any]]:
        """Names and shapes that a saved state must match. Devices and precisions may change when a run is
        resumed.
        """
        return [[leaf.name, list(leaf.shape)] for leaf in self.leaves]

    def row(self) -> NDArray[np.float32]:
        """New memory for this process's part of a row. JAX may use it without a copy where it is aligned
        (arrays of a CPU are then this memory), so it must not be written again once it is handed to JAX.
        """
        alignment = 64
        memory = np.empty(4 * self.held + alignment, np.uint8)
        start = -memory.ctypes.data % alignment
        return memory[start : start + 4 * self.held].view(np.float32)

    def arrays(self, row: NDArray[np.float32], *, as_params: bool) -> Any:
        """The tree of arrays of this process's part of a row: with the parameters' dtypes, or in single
        precision.
        """

        def array(i: int, leaf: Leaf) -> jax.Array:
            part = partial(self._part, row, i, leaf.dtype if as_params else row.dtype)
            return jax.make_array_from_callback(leaf.shape, leaf.sharding, part)

        return jax.tree_util.tree_unflatten(self.tree, [array(i, leaf) for i, leaf in enumerate(self.leaves)])

    def _part(
        self, row: NDArray[np.float32], i: int, dtype: Any, index: tuple[slice, ...] | None
    ) -> NDArray[Any]:
        piece = self.pieces[i, box_of(index or (), self.leaves[i].shape)]
        return row[piece.start : piece.stop].astype(dtype, copy=False).reshape(piece.shape)

    def check(self, what: str, tree: Any) -> list[Any]:
        """The leaves of a tree; ValueError if it is not laid out as the parameters are."""
        found: Any = jax.tree.structure(tree)
        leaves = jax.tree.leaves(tree)
        if found != self.tree:
            raise ValueError(f"{what} is a tree {found} but must have the parameters' structure, {self.tree}")
        for leaf, given in zip(self.leaves, leaves, strict=True):
            if np.shape(given) != leaf.shape:
                raise ValueError(
                    f"{leaf.name or what} of {what} is of shape {np.shape(given)} but must be of {leaf.shape}"
                )
        return leaves

    def check_one_device(self) -> None:
        """Refuses a layout over several devices, on which ordered callbacks do not run."""
        if len(self.pieces) != len(self.leaves):
            raise ValueError(
                f"params is a tree in {len(self.pieces)} pieces but must be on one device, for ordered"
                " callbacks"
            )

    def on_host(self, leaves: list[Any]) -> list[NDArray[Any]]:
        """This process's pieces of leaves in the host's memory, in the order of its row."""
        parts: dict[tuple[int, Box], NDArray[Any]] = {}
        for i, (leaf, given) in enumerate(zip(self.leaves, leaves, strict=True)):
            if isinstance(given, jax.Array):
                if not given.sharding.is_equivalent_to(leaf.sharding, len(leaf.shape)):
                    with enable_x64(True):
                        given = jax.device_put(given, leaf.sharding)
                if given.is_fully_replicated:
                    # For an array that processes share, JAX may not list the shards.
                    parts[i, tuple((0, size) for size in leaf.shape)] = np.asarray(given.addressable_data(0))
                else:
                    parts |= {
                        (i, box_of(shard.index, leaf.shape)): np.asarray(shard.data)
                        for shard in given.addressable_shards
                    }
            else:
                of_leaf = [box for at, box in self.pieces if at == i]
                parts |= {(i, box): given[tuple(slice(*part) for part in box)] for box in of_leaf}
        return [np.ascontiguousarray(parts[place]).reshape(-1) for place in self.pieces]
