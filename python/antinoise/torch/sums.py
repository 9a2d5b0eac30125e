"""What clipping leaves for a parameter and noise takes: the sum of clipped gradients."""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.utils.weak import WeakTensorKeyDictionary


@dataclass(frozen=True)
class ClippedSum:
    """Of a step and a parameter: the sum of its clipped gradients, how many examples are in it, and clipped to what.

    `total` is in double precision, or in whole points (int64) of a grid of this spacing, to which each gradient was rounded.
    """

    total: Tensor
    examples: int
    clip_norm: float
    spacing: float | None = None
    unit: Literal["example", "user"] = "example"


# Beside the parameters, not on them: these sums have no noise yet, and what is on a parameter is pickled with its model.
_held: MutableMapping[Tensor, ClippedSum] = WeakTensorKeyDictionary()


def trainable(model: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters that are trained, by name, in the model's order."""
    return {name: p for name, p in model.named_parameters() if p.requires_grad}


def held_sum(p: nn.Parameter) -> ClippedSum | None:
    """What was left for `p`."""
    return _held.get(p)


def leave_sum(
    p: nn.Parameter,
    total: Tensor,
    examples: int,
    clip_norm: float,
    spacing: float | None = None,
    unit: Literal["example", "user"] = "example",
) -> None:
    """Leaves a sum for `p`, or adds it to the one that is there: for whoever clips otherwise.

    `total`, float64, is the sum of `examples` gradients, each clipped to `clip_norm`, or of this process's alone where processes train together and
    each has the whole of `p`; a DTensor is the sum of all, laid out as `p` is. With a `spacing` it is in whole points of that grid, int64.
    Where a plan protects users, what is clipped is all that a user adds: whoever does so says `unit="user"`, and how many users.
    """
    if total.dtype != (torch.float64 if spacing is None else torch.int64) or total.shape != p.shape:
        must_be = f"{'torch.float64' if spacing is None else 'torch.int64'} and {tuple(p.shape)}"
        raise ValueError(f"total is of dtype {total.dtype} and shape {tuple(total.shape)} but must be of {must_be}")
    if (held := held_sum(p)) is not None:
        if held.spacing != spacing:
            raise ValueError(f"grid_spacing is {spacing} but must be {held.spacing}, that of the sum so far")
        if held.unit != unit:
            raise ValueError(f"unit is {unit} but must be {held.unit}, that of the sum so far")
        total, examples, clip_norm = held.total + total, held.examples + examples, max(held.clip_norm, clip_norm)
    _held[p] = ClippedSum(total, examples, clip_norm, spacing, unit)


def drop_sums(parameters: Iterable[nn.Parameter]) -> None:
    """Takes away what was left for them: it is not for another step."""
    for p in parameters:
        _held.pop(p, None)
