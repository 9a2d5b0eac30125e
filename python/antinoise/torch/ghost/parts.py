"""Per-example gradients from a layer's activations and output gradients, embeddings included: squared lengths
(ghost norms) and weighted sums, in double precision.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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

    def made_in_double(self, kept: Tensor | None) -> Iterator[tuple[slice, Tensor]]:
        """The per-example gradients of some examples at a time, zeros where an example is not `kept`. They
        share one buffer: each is valid until the next one.
        """
        made: Tensor | None = None
        for some in self.slices(self.size):
            a, g = (only(None if kept is None else kept[some], v).to(torch.float64) for v in self.of(some))
            if made is None:
                made = torch.empty(
                    len(g), self.groups, g.shape[2], self.inputs, dtype=g.dtype, device=g.device
                )
            yield some, torch.matmul(g, a.mT, out=made[: len(g)])


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
        rounding = _rounding(f.width + 2 * f.places, f.places)
        found = []
        for some in f.slices(f.places * max(f.places, f.width)):
            a, g = (v.to(torch.float64) for v in f.of(some))
            a, g = a.mT @ a, g.mT @ g
            uncancelled = (a.diagonal(dim1=-2, dim2=-1) * g.diagonal(dim1=-2, dim2=-1)).sqrt().sum(-1)
            found.append(((a * g).sum(-1).sum(-1) + rounding * uncancelled.square()).sum(1))
        self.squares = torch.cat(found)

    def add_to(self, sums: Sums, factors: Tensor, kept: Tensor | None) -> None:
        into = sums[self.name].view(-1)
        # Each gradient is computed separately: in one product over all examples, rounding would depend on
        # cancellation in other examples.
        for some, gradients in self.factors.made_in_double(kept):
            into.addmv_(gradients.flatten(1).T, factors[some])


def _rounding(terms: int, places: int) -> float:
    """Bound on rounding errors, relative to the square of the sum of the terms' magnitudes: terms may cancel,
    their errors do not. The first summand bounds the error of squares that are sums of `terms` products, the
    second that of the gradients in `add_to`, which are sums over `places`.
    """
    return (terms + 16) * 2.0**-52 + ((places + 4) * 2.0**-31) ** 2


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


@dataclass
class TableAndMatrix:
    """Gradients of a matrix that is also an embedding table, as if a language model's head is its embedding:
    sums of both gradients. Their inner product is (g_t)_row (a_t . r), summed over the places t of the matrix
    and over the table's entries r, in the notation of `GramPairs`.
    """

    name: str
    factors: Factors
    matrix: OuterProducts | GramPairs
    table: SparseRows
    squares: Tensor = field(init=False)

    def __post_init__(self) -> None:
        f, table = self.factors, self.table
        # Entries are in the order of examples: those of example i are from start[i] on.
        counts = torch.bincount(table.example, minlength=f.examples)
        self._start = [0, *counts.cumsum(0).tolist()]
        inner, uncancelled = [], []
        for i in range(f.examples):
            entries = self._entries(slice(i, i + 1))
            a, g = (v[0, 0] for v in f.of(slice(i, i + 1)))
            norms = (torch.linalg.vector_norm(v, dim=0, dtype=torch.float64) for v in (a, g))
            uncancelled.append(torch.dot(*norms))
            found = table.gradients[entries] @ a.to(torch.float64)
            inner.append((found * g[table.row[entries]].to(torch.float64)).sum())
        rounding = _rounding(f.width + 2 * f.places + int(counts.max()), f.places)
        all_lengths = torch.stack(uncancelled) + table.squares.sqrt()
        squares = self.matrix.squares + table.squares + 2 * torch.stack(inner)
        # Not below 0, where both gradients cancel.
        self.squares = squares.clamp(min=0) + rounding * all_lengths.square()

    def _entries(self, some: slice) -> slice:
        return slice(self._start[some.start], self._start[some.stop])

    def add_to(self, sums: Sums, factors: Tensor, kept: Tensor | None) -> None:
        into = sums[self.name].view(-1)
        # One term for each example, as for `GramPairs`: the matrix and the table may cancel.
        for some, gradients in self.factors.made_in_double(kept):
            entries = self._entries(some)
            example = self.table.example[entries]
            found = only(None if kept is None else kept[example], self.table.gradients[entries])
            gradients[:, 0].index_put_(
                (example - some.start, self.table.row[entries]), found, accumulate=True
            )
            into.addmv_(gradients.flatten(1).T, factors[some])


# What a call of a layer says of a parameter's per-example gradients; a tensor holds them.
Use = Factors | Lookups | Tensor


def part_of(name: str, uses: Sequence[Use]) -> Part:
    """The per-example gradients of a parameter from all its uses: one, or several if modules share it or a
    module is called several times. The gradients of all uses are added before their length is taken.
    """
    factors = [use for use in uses if isinstance(use, Factors)]
    lookups = [use for use in uses if isinstance(use, Lookups)]
    groups = {f.groups for f in factors}
    if len(factors) + len(lookups) < len(uses) or len(groups) > 1 or (lookups and not groups <= {1}):
        return Materialized(name, _together(uses))
    if not factors:
        return _joined_lookups(lookups).part(name)
    all_factors = _joined(factors)
    found = matrix(name, all_factors)
    if not lookups:
        return found
    table = _joined_lookups(lookups).part(name)
    if isinstance(found, (OuterProducts, GramPairs)):
        return TableAndMatrix(name, all_factors, found, table)
    assert isinstance(found, Materialized)
    return Materialized(name, _with_entries(found.gradients.squeeze(1), table))


def _joined(factors: Sequence[Factors]) -> Factors:
    """The factors of all uses of a matrix, as those of a single use at the places of all uses."""
    if len(factors) == 1:
        return factors[0]
    activations, gradients = (torch.cat(v, -1) for v in zip(*(f.of(slice(None)) for f in factors)))
    return Factors(activations, gradients, factors[0].inputs)


def _joined_lookups(lookups: Sequence[Lookups]) -> Lookups:
    """All look-ups in a table."""
    if len(lookups) == 1:
        return lookups[0]
    row, gradients = (torch.cat(v, 1) for v in zip(*((use.row, use.gradients) for use in lookups)))
    return Lookups(row, gradients, lookups[0].rows)


def _with_entries(gradients: Tensor, table: SparseRows) -> Tensor:
    entries = table.gradients.to(gradients.dtype)
    return gradients.index_put_((table.example, table.row), entries, accumulate=True)


def _together(uses: Sequence[Use]) -> Tensor:
    """The sum of the gradients of all uses, as explicit per-example gradients."""
    made = []
    for use in uses:
        if isinstance(use, Lookups):
            examples, columns = len(use.gradients), use.gradients.shape[-1]
            made.append(_with_entries(use.gradients.new_zeros(examples, use.rows, columns), use.part("")))
        else:
            made.append(use.made() if isinstance(use, Factors) else use)
    total = made[0].flatten(1)
    for more in made[1:]:
        total = total + more.flatten(1)
    return total


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
