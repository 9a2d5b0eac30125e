"""Marks on a batch's tensors that name the step for which the batch was handed out. A mark is found if the
loop clips these tensors or views of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import Tensor

from .trees import leaves_of

# A run's token, and a step.
Source = tuple[str, int]

# Attribute of a tensor: the run and the last step that it was handed out for.
_SOURCE = "antinoise_source"


def _tensors(batch: Any) -> Iterator[Tensor]:
    return (leaf for leaf in leaves_of(batch) if isinstance(leaf, Tensor))


def mark(batch: Any, source: Source) -> None:
    """Marks a batch's tensors as handed out for a step."""
    for tensor in _tensors(batch):
        setattr(tensor, _SOURCE, source)


def sources_of(batch: Any) -> frozenset[Source]:
    """The steps that a batch's tensors were handed out for, as far as known."""
    # A part of a batch is a view of a marked tensor.
    found = (
        getattr(tensor, _SOURCE, None) or getattr(tensor._base, _SOURCE, None) for tensor in _tensors(batch)
    )
    return frozenset(source for source in found if source is not None)
