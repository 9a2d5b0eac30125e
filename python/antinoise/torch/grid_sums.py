"""Integer sums of gradients on a grid: the same bits in any order."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from .._groups import Groups
from .norms import clip_factors, in_double, only, squares_of


def checked_spacing(grid_spacing: float | None, clip_norm: float) -> float | None:
    """The spacing of the grid that gradients are rounded to; None if they are not rounded."""
    if grid_spacing is None:
        return None
    # Division by a power of two is exact in double precision.
    if not grid_spacing > 0 or math.frexp(grid_spacing)[0] != 0.5:
        raise ValueError(f"grid_spacing is {grid_spacing} but must be a power of two: the plan's")
    # With that bound 2^16 examples, more than a sum may have, add up to less than 2^51 points, the noise's
    # limit.
    if clip_norm > 2**34 * grid_spacing:
        raise ValueError(
            f"grid_spacing is {grid_spacing} but must be at least 2^-34 of clip_norm, {clip_norm}"
        )
    return float(grid_spacing)


def clipped_points(gradients: Mapping[str, Tensor], groups: Groups, spacing: float) -> dict[str, Tensor]:
    """For each parameter, the sum of clipped gradients, each rounded to integer multiples of `spacing`
    (int64).
    """
    factors, finite = clip_factors([(name, squares_of(g)) for name, g in gradients.items()], groups)
    totals = {}
    for name, g in gradients.items():
        own = factors[name] / spacing
        total = torch.zeros(g.shape[1:], dtype=torch.int64, device=g.device)
        for some, part in in_double(g):
            f = own[some].to(g.device).view(-1, *[1] * (g.dim() - 1))
            points = only(finite[some].to(g.device), part).mul_(f).round_()
            # Integers far below 2^53: exact in double precision.
            total += points.sum(0).to(torch.int64)
        totals[name] = total
    return totals
