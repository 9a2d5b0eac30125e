"""Portions of a batch, lengths of gradients, and what they are multiplied by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from .._groups import Groups
from .._sums import SHORTER


def portions(examples: int, micro_batch: int, at_least: int = 0) -> Iterator[tuple[Tensor, int]]:
    """The places of so many examples, and how many of them count: the last portion is filled up with its
    first example, so that every product has one shape. There are so many portions `at_least`, some of
    none."""
    for start in range(0, max(examples, at_least * micro_batch), micro_batch):
        count = max(0, min(micro_batch, examples - start))
        start = start if count else 0
        places = torch.arange(micro_batch)
        yield start + torch.where(places < count, places, torch.zeros_like(places)), count


def some_at_a_time(examples: int, each: int, device: torch.device) -> Iterator[slice]:
    """Examples of so many numbers each, in parts that stay in the cores' caches (that do not take much of
    another device's memory)."""
    at_once = 2**17 * torch.get_num_threads() if device.type == "cpu" else 2**26
    step = max(1, at_once // max(1, each))
    for start in range(0, examples, step):
        yield slice(start, min(start + step, examples))


def in_double(values: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """Some examples' values at a time, in double precision, each time in the same place."""
    place = torch.empty(0, dtype=torch.float64, device=values.device)
    for some in some_at_a_time(len(values), values[:1].numel(), values.device):
        part = values[some]
        if place.numel() == 0:
            place = torch.empty(part.shape, dtype=torch.float64, device=values.device)
        yield some, place[: len(part)].copy_(part)


def squares_of(gradients: Tensor) -> Tensor:
    """The square of each example's length, in double precision."""
    found = [torch.linalg.vector_norm(g.reshape(len(g), -1), dim=1) for _, g in in_double(gradients)]
    return torch.cat(found).square() if found else torch.zeros(0, dtype=torch.float64, device=gradients.device)


def clip_factors(squares: Sequence[tuple[str, Tensor]], groups: Groups) -> tuple[dict[str, Tensor], Tensor]:
    """What each parameter's gradients are multiplied by, for the gradients of its group to have its clip norm
    at most, from the squares of their lengths; and which examples are finite in all groups: the others have
    factor 0 in each. Both lie where the first squares do."""
    device = squares[0][1].device
    found: dict[int, list[Tensor]] = {}
    for name, s in squares:
        found.setdefault(groups.of[name], []).append(s.to(device))
    lengths = {group: torch.stack(of).sum(0).sqrt() for group, of in found.items()}
    kept = torch.stack([torch.isfinite(of) for of in lengths.values()]).all(0)
    factors = {group: torch.where(kept, factors_for(of, groups.norms[group]), 0.0) for group, of in lengths.items()}
    return {name: factors[groups.of[name]] for name, _ in squares}, kept


def factors_for(lengths: Tensor, clip_norm: float) -> Tensor:
    """What gradients of these lengths are multiplied by; 0 where one is not finite."""
    most = SHORTER * clip_norm
    factors = torch.where(lengths <= most, torch.ones_like(lengths), most / lengths)
    return torch.where(torch.isfinite(lengths), factors, torch.zeros_like(factors))


def only(kept: Tensor | None, values: Tensor) -> Tensor:
    """Zero in place of the examples that are not kept: what is not finite is left out, not multiplied by
    zero."""
    return values if kept is None else torch.where(kept.view(-1, *[1] * (values.dim() - 1)), values, torch.zeros_like(values))
