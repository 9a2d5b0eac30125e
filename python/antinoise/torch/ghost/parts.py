"""Per-example gradients of a parameter from all its uses, also of matrices that are embedding tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from .made import Materialized, Part, Sums
from .matrices import Factors, GramPairs, OuterProducts, matrix, rounding_of
from .room import Room
from .stacks import StackUse, stack_of
from .tables import Lookups, SparseRows


@dataclass
class TableAndMatrix:
    """Gradients of a matrix that is also an embedding table, as a language model's head may be its embedding:
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
        inner, uncancelled = [], []
        for i in range(f.examples):
            entries = table.of(slice(i, i + 1))
            a, g = (v[0, 0] for v in f.of(slice(i, i + 1)))
            norms = (torch.linalg.vector_norm(v, dim=0, dtype=torch.float64) for v in (a, g))
            uncancelled.append(torch.dot(*norms))
            found = table.gradients[entries] @ a.to(torch.float64)
            inner.append((found * g[table.row[entries]].to(torch.float64)).sum())
        rounding = rounding_of(f.width + 2 * f.places + int(table.counts.max()), f.places)
        all_lengths = torch.stack(uncancelled) + table.squares.sqrt()
        squares = self.matrix.squares + table.squares + 2 * torch.stack(inner)
        # Not below 0, where both gradients cancel.
        self.squares = squares.clamp(min=0) + rounding * all_lengths.square()

    def first(self) -> list[Tensor]:
        return self.factors.first() + self.table.first()

    def add_to(self, sums: Sums, factors: Tensor, kept: Tensor | None) -> None:
        into = sums[self.name].view(-1)
        # One term for each example, as for `GramPairs`: the matrix and the table may cancel.
        for some, _, gradients in self.factors.made_in_double(kept, whole=True):
            self.table.add_into(gradients[:, 0], some, kept)
            into.addmv_(gradients.flatten(1).T, factors[some])


# A parameter's per-example gradients from one call of a layer; a tensor holds them explicitly.
Use = Factors | Lookups | StackUse | Tensor


def part_of(name: str, uses: Sequence[Use], room: Room) -> Part:
    """The per-example gradients of a parameter from all its uses: one, or several if modules share it or a
    module is called several times. The gradients of all uses are added before their length is taken.
    """
    factors = [use for use in uses if isinstance(use, Factors)]
    lookups = [use for use in uses if isinstance(use, Lookups)]
    stacks = [use for use in uses if isinstance(use, StackUse)]
    if stacks and len(stacks) == len(uses):
        return stack_of(name, stacks, room)
    groups = {f.groups for f in factors}
    if len(factors) + len(lookups) < len(uses) or len(groups) > 1 or (lookups and not groups <= {1}):
        return Materialized(name, _together(uses))
    if not factors:
        return _joined_lookups(lookups).part(name)
    all_factors = _joined(factors)
    if not lookups:
        return matrix(name, all_factors, room)
    table = _joined_lookups(lookups).part(name)
    found = matrix(name, all_factors, room, table)
    if isinstance(found, (OuterProducts, GramPairs)):
        return TableAndMatrix(name, all_factors, found, table)
    return found


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


def _together(uses: Sequence[Use]) -> Tensor:
    """The sum of the gradients of all uses, as explicit per-example gradients."""
    made = []
    for use in uses:
        if isinstance(use, Lookups):
            examples, columns = len(use.gradients), use.gradients.shape[-1]
            made.append(use.gradients.new_zeros(examples, use.rows, columns))
            use.part("").add_into(made[-1], slice(0, examples))
        else:
            made.append(use.made() if isinstance(use, (Factors, StackUse)) else use)
    total = made[0].flatten(1)
    for more in made[1:]:
        total = total + more.flatten(1)
    return total
