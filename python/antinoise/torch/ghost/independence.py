"""A test, once per model and kind of input, that a model treats examples independently."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from ..data.trees import leaves_of, portion_of
from ..relied import global_hooks, hooks
from .choices import Choices
from .layers import Unsupported, all_finite

_tried: WeakKeyDictionary[nn.Module, set[Any]] = WeakKeyDictionary()


# The losses of a portion's examples, and outputs that must not depend on other examples either.
Forward = Callable[[Any], tuple[Tensor, list[Tensor]]]
# Arguments: a batch, its number of examples, and a recorder for the forward pass. Runs forward and backward;
# returns outputs and losses, and for each parameter the tensors that determine the first example's gradient.
Passes = Callable[[Any, int, Choices], tuple[list[Tensor], dict[str, list[Tensor]]]]


def check_examples_independent(
    model: nn.Module,
    passes: Passes,
    batch: Any,
    microbatch_size: int,
    agreed: Callable[[bool], bool],
    tested: Hashable,
) -> None:
    """Refuses a model for which an example's output or gradient depends on the other examples, whose layers
    do not have examples in the first dimension, or that chooses rows by their content.

    Clipping would then not bound one example's gradient.

    Args:
        passes: Forward and backward pass of the hooked model. It is called with another number of examples
            than a portion has, so that no other dimension can be mistaken for that of the examples.
        agreed: Whether the condition holds in any of the processes that must run the model together.
        tested: Identifies the loss; another loss is tested again.
    """
    count = 2 if microbatch_size != 2 else 3
    kinds = ("forward", "forward_pre", "backward", "backward_pre")
    state = (
        (id(module), module.training, *(len(hooks(module, kind)) for kind in kinds))
        for module in model.modules()
    )
    leaves: list[Tensor] = list(leaves_of(batch))
    shapes = ((tuple(leaf.shape[1:]), leaf.dtype, leaf.device) for leaf in leaves)
    everywhere = (len(global_hooks(kind)) for kind in kinds)
    kind = (*shapes, count, tested, *everywhere, *state)
    if not agreed(microbatch_size > 1 and len(leaves[0]) > 0 and kind not in _tried.get(model, ())):
        return

    choices = Choices()

    def first(other: int) -> tuple[list[Tensor], list[Tensor]]:
        portion = portion_of(batch, torch.tensor([0] + [other] * (count - 1)))
        # Both calls use the same dropout, and leave the random state unchanged.
        with torch.random.fork_rng(devices={leaf.device for leaf in leaves if leaf.is_cuda}):
            found, gradients = passes(portion, count, choices)
        return [o[0].detach() for o in found], [g for name in sorted(gradients) for g in gradients[name]]

    # The model is run with copies of the first example next to it, then with copies of another one: the
    # example that differs from the first in the largest number of tensors.
    differing = torch.stack([(leaf != leaf[:1]).reshape(len(leaf), -1).any(1).cpu() for leaf in leaves])
    other = int(differing.sum(0).argmax())
    (output, gradient), (other_output, other_gradient) = first(0), first(other)
    if agreed(bool(choices.found)):
        raise Unsupported(
            f"model is a {type(model).__name__} that chooses rows by their content ({', '.join(sorted(choices.found))})"
            ' but must be one that keeps all, for ghost norms: norms="per_example" takes it'
        )
    pairs = {"output": (output, other_output), "gradient": (gradient, other_gradient)}
    for what, (one, another) in pairs.items():
        # Experts that have rows of the first example have two tensors each.
        if agreed(len(one) != len(another) or not all(map(_same, one, another))):
            found = f"model is a {type(model).__name__} whose examples change each other's {what}"
            raise Unsupported(
                f'{found} but must be one that treats them apart, for ghost norms: norms="per_example" does'
            )
    # Equal tensors, infinities or NaN may hide a difference: then the next batch is tested too.
    if all_finite((*output, *gradient)) and bool(differing[:, other].all()):
        _tried.setdefault(model, set()).add(kind)


def _same(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors have the same bits; on an accelerator, which may add in any order, whether they
    agree up to rounding.
    """
    if a.shape != b.shape:
        return False
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
