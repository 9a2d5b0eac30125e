"""Routed experts of a mixture, as transformers holds them: a stack of matrices, and for each token the
numbers of the experts whose matrices it is multiplied by.

All products and activations here are of the rows of one example and one expert. So no bit of an example's
values depends on the number of rows that other examples send to an expert, as it would in operations on all
rows.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..._relied import relied
from ..distributed.layout import is_sharded
from ..relied import own_parameters
from .alone import near
from .choices import is_of_one_example, of_one_example
from .layers import Layer, Uses, all_finite, widened
from .stacks import StackUse

# Arguments: the layer, its parameter's name, a function from rows and output gradient to gradients, the rows,
# the output. Returns the output.
Follow = Callable[[Layer, list[str], Callable[[Tensor, Tensor], Uses], Tensor, Tensor], Tensor]

# The training modes in which a module's output was compared with that computed here.
_compared: WeakKeyDictionary[nn.Module, set[bool]] = WeakKeyDictionary()
_DECORATED = "transformers.integrations.moe"


@lru_cache
def _forward_of_decorated() -> Any:
    """The code of the forward pass that the decorator `use_experts_implementation` of transformers gives a
    class: it calls any registered implementation of experts.
    """

    class Decorated(nn.Module):
        def __init__(self, config: Any) -> None: ...

    made = relied("transformers", _DECORATED, "use_experts_implementation")(Decorated)
    return made.forward.__code__


def are_experts(module: nn.Module) -> bool:
    """Whether a module is one of transformers' own, of experts without biases, each with a matrix up (and one
    for its gate) and one down, of shapes (experts, outputs, inputs), and nothing else that holds values.

    Its class must have the forward pass of transformers' decorator, which lets implementations of experts
    replace each other: the one here is another one. Both the class and the implementation that is replaced
    must be transformers': another one may keep values of its own, which would not change any more.
    """
    forward = type(module).forward
    if _DECORATED not in sys.modules or getattr(forward, "__code__", None) is not _forward_of_decorated():
        return False
    own: Any = forward.__wrapped__  # type: ignore[attr-defined]
    implementations = relied("transformers", _DECORATED, "ALL_EXPERTS_FUNCTIONS")
    replaced = implementations.get(module.config._experts_implementation, own)  # type: ignore[union-attr]
    up = "gate_up_proj" if module.has_gate else "up_proj"
    other = ("has_bias", "is_transposed", "has_post_expert_norm", "_is_expert_parallel")
    held = dict(module.named_parameters()) | dict(module.named_buffers())
    return (
        "forward" not in vars(module)
        and all(of.__module__.startswith("transformers.") for of in (own, replaced))
        and held.keys() == own_parameters(module).keys() == {up, "down_proj"}
        and all(p.dim() == 3 for p in held.values())
        and not any(getattr(module, name, False) for name in other)
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
        if not torch.is_grad_enabled() or not examples or is_of_one_example():
            return self._forward(hidden_states, top_k_index, top_k_weights)
        gated = bool(self._module.has_gate)
        inner: Any = self._module._apply_gate if gated else self._module.act_fn
        of_up, of_down = self._stack("gate_up_proj" if gated else "up_proj"), self._stack("down_proj")
        sizes, order = self._order(hidden_states, top_k_index, top_k_weights, (len(of_down[1]), examples))
        (tokens, width), chosen = hidden_states.shape, top_k_index.shape[1]
        # A permutation: each row is read once, so that no sum of gradients has an order that could vary.
        x = hidden_states.unsqueeze(1).expand(tokens, chosen, width).reshape(-1, width)[order]
        up = self._product(of_up, x, sizes, examples)
        down = self._product(of_down, torch.cat([inner(v) for v in up.split(sizes)]), sizes, examples)
        weighted = down * top_k_weights.flatten()[order].unsqueeze(1)
        back = torch.empty_like(order)
        back[order] = torch.arange(len(order), device=order.device)
        output = weighted[back].unflatten(0, (tokens, chosen)).sum(1).to(hidden_states.dtype)
        self._compare(output, hidden_states, top_k_index, top_k_weights)
        return output

    def _stack(self, own: str) -> tuple[str | None, Any]:
        """The model's name of a stack of matrices, if it is trained, and the stack: a plain tensor, which
        gets no gradient, if it is trained.
        """
        stack: Any = own_parameters(self._module).get(own)
        name = None if self._layer is None else self._layer.trained.get(own)
        known = stack if name is None else self._parameters[name]
        if is_sharded(stack):
            raise self._unsupported("whole in its forward pass, as FSDP makes it")
        if stack is None or (stack is not known and not is_sharded(known)):
            raise self._unsupported("called with its own parameters")
        return name, stack if name is None else stack.detach()

    def _order(
        self, hidden_states: Tensor, top_k_index: Tensor, top_k_weights: Tensor, counts: tuple[int, int]
    ) -> tuple[list[int], Tensor]:
        """The numbers of rows by expert and example, `counts` of these, and the rows in that order."""
        tokens, (number, examples) = len(hidden_states), counts
        same = hidden_states.dim() == top_k_index.dim() == 2 and top_k_index.shape == top_k_weights.shape
        if not same or len(top_k_index) != tokens or not tokens or tokens % examples:
            raise self._unsupported("called with the tokens of all examples, one example after the other")
        # Rows stay with their tokens: their numbers choose nothing across examples.
        with of_one_example():
            if not bool(((top_k_index >= 0) & (top_k_index < number)).all()):
                raise self._unsupported("called with the numbers of its experts")
            example = torch.arange(tokens, device=top_k_index.device) // (tokens // examples)
            place = (top_k_index * examples + example.unsqueeze(1)).flatten()
            sizes: list[int] = place.bincount(minlength=number * examples).tolist()
            return sizes, place.argsort(stable=True)

    def _product(self, stack: tuple[str | None, Any], x: Tensor, sizes: list[int], examples: int) -> Tensor:
        """The product of each row of `x` with its expert's matrix."""
        name, weight = stack
        rows = enumerate(x.split(sizes))
        output = torch.cat([functional.linear(v, weight[i // examples]) for i, v in rows])
        if name is None or self._layer is None:
            return output
        uses = partial(_uses, name, sizes, examples, len(weight))
        return self._follow(self._layer, [name], uses, x, output)

    def _compare(self, output: Tensor, *given: Tensor) -> None:
        """Refuses a module whose own output is another one, once in each training mode."""
        modes = _compared.setdefault(self._module, set())
        if self._module.training in modes:
            return
        with torch.no_grad(), of_one_example():
            wanted = self._forward(*given)
        if not near(output, wanted):
            raise self._unsupported("one that multiplies each token by its experts' matrices and adds up")
        # Infinities or NaN may hide a difference: then the next call is compared too.
        if all_finite((output,)):
            modes.add(self._module.training)

    def _unsupported(self, must_be: str) -> Exception:
        layer = self._layer or Layer("", self._module, {}, alone=False)
        return layer.unsupported(must_be)


def _uses(name: str, sizes: list[int], examples: int, matrices: int, x: Tensor, gradient: Tensor) -> Uses:
    x, gradient = widened(x, gradient)
    rows = enumerate(zip(x.split(sizes), gradient.split(sizes)))
    of = {divmod(i, examples): (a, g) for i, (a, g) in rows if len(a)}
    return [(name, StackUse(examples, matrices, gradient, of))]
