"""What a state's next step follows from beside the noise: weights, data and the optimizer, as digests that are saved with it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from .layout import Ranges, local_part
from .processes import exchanged
from .release import Part

Origin = dict[str, Tensor]
ORIGIN = ("weights", "learning rate", "optimizer", "data set")

# Examples that are looked at of a data set that is not made of tensors.
LOOKED_AT = 64
# Of an optimizer's groups: what changes speed alone, what a scheduler keeps for itself, and the rate, which has a digest of its own.
_APART = {"params", "foreach", "fused", "capturable", "differentiable", "initial_lr", "lr"}
_TOGETHER = 2**20


def _tensor(content: bytes) -> Tensor:
    return torch.frombuffer(bytearray(hashlib.sha256(content).digest()), dtype=torch.uint8)


# Of what nobody told: nothing is compared with it.
UNKNOWN = torch.zeros(32, dtype=torch.uint8)


def origin_of(
    parameters: Mapping[str, nn.Parameter], parts: Sequence[Part], optimizer: torch.optim.Optimizer | None, data: Tensor
) -> Origin:
    """The digests now, by the words that name what they are of; all processes ask for them."""
    found = {"weights": _weights(parameters, parts), **_settings(optimizer), "data set": data}
    # A checkpoint may be loaded into these.
    return {name: digest.clone() for name, digest in found.items()}


def differences(saved: Origin, now: Origin) -> list[str]:
    """What is not as it was."""
    known = [name for name, was in saved.items() if was.any() and now[name].any()]
    return [name for name in known if not torch.equal(saved[name].cpu(), now[name])]


def _weights(parameters: Mapping[str, nn.Parameter], parts: Sequence[Part]) -> Tensor:
    """The same in every layout: a sum over coordinates, each of which one process adds."""
    dtype = torch.float64 if any(p.dtype == torch.float64 for p in parameters.values()) else torch.float32
    mine = 0
    for part in parts:
        flat = [local_part(parameters[name]).detach().reshape(1, -1).to(dtype) for name in part.names]
        mine += _sum_by_coordinate(part.own_share(flat)[0], part.ranges)
    return _tensor(f"{sum(exchanged(mine)) % 2**64}".encode())


def _sum_by_coordinate(weights: Tensor, ranges: Ranges) -> int:
    total, at = 0, 0
    for places in _portions(ranges):
        words = weights[at : at + len(places)].contiguous().view(torch.int32 if weights.dtype == torch.float32 else torch.int64)
        # SplitMix64, whose numbers wrap around.
        mixed = (places.to(weights.device) + 1) * -0x61C8864680B583EB
        mixed = (mixed ^ (mixed >> 30)) * -0x40A7B892E31B1A47
        total += int((words * ((mixed ^ (mixed >> 27)) | 1)).sum())
        at += len(places)
    return total


def _portions(ranges: Ranges) -> Iterator[Tensor]:
    """The coordinates of ranges, in their order, some at a time."""
    held: list[Tensor] = []
    for start, end in ranges:
        for first in range(start, end, _TOGETHER):
            held.append(torch.arange(first, min(first + _TOGETHER, end)))
            if sum(map(len, held)) >= _TOGETHER or len(held) >= 1000:
                yield torch.cat(held)
                held = []
    if held:
        yield torch.cat(held)


def _settings(optimizer: torch.optim.Optimizer | None) -> Origin:
    if optimizer is None:
        return {"learning rate": UNKNOWN, "optimizer": UNKNOWN}
    groups = [{name: _number(value) for name, value in group.items()} for group in optimizer.param_groups]
    others = [sorted((name, value) for name, value in group.items() if name not in _APART) for group in groups]
    sizes = [[p.numel() for p in group["params"]] for group in optimizer.param_groups]
    rates = [group.get("lr") for group in groups]
    kind = type(optimizer).__qualname__
    return {"learning rate": _tensor(repr(rates).encode()), "optimizer": _tensor(repr([kind, others, sizes]).encode())}


def _number(value: Any) -> Any:
    return value.tolist() if isinstance(value, Tensor) else value


def digest_of_data(data: Any, token: str) -> Tensor:
    """Of all tensors of a `TensorDataset`; else of the length, and of `LOOKED_AT` examples at places that follow from `token`, but for those
    that are others when they are read again (random augmentations)."""
    if data is None:
        return UNKNOWN
    if isinstance(data, TensorDataset):
        return _tensor(b"".join(map(_content, data.tensors)))
    found = [f"{len(data)}".encode()]
    for i in range(min(LOOKED_AT, len(data))):
        drawn = int.from_bytes(hashlib.sha256(f"{token} {i}".encode()).digest()[:8], "little") % len(data)
        place = i if len(data) <= LOOKED_AT else drawn
        once, again = _content(data[place]), _content(data[place])
        found.append(once if once == again else b"")
    return _tensor(b"".join(found))


def _content(value: Any) -> bytes:
    """A digest of what an example is made of; of a value of another class, its class alone."""
    if isinstance(value, Tensor):
        value = value.detach().cpu().contiguous()
        told = f"{value.dtype} {tuple(value.shape)} ".encode() + value.reshape(-1).view(torch.uint8).numpy().tobytes()
    elif isinstance(value, (np.ndarray, np.generic)) or hasattr(value, "__array_interface__"):
        array = np.ascontiguousarray(value)
        told = f"{array.dtype} {array.shape} ".encode() + array.tobytes()
    elif isinstance(value, Mapping):
        told = b"{}" + b"".join(_content(name) + _content(part) for name, part in value.items())
    elif isinstance(value, (list, tuple)):
        told = b"[]" + b"".join(map(_content, value))
    elif isinstance(value, (str, bytes, int, float, bool, type(None))):
        told = repr(value).encode()
    else:
        told = type(value).__qualname__.encode()
    return hashlib.sha256(told).digest()
