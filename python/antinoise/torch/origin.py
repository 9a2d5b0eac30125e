"""Digests, saved with the noise, of everything else that determines the next step: weights, data and
optimizer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from .. import NoiseStream
from .._weights import sum_of_weights
from .distributed.layout import local_part
from .distributed.share import Share
from .state import total_of

Origin = dict[str, Tensor]
ORIGIN = ("weights", "learning rate", "optimizer", "data set")

# Number of examples that are read of a dataset that is not a TensorDataset.
LOOKED_AT = 64
# Entries of an optimizer's groups that are not compared: those that change only speed, and those of
# schedulers.
_APART = {"params", "foreach", "fused", "capturable", "differentiable", "initial_lr"}
_RATE = "lr of parameter group "


def _tensor(content: bytes) -> Tensor:
    return torch.frombuffer(bytearray(hashlib.sha256(content).digest()), dtype=torch.uint8)


# The digest of something unknown, which is not compared.
UNKNOWN = torch.zeros(32, dtype=torch.uint8)


def origin_of(
    stream: NoiseStream,
    parameters: Mapping[str, nn.Parameter],
    parts: Sequence[Share],
    optimizer: torch.optim.Optimizer | None,
    data: Tensor,
) -> Origin:
    """The current digests by name (for error messages). All processes must call it."""
    found = {"weights": _weights(stream, parameters, parts), **_settings(optimizer), "data set": data}
    # Copies, since a checkpoint may be loaded in place.
    return {name: digest.clone() for name, digest in found.items()}


def differences(saved: Origin, now: Origin) -> list[str]:
    """The names of digests that differ."""
    known = [name for name, was in saved.items() if was.any() and now[name].any()]
    return [name for name in known if not torch.equal(saved[name].cpu(), now[name])]


def _weights(stream: NoiseStream, parameters: Mapping[str, nn.Parameter], parts: Sequence[Share]) -> Tensor:
    """The keyed sum of weights. It is a sum over coordinates, each added by one process, so it does not
    depend on the layout.
    """
    dtype = torch.float64 if any(p.dtype == torch.float64 for p in parameters.values()) else torch.float32
    shares = [
        part.own_share([local_part(parameters[name]).detach()[None].to(dtype) for name in part.names])[0]
        for part in parts
    ]
    total = total_of(sum_of_weights(stream, torch.cat(shares).cpu().numpy()))
    return _tensor(f"{total}".encode())


def options_of(optimizer: torch.optim.Optimizer) -> dict[str, str]:
    """The optimizer's options that determine its updates, by names for error messages."""
    groups = list(enumerate(optimizer.param_groups))
    return {
        f"{name} of parameter group {i}": repr(_number(group[name]))
        for i, group in groups
        for name in sorted(group)
        if name not in _APART
    }


def _settings(optimizer: torch.optim.Optimizer | None) -> Origin:
    if optimizer is None:
        return {"learning rate": UNKNOWN, "optimizer": UNKNOWN}
    options = options_of(optimizer)
    rates = {name: value for name, value in options.items() if name.startswith(_RATE)}
    others = {name: value for name, value in options.items() if name not in rates}
    sizes = [[p.numel() for p in group["params"]] for group in optimizer.param_groups]
    kind = type(optimizer).__qualname__
    return {
        "learning rate": _tensor(repr(rates).encode()),
        "optimizer": _tensor(repr([kind, others, sizes]).encode()),
    }


def _number(value: Any) -> Any:
    return value.tolist() if isinstance(value, Tensor) else value


def digest_of_data(data: Any, token: str) -> Tensor:
    """A digest of the dataset.

    It covers all tensors of a `TensorDataset`; of other datasets the length and `LOOKED_AT` examples at
    positions derived from `token`, without examples that change when they are read again (random
    augmentation).
    """
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
    """A digest of an example's content; for values of unknown classes, of the class only."""
    if isinstance(value, Tensor):
        value = value.detach().cpu().contiguous()
        told = (
            f"{value.dtype} {tuple(value.shape)} ".encode()
            + value.reshape(-1).view(torch.uint8).numpy().tobytes()
        )
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
