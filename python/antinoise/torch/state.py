"""Authentication of a saved noise state.

A state is a dict of tensors. `commitment` is a digest, keyed by the run's key, of all other entries: of the
words in `past` by their keyed sum, which does not depend on their distribution over processes, and of every
other entry by name, dtype, shape and bytes.

To bind another value to the state, add a tensor to the dict in `CorrelatedNoise.state_dict`, the same in
all processes: the digest covers it. If processes hold different parts of the value, add up
`NoiseStream.sum_of_words` of the parts with `total_of`, and store `bytes_of` the total.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from .distributed.processes import all_gather

_BYTES = (torch.uint8, (32,))
_ENTRIES = {
    "steps": (torch.int64, (3,)),
    "run_key": _BYTES,
    "commitment": _BYTES,
    "plan": _BYTES,
    "layout": _BYTES,
}
# Not in the digest of entries: `past` is covered by its keyed sum, `run_key` is the digest's key.
_APART = {"past", "run_key", "commitment"}


def total_of(sum_of_mine: int) -> int:
    """The keyed sum of the words of all coordinates; each coordinate's words are held by one process."""
    total: int = sum(all_gather(sum_of_mine)) % 2**128
    return total


def bytes_of(total: int) -> Tensor:
    """A total as an entry of a state."""
    return as_tensor(total.to_bytes(16, "little"))


def as_tensor(content: bytes) -> Tensor:
    """Bytes as an entry of a state."""
    return torch.frombuffer(bytearray(content), dtype=torch.uint8)


def extra_of(state: Mapping[str, Any]) -> bytes:
    """A digest of all entries that are not covered otherwise."""
    found = hashlib.sha256()
    for name in sorted(state.keys() - _APART):
        entry: Tensor = state[name].detach().cpu().contiguous()
        found.update(f"{name!r} {entry.dtype} {tuple(entry.shape)} ".encode())
        found.update(entry.reshape(-1).view(torch.uint8).numpy().tobytes())
    return found.digest()


def words_of(state: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Tensor]:
    """This process's words of `past` by parameter, after a check of their shapes."""
    for name, wanted in _ENTRIES.items():
        if (got := (state[name].dtype, tuple(state[name].shape))) != wanted:
            raise RuntimeError(
                f"{name} of the state is {got}, which is not what was saved. Use another copy of the state"
            )
    past = {
        name: part.to_local() if hasattr(part, "to_local") else part for name, part in state["past"].items()
    }
    found = {name: (part.dtype, tuple(part.shape)) for name, part in past.items()}
    if found != {name: (torch.int32, shape) for name, shape in shapes.items()}:
        raise RuntimeError(
            f"past of the state is {found}, which is not what was saved. Use another copy of the state"
        )
    return {name: part.cpu() for name, part in past.items()}


@contextmanager
def readable() -> Iterator[None]:
    """Turns any error of reading a damaged state into a RuntimeError; the state was then not used."""
    try:
        yield
    except (ValueError, RuntimeError):
        raise
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise RuntimeError(
            f"the state cannot be read ({what}): an entry is missing or damaged. Use another copy of the"
            " state"
        ) from error
