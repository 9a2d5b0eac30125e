"""Calls of `functional.linear` and `functional.embedding` by modules whose own computation is not known:
attention, and subclasses that look up or multiply by other inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from threading import Lock, get_ident
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from .layers import Uses, by_rows, linear_uses, lookup_uses

# Arguments: the module, the parameters' names, their gradients from input and output gradient by example, the
# input, the output. Returns the output.
Follow = Callable[[nn.Module, Iterable[str], Callable[[Tensor, Tensor], Uses], Tensor, Tensor], Tensor]


class _Patched:
    """`functional.linear` and `functional.embedding` while a followed module runs in any thread. Calls in
    other threads are plain.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        # For each thread, the modules that run, innermost last, each with the object that follows its calls.
        self._running: dict[int, list[tuple[Captured, nn.Module]]] = {}
        self.linear, self.embedding = functional.linear, functional.embedding

    def begin(self, captured: Captured, module: nn.Module) -> None:
        with self._lock:
            if not self._running:
                self.linear, self.embedding = functional.linear, functional.embedding
                functional.linear, functional.embedding = self._linear_of, self._embedding_of
            self._running.setdefault(get_ident(), []).append((captured, module))

    def end(self, captured: Captured, all_calls: bool) -> None:
        """Ends the innermost call of this thread or, with `all_calls`, all calls of `captured` in all
        threads."""
        with self._lock:
            for thread, calls in list(self._running.items()):
                if all_calls:
                    calls[:] = [call for call in calls if call[0] is not captured]
                elif thread == get_ident():
                    calls.pop()
                if not calls:
                    del self._running[thread]
                    if not self._running:
                        functional.linear, functional.embedding = self.linear, self.embedding

    def _linear_of(self, *args: Any, **kwargs: Any) -> Tensor:
        calls = self._running.get(get_ident())
        if not calls:
            return self.linear(*args, **kwargs)
        captured, module = calls[-1]
        return captured.linear_of(module, *args, **kwargs)

    def _embedding_of(self, *args: Any, **kwargs: Any) -> Tensor:
        calls = self._running.get(get_ident())
        if not calls:
            return self.embedding(*args, **kwargs)
        captured, module = calls[-1]
        return captured.embedding_of(module, *args, **kwargs)


_patched = _Patched()


class Captured:
    """While a module runs, captures its calls of these functions with trained parameters, and excludes the
    parameters from the backward pass in these calls.

    A parameter that the module uses in another way still gets a gradient, by which that use is detected.
    """

    def __init__(
        self, names: Mapping[int, str], follow: Follow, look_ups: Callable[[nn.Module, Tensor], Tensor]
    ) -> None:
        self._names, self._follow, self._look_ups = names, follow, look_ups

    def begin(self, module: nn.Module) -> None:
        """Records that the module's forward pass begins."""
        _patched.begin(self, module)

    def end(self) -> None:
        """Records that the innermost forward pass of this thread has ended."""
        _patched.end(self, False)

    def end_all(self) -> None:
        """Records that all forward passes have ended, as after an error."""
        _patched.end(self, True)

    def linear_of(
        self, module: nn.Module, input: Tensor, weight: Tensor, bias: Tensor | None = None
    ) -> Tensor:
        """`functional.linear` in the forward pass of a module."""
        names = self._trained(weight=weight, bias=bias)
        if not names:
            return _patched.linear(input, weight, bias)
        # A tensor computed from parameters keeps its gradient, by which such a module is detected and
        # refused.
        weight = weight.detach() if "weight" in names else weight
        bias = bias.detach() if bias is not None and "bias" in names else bias
        output: Tensor = _patched.linear(input, weight, bias)
        return self._follow(module, names.values(), partial(linear_uses, names), input, output)

    def embedding_of(
        self,
        module: nn.Module,
        input: Tensor,
        weight: Tensor,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Tensor:
        """`functional.embedding` in the forward pass of a module."""
        names = self._trained(weight=weight)
        options = (padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)
        if not names or max_norm is not None or scale_grad_by_freq:
            # A trained table gets a gradient here, and is refused.
            return _patched.embedding(input, weight, *options)
        input = self._look_ups(module, input)
        output: Tensor = _patched.embedding(input, weight.detach(), *options)
        if padding_idx is not None and padding_idx < 0:
            padding_idx += len(weight)
        uses = partial(lookup_uses, names["weight"], len(weight), padding_idx)
        return self._follow(module, names.values(), uses, input, output)

    def _trained(self, **tensors: Tensor | None) -> dict[str, str]:
        """The name in the model of each of these tensors that is a trained parameter, by keyword."""
        if not torch.is_grad_enabled():
            return {}
        return {
            own: self._names[id(t)] for own, t in tensors.items() if t is not None and id(t) in self._names
        }


def by_example(module: nn.Module, values: Tensor, examples: int) -> Tensor:
    """A view of a linear call's values with examples first. In attention the first dimension is places, and
    the rows of its last product are ordered by place.
    """
    if not isinstance(module, nn.MultiheadAttention) or values.dim() < 2:
        return by_rows(values, examples)
    if values.dim() == 2 and len(values) % examples == 0:
        values = values.unflatten(0, (-1, examples))
    return values.transpose(0, 1)
