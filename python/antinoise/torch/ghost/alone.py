"""Gradients of one module's own parameters, made for one example at a time: for modules that use their
parameters in unknown ways. Other modules need no such gradients.

`EachExample` runs a module once for each example, with separate parameters for each. `Call` is for a module
that contains modules whose gradients are followed: it runs the module again after the pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from ..relied import own_parameters, tree_leaves, tree_map
from .choices import of_one_example
from .layers import KEEPS_NOTHING, Layer, Uses, all_finite, kept_by

_FIRST = "called with the examples in the first dimension"
APART = "one whose output of an example depends on that example alone"
# Numbers of examples and shapes of arguments for which a module's outputs for each example were compared with
# those for all together.
_compared: WeakKeyDictionary[nn.Module, set[Any]] = WeakKeyDictionary()


class EachExample:
    """Replaces the forward pass of a module by passes of one example after the other. Each example has
    parameters of its own, which share the memory of the module's.
    """

    def __init__(self, layer: Layer, parameters: Mapping[str, nn.Parameter]) -> None:
        self.layer, self._parameters = layer, parameters
        self._own_forward = vars(layer.module).get("forward")
        self._forward, self._examples = layer.module.forward, 1
        # Parameters of the examples by name, for each call since `begin`.
        self.calls: list[list[dict[str, Tensor]]] = []
        layer.module.forward = self._each

    def end(self) -> None:
        """Gives the module its own forward pass back."""
        del self.layer.module.forward
        if self._own_forward is not None:
            self.layer.module.forward = self._own_forward

    def begin(self, examples: int) -> None:
        """Records that a pass of `examples` examples begins."""
        self._examples, self.calls = examples, []

    def _each(self, *args: Any, **kwargs: Any) -> Any:
        if not torch.is_grad_enabled():
            return self._forward(*args, **kwargs)
        given = [v for v in tree_leaves((args, kwargs)) if isinstance(v, Tensor)]
        if not given or given[0].dim() == 0 or len(given[0]) % self._examples:
            raise self.layer.unsupported(_FIRST)
        lengths = (self._examples, len(given[0]))
        own = own_parameters(self.layer.module)
        kept = {name: self._parameters[full] for name, full in self.layer.trained.items()}
        if any(own.get(name) is not p for name, p in kept.items()):
            raise self.layer.unsupported("called with its own parameters")
        wanted = self._together(given, args, kwargs)
        self.calls.append([])
        found = []
        try:
            for i in range(self._examples):
                parameters = {name: p.detach().requires_grad_() for name, p in kept.items()}
                own.update(parameters)  # type: ignore[arg-type]
                of_one = tree_map(partial(_part, i, self._examples, lengths), (args, kwargs))
                with of_one_example():
                    found.append(self._forward(*of_one[0], **of_one[1]))
                _refuse_kept(self.layer)
                self.calls[-1].append(parameters)
            joined = tree_map(_joined, *found)
        except (RuntimeError, ValueError, IndexError) as error:
            raise self.layer.unsupported(APART) from error
        finally:
            own.update(kept)
        return joined if wanted is None else self._checked(joined, wanted, given)

    def _kind(self, given: list[Tensor]) -> tuple[Any, ...]:
        return (self._examples, *(tuple(v.shape) for v in given))

    def _together(self, given: list[Tensor], args: Any, kwargs: Any) -> list[Any] | None:
        """Returns the output for all examples together, once for each number of examples and all shapes.

        Only for comparison: no gradient comes from this pass, and it is the first one, so that what the
        module keeps is of the others.
        """
        if self._kind(given) in _compared.get(self.layer.module, ()):
            return None
        with torch.no_grad(), of_one_example():
            return tree_leaves(self._forward(*args, **kwargs))

    def _checked(self, output: Any, wanted: list[Any], given: list[Tensor]) -> Any:
        """Returns the output, after a comparison with that for all examples together."""
        found = tree_leaves(output)
        if len(found) != len(wanted) or not all(map(near, found, wanted)):
            raise self.layer.unsupported(APART)
        # Equal examples, infinities or NaN may hide a difference: then the next call is compared too.
        finite = all_finite(v for v in found if isinstance(v, Tensor))
        parts = given[0].unflatten(0, (self._examples, -1))
        if finite and (self._examples == 1 or all(bool((part != parts[0]).any()) for part in parts[1:])):
            _compared.setdefault(self.layer.module, set()).add(self._kind(given))
        return output


def _refuse_kept(layer: Layer) -> None:
    """Refuses a module that keeps a value with a gradient besides its output, such as a penalty for the loss:
    the value that the last example leaves would give that example the gradients of all.
    """
    if any(value.grad_fn is not None for module in layer.module.modules() for value in kept_by(module)):
        raise layer.unsupported(KEEPS_NOTHING)


def _joined(*values: Any) -> Any:
    first = values[0]
    if isinstance(first, Tensor) and first.dim():
        return torch.cat(values)
    if any(bool(v != first) for v in values[1:]):
        raise ValueError("output is without a dimension of examples but must be equal for all of them")
    return first


class Call:
    """A call of a module, which is run again for each example.

    The module must compute an example's output from that example's inputs alone: each output is compared with
    that of the call.
    """

    def __init__(self, layer: Layer, args: Any, kwargs: Any, output: Any, examples: int) -> None:
        given = [v for v in tree_leaves((args, kwargs)) if isinstance(v, Tensor)]
        if not given or not isinstance(output, Tensor) or output.dim() == 0 or len(output) % examples:
            raise layer.unsupported(_FIRST)
        self.first = given[0]
        self._layer, self._examples = layer, examples
        self._given = tree_map(lambda v: v.detach() if isinstance(v, Tensor) else v, (args, kwargs))
        # A copy: the model may change the output in place.
        self._output, kind = output.detach().clone(), output.device.type
        self._autocast = torch.autocast(
            kind, torch.get_autocast_dtype(kind), enabled=torch.is_autocast_enabled(kind)
        )

    def uses(self, _: Tensor, gradient: Tensor) -> Uses:
        """Per-example gradients, from that of the output."""
        names, own = self._layer.trained, own_parameters(self._layer.module)
        trained = {name: p for name, p in own.items() if name in names and p is not None}
        made = {name: p.new_zeros(self._examples, *p.shape) for name, p in trained.items()}
        for i in range(self._examples):
            found = self._output_of(i)
            if found.requires_grad:
                of = gradient[_slice(i, self._examples, len(gradient))]
                gradients = torch.autograd.grad(found, list(trained.values()), of, materialize_grads=True)
                for name, g in zip(trained, gradients, strict=True):
                    made[name][i] = g
        wide = {name: g.to(torch.promote_types(g.dtype, torch.float32)) for name, g in made.items()}
        return [(names[name], g) for name, g in wide.items()]

    def _output_of(self, i: int) -> Tensor:
        lengths = (self._examples, len(self._output))
        args, kwargs = tree_map(partial(_part, i, self._examples, lengths), self._given)
        wanted = self._output[_slice(i, self._examples, len(self._output))]
        try:
            with torch.enable_grad(), self._autocast:
                found = self._layer.module.forward(*args, **kwargs)
            same = near(found, wanted)
        except (RuntimeError, ValueError, IndexError) as error:
            raise self._layer.unsupported(APART) from error
        if not same:
            raise self._layer.unsupported(APART)
        of_one: Tensor = found
        return of_one


def _part(i: int, examples: int, lengths: tuple[int, ...], value: Any) -> Any:
    """The part of example i, if the tensor's length is one of `lengths`: one entry, or one block of rows, for
    each example.
    """
    if not isinstance(value, Tensor) or value.dim() == 0 or len(value) not in lengths:
        return value
    return value[_slice(i, examples, len(value))]


def _slice(i: int, examples: int, length: int) -> slice:
    each = length // examples
    return slice(i * each, (i + 1) * each)


def near(a: Any, b: Any) -> bool:
    """Whether two tensors agree up to rounding errors, which may depend on the number of examples."""
    if not isinstance(a, Tensor) or not isinstance(b, Tensor):
        return type(a) is type(b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if not a.is_floating_point() or not a.numel():
        return torch.equal(a, b)
    a, b = (v.detach().nan_to_num(0.0, 0.0, 0.0) for v in (a, b))
    return bool((a - b).abs().max() <= torch.finfo(a.dtype).eps ** 0.5 * b.abs().max())


def check_total(layer: Layer, name: str, made: Tensor, total: Tensor | None) -> None:
    """Refuses a module whose gradients of examples do not add up to PyTorch's gradient of the sum of losses:
    then its parameters affect the loss in other ways than through its output.
    """
    found = made.sum(0)
    total = torch.zeros_like(found) if total is None else total.to(found.dtype).reshape(found.shape)
    off = (found - total).nan_to_num(0.0, 0.0, 0.0).norm()
    tolerance = 0.1 if layer.is_half else 1e-3
    if off > tolerance * made.nan_to_num(0.0, 0.0, 0.0).flatten(1).norm(dim=1).sum():
        raise layer.unsupported(f"one whose {name} the loss depends on by its output alone")
