"""Of which step a batch is, as far as its tensors show: those that a loader handed out, where the loop clips them as they are, or parts of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from itertools import islice
from typing import Any
from weakref import ref

from torch import Tensor, nn

from .relied import WeakTensorKeyDictionary

# The token of a run, and a step.
Source = tuple[str, int]

# Beside tensors, not on them, by their identity: what is gone, or another one there, is not known. A tensor that is handed out again is of the last step
# that it was handed out for.
_handed: dict[int, tuple[ref[Tensor], Source]] = {}
# What the sums of a parameter, and of those that were clipped with it, are made of.
_clipped: MutableMapping[Tensor, set[Source]] = WeakTensorKeyDictionary()


def _tensors(batch: Any) -> Iterator[Tensor]:
    if isinstance(batch, Tensor):
        yield batch
    elif isinstance(batch, Mapping):
        for part in batch.values():
            yield from _tensors(part)
    elif isinstance(batch, (list, tuple)):
        for part in batch:
            yield from _tensors(part)


def mark(batch: Any, source: Source) -> None:
    """Says that these tensors are those of a step."""
    for tensor in _tensors(batch):
        at = id(tensor)
        _handed[at] = (ref(tensor, lambda gone, at=at: _forget(at, gone)), source)  # type: ignore[misc]


def _forget(at: int, gone: ref[Tensor]) -> None:
    if (found := _handed.get(at)) is not None and found[0] is gone:
        del _handed[at]


def _source(tensor: Tensor | None) -> Source | None:
    found = _handed.get(id(tensor))
    return found[1] if found is not None and found[0]() is tensor else None


def clips(parameters: Iterable[nn.Parameter], batch: Any) -> None:
    """Says that sums of these parameters are made of `batch`."""
    # A part is a view of what was handed out.
    found = {_source(tensor) or _source(tensor._base) for tensor in _tensors(batch)} - {None}
    if found:
        for p in islice(parameters, 1):
            _clipped.setdefault(p, set()).update(source for source in found if source)


def sources_of(parameters: Iterable[nn.Parameter]) -> set[Source]:
    """The steps that the sums of these parameters are known to be of."""
    return {source for p in parameters for source in _clipped.get(p, ())} if _clipped else set()


def drop_sources(p: nn.Parameter) -> None:
    """The sum of this parameter is gone."""
    if _clipped:
        _clipped.pop(p, None)
