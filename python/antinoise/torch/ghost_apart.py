"""A test, once per model and kind of input, that a model treats examples independently."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from .ghost_layers import Unsupported
from .ghost_parts import Sums
from .relied import hooks

_tried: WeakKeyDictionary[nn.Module, set[Any]] = WeakKeyDictionary()


# Runs forward and backward on some examples; returns their outputs and the first example's gradients by
# parameter.
Passes = Callable[[Tensor, Tensor], tuple[list[Tensor], Sums]]


def check_apart(
    model: nn.Module, passes: Passes, x: Tensor, y: Tensor, micro_batch: int, agreed: Callable[[bool], bool]
) -> None:
    """Refuses a model for which an example's output or gradient depends on the other examples, or whose
    layers do not have examples in the first dimension.

    Clipping would then not bound one example's gradient.

    Args:
        passes: Forward and backward pass of the hooked model. It gets another number of examples than a
            portion has, so that no other dimension can be taken for that of examples.
        agreed: Whether the condition holds in any of the processes that must run the model together.
    """
    count = 2 if micro_batch != 2 else 3
    state = (
        (id(module), module.training, len(hooks(module, "backward")), len(hooks(module, "backward_pre")))
        for module in model.modules()
    )
    kind = (tuple(x.shape[1:]), x.dtype, x.device, tuple(y.shape[1:]), y.dtype, count, *state)
    if not agreed(micro_batch > 1 and len(x) > 0 and kind not in _tried.get(model, ())):
        return

    def first(beside: int) -> tuple[list[Tensor], Sums]:
        places = [0] + [beside] * (count - 1)
        # Both calls use the same dropout, and leave the random state unchanged.
        with torch.random.fork_rng(devices=[x.device] if x.is_cuda else []):
            found, gradients = passes(x[places], y[places])
        return [o[0].detach() for o in found], gradients

    (output, gradient), (other_output, other_gradient) = first(0), first(-1)
    same = [_same(a, b) for a, b in zip(output, other_output, strict=True)]
    same_gradient = [_same(gradient[name], other_gradient[name]) for name in gradient]
    for what, differs in (("output", not all(same)), ("gradient", not all(same_gradient))):
        if agreed(differs):
            found = f"model is a {type(model).__name__} whose examples change each other's {what}"
            raise Unsupported(
                f'{found} but must be one that treats them apart, for norms without gradients: norms="each"'
                " does"
            )
    if not torch.equal(x[0], x[-1]):
        _tried.setdefault(model, set()).add(kind)


def _same(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors have the same bits; on an accelerator, which may add in any order, whether they
    agree up to rounding.
    """
    a, b = a.nan_to_num(), b.nan_to_num()
    if a.device.type == "cpu" or not a.is_floating_point():
        return torch.equal(a, b)
    return bool((a - b).abs().max() <= 2.0**-14 * a.abs().max()) if a.numel() else True


def check_output(found: list[Any], examples: int) -> None:
    """Refuses an output without examples in the first dimension."""
    if any(not isinstance(o, Tensor) or o.dim() == 0 or len(o) != examples for o in found):
        raise Unsupported(
            "output of model is one without the examples in the first dimension but must have them there"
        )
