"""The coordinates of the plan's noise that a process holds.

Coordinates number the elements of all trainable parameters, in the model's order. They do not depend on the
distribution over processes: replicated, sharded (FSDP2), both (HSDP), tensor parallel, or a mixture.
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
    """Whether `p` is a `DTensor`, of which this process may hold only a part.

    Raises:
        RuntimeError: It is one, and PyTorch is older than the first version whose shards are tested.
    """
    if not (hasattr(p, "placements") and hasattr(p, "device_mesh")):
        return False
    if torch.__version__ < "2.10":
        raise RuntimeError(
            f"parameters that are sharded need PyTorch 2.10 or later, and this is {torch.__version__}: install a"
            " later version, or train replicas"
        )
    return True


def local_part(p: Tensor) -> Tensor:
    """The part of `p` that this process holds."""
    part: Tensor = p.to_local() if is_sharded(p) else p  # type: ignore[attr-defined]
    return part


def like(p: Any, local: Tensor) -> Tensor:
    """A tensor laid out as `p`, made of this process's part `local`."""
    if not is_sharded(p):
        return local
    from torch.distributed.tensor import DTensor

    made: Tensor = DTensor.from_local(
        local, p.device_mesh, p.placements, run_check=False, shape=p.shape, stride=p.stride()
    )
    return made


def stacked_like(p: Any, local: Tensor) -> Tensor:
    """A stack of tensors laid out as `p`, made of this process's part `local`, shape (stack, ...)."""
    if not is_sharded(p):
        return local
    from torch.distributed.tensor import DTensor

    places = [_moved(place, place.dim % p.ndim + 1) if _cuts(place) else place for place in p.placements]
    shape = torch.Size([len(local), *p.shape])
    stride = tuple(math.prod(shape[d + 1 :]) for d in range(len(shape)))
    made: Tensor = DTensor.from_local(
        local, p.device_mesh, places, run_check=False, shape=shape, stride=stride
    )
    return made


def digest_of(shapes: Iterable[tuple[str, tuple[int, ...]]]) -> str:
    """A digest of parameters' names and whole shapes, in this order."""
    return hashlib.sha256(json.dumps([[name, list(shape)] for name, shape in shapes]).encode()).hexdigest()


def ranges_of(p: nn.Parameter, start: int) -> Ranges:
    """Ranges of coordinates of this process's part of `p`, in memory order; `start` is the first coordinate
    of `p`.
    """
    if not is_sharded(p):
        return [(start, start + p.numel())] if p.numel() else []
    held = [_held(p, d) for d in range(p.ndim)]
    if any(len(indices) == 0 for indices in held):
        return []
    stride = [math.prod(p.shape[d + 1 :]) for d in range(p.ndim)]
    # Dimensions after the last sharded one are whole, so their elements are contiguous.
    cut = max((d for d in range(p.ndim) if len(held[d]) != p.shape[d]), default=0) if p.ndim else 0
    starts = torch.full((1,), start, dtype=torch.int64)
    for d in range(cut):
        starts = (starts[:, None] + held[d][None, :] * stride[d]).reshape(-1)
    if p.ndim == 0:
        return [(start, start + 1)]
    indices = held[cut]
    breaks = (torch.nonzero(indices[1:] != indices[:-1] + 1).flatten() + 1).tolist()
    pieces = [
        (int(indices[a]), int(indices[b - 1]) + 1) for a, b in zip([0, *breaks], [*breaks, len(indices)])
    ]
    found = [(int(s) + a * stride[cut], int(s) + b * stride[cut]) for s in starts.tolist() for a, b in pieces]
    return joined(found)


def joined(ranges: Ranges) -> Ranges:
    """The same coordinates in the same order, with adjacent ranges merged."""
    merged: Ranges = []
    for start, end in ranges:
        if merged and merged[-1][1] == start:
            merged[-1] = (merged[-1][0], end)
        elif start < end:
            merged.append((start, end))
    return merged


def cut(ranges: Ranges, first: int, last: int) -> Ranges:
    """Ranges of the coordinates at positions `first` to `last` - 1 of the concatenated ranges."""
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
    """The placement `place`, along another dimension of the tensor."""
    if hasattr(place, "split_factor"):
        return type(place)(dim, split_factor=place.split_factor)
    return type(place)(dim)


def _held(p: Any, d: int) -> Tensor:
    """The indices of dimension `d` that this process holds, found by laying out an index tensor like the
    parameter, without communication.
    """
    from torch.distributed.tensor import Replicate, distribute_tensor

    places = []
    for place in p.placements:
        if place.is_partial():
            raise ValueError(
                f"placements of a parameter are {p.placements} but must be sharded or replicated: reduce it"
                " first"
            )
        places.append(_moved(place, 0) if _cuts(place) and place.dim % p.ndim == d else Replicate())
    indices = torch.arange(p.shape[d], device=p.device_mesh.device_type)
    return distribute_tensor(indices, p.device_mesh, places, src_data_rank=None).to_local().cpu()
