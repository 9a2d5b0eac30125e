"""Per-example gradients of one parameter: what all representations have in common, and
gradients that are in memory.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from torch import Tensor

from ..norms import add_weighted, squares_of

Sums = dict[str, Tensor]


class Part(Protocol):
    """Per-example gradients of one parameter.

    `squares` are the squared lengths, shape (examples,), or slightly larger upper bounds. `add_to` sums the
    gradients. `first` returns what determines the first example's gradient.
    """

    name: str
    squares: Tensor

    def first(self) -> list[Tensor]: ...

    def add_to(self, sums: Sums, factors: Tensor, kept: Tensor | None) -> None:
        """Adds the gradients times `factors`, shape (examples,), to `sums[name]`. `kept` selects the
        examples, None all of them.
        """


@dataclass
class Materialized:
    """Per-example gradients in memory, shape (examples, ...)."""

    name: str
    gradients: Tensor
    squares: Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.squares = squares_of(self.gradients)

    def first(self) -> list[Tensor]:
        return [self.gradients[0]]

    def add_to(self, sums: Sums, factors: Tensor, kept: Tensor | None) -> None:
        add_weighted(sums[self.name], self.gradients, factors, kept)
