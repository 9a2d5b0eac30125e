"""Sums of clipped gradients."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Literal
from weakref import WeakSet

import torch
from torch import Tensor, nn

from .._groups import Asked, Groups
from .examples import each_sums
from .exact import checked_spacing
from .failures import told_to_others
from .ghost import Loss, ghost_sums
from .ghost_layers import Unsupported
from .ghost_parts import Sums
from .layout import is_sharded
from .models import check_clipping, unchanged_buffers
from .processes import all_make
from .sharded import reshard, sharded_sums
from .sources import sources_of
from .sums import leave, trainable

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
    groups: Asked = None,
    exact: bool = False,
    grid_spacing: float | None = None,
) -> Tensor:
    """Leaves the sum of the examples' gradients, each clipped to `clip_norm`, for the noise to be added to; returns the mean loss, which
    is not private.

    `norms="ghost"` finds the gradients' lengths and their sum without the gradients, in one pass forward and one backward, for models
    of Linear, Conv1d to Conv3d, Embedding, LayerNorm, GroupNorm and modules without parameters; `"each"` makes the gradients one by one
    (`torch.func.vmap` of a portion), for any model; `"auto"` does the first where it can, and where it cannot it warns, once for a model,
    and does the second. Both take portions of `micro_batch` examples at most.

    Lengths, factors and sums are in double precision, where one example moves the sum by at most clip_norm (1 + 2^-20): what plans
    allow for (docs/python-torch.md). It does so when its gradient is replaced by zero and the others' keep their bits, which is what
    the statement compares; PyTorch may round a gradient otherwise at another place of its portion, so that where an example is to be
    *absent*, and others move up, only portions of 1 keep the others' bits. An example whose gradient is not finite adds nothing.

    One call clips all trained parameters of the model that the noise is made for. A second call before the step adds to the sum: micro-batches of one
    batch, each clipped over the same parameters. Calls for a submodule each, or with `requires_grad` switched between them, are refused at the step:
    one example could move each of their sums by the clip norm.

    `groups` clips groups of parameters apart, to norms whose squares add up to clip_norm^2 at most, so that one example moves the sum by no more than
    above: `"layer"` (the parameters of a module together), groups of names of parameters or modules (`["conv", ("fc1", "fc2.bias"), ...]`; each of k
    groups has clip_norm / sqrt(k)), or the norm of each group (`{"conv": 0.6, "head": 0.8}`). Each parameter must be in one.

    `exact=True` rounds each clipped gradient to whole multiples of `grid_spacing`, the plan's, and adds up whole numbers: gradients of the
    same bits have a sum of the same bits, in whatever order and however they are dealt to processes. It makes the gradients one by one.

    Where processes train together, each adds up its own examples; sharded parameters get the sum over all processes at once. Where FSDP2
    shards them, ghost norms take the parameters as it brings them together; gradients that are made one by one take the whole model in
    every process, and a sum as large.

    `loss(model(x), y)` is an example's own, whatever the loss does to several; the model must treat examples apart (no batch
    normalisation), and for `"ghost"` have them in the first dimension throughout.
    """
    reshard(model)
    parameters = trainable(model)

    def check() -> tuple[Groups, float | None]:
        check_clipping(model, clip_norm, micro_batch)
        _check(x, y, norms, exact)
        return Groups.made(groups, parameters, clip_norm), checked_spacing(exact, grid_spacing, clip_norm)

    def one(model: nn.Module, example: tuple[Tensor, Tensor]) -> Tensor:
        return loss(model(example[0]), example[1])

    sharded = any(is_sharded(p) for p in parameters.values())
    with told_to_others(parameters.values()):
        with unchanged_buffers(model):
            grouped, spacing = all_make(check) if sharded else check()
            by_ghosts = partial(ghost_sums, model, loss, x, y, grouped, micro_batch)
            each = partial(each_sums, model, one, (x, y), len(x), grouped, micro_batch, spacing)
            if norms == "each" or exact:
                sums, losses = each()
            elif sharded:
                sums, losses = sharded_sums(parameters, by_ghosts, len(x), micro_batch)
            else:
                sums, losses = _ghosts_or_each(model, norms, by_ghosts, each)
        leave(parameters, sums, len(x), clip_norm, spacing, sources=sources_of((x, y)))
    return torch.tensor(losses / max(len(x), 1), dtype=torch.float64)


def _check(x: Tensor, y: Tensor, norms: str, exact: bool) -> None:
    if len(x) != len(y):
        raise ValueError(f"y is of {len(y)} examples but must be of {len(x)}, as x is")
    if norms not in ("auto", "ghost", "each"):
        raise ValueError(f"norms is {norms!r} but must be 'auto', 'ghost' or 'each'")
    if exact and norms == "ghost":
        raise ValueError("norms is 'ghost' but must be 'each' or 'auto' where exact is True: what is rounded is each gradient")


_Sums = tuple[Sums, float]


def _ghosts_or_each(model: nn.Module, norms: str, by_ghosts: Callable[[], _Sums], each: Callable[[], _Sums]) -> _Sums:
    try:
        return by_ghosts()
    except Unsupported as reason:
        if norms == "ghost":
            raise
        if model not in _warned:
            _warned.add(model)
            # Shown where clipped_sum_ is called.
            warnings.warn(f'norms="auto" makes the gradients one by one, which is slower: {reason}', stacklevel=3)
    return each()
