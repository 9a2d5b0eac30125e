"""Sums of clipped gradients for batches of any structure: a tensor, a tuple, a mapping of names to
tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap

from .._groups import Asked, Groups
from .exact import checked_spacing, clipped_points
from .failures import told_to_others
from .layout import is_sharded
from .lengths import clip_factors, in_double, only, portions, squares_of
from .models import check_clipping, unchanged_buffers
from .processes import all_make
from .relied import tree_leaves, tree_map
from .sharded import reduced, reshard, whole
from .sources import sources_of
from .sums import leave, trainable

# Gradients of a portion's examples, one tensor for each parameter; their losses; and how many of the examples
# are real, not padding.
_Portion = tuple[list[Tensor], Tensor, int]


def clipped_totals(gradients: Mapping[str, Tensor], groups: Groups) -> dict[str, Tensor]:
    """The sum of clipped gradients of each parameter, in double precision.

    Args:
        gradients: For each parameter, per-example gradients of shape (examples, ...).
        groups: Clip norm of each group; an example is clipped to it over the group's parameters.

    Returns:
        For each parameter, the float64 sum. One example moves all sums together by at most clip_norm (1 +
        2^-20) (docs/training.md); an example whose gradient is not finite adds nothing.
    """
    factors, kept = clip_factors([(name, squares_of(g)) for name, g in gradients.items()], groups)
    everything = bool(kept.all())
    totals = {}
    for name, g in gradients.items():
        total = torch.zeros(math.prod(g.shape[1:]), dtype=torch.float64, device=g.device)
        for some, part in in_double(g):
            part = only(None if everything else kept[some].to(g.device), part)
            total.addmv_(part.reshape(len(part), -1).T, factors[name][some].to(g.device))
        totals[name] = total.view(g.shape[1:])
    return totals


def clipped_sum_of_(
    model: nn.Module,
    loss: Callable[[nn.Module, Any], Tensor],
    batch: Any,
    clip_norm: float,
    *,
    micro_batch: int = 1,
    groups: Asked = None,
    exact: bool = False,
    grid_spacing: float | None = None,
) -> Tensor:
    """`clipped_sum_` for batches of any structure: clips each example's gradient and leaves their sum for
    the noise.

    Args:
        model: As in `clipped_sum_`.
        loss: `loss(model, example)`, where `example` is a batch of one example.
        batch: A tensor, or a tuple, list or mapping of tensors, with examples in the first dimension of
            each.
        clip_norm: Bound on the L2 norm of each example's gradient: the plan's.
        micro_batch: 1 takes examples one by one, which any model allows. A larger number uses
            `torch.func.vmap` on portions of that size, which is faster and needs a model without
            data-dependent control flow.
        groups, exact, grid_spacing: As in `clipped_sum_`.

    Returns:
        The mean loss, a scalar tensor without gradient. **It is not private.**
    """
    reshard(model)
    parameters = trainable(model)

    def check() -> tuple[int, Groups, float | None]:
        check_clipping(model, clip_norm, micro_batch)
        return (
            _examples(batch),
            Groups.made(groups, parameters, clip_norm),
            checked_spacing(exact, grid_spacing, clip_norm),
        )

    with told_to_others(parameters.values()):
        with unchanged_buffers(model):
            count, grouped, spacing = (
                all_make(check) if any(is_sharded(p) for p in parameters.values()) else check()
            )
            sums, losses = each_sums(model, loss, batch, count, grouped, micro_batch, spacing)
        leave(parameters, sums, count, clip_norm, spacing, sources=sources_of(batch))
    return torch.tensor(losses / max(count, 1), dtype=torch.float64)


def each_sums(
    model: nn.Module,
    loss: Callable[[nn.Module, Any], Tensor],
    batch: Any,
    count: int,
    groups: Groups,
    micro_batch: int,
    spacing: float | None,
) -> tuple[dict[str, Tensor], float]:
    """The sums of clipped gradients by parameter, and of losses, from per-example gradients. Sums of
    sharded parameters are over all processes.
    """
    parameters = trainable(model)

    def own() -> tuple[dict[str, Tensor], float]:
        dtype = torch.float64 if spacing is None else torch.int64
        sums = {name: torch.zeros(p.shape, dtype=dtype, device=p.device) for name, p in parameters.items()}
        losses = 0.0
        for gradients, values, examples in gradients_of(model, loss, batch, count, micro_batch):
            named = {name: g[:examples] for name, g in zip(parameters, gradients, strict=True)}
            totals = (
                clipped_totals(named, groups) if spacing is None else clipped_points(named, groups, spacing)
            )
            for name, more in totals.items():
                sums[name] += more
            losses += float(values[:examples].detach().to(torch.float64).sum())
        return sums, losses

    if not any(is_sharded(p) for p in parameters.values()):
        return own()
    with whole(model):
        # A failure in one process is raised in all of them.
        sums, losses = all_make(own)
    return {name: reduced(p, sums[name]) for name, p in parameters.items()}, losses


def _examples(batch: Any) -> int:
    """The number of examples in a batch: the first dimension of each of its tensors."""
    leaves = tree_leaves(batch)
    wrong = [type(leaf).__name__ for leaf in leaves if not isinstance(leaf, Tensor) or leaf.dim() == 0]
    counts = {len(leaf) for leaf in leaves if not wrong}
    if wrong or len(counts) != 1:
        found = f"one with a {wrong[0]}" if wrong else f"one of tensors of {sorted(counts)} examples"
        raise ValueError(
            f"batch is {found} but must be made of tensors with the examples in their first dimension"
        )
    return counts.pop()


def gradients_of(
    model: nn.Module, loss: Callable[[nn.Module, Any], Tensor], batch: Any, count: int, micro_batch: int
) -> Iterator[_Portion]:
    """Per-example gradients, portion by portion. For portions of one example they are PyTorch's ordinary
    gradients.
    """
    return (
        _one_by_one(model, loss, batch, count)
        if micro_batch == 1
        else _together(model, loss, batch, count, micro_batch)
    )


def _one_by_one(
    model: nn.Module, loss: Callable[[nn.Module, Any], Tensor], batch: Any, count: int
) -> Iterator[_Portion]:
    parameters = list(trainable(model).values())
    for place in range(count):
        with torch.enable_grad():
            value = loss(model, tree_map(lambda leaf, place=place: leaf[place : place + 1], batch))
            gradients = torch.autograd.grad(value, parameters, materialize_grads=True)
        yield [g.unsqueeze(0) for g in gradients], value.reshape(1), 1


class _Loss(nn.Module):
    """A loss as a module, so that its model's parameters can be replaced for one call."""

    def __init__(self, model: nn.Module, loss: Callable[[nn.Module, Any], Tensor]) -> None:
        super().__init__()
        self.model, self._of = model, loss

    def forward(self, example: Any) -> Tensor:
        return self._of(self.model, example)


def _together(
    model: nn.Module, loss: Callable[[nn.Module, Any], Tensor], batch: Any, count: int, micro_batch: int
) -> Iterator[_Portion]:
    whole = _Loss(model, loss)
    trained = {name: p.detach() for name, p in whole.named_parameters() if p.requires_grad}
    fixed = {name: p.detach() for name, p in whole.named_parameters() if not p.requires_grad} | dict(
        whole.named_buffers()
    )

    def one(trained: dict[str, Tensor], example: Any) -> Tensor:
        value: Tensor = functional_call(
            whole, {**fixed, **trained}, (tree_map(lambda leaf: leaf.unsqueeze(0), example),)
        )
        return value

    of_each = vmap(grad_and_value(one), in_dims=(None, 0), randomness="different")
    for places, examples in portions(count, micro_batch):
        gradients, values = of_each(
            trained, tree_map(lambda leaf, places=places: leaf[places.to(leaf.device)], batch)
        )
        yield list(gradients.values()), values, examples
