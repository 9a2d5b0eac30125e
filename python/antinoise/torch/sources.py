"""Of which step a batch is, as far as its tensors show: those that a loader handed out, where the loop clips
them as they are, or parts of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor

# The token of a run, and a step.
Source = tuple[str, int]

# The attribute of a tensor that was handed out: the last step that it was handed out for.
_SOURCE = "antinoise_source"


def _tensors(batch: Any) -> Iterator[Tensor]:
    if isinstance(batch, Tensor):
        yield batch
    elif isinstance(batch, (list, tuple)):
        for part in batch:
            yield from _tensors(part)
    elif isinstance(batch, Mapping):
        for part in batch.values():
            yield from _tensors(part)


def mark(batch: Any, source: Source) -> None:
    """Says that these tensors are those of a step."""
    for tensor in _tensors(batch):
        setattr(tensor, _SOURCE, source)


def sources_of(batch: Any) -> frozenset[Source]:
    """The steps that a batch is known to be of."""
    # A part is a view of what was handed out.
    found = (getattr(tensor, _SOURCE, None) or getattr(tensor._base, _SOURCE, None) for tensor in _tensors(batch))
    return frozenset(source for source in found if source is not None)
