"""Portions of a batch, lengths of gradients, and clipping factors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from .._antinoise import _add_weighted, _squared_lengths
from .._groups import Groups
from .._sums import SHORTER


def portions(examples: int, microbatch_size: int, at_least: int = 0) -> Iterator[tuple[Tensor, int]]:
    """Splits a batch into portions of one size.

    Args:
        examples: Number of examples in the batch.
        microbatch_size: Size of a portion.
        at_least: Minimum number of portions; additional ones have no example that counts.

    Yields:
        Indices into the batch, shape (microbatch_size,), and how many of them count. The others repeat the
        portion's first example, so that every product has one shape.
    """
    for start in range(0, max(examples, at_least * microbatch_size), microbatch_size):
        count = max(0, min(microbatch_size, examples - start))
        start = start if count else 0
        places = torch.arange(microbatch_size)
        yield start + torch.where(places < count, places, torch.zeros_like(places)), count


def some_at_a_time(examples: int, each: int, device: torch.device) -> Iterator[slice]:
    """Slices of examples whose values fit in the cores' caches (on other devices: in a small part of
    memory).

    Args:
        examples: Number of examples.
        each: Number of values of an example.
        device: Where the values are.
    """
    at_once = 2**17 * torch.get_num_threads() if device.type == "cpu" else 2**26
    step = max(1, at_once // max(1, each))
    for start in range(0, examples, step):
        yield slice(start, min(start + step, examples))


def in_double(values: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """Slices of examples and their values in double precision. The values share one buffer: each is valid
    until the next one.
    """
    place = torch.empty(0, dtype=torch.float64, device=values.device)
    for some in some_at_a_time(len(values), values[:1].numel(), values.device):
        part = values[some]
        if place.numel() == 0:
            place = torch.empty(part.shape, dtype=torch.float64, device=values.device)
        yield some, place[: len(part)].copy_(part)


def _plain(gradients: Tensor) -> bool:
    """Whether a pass over memory in double precision needs no copies in double precision."""
    return gradients.device.type == "cpu" and gradients.dtype == torch.float32 and gradients.is_contiguous()


def squares_of(gradients: Tensor) -> Tensor:
    """The squared length of each example's gradient, float64, shape (examples,)."""
    if _plain(gradients):
        squares = torch.empty(len(gradients), dtype=torch.float64)
        _squared_lengths(gradients, squares, torch.get_num_threads())
        return squares
    found = [torch.linalg.vector_norm(g.reshape(len(g), -1), dim=1) for _, g in in_double(gradients)]
    return (
        torch.cat(found).square() if found else torch.zeros(0, dtype=torch.float64, device=gradients.device)
    )


def add_weighted(sum: Tensor, gradients: Tensor, factors: Tensor, kept: Tensor | None) -> None:
    """Adds the gradients, shape (examples, ...), times `factors`, shape (examples,), to `sum` in double
    precision. `kept` selects the examples, None all of them; the factors of the others are 0.
    """
    into = sum.view(-1)
    if _plain(gradients):
        _add_weighted(gradients, factors, into, torch.get_num_threads())
        return
    for some, g in in_double(gradients):
        g = only(None if kept is None else kept[some], g)
        into.addmv_(g.reshape(len(g), -1).T, factors[some])


def clip_factors(squares: Sequence[tuple[str, Tensor]], groups: Groups) -> tuple[dict[str, Tensor], Tensor]:
    """Factors that clip each group of parameters to its clip norm.

    Args:
        squares: Squared lengths of each parameter's gradients, shape (examples,).
        groups: The groups and their clip norms.

    Returns:
        Factors by parameter, and the mask of examples that are finite in all groups, both of shape
        (examples,) and on the device of the first squares. The factors of all other examples are 0.
    """
    device = squares[0][1].device
    found: dict[int, list[Tensor]] = {}
    for name, s in squares:
        found.setdefault(groups.of[name], []).append(s.to(device))
    lengths = {group: torch.stack(of).sum(0).sqrt() for group, of in found.items()}
    kept = torch.stack([torch.isfinite(of) for of in lengths.values()]).all(0)
    factors = {
        group: torch.where(kept, factors_for(of, groups.norms[group]), 0.0) for group, of in lengths.items()
    }
    return {name: factors[groups.of[name]] for name, _ in squares}, kept


def factors_for(lengths: Tensor, clip_norm: float) -> Tensor:
    """Factors that clip gradients of these lengths to `clip_norm`; 0 for a length that is not finite."""
    most = SHORTER * clip_norm
    factors = torch.where(lengths <= most, torch.ones_like(lengths), most / lengths)
    return torch.where(torch.isfinite(lengths), factors, torch.zeros_like(factors))


def only(kept: Tensor | None, values: Tensor) -> Tensor:
    """The values with zeros for the examples that are not `kept`. Multiplying by 0 would turn infinity into
    NaN.
    """
    return (
        values
        if kept is None
        else torch.where(kept.view(-1, *[1] * (values.dim() - 1)), values, torch.zeros_like(values))
    )
