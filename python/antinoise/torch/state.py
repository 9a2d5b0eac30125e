"""How a state of the noise is known to be the one that was saved.

A state is a dict of tensors. `commitment` is a digest, keyed by the run's key, of all others: of the words in
`past` by their keyed sum, which processes add up whatever parts they hold, and of every other entry by its
name, dtype, shape and bytes.

To bind something else to the state, add a tensor of any dtype to the dict in `CorrelatedNoise.state_dict`,
the same in all processes: it is covered without more. Where processes hold parts of it, add up
`NoiseStream.sum_of_words` of the parts with `total_of`, and store `bytes_of` the total.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from .processes import exchanged

_BYTES = (torch.uint8, (32,))
_ENTRIES = {"steps": (torch.int64, (3,)), "run_key": _BYTES, "commitment": _BYTES, "plan": _BYTES, "layout": _BYTES}
# Covered otherwise: by the sum of words, and as the key of the digest.
_APART = {"past", "run_key", "commitment"}


def total_of(sum_of_mine: int) -> int:
    """The keyed sum over all processes, where each coordinate's words are in one of them."""
    total: int = sum(exchanged(sum_of_mine)) % 2**128
    return total


def bytes_of(total: int) -> Tensor:
    """A total as an entry of a state."""
    return as_tensor(total.to_bytes(16, "little"))


def as_tensor(content: bytes) -> Tensor:
    """These bytes as an entry of a state."""
    return torch.frombuffer(bytearray(content), dtype=torch.uint8)


def extra_of(state: Mapping[str, Any]) -> bytes:
    """A digest of all entries but those that are covered otherwise."""
    found = hashlib.sha256()
    for name in sorted(state.keys() - _APART):
        entry: Tensor = state[name].detach().cpu().contiguous()
        found.update(f"{name!r} {entry.dtype} {tuple(entry.shape)} ".encode())
        found.update(entry.reshape(-1).view(torch.uint8).numpy().tobytes())
    return found.digest()


def words_of(state: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Tensor]:
    """The words in `past` that this process holds, by parameter, each of the shape that it must have, as
    other entries are of theirs."""
    for name, wanted in _ENTRIES.items():
        if (got := (state[name].dtype, tuple(state[name].shape))) != wanted:
            raise RuntimeError(f"{name} of the state is {got}, which is not what was saved. Use another copy of the state")
    past = {name: part.to_local() if hasattr(part, "to_local") else part for name, part in state["past"].items()}
    found = {name: (part.dtype, tuple(part.shape)) for name, part in past.items()}
    if found != {name: (torch.int32, shape) for name, shape in shapes.items()}:
        raise RuntimeError(f"past of the state is {found}, which is not what was saved. Use another copy of the state")
    return {name: part.cpu() for name, part in past.items()}


@contextmanager
def readable() -> Iterator[None]:
    """Refuses what is not a state at all in one kind of error: whatever was damaged, the state was not
    used."""
    try:
        yield
    except (ValueError, RuntimeError):
        raise
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise RuntimeError(f"the state cannot be read ({what}): an entry is missing or damaged. Use another copy of the state") from error
