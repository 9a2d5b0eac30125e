"""Per-example gradients of a stack of matrices, such as those of routed experts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from .made import Materialized, Part, Sums
from .matrices import LARGE, Factors, matrix
from .room import KEPT, Room


@dataclass
class StackUse:
    """Products of rows with the matrices of a stack: for each matrix and example that have rows, the rows and
    the gradients of their products, of shapes (rows, inputs) and (rows, outputs).
    """

    examples: int
    matrices: int
    gradients: Tensor
    """Those of all products."""
    rows: dict[tuple[int, int], tuple[Tensor, Tensor]]

    def factors(self, at: tuple[int, int]) -> Factors:
        """The factors of one matrix and example."""
        a, g = (v.mT.unsqueeze(0).unsqueeze(0) for v in self.rows[at])
        return Factors(a, g, a.shape[2])

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the per-example gradients: (examples, matrices, outputs, inputs)."""
        return (self.examples, self.matrices, *self.factors(next(iter(self.rows))).shape[2:])

    def made(self) -> Tensor:
        """The per-example gradients of the whole stack."""
        found = self.gradients.new_zeros(self.shape)
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


def stack_of(name: str, uses: Sequence[StackUse], room: Room) -> Stack:
    """The gradients of a stack from all its uses.

    Either all of them are kept until they are summed or none: how many have room would depend on the rows of
    other examples, and the last bits of a length on the representation.
    """
    rows = {at: found for use in uses for at, found in use.rows.items()}
    if len(uses) > 1:
        for at in rows:
            a, g = (torch.cat(v) for v in zip(*(use.rows[at] for use in uses if at in use.rows)))
            rows[at] = (a, g)
    all_uses = StackUse(uses[0].examples, uses[0].matrices, uses[0].gradients, rows)
    shape = all_uses.shape
    place = room.take(shape, all_uses.gradients, leave=KEPT if math.prod(shape) > LARGE else 0)
    parts: dict[tuple[int, int], Part] = {}
    for number, example in rows:
        f = all_uses.factors((number, example))
        if place is None:
            parts[number, example] = matrix(name, f, Room(0))
        else:
            parts[number, example] = Materialized(name, f.made(place[example, number].view(f.shape)))
    return Stack(name, all_uses.examples, parts)
