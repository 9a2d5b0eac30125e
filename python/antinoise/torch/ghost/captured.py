"""Calls of `functional.linear` and `functional.embedding` by modules whose own computation is not known:
attention, and subclasses that look up or multiply by other inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from .layers import Uses, linear_uses, lookup_uses

# Arguments: the module, the parameters' names, their gradients from input and output gradient by example, the
# input, the output. Returns the output.
Follow = Callable[[nn.Module, Iterable[str], Callable[[Tensor, Tensor], Uses], Tensor, Tensor], Tensor]


class Captured:
    """While a module runs, follows its calls with trained parameters, which get no gradient in them.

    A parameter that the module uses in another way still gets one, which shows that use.
    """

    def __init__(self, names: Mapping[int, str], follow: Follow) -> None:
        self._names, self._follow = names, follow
        self._running: list[nn.Module] = []
        self._linear, self._embedding = functional.linear, functional.embedding

    def begin(self, module: nn.Module) -> None:
        """The module's forward pass begins."""
        if not self._running:
            functional.linear, functional.embedding = self._linear_of, self._embedding_of
        self._running.append(module)

    def end(self) -> None:
        """The last forward pass that began has ended."""
        self._running.pop()
        if not self._running:
            functional.linear, functional.embedding = self._linear, self._embedding

    def end_all(self) -> None:
        """All forward passes have ended, as after an error."""
        while self._running:
            self.end()

    def _linear_of(self, input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        names = self._trained(weight=weight, bias=bias)
        if not names:
            return self._linear(input, weight, bias)
        # A tensor that was computed from parameters keeps its gradient, which refuses the module.
        weight = weight.detach() if "weight" in names else weight
        bias = bias.detach() if bias is not None and "bias" in names else bias
        output = self._linear(input, weight, bias)
        return self._follow(self._running[-1], names.values(), partial(linear_uses, names), input, output)

    def _embedding_of(
        self,
        input: Tensor,
        weight: Tensor,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Tensor:
        names = self._trained(weight=weight)
        options = (padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)
        if not names or max_norm is not None or scale_grad_by_freq:
            # A trained table gets a gradient here, and is refused.
            return self._embedding(input, weight, *options)
        output = self._embedding(input, weight.detach(), *options)
        if padding_idx is not None and padding_idx < 0:
            padding_idx += len(weight)
        uses = partial(lookup_uses, names["weight"], len(weight), padding_idx)
        return self._follow(self._running[-1], names.values(), uses, input, output)

    def _trained(self, **tensors: Tensor | None) -> dict[str, str]:
        """The model's names of these tensors, where they are trained parameters."""
        if not torch.is_grad_enabled():
            return {}
        return {
            own: self._names[id(t)] for own, t in tensors.items() if t is not None and id(t) in self._names
        }


def by_example(module: nn.Module, values: Tensor, examples: int) -> Tensor:
    """A view of a linear call's values with examples first. Attention has places first, and the rows of its
    last product are place after place.
    """
    if not isinstance(module, nn.MultiheadAttention) or values.dim() < 2:
        return values
    if values.dim() == 2 and len(values) % examples == 0:
        values = values.unflatten(0, (-1, examples))
    return values.transpose(0, 1)
