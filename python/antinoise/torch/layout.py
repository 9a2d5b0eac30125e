"""Which coordinates of a plan's noise a process holds: a model's trainable parameters one after the other,
whoever has which parts.

Coordinates count the whole parameters, in the model's order. They are the same however the model is laid out
over processes: replicated, sharded (FSDP2), both (HSDP), by tensor parallelism, or a mixture.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

Ranges = list[tuple[int, int]]


def is_sharded(p: Tensor) -> bool:
    """True for a `DTensor`, of which this process may hold a part."""
    return hasattr(p, "placements") and hasattr(p, "device_mesh")


def local_part(p: Tensor) -> Tensor:
    """What this process holds of it."""
    part: Tensor = p.to_local() if is_sharded(p) else p  # type: ignore[attr-defined]
    return part


def like(p: Any, local: Tensor) -> Tensor:
    """A tensor laid out as `p` is, of which this is what this process holds."""
    if not is_sharded(p):
        return local
    from torch.distributed.tensor import DTensor

    made: Tensor = DTensor.from_local(local, p.device_mesh, p.placements, run_check=False, shape=p.shape, stride=p.stride())
    return made


def stacked_like(p: Any, local: Tensor) -> Tensor:
    """The same for a stack of such tensors: it is `p` with an index more in front."""
    if not is_sharded(p):
        return local
    from torch.distributed.tensor import DTensor

    places = [_moved(place, place.dim % p.ndim + 1) if _cuts(place) else place for place in p.placements]
    shape = torch.Size([len(local), *p.shape])
    stride = tuple(math.prod(shape[d + 1 :]) for d in range(len(shape)))
    made: Tensor = DTensor.from_local(local, p.device_mesh, places, run_check=False, shape=shape, stride=stride)
    return made


def digest_of(shapes: Iterable[tuple[str, tuple[int, ...]]]) -> str:
    """A name for parameters of these names and whole shapes in this order."""
    return hashlib.sha256(json.dumps([[name, list(shape)] for name, shape in shapes]).encode()).hexdigest()


def ranges_of(p: nn.Parameter, start: int) -> Ranges:
    """The coordinates of what this process holds of `p`, whose first one is `start`, in the order that it
    lies in memory."""
    if not is_sharded(p):
        return [(start, start + p.numel())] if p.numel() else []
    held = [_held(p, d) for d in range(p.ndim)]
    if any(len(indices) == 0 for indices in held):
        return []
    stride = [math.prod(p.shape[d + 1 :]) for d in range(p.ndim)]
    # What follows the last dimension that is cut is whole, and lies in one piece.
    cut = max((d for d in range(p.ndim) if len(held[d]) != p.shape[d]), default=0) if p.ndim else 0
    starts = torch.full((1,), start, dtype=torch.int64)
    for d in range(cut):
        starts = (starts[:, None] + held[d][None, :] * stride[d]).reshape(-1)
    if p.ndim == 0:
        return [(start, start + 1)]
    indices = held[cut]
    breaks = (torch.nonzero(indices[1:] != indices[:-1] + 1).flatten() + 1).tolist()
    pieces = [(int(indices[a]), int(indices[b - 1]) + 1) for a, b in zip([0, *breaks], [*breaks, len(indices)])]
    found = [(int(s) + a * stride[cut], int(s) + b * stride[cut]) for s in starts.tolist() for a, b in pieces]
    return joined(found)


def joined(ranges: Ranges) -> Ranges:
    """The same coordinates in the same order, in as few ranges as can be."""
    merged: Ranges = []
    for start, end in ranges:
        if merged and merged[-1][1] == start:
            merged[-1] = (merged[-1][0], end)
        elif start < end:
            merged.append((start, end))
    return merged


def cut(ranges: Ranges, first: int, last: int) -> Ranges:
    """The coordinates at places `first` to `last` - 1 of these."""
    found: Ranges = []
    at = 0
    for start, end in ranges:
        low, high = max(first - at, 0), min(last - at, end - start)
        if low < high:
            found.append((start + low, start + high))
        at += end - start
    return found


def _cuts(place: Any) -> bool:
    return getattr(place, "dim", None) is not None


def _moved(place: Any, dim: int) -> Any:
    """The same cut along another dimension."""
    if hasattr(place, "split_factor"):
        return type(place)(dim, split_factor=place.split_factor)
    return type(place)(dim)


def _held(p: Any, d: int) -> Tensor:
    """Which indices of dimension `d` this process holds: they are laid out as the parameter is, without
    asking anyone."""
    from torch.distributed.tensor import Replicate, distribute_tensor

    places = []
    for place in p.placements:
        if place.is_partial():
            raise ValueError(f"placements of a parameter are {p.placements} but must be sharded or replicated: reduce it first")
        places.append(_moved(place, 0) if _cuts(place) and place.dim % p.ndim == d else Replicate())
    indices = torch.arange(p.shape[d], device=p.device_mesh.device_type)
    return distribute_tensor(indices, p.device_mesh, places, src_data_rank=None).to_local().cpu()
