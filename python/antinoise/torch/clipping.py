"""Sums of clipped gradients."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap

from .sums import leave_sum, trainable

# What keeps rounding in lengths and factors from lengthening a clipped gradient: as in docs/training.md.
_SHORTER = 1 - 2.0**-20


def clipped_sum_(
    model: nn.Module,
    loss: Callable[[Tensor, Tensor], Tensor],
    x: Tensor,
    y: Tensor,
    clip_norm: float,
    *,
    micro_batch: int = 64,
) -> Tensor:
    """Leaves the sum of the examples' gradients, each clipped to `clip_norm`, for the noise to be added to; returns the mean loss, which
    is not private.

    Gradients are taken example by example (`torch.func.vmap`), in portions of `micro_batch`, the last one filled up; lengths, factors and
    sums are in double precision, where one example moves the sum by at most clip_norm (1 + 2^-20): what plans allow for. It does so
    when its gradient is replaced by zero and the others' keep their bits, which is what the statement compares; PyTorch may round a gradient
    otherwise at another place of its portion, so that where an example is to be *absent*, and others move up, only portions of 1 keep the
    others' bits. An example whose gradient is not finite adds nothing. A second call before the step adds to the sum.

    `loss(model(x), y)` gets a batch of one example; the model must treat examples apart (no batch normalisation).
    """
    if not clip_norm > 0 or not math.isfinite(clip_norm):
        raise ValueError(f"clip_norm is {clip_norm} but must be a finite number above 0")
    if micro_batch < 1:
        raise ValueError(f"micro_batch is {micro_batch} but must be at least 1")
    if len(x) != len(y):
        raise ValueError(f"y is of {len(y)} examples but must be of {len(x)}, as x is")
    for name, module in model.named_modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm) and module.training:
            raise ValueError(f"{name} is a {type(module).__name__} but must treat examples apart (GroupNorm, LayerNorm)")
    parameters = trainable(model)
    fixed = {n: p.detach() for n, p in model.named_parameters() if not p.requires_grad} | dict(model.named_buffers())

    def one(trained: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        return loss(functional_call(model, {**fixed, **trained}, (x.unsqueeze(0),)), y.unsqueeze(0))

    of_each = vmap(grad_and_value(one), in_dims=(None, 0, 0), randomness="different")
    trained = {name: p.detach() for name, p in parameters.items()}
    sums = {name: torch.zeros(p.shape, dtype=torch.float64, device=p.device) for name, p in parameters.items()}
    losses = 0.0
    for start in range(0, len(x), micro_batch):
        count = min(micro_batch, len(x) - start)
        # What fills up the last portion is its first example, left out of every sum.
        places = torch.arange(micro_batch, device=x.device)
        places = start + torch.where(places < count, places, torch.zeros_like(places))
        gradients, values = of_each(trained, x[places], y[places.to(y.device)])
        gradients = {name: g.to(torch.float64) for name, g in gradients.items()}
        squares = sum(g.flatten(1).square().sum(1) if g.dim() > 1 else g.square() for g in gradients.values())
        lengths = torch.as_tensor(squares).sqrt()
        most = _SHORTER * clip_norm
        factors = torch.where(lengths <= most, torch.ones_like(lengths), most / lengths)
        finite = torch.isfinite(lengths)
        finite[count:] = False
        factors = torch.where(finite, factors, torch.zeros_like(factors))
        for name, g in gradients.items():
            # What is not finite is left out, not multiplied by zero.
            kept = torch.where(finite.view(-1, *[1] * (g.dim() - 1)), g, torch.zeros_like(g))
            sums[name] += torch.tensordot(factors, kept, dims=1)
        losses += float(values[:count].detach().to(torch.float64).sum())
    for name, p in parameters.items():
        leave_sum(p, sums[name], len(x), float(clip_norm))
    return torch.tensor(losses / max(len(x), 1), dtype=torch.float64)
