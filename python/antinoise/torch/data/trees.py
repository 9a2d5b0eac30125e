"""Batches of any structure: a tensor, or tuples, lists and mappings of tensors (such as a `BatchEncoding`),
with the examples in the first dimension of each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from torch import Tensor


def leaves_of(batch: Any) -> Iterator[Any]:
    """Leaves of a batch in order: tensors, and all other values."""
    if isinstance(batch, Mapping):
        batch = batch.values()
    elif not isinstance(batch, (list, tuple)):
        yield batch
        return
    for part in batch:
        yield from leaves_of(part)


def rebuilt(batch: Any, leaves: Iterable[Any]) -> Any:
    """A batch of the same structure with these leaves, in the order of `leaves_of`."""
    return _rebuilt(batch, iter(leaves))


def _rebuilt(batch: Any, leaves: Iterator[Any]) -> Any:
    if isinstance(batch, Mapping):
        made: Any = {name: _rebuilt(part, leaves) for name, part in batch.items()}
        return made if type(batch) is dict else type(batch)(made)  # type: ignore[call-arg]
    if isinstance(batch, (list, tuple)):
        parts = [_rebuilt(part, leaves) for part in batch]
        return type(batch)(*parts) if hasattr(batch, "_fields") else type(batch)(parts)
    return next(leaves)


def changed(batch: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """A batch of the same structure with each of its tensors changed."""
    return rebuilt(batch, (change(leaf) for leaf in leaves_of(batch)))


def examples_in(batch: Any) -> int:
    """The number of examples in a batch: the first dimension of each of its tensors."""
    leaves = list(leaves_of(batch))
    wrong = [type(leaf).__name__ for leaf in leaves if not isinstance(leaf, Tensor) or leaf.dim() == 0]
    counts = {len(leaf) for leaf in leaves if not wrong}
    if wrong or len(counts) != 1:
        found = f"one with a {wrong[0]}" if wrong else f"one of tensors of {sorted(counts)} examples"
        raise ValueError(
            f"batch is {found} but must be made of tensors with the examples in their first dimension"
        )
    return counts.pop()


def portion_of(batch: Any, places: Tensor | slice) -> Any:
    """The examples at these places."""
    if isinstance(places, slice):
        return changed(batch, lambda leaf: leaf[places])
    return changed(batch, lambda leaf: leaf[places.to(leaf.device)])
