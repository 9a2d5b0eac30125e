"""Per-example gradients of embedding tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from ..norms import only, squares_of
from .made import Sums


@dataclass
class SparseRows:
    """Gradients of an embedding table.

    `gradients` has shape (entries, columns); entry i belongs to example `example[i]` and row `row[i]`. A
    pair of example and row occurs once. Entries are in the order of examples.
    """

    name: str
    gradients: Tensor
    example: Tensor
    row: Tensor
    examples: int
    squares: Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.squares = self.gradients.new_zeros(self.examples).index_add_(
            0, self.example, squares_of(self.gradients)
        )

    @cached_property
    def counts(self) -> Tensor:
        """The number of entries of each example."""
        return torch.bincount(self.example, minlength=self.examples)

    @cached_property
    def _start(self) -> list[int]:
        return [0, *self.counts.cumsum(0).tolist()]

    def of(self, some: slice) -> slice:
        """The entries of some examples."""
        return slice(self._start[some.start], self._start[some.stop])

    def first(self) -> list[Tensor]:
        own = self.of(slice(0, 1))
        return [self.row[own], self.gradients[own]]

    def add_into(self, gradients: Tensor, some: slice, kept: Tensor | None = None) -> None:
        """Adds the entries of some examples to those examples' gradients, shape (examples, rows, columns)."""
        own = self.of(some)
        example = self.example[own]
        found = only(None if kept is None else kept[example], self.gradients[own]).to(gradients.dtype)
        gradients.index_put_((example - some.start, self.row[own]), found, accumulate=True)

    def add_to(self, sums: Sums, factors: Tensor, kept: Tensor | None) -> None:
        gradients = only(None if kept is None else kept[self.example], self.gradients)
        sums[self.name].index_add_(0, self.row, gradients * factors[self.example].unsqueeze(1))


@dataclass
class Lookups:
    """Look-ups in a table of `rows` rows: the row of each look-up, shape (examples, look-ups), and the
    gradient of its result, shape (examples, look-ups, columns).
    """

    row: Tensor
    gradients: Tensor
    rows: int

    def part(self, name: str) -> SparseRows:
        """The per-example gradients of the table. Look-ups of one row by one example add up to one
        gradient.
        """
        examples, count = self.row.shape
        example = torch.arange(examples, device=self.row.device).repeat_interleave(count)
        place, which = torch.unique(example * self.rows + self.row.reshape(-1), return_inverse=True)
        gradients = self.gradients.reshape(examples * count, -1).to(torch.float64)
        made = gradients.new_zeros(len(place), gradients.shape[1]).index_add_(0, which, gradients)
        return SparseRows(
            name, made, place.div(self.rows, rounding_mode="floor"), place % self.rows, examples
        )
