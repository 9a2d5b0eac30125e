"""Per-example gradients of a stack of matrices, such as those of routed experts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from .made import Part, Sums
from .matrices import Factors, matrix
from .room import Room


@dataclass
class StackUse:
    """Products of rows with the matrices of a stack: for each matrix and example that have rows, the rows and
    the gradients of their products, of shapes (rows, inputs) and (rows, outputs).
    """

    examples: int
    matrices: int
    rows: dict[tuple[int, int], tuple[Tensor, Tensor]]

    def factors(self, at: tuple[int, int]) -> Factors:
        """The factors of one matrix and example."""
        a, g = (v.mT.unsqueeze(0).unsqueeze(0) for v in self.rows[at])
        return Factors(a, g, a.shape[2])

    def made(self) -> Tensor:
        """The per-example gradients of the whole stack."""
        first = self.factors(next(iter(self.rows)))
        found = first.gradients.new_zeros(self.examples, self.matrices, *first.shape[2:])
        for number, example in self.rows:
            found[example, number] = self.factors((number, example)).made()[0, 0]
        return found


@dataclass
class Stack:
    """Gradients of a stack of matrices: `parts` has those of one matrix and one example."""

    name: str
    examples: int
    parts: dict[tuple[int, int], Part]
    squares: Tensor = field(init=False)

    def __post_init__(self) -> None:
        found: list[list[Tensor]] = [[] for _ in range(self.examples)]
        for (_, example), part in self.parts.items():
            found[example].append(part.squares)
        like = next(iter(self.parts.values())).squares
        self.squares = torch.cat([torch.stack(of).sum(0) if of else torch.zeros_like(like) for of in found])

    def first(self) -> list[Tensor]:
        return [v for (_, example), part in self.parts.items() if example == 0 for v in part.first()]

    def add_to(self, sums: Sums, factors: Tensor, kept: Tensor | None) -> None:
        for (number, i), part in self.parts.items():
            of_one = slice(i, i + 1)
            into = {self.name: sums[self.name][number]}
            part.add_to(into, factors[of_one], None if kept is None else kept[of_one])


def stack_of(name: str, uses: Sequence[StackUse]) -> Stack:
    """The gradients of a stack from all its uses.

    No gradient is kept until it is summed: how many have room would depend on the rows of other examples, and
    the last bits of a length on the representation.
    """
    rows = {at: found for use in uses for at, found in use.rows.items()}
    if len(uses) > 1:
        for at in rows:
            a, g = (torch.cat(v) for v in zip(*(use.rows[at] for use in uses if at in use.rows)))
            rows[at] = (a, g)
    joined = StackUse(uses[0].examples, uses[0].matrices, rows)
    return Stack(name, joined.examples, {at: matrix(name, joined.factors(at), Room(0)) for at in rows})
