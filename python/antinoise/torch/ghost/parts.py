"""Per-example gradients from a layer's activations and output gradients: squared lengths and weighted sums,
in double precision.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor

from ..norms import in_double, only, some_at_a_time, squares_of

Sums = dict[str, Tensor]


class Part(Protocol):
    """Per-example gradients of one parameter.

    `squares` are the squared lengths, shape (examples,), or slightly larger upper bounds. `add_to` sums the
    gradients.
    """

    name: str
    squares: Tensor

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

    def add_to(self, sums: Sums, factors: Tensor, kept: Tensor | None) -> None:
        into = sums[self.name].view(-1)
        for some, g in in_double(self.gradients):
            g = only(None if kept is None else kept[some], g)
            into.addmv_(g.reshape(len(g), -1).T, factors[some])


@dataclass
class OuterProducts:
    """Gradients of a matrix that are an outer product for each example and group.

    `activations` has shape (groups, examples, inputs), `gradients` (groups, examples, outputs).
    """

    name: str
    activations: Tensor
    gradients: Tensor
    squares: Tensor = field(init=False)

    def __post_init__(self) -> None:
        a, g = (
            torch.linalg.vector_norm(v, dim=-1, dtype=torch.float64)
            for v in (self.activations, self.gradients)
        )
        self.squares = (a * g).square().sum(0)

    def add_to(self, sums: Sums, factors: Tensor, kept: Tensor | None) -> None:
        a, g = (
            v if kept is None else only(kept, v.transpose(0, 1)).transpose(0, 1)
            for v in (self.activations, self.gradients)
        )
        into = sums[self.name]
        into += ((g * factors.unsqueeze(1)).mT @ a.to(torch.float64)).reshape(into.shape)


@dataclass
class Factors:
    """Factors of a matrix's per-example gradients.

    `activations` has shape (examples, groups, inputs, places) and `gradients` (examples, groups, outputs,
    places). In `activations`, inputs and places may span several dimensions, as a view of a smaller tensor.
    """

    activations: Tensor
    gradients: Tensor
    inputs: int

    def __post_init__(self) -> None:
        self.examples, self.groups, outputs, self.places = self.gradients.shape
        self.width, self.size = self.inputs + outputs, self.inputs * outputs

    def slices(self, each: int) -> Iterator[slice]:
        """Slices of examples, for work with `each` values per example and group."""
        return some_at_a_time(self.examples, self.groups * each, self.gradients.device)

    def of(self, some: slice) -> tuple[Tensor, Tensor]:
        """Both factors of some examples."""
        a = self.activations[some]
        return a.reshape(len(a), self.groups, self.inputs, self.places), self.gradients[some]

    def made(self) -> Tensor:
        """The per-example gradients, in single precision."""
        found = self.gradients.new_empty(self.examples, self.groups, self.gradients.shape[2], self.inputs)
        for some in self.slices(self.inputs * self.places):
            a, g = self.of(some)
            torch.matmul(g, a.mT, out=found[some])
        return found


@dataclass
class GramPairs:
    """Gradients of a matrix as sums over places t of g_t a_t^T, with output gradients g_t and activations
    a_t.

    The squared length is a sum over pairs of places s and t: (a_s . a_t) (g_s . g_t).
    """

    name: str
    factors: Factors
    squares: Tensor = field(init=False)

    def __post_init__(self) -> None:
        f = self.factors
        # Pairs may cancel, rounding errors do not. The first term bounds the error of the squares, the second
        # that of the products in `add_to`, both relative to the square of the sum without cancellation.
        rounding = (f.width + 2 * f.places + 16) * 2.0**-52 + ((f.places + 4) * 2.0**-31) ** 2
        found = []
        for some in f.slices(f.places * max(f.places, f.width)):
            a, g = (v.to(torch.float64) for v in f.of(some))
            a, g = a.mT @ a, g.mT @ g
            uncancelled = (a.diagonal(dim1=-2, dim2=-1) * g.diagonal(dim1=-2, dim2=-1)).sqrt().sum(-1)
            found.append(((a * g).sum(-1).sum(-1) + rounding * uncancelled.square()).sum(1))
        self.squares = torch.cat(found)

    def add_to(self, sums: Sums, factors: Tensor, kept: Tensor | None) -> None:
        into = sums[self.name].view(-1)
        made: Tensor | None = None
        # Each gradient is computed separately: in one product over all examples, rounding would depend on
        # cancellation in other examples.
        for some in self.factors.slices(self.factors.size):
            a, g = (
                only(None if kept is None else kept[some], v).to(torch.float64) for v in self.factors.of(some)
            )
            if made is None:
                made = g @ a.mT
            into.addmv_(torch.matmul(g, a.mT, out=made[: len(g)]).flatten(1).T, factors[some])


@dataclass
class SparseRows:
    """Gradients of an embedding table.

    `gradients` has shape (entries, columns); entry i belongs to example `example[i]` and row `row[i]`. A
    pair of example and row occurs once.
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

    def add_to(self, sums: Sums, factors: Tensor, kept: Tensor | None) -> None:
        gradients = only(None if kept is None else kept[self.example], self.gradients)
        sums[self.name].index_add_(0, self.row, gradients * factors[self.example].unsqueeze(1))


def matrix(name: str, factors: Factors) -> Part:
    """The per-example gradients of a matrix, in the representation that takes least time and memory.

    `GramPairs` take twice the multiplications, in double precision, and less memory traffic: they serve few
    places, and gradients that are much larger than their factors.
    """
    f = factors
    if f.places == 1:
        return OuterProducts(name, *(v.squeeze(3).transpose(0, 1) for v in f.of(slice(None))))
    few = f.places * (f.size + 2 * f.places * f.width) < 32 * f.size
    large = f.size > 4 * f.places * f.width and f.examples * f.groups * f.size > 2**22
    return GramPairs(name, f) if few or large else Materialized(name, f.made())
