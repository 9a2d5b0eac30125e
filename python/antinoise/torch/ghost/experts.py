"""Routed experts of a mixture, as transformers holds them: a stack of matrices, and for each token the
numbers of the experts whose matrices it is multiplied by.

Each product here has the rows of one example and one expert. So no bit of an example's values depends on the
number of rows that other examples send to an expert, as it would in a product over all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from weakref import WeakSet

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..distributed.layout import is_sharded
from ..relied import own_parameters
from .alone import near
from .choices import of_one_example
from .layers import Layer, Uses, all_finite, widened
from .stacks import StackUse

# Arguments: the layer, its parameter's name, a function from rows and output gradient to gradients, the rows,
# the output. Returns the output.
Follow = Callable[[Layer, list[str], Callable[[Tensor, Tensor], Uses], Tensor, Tensor], Tensor]

# Modules whose outputs were compared with those computed here.
_compared: WeakSet[nn.Module] = WeakSet()


def are_experts(module: nn.Module) -> bool:
    """Whether a module holds experts without biases, each with a matrix up (and one for its gate) and one
    down, of shapes (experts, outputs, inputs), and calls them as `use_experts_implementation` of transformers
    does.
    """
    own = own_parameters(module)
    up = "gate_up_proj" if getattr(module, "has_gate", False) else "up_proj"
    other = ("has_bias", "is_transposed", "has_post_expert_norm", "_is_expert_parallel")
    return (
        hasattr(module, "_apply_gate")
        and own.keys() == {up, "down_proj"}
        and all(p is not None and p.dim() == 3 for p in own.values())
        and not any(getattr(module, name, False) for name in other)
        and "forward" not in vars(module)
    )


class Experts:
    """Replaces the forward pass of a module of experts by one whose rows belong to known examples."""

    def __init__(
        self,
        module: nn.Module,
        layer: Layer | None,
        parameters: Mapping[str, nn.Parameter],
        follow: Follow,
        examples: Callable[[], int],
    ) -> None:
        """`layer` is None if no parameter is trained; `parameters` are the model's trained ones; `examples`
        returns the number of examples of the pass, 0 if it is not followed.
        """
        self._module, self._layer, self._parameters = module, layer, parameters
        self._follow, self._examples = follow, examples
        self._forward = module.forward
        module.forward = self._routed

    def end(self) -> None:
        """Gives the module its own forward pass back."""
        del self._module.forward

    def _routed(self, hidden_states: Tensor, top_k_index: Tensor, top_k_weights: Tensor) -> Any:
        examples = self._examples()
        if not torch.is_grad_enabled() or not examples:
            return self._forward(hidden_states, top_k_index, top_k_weights)
        tokens, width = hidden_states.shape
        if tokens % examples or top_k_index.shape != top_k_weights.shape or len(top_k_index) != tokens:
            raise self._unsupported("called with the tokens of all examples, one example after the other")
        down: Any = own_parameters(self._module)["down_proj"]
        number = len(down)
        each, chosen = tokens // examples, top_k_index.shape[1]
        # Rows stay with their tokens: their numbers choose nothing across examples.
        with of_one_example():
            example = torch.arange(tokens, device=hidden_states.device).div(each, rounding_mode="floor")
            place = (top_k_index * examples + example.unsqueeze(1)).flatten()
            order = place.argsort(stable=True)
            sizes = place.bincount(minlength=number * examples).tolist()
        if len(sizes) > number * examples:
            raise self._unsupported("called with the numbers of its experts")
        # A permutation: each row is read once, so that no sum of gradients has an order that could vary.
        x = hidden_states.unsqueeze(1).expand(tokens, chosen, width).reshape(-1, width)[order]
        up = self._product("gate_up_proj" if self._gated else "up_proj", x, sizes, examples)
        inner = self._module._apply_gate(up) if self._gated else self._module.act_fn(up)  # type: ignore[operator]
        found = self._product("down_proj", inner, sizes, examples)
        found = found * top_k_weights.flatten()[order].unsqueeze(1)
        back = torch.empty_like(order)
        back[order] = torch.arange(len(order), device=order.device)
        output = found[back].unflatten(0, (tokens, chosen)).sum(1).to(hidden_states.dtype)
        self._compare(output, hidden_states, top_k_index, top_k_weights)
        return output

    @property
    def _gated(self) -> bool:
        return bool(self._module.has_gate)

    def _product(self, own: str, x: Tensor, sizes: list[int], examples: int) -> Tensor:
        """The product of each row of `x` with its expert's matrix. `sizes` are the numbers of rows by expert
        and example.
        """
        weight: Any = own_parameters(self._module)[own]
        if is_sharded(weight):
            raise self._unsupported("whole in its forward pass, as FSDP makes it")
        name = None if self._layer is None else self._layer.trained.get(own)
        if name is not None:
            known = self._parameters[name]
            if weight is not known and not is_sharded(known):
                raise self._unsupported("called with its own parameters")
            # A plain tensor: it gets no gradient.
            weight = weight.detach()
        rows = enumerate(x.split(sizes))
        output = torch.cat([functional.linear(v, weight[i // examples]) for i, v in rows])
        if name is None or self._layer is None:
            return output
        return self._follow(self._layer, [name], partial(_uses, name, sizes, examples), x, output)

    def _compare(self, output: Tensor, *given: Tensor) -> None:
        """Refuses a module whose own output is another one, once."""
        if self._module in _compared:
            return
        with torch.no_grad(), of_one_example():
            wanted = self._forward(*given)
        if not near(output, wanted):
            raise self._unsupported("one that multiplies each token by its experts' matrices and adds up")
        # Infinities or NaN may hide a difference: then the next call is compared too.
        if all_finite((output,)):
            _compared.add(self._module)

    def _unsupported(self, must_be: str) -> Exception:
        layer = self._layer or Layer("", self._module, {}, alone=False)
        return layer.unsupported(must_be)


def _uses(name: str, sizes: list[int], examples: int, x: Tensor, gradient: Tensor) -> Uses:
    x, gradient = widened(x, gradient)
    rows = enumerate(zip(x.split(sizes), gradient.split(sizes)))
    return [(name, StackUse(examples, {divmod(i, examples): (a, g) for i, (a, g) in rows if len(a)}))]
