"""Per-example gradients of matrices from a layer's activations and output gradients: squared lengths (ghost
norms) and weighted sums, in double precision.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ..norms import add_weighted, only, some_at_a_time, squares_of
from .made import Materialized, Part, Sums
from .room import KEPT, Room
from .tables import SparseRows


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

    def first(self) -> list[Tensor]:
        return [self.activations[:, 0], self.gradients[:, 0]]

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

    def first(self) -> list[Tensor]:
        """Both factors of the first example."""
        return list(self.of(slice(0, 1)))

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """The shape of the per-example gradients: (examples, groups, outputs, inputs)."""
        return (self.examples, self.groups, self.gradients.shape[2], self.inputs)

    def made(self, found: Tensor | None = None) -> Tensor:
        """The per-example gradients, in the precision of the factors; in `found`, if given."""
        found = self.gradients.new_empty(self.shape) if found is None else found
        for some in self.slices(self.inputs * self.places):
            a, g = self.of(some)
            torch.matmul(g, a.mT, out=found[some])
        return found

    def made_some(self) -> Iterator[tuple[slice, Tensor]]:
        """Per-example gradients of some examples at a time, in the precision of the factors. They share one
        buffer: each is valid until the next one.
        """
        place = torch.empty(0)
        for some in self.slices(self.size):
            a, g = self.of(some)
            if not place.numel():
                place = g.new_empty(len(g), *self.shape[1:])
            yield some, torch.matmul(g, a.mT, out=place[: len(g)])

    def made_in_double(self, kept: Tensor | None, whole: bool) -> Iterator[tuple[slice, slice, Tensor]]:
        """Some examples, some rows of outputs (all of them if `whole`), and this part of the per-example
        gradients: zeros where an example is not `kept`.
        """
        outputs, device = self.shape[2], self.gradients.device
        for some in self.slices(self.size):
            a, g = (only(None if kept is None else kept[some], v).to(torch.float64) for v in self.of(some))
            in_parts = len(g) == self.groups == 1 and not whole
            for rows in some_at_a_time(outputs, self.inputs, device) if in_parts else [slice(0, outputs)]:
                yield some, rows, g[:, :, rows] @ a.mT

    def add_in_double(self, sum: Tensor, factors: Tensor, kept: Tensor | None) -> None:
        """Adds the per-example gradients times `factors`. Each is computed separately: in one product over
        all examples, rounding would depend on cancellation in other examples.
        """
        into = sum.view(self.groups, *self.shape[2:])
        for some, rows, gradients in self.made_in_double(kept, whole=False):
            into[:, rows].view(-1).addmv_(gradients.flatten(1).T, factors[some])


# Largest number of values of an example's gradient that is made as a whole, in single precision.
WHOLE = 2**24
# Number of values of all examples' gradients above which they are large.
LARGE = 2**22


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
        rounding = rounding_of(f.width + 2 * f.places, f.places)
        found = []
        for some in f.slices(f.places * max(f.places, f.width)):
            a, g = (v.to(torch.float64) for v in f.of(some))
            a, g = a.mT @ a, g.mT @ g
            uncancelled = (a.diagonal(dim1=-2, dim2=-1) * g.diagonal(dim1=-2, dim2=-1)).sqrt().sum(-1)
            found.append(((a * g).sum(-1).sum(-1) + rounding * uncancelled.square()).sum(1))
        self.squares = torch.cat(found)

    def first(self) -> list[Tensor]:
        return self.factors.first()

    def add_to(self, sums: Sums, factors: Tensor, kept: Tensor | None) -> None:
        """In single precision each gradient is made as a whole, and added if it is as long as its pairs say;
        in double precision where single precision made a longer one.
        """
        f, into = self.factors, sums[self.name]
        if f.gradients.dtype != torch.float32 or f.groups * f.size > WHOLE:
            f.add_in_double(into, factors, kept)
            return
        near = torch.zeros_like(factors, dtype=torch.bool)
        for some, gradients in f.made_some():
            near[some] = squares_of(gradients) <= (1 + 2.0**-23) * self.squares[some]
            add_weighted(into, gradients, torch.where(near[some], factors[some], 0.0), near[some])
        longer = (~near & (factors > 0)).nonzero().squeeze(1)
        if len(longer):
            Factors(f.activations[longer], f.gradients[longer], f.inputs).add_in_double(
                into, factors[longer], None
            )


def rounding_of(terms: int, places: int) -> float:
    """Bound on rounding errors, relative to the square of the sum of the terms' magnitudes: terms may cancel,
    their errors do not. The first summand bounds the error of squares that are sums of `terms` products, the
    second that of the gradients in `add_to`, which are sums over `places`.
    """
    return (terms + 16) * 2.0**-52 + ((places + 4) * 2.0**-31) ** 2


@dataclass
class MadeTwice:
    """Gradients of a matrix (added to those of `table`, if it is an embedding table too) that are made for
    some examples at a time: for the squared lengths, and again for the sum.

    Both times each number is the same operation on the same numbers. The squared lengths are computed again
    too: a gradient in the sum must not be longer than the one that was clipped.
    """

    name: str
    factors: Factors
    table: SparseRows | None = None
    squares: Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.squares = torch.cat([squares_of(gradients) for _, gradients in self._made()])

    def _made(self) -> Iterator[tuple[slice, Tensor]]:
        """Gradients of some examples at a time, as `Factors.made_some`."""
        for some, made in self.factors.made_some():
            if self.table is not None:
                self.table.add_into(made[:, 0], some)
            yield some, made

    def first(self) -> list[Tensor]:
        return self.factors.first() + ([] if self.table is None else self.table.first())

    def add_to(self, sums: Sums, factors: Tensor, kept: Tensor | None) -> None:
        longer = []
        for some, gradients in self._made():
            again = squares_of(gradients)
            longer.append(~(again <= (1 + 2.0**-40) * self.squares[some]) & (factors[some] > 0))
            add_weighted(sums[self.name], gradients, factors[some], None if kept is None else kept[some])
        if bool(torch.cat(longer).any()):
            raise RuntimeError(
                f"gradients of {self.name} differ when they are made a second time: nothing was added. Use"
                " operations that give the same result twice (torch.use_deterministic_algorithms), or"
                ' norms="per_example"'
            )


def matrix(name: str, factors: Factors, room: Room, table: SparseRows | None = None) -> Part:
    """The per-example gradients of a matrix, in the fastest representation for which `room` has memory. If
    the matrix is also an embedding table, the gradients of `table` are added, except to `OuterProducts` and
    `GramPairs`.

    `GramPairs` multiply pairs of places in double precision, and have less memory traffic: they serve few
    places, and gradients that are much larger than their factors. `MadeTwice` makes gradients a second time.
    """
    f = factors
    if f.places == 1:
        return OuterProducts(name, *(v.squeeze(3).transpose(0, 1) for v in f.of(slice(None))))
    few = f.places * (f.size + 2 * f.places * f.width) < 32 * f.size
    if few:
        return GramPairs(name, f)
    large = f.size > 4 * f.places * f.width and f.examples * f.groups * f.size > LARGE
    # The gradients replace the factors in memory. For large ones this saves less time for each byte: they
    # take only what the default would not have.
    place = room.take(f.shape, f.gradients, leave=KEPT if large else 0)
    if place is None:
        return GramPairs(name, f) if 2 * f.places * f.width < f.size else MadeTwice(name, f, table)
    made = f.made(place)
    if table is not None:
        table.add_into(made[:, 0], slice(0, f.examples))
    return Materialized(name, made)
