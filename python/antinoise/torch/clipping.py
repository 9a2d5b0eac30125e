"""Sums of clipped per-example gradients."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Literal
from weakref import WeakSet

import torch
from torch import Tensor, nn

from .._groups import Asked, Groups
from .exact import checked_spacing
from .examples import each_sums
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

# Models for which the fallback from ghost norms to per-example gradients was warned of.
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
    """Clips each example's gradient and leaves their sum for `CorrelatedNoise` to add noise to.

    One call covers all trained parameters of the model that the noise is made for. Further calls before the
    step add to the sum, for micro-batches of one batch. Sums that were clipped over other sets of
    parameters (a submodule, or with `requires_grad` switched between calls) are refused at the step: one
    example could move each of them by the clip norm.

    Lengths, factors and sums are in double precision, so that one example moves the sum by at most
    clip_norm (1 + 2^-20), which plans allow for (docs/python-torch.md). That bound compares batches in
    which one gradient is replaced by zero and all others keep their bits. PyTorch may round a gradient
    differently at another position of its portion; to compare batches from which an example is *absent*, so
    that later examples change position, use `micro_batch=1`. An example whose gradient is not finite adds
    nothing.

    With several processes, each process sums its own examples. Sharded parameters get the sum over all
    processes at once: with FSDP2, ghost norms use the parameters as FSDP2 gathers them, while per-example
    gradients need the whole model and a whole sum in every process.

    Args:
        model: It must treat examples independently (no batch normalisation); for ghost norms, with examples
            in the first dimension of every layer's input and output.
        loss: `loss(model(x), y)`, the loss of one example. It is evaluated for each example alone.
        x: Inputs, shape (examples, ...).
        y: Targets, shape (examples, ...).
        clip_norm: Bound on the L2 norm of each example's gradient: the plan's.
        micro_batch: Maximum number of examples in one forward and backward pass.
        norms: `"ghost"` finds norms and sum without per-example gradients, in one forward and one backward
            pass, for models of Linear, Conv1d to Conv3d, Embedding, LayerNorm, GroupNorm and modules
            without parameters. `"each"` makes per-example gradients (`torch.func.vmap`), for any model.
            `"auto"` tries `"ghost"`, else warns once per model and uses `"each"`.
        groups: Clips groups of parameters separately, to norms whose squares add up to at most clip_norm^2.
            `"layer"`: one group per module. A list of names of parameters or modules (`["conv", ("fc1",
            "fc2.bias")]`): k groups with clip_norm / sqrt(k) each. A mapping gives each group's norm
            (`{"conv": 0.6, "head": 0.8}`). Each parameter must be in one group.
        exact: Round each clipped gradient to integer multiples of `grid_spacing` and sum integers: the
            sum's bits do not depend on the order of examples or on their distribution over processes.
            Implies per-example gradients.
        grid_spacing: The plan's, for `exact`.

    Returns:
        The mean loss, a scalar tensor without gradient. **It is not private.**

    Raises:
        ValueError: An argument is out of range, the model cannot be clipped example by example, or its
            forward pass changes a buffer.
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
        raise ValueError(
            "norms is 'ghost' but must be 'each' or 'auto' where exact is True: what is rounded is each"
            " gradient"
        )


_Sums = tuple[Sums, float]


def _ghosts_or_each(
    model: nn.Module, norms: str, by_ghosts: Callable[[], _Sums], each: Callable[[], _Sums]
) -> _Sums:
    try:
        return by_ghosts()
    except Unsupported as reason:
        if norms == "ghost":
            raise
        if model not in _warned:
            _warned.add(model)
            # `stacklevel` points at the caller of clipped_sum_.
            warnings.warn(
                f'norms="auto" makes the gradients one by one, which is slower: {reason}', stacklevel=3
            )
    return each()
