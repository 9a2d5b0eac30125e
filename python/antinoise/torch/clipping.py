"""Sums of clipped gradients."""

from __future__ import annotations

import math
import warnings
from functools import partial
from typing import Literal
from weakref import WeakSet

import torch
from torch import Tensor, nn

from .examples import clipped_totals, gradients_of
from .ghost import Loss, ghost_sums
from .ghost_layers import Unsupported
from .ghost_parts import Sums
from .layout import is_sharded
from .lengths import factors_for, in_double, lengths_of, only
from .models import check_clipping, unchanged_buffers
from .processes import together
from .sharded import sharded_sums
from .sums import leave_sum, trainable


# Those of which it was said that their norms cannot be found without gradients.
_warned: WeakSet[nn.Module] = WeakSet()


def clipped_sum_(
    model: nn.Module,
    loss: Loss,
    x: Tensor,
    y: Tensor,
    clip_norm: float,
    *,
    micro_batch: int = 64,
    norms: Literal["auto", "ghost", "each"] = "auto",
    exact: bool = False,
    grid_spacing: float | None = None,
) -> Tensor:
    """Leaves the sum of the examples' gradients, each clipped to `clip_norm`, for the noise to be added to; returns the mean loss, which
    is not private.

    `norms="ghost"` finds the gradients' lengths and their sum without the gradients, in one pass forward and one backward, for models
    of Linear, Conv1d to Conv3d, Embedding, LayerNorm, GroupNorm and modules without parameters; `"each"` makes the gradients one by one
    (`torch.func.vmap` of a portion), for any model; `"auto"` does the first where it can, and where it cannot it warns, once for a model, and does the second. Both take portions of `micro_batch` examples at most.

    Lengths, factors and sums are in double precision, where one example moves the sum by at most clip_norm (1 + 2^-20): what plans
    allow for (docs/python-torch.md). It does so when its gradient is replaced by zero and the others' keep their bits, which is what
    the statement compares; PyTorch may round a gradient otherwise at another place of its portion, so that where an example is to be
    *absent*, and others move up, only portions of 1 keep the others' bits. An example whose gradient is not finite adds nothing. A second
    call before the step adds to the sum.

    `exact=True` rounds each clipped gradient to whole multiples of `grid_spacing`, the plan's, and adds up whole numbers: gradients of the
    same bits have a sum of the same bits, in whatever order and however they are dealt to processes. It makes the gradients one by one.

    Where processes train together, each adds up its own examples; parameters that FSDP2 shards get the sum over all processes at once, by
    ghost norms.

    `loss(model(x), y)` is an example's own, whatever the loss does to several; the model must treat examples apart (no batch
    normalisation), and for `"ghost"` have them in the first dimension throughout.
    """
    parameters = trainable(model)
    sharded = any(is_sharded(p) for p in parameters.values())
    error, spacing = None, None
    try:
        _check(model, x, y, clip_norm, micro_batch, norms)
        spacing = _spacing(exact, grid_spacing, norms, clip_norm)
        if sharded and (norms == "each" or exact):
            raise ValueError("parameters are sharded but must be whole where gradients are made one by one: norms=\"ghost\" takes them")
    except ValueError as other:
        error = other
    if sharded:
        together(error)
    elif error is not None:
        raise error
    with unchanged_buffers(model):
        if sharded:
            sums, losses = sharded_sums(parameters, partial(ghost_sums, model, loss, x, y, clip_norm, micro_batch), len(x), micro_batch)
        else:
            sums, losses = _sums(model, loss, x, y, clip_norm, micro_batch, norms, spacing)
    for name, p in parameters.items():
        leave_sum(p, sums[name], len(x), float(clip_norm), spacing)
    return torch.tensor(losses / max(len(x), 1), dtype=torch.float64)


def _check(model: nn.Module, x: Tensor, y: Tensor, clip_norm: float, micro_batch: int, norms: str) -> None:
    check_clipping(model, clip_norm, micro_batch)
    if len(x) != len(y):
        raise ValueError(f"y is of {len(y)} examples but must be of {len(x)}, as x is")
    if norms not in ("auto", "ghost", "each"):
        raise ValueError(f"norms is {norms!r} but must be 'auto', 'ghost' or 'each'")


def _spacing(exact: bool, grid_spacing: float | None, norms: str, clip_norm: float) -> float | None:
    if not exact:
        if grid_spacing is not None:
            raise ValueError(f"grid_spacing is {grid_spacing} but must be left out where exact is False")
        return None
    if norms == "ghost":
        raise ValueError("norms is 'ghost' but must be 'each' or 'auto' where exact is True: what is rounded is each gradient")
    # By such a number, double precision divides without an error.
    if grid_spacing is None or not grid_spacing > 0 or math.frexp(grid_spacing)[0] != 0.5:
        raise ValueError(f"grid_spacing is {grid_spacing} but must be a power of two where exact is True: the plan's")
    # Then 2^16 examples, more than one sum may have, make less than 2^51 points: noise takes that many.
    if clip_norm > 2**34 * grid_spacing:
        raise ValueError(f"grid_spacing is {grid_spacing} but must be at least 2^-34 of clip_norm, {clip_norm}")
    return float(grid_spacing)


def _sums(
    model: nn.Module, loss: Loss, x: Tensor, y: Tensor, clip_norm: float, micro_batch: int, norms: str, spacing: float | None
) -> tuple[Sums, float]:
    """Of each parameter, and of losses."""
    if norms != "each" and spacing is None:
        try:
            return ghost_sums(model, loss, x, y, clip_norm, micro_batch)
        except Unsupported as reason:
            if norms == "ghost":
                raise
            _warn_once(model, reason)
    return _each(model, loss, x, y, clip_norm, micro_batch, spacing)


def _warn_once(model: nn.Module, reason: Unsupported) -> None:
    if model not in _warned:
        _warned.add(model)
        # Shown where clipped_sum_ is called.
        warnings.warn(f'norms="auto" makes the gradients one by one, which is slower: {reason}', stacklevel=4)


def _each(
    model: nn.Module, loss: Loss, x: Tensor, y: Tensor, clip_norm: float, micro_batch: int, spacing: float | None
) -> tuple[Sums, float]:
    dtype = torch.float64 if spacing is None else torch.int64
    sums = {name: torch.zeros(p.shape, dtype=dtype, device=p.device) for name, p in trainable(model).items()}
    losses = 0.0

    def one(model: nn.Module, example: tuple[Tensor, Tensor]) -> Tensor:
        return loss(model(example[0]), example[1])

    for gradients, values, count in gradients_of(model, one, (x, y), len(x), micro_batch):
        gradients = [g[:count] for g in gradients]
        totals = clipped_totals(gradients, clip_norm) if spacing is None else _points(gradients, clip_norm, spacing)
        for total, more in zip(sums.values(), totals, strict=True):
            total += more
        losses += float(values[:count].detach().to(torch.float64).sum())
    return sums, losses


def _points(gradients: list[Tensor], clip_norm: float, spacing: float) -> list[Tensor]:
    """Of each parameter, the sum of its clipped gradients, each rounded to whole multiples of `spacing`."""
    lengths = lengths_of(gradients)
    factors, finite = factors_for(lengths, clip_norm) / spacing, torch.isfinite(lengths)
    totals = []
    for g in gradients:
        total = torch.zeros(g.shape[1:], dtype=torch.int64, device=g.device)
        for some, part in in_double(g):
            points = only(finite[some], part).mul_(factors[some].view(-1, *[1] * (g.dim() - 1))).round_()
            # Whole numbers far below 2^53: without an error in double precision.
            total += points.sum(0).to(torch.int64)
        totals.append(total)
    return totals
