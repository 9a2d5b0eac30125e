"""Whether a model treats examples apart, tried once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from .ghost_layers import Unsupported

_tried: WeakKeyDictionary[nn.Module, set[Any]] = WeakKeyDictionary()


def check_apart(
    model: nn.Module, outputs: Callable[[Tensor], Any], x: Tensor, micro_batch: int, agreed: Callable[[bool], bool]
) -> None:
    """Refuses a model where layers do not have the examples in the first dimension, or where an example's output has other bits beside
    another example. Each example for itself would be safe with it; of several, what is clipped would not be an example's gradient.

    `outputs` is the model, watched; it gets another number of examples than in a portion, so that no other dimension is taken for them.
    `agreed` tells whether any of the processes that must run the model together says so.
    """
    count = 2 if micro_batch != 2 else 3
    kind = (tuple(x.shape[1:]), x.dtype, x.device, count, *((id(module), module.training) for module in model.modules()))
    if not agreed(micro_batch > 1 and len(x) > 0 and kind not in _tried.get(model, ())):
        return

    def first(beside: Tensor) -> list[Tensor]:
        # Both times with the same dropout, and as if nothing had been drawn.
        with torch.random.fork_rng(devices=[x.device] if x.is_cuda else []):
            found = tree_leaves(outputs(torch.stack([x[0], *[beside] * (count - 1)])))
        check_output(found, count)
        return [o[0].nan_to_num() for o in found]

    if agreed(not all(torch.equal(a, b) for a, b in zip(first(x[0]), first(x[-1])))):
        what = f"model is a {type(model).__name__} whose examples change each other's output"
        raise Unsupported(f'{what} but must be one that treats them apart, for norms without gradients: norms="each" does')
    if not torch.equal(x[0], x[-1]):
        _tried.setdefault(model, set()).add(kind)


def check_output(found: list[Any], examples: int) -> None:
    """Refuses an output that does not have the examples in the first dimension."""
    if any(not isinstance(o, Tensor) or o.dim() == 0 or len(o) != examples for o in found):
        raise Unsupported("output of model is one without the examples in the first dimension but must have them there")
