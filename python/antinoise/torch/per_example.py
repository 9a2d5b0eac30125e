"""Sums of clipped gradients from each example's gradient."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap

from .._groups import Groups
from .data.trees import leaves_of, portion_of, rebuilt
from .distributed.layout import is_sharded
from .distributed.processes import run_on_all_ranks
from .distributed.sharded import reduced, whole
from .grid_sums import clipped_points
from .held_sums import trainable
from .model_checks import refuse_reentrant
from .norms import add_weighted, clip_factors, portions, squares_of

# The loss of an example, given as a batch of one.
LossOfOne = Callable[[Any], Tensor]
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
    totals = {
        name: torch.zeros(g.shape[1:], dtype=torch.float64, device=g.device) for name, g in gradients.items()
    }
    add_clipped(totals, gradients, groups)
    return totals


def add_clipped(sums: Mapping[str, Tensor], gradients: Mapping[str, Tensor], groups: Groups) -> None:
    """Adds what `clipped_totals` returns to `sums`."""
    factors, kept = clip_factors([(name, squares_of(g)) for name, g in gradients.items()], groups)
    everything = bool(kept.all())
    for name, g in gradients.items():
        selected = None if everything else kept.to(g.device)
        add_weighted(sums[name], g, factors[name].to(g.device), selected)


def per_example_sums(
    model: nn.Module,
    loss: LossOfOne,
    batch: Any,
    count: int,
    groups: Groups,
    microbatch_size: int,
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
        for gradients, values, examples in gradients_of(model, loss, batch, count, microbatch_size):
            named = {name: g[:examples] for name, g in zip(parameters, gradients, strict=True)}
            if spacing is None:
                add_clipped(sums, named, groups)
            else:
                for name, more in clipped_points(named, groups, spacing).items():
                    sums[name] += more
            losses += float(values[:examples].detach().to(torch.float64).sum())
        return sums, losses

    if not any(is_sharded(p) for p in parameters.values()):
        return own()
    with whole(model):
        # A failure in one process is raised in all of them.
        sums, losses = run_on_all_ranks(own)
    return {name: reduced(p, sums[name]) for name, p in parameters.items()}, losses


def gradients_of(
    model: nn.Module, loss: LossOfOne, batch: Any, count: int, microbatch_size: int
) -> Iterator[_Portion]:
    """Per-example gradients, portion by portion. For portions of one example they are PyTorch's ordinary
    gradients.
    """
    if microbatch_size == 1:
        return _one_by_one(model, loss, batch, count)
    return _together(model, loss, batch, count, microbatch_size)


def _one_by_one(model: nn.Module, loss: LossOfOne, batch: Any, count: int) -> Iterator[_Portion]:
    parameters = list(trainable(model).values())
    for place in range(count):
        with torch.enable_grad():
            value = loss(portion_of(batch, slice(place, place + 1)))
            if place == 0:
                refuse_reentrant(value)
            gradients = torch.autograd.grad(value, parameters, materialize_grads=True)
        yield [g.unsqueeze(0) for g in gradients], value.reshape(1), 1


class _Loss(nn.Module):
    """A loss as a module, so that its model's parameters can be replaced for one call."""

    def __init__(self, model: nn.Module, loss: LossOfOne) -> None:
        super().__init__()
        self.model, self._of = model, loss

    def forward(self, example: Any) -> Tensor:
        return self._of(example).reshape(())


def _together(
    model: nn.Module, loss: LossOfOne, batch: Any, count: int, microbatch_size: int
) -> Iterator[_Portion]:
    whole = _Loss(model, loss)
    trained = {name: p.detach() for name, p in whole.named_parameters() if p.requires_grad}
    fixed = {name: p.detach() for name, p in whole.named_parameters() if not p.requires_grad}
    fixed |= dict(whole.named_buffers())

    def one(trained: dict[str, Tensor], example: list[Tensor]) -> Tensor:
        of_one = rebuilt(batch, (leaf.unsqueeze(0) for leaf in example))
        value: Tensor = functional_call(whole, {**fixed, **trained}, (of_one,))
        return value

    of_each = vmap(grad_and_value(one), in_dims=(None, 0), randomness="different")
    leaves = list(leaves_of(batch))
    for places, examples in portions(count, microbatch_size):
        gradients, values = of_each(trained, [leaf[places.to(leaf.device)] for leaf in leaves])
        yield list(gradients.values()), values, examples
