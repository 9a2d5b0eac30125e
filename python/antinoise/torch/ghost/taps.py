"""Sums of clipped gradients from one forward and one backward pass, without per-example gradients ("ghost
clipping", "book-keeping").

A layer's input and its output's gradient determine its per-example gradients. Hooks capture both; weights
are excluded from the backward pass, which would sum their gradients.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from ..._groups import Groups
from ..data.trees import changed, leaves_of, portion_of
from ..distributed.layout import is_sharded
from ..held_sums import trainable
from ..norms import clip_factors, portions
from ..relied import global_hooks, is_view, own_parameters, version_of
from .captured import Captured, by_example
from .independence import Forward, check_examples_independent
from .layers import Layer, Unsupported, Uses, layers_of, refused, widened
from .parts import Part, Sums, Use, part_of


class _Anchor(torch.autograd.Function):
    """Makes an output require a gradient although no parameter precedes it."""

    @staticmethod
    def forward(ctx: Any, output: Tensor, anchor: Tensor) -> Tensor:
        ctx.mark_dirty(output)
        return output

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, None]:
        return None, None


def _input_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """The only input of a layer, whatever its name."""
    x: Tensor = args[0] if args else next(iter(kwargs.values()))
    return x


class _Taps:
    """Hooks that capture each layer's input and the gradient of its output."""

    def __init__(self, model: nn.Module, layers: list[Layer]) -> None:
        self._model, self._layers, self._parameters = model, layers, trainable(model)
        self._own: dict[Layer, dict[str, nn.Parameter | None]] = {}
        # By parameter, in the order of the first use: the uses with captured gradients, the number of uses in
        # the forward pass, and the part once all gradients are captured.
        self._uses: dict[str, list[Use]] = {}
        self._calls: Counter[str] = Counter()
        self._parts: dict[str, Part | None] = {}
        # Calls without a gradient so far.
        self._waiting: list[Layer] = []
        self._handles: list[Any] = []
        self._examples, self._anchor = 0, torch.zeros(())
        # An Embedding whose one look-up became a look-up for each example.
        self._repeated: Layer | None = None
        # Whether the backward pass of the losses runs, and no gradient that the model takes itself.
        self._in_backward = False
        self._layer_of = {layer.module: layer for layer in layers}
        self._captured = Captured(
            {id(p): name for name, p in self._parameters.items()}, self._follow_captured, self._look_ups
        )

    def __enter__(self) -> _Taps:
        if global_hooks("forward"):
            raise Unsupported(
                "register_module_forward_hook is used but must not be, for norms without gradients: these hooks"
                " run before a layer's output is seen"
            )
        for layer in self._layers:
            if not layer.known:
                begin, end = partial(self._begin, layer), lambda *_: self._captured.end()
                self._handles.append(layer.module.register_forward_pre_hook(begin))
                self._handles.append(layer.module.register_forward_hook(end, prepend=True))
                continue
            before, after = partial(self._before, layer), partial(self._after, layer)
            # Runs last before the module's own forward and first after it, whatever other hooks it has.
            self._handles.append(layer.module.register_forward_pre_hook(before, with_kwargs=True))
            self._handles.append(layer.module.register_forward_hook(after, with_kwargs=True, prepend=True))
        return self

    def __exit__(self, *raised: object) -> None:
        for handle in self._handles:
            handle.remove()
        self._captured.end_all()
        for layer in list(self._own):
            self._give_back(layer)

    def _begin(self, layer: Layer, module: nn.Module, args: Any) -> None:
        if any(is_sharded(p) for p in own_parameters(module).values() if p is not None):
            raise layer.unsupported("whole in its forward pass, as FSDP makes it")
        self._captured.begin(module)

    def _follow_captured(
        self,
        module: nn.Module,
        names: Iterable[str],
        uses: Callable[[Tensor, Tensor], Uses],
        x: Tensor,
        output: Tensor,
    ) -> Tensor:
        ordered = partial(by_example, module, examples=self._examples)
        layer, firsts = self._layer_of[module], (ordered(x), ordered(output))
        if any(v.dim() < 2 or len(v) != self._examples for v in firsts):
            raise layer.unsupported("called with the examples in the first dimension")
        return self._follow(layer, names, lambda x, g: uses(*widened(ordered(x), ordered(g))), x, output)

    def _give_back(self, layer: Layer) -> None:
        own_parameters(layer.module).update(self._own.pop(layer))

    def _before(self, layer: Layer, module: nn.Module, args: Any, kwargs: Any) -> Any:
        if sum(value is not None for value in (*args, *kwargs.values())) != 1:
            raise layer.unsupported("called with one input")
        # A call that did not end, as one that is recomputed in part, has left the module's own.
        if layer not in self._own:
            own = dict(own_parameters(module))
            for name, full in layer.trained.items():
                known = self._parameters[full]
                if own.get(name) is not known and not is_sharded(known):
                    raise layer.unsupported("called with its own parameters")
            self._own[layer] = own
        for name, p in self._own[layer].items():
            if p is not None:
                if is_sharded(p):
                    raise layer.unsupported("whole in its forward pass, as FSDP makes it")
                # A plain tensor during the pass: it gets no gradient.
                own_parameters(module)[name] = p.detach()  # type: ignore[assignment]
        x = _input_of(args, kwargs)
        if isinstance(module, nn.Embedding) and (found := self._look_ups(module, x)) is not x:
            return (found,), {}
        return None

    def _look_ups(self, module: nn.Module, x: Tensor) -> Tensor:
        """One look-up for all examples, as of positions, as a look-up for each; others as they are."""
        if not (x.dim() > 1 and len(x) == 1 < self._examples):
            return x
        self._repeated = self._layer_of[module]
        return x.expand(self._examples, *x.shape[1:])

    def _after(
        self, layer: Layer, module: nn.Module, args: Any, kwargs: Any, output: Tensor
    ) -> Tensor | None:
        self._give_back(layer)
        if not torch.is_grad_enabled():
            return None
        x = _input_of(args, kwargs)
        layer.check_input(x, output, self._examples)
        return self._follow(layer, layer.trained.values(), layer.uses, x, output)

    def _follow(
        self,
        layer: Layer,
        names: Iterable[str],
        uses: Callable[[Tensor, Tensor], Uses],
        x: Tensor,
        output: Tensor,
    ) -> Tensor:
        """Captures the gradient of a call's output; `uses` makes the gradients of the parameters `names`."""
        if not output.requires_grad:
            output = _Anchor.apply(output, self._anchor)
        if is_view(output):
            # A change of a view in place would leave its node out of the backward pass.
            output = torch.ops.aten._unsafe_view(output, output.shape)
        node = output.grad_fn
        if node is None:
            raise layer.unsupported("one that computes its output")
        for name in names:
            self._parts[name] = None
            self._calls[name] += 1
        self._waiting.append(layer)
        # After the node, which gets the gradient that hooks of the output return, whenever they are added.
        found = partial(self._gradient, layer, uses, x.detach(), version_of(x), output.output_nr)
        node.register_hook(found)
        return output

    def _gradient(
        self,
        layer: Layer,
        uses: Callable[[Tensor, Tensor], Uses],
        x: Tensor,
        version: int,
        number: int,
        _: object,
        gradients: Sequence[Tensor | None],
    ) -> None:
        if version_of(x) != version:
            raise layer.unsupported("given what is not changed in place later")
        if not self._in_backward or layer not in self._waiting:
            raise layer.unsupported("one whose gradient the model does not take itself")
        gradient = gradients[number]
        if gradient is None:
            # The layer still waits for one.
            return
        self._waiting.remove(layer)
        for name, use in uses(x, gradient):
            found = self._uses.setdefault(name, [])
            found.append(use)
            if len(found) == self._calls[name]:
                self._parts[name] = part_of(name, self._uses.pop(name))

    def losses(self, forward: Forward, portion: Any, examples: int) -> tuple[Tensor, list[Tensor]]:
        """Returns the result of `forward` for a portion. A call of `parts`, if any, must follow before
        another portion.
        """
        self._examples, self._parts, self._waiting, self._repeated = examples, {}, [], None
        self._uses.clear()
        self._calls.clear()
        self._anchor = torch.zeros((), device=next(leaves_of(portion)).device, requires_grad=True)
        with torch.enable_grad():
            try:
                losses, outputs = forward(changed(portion, Tensor.detach))
            except (RuntimeError, ValueError, IndexError) as error:
                if self._repeated is None or isinstance(error, Unsupported):
                    raise
                # What was found may be repeated for each example by the model itself.
                raise self._repeated.unsupported("looked up for each example, or once and added") from error
        if tuple(losses.shape) != (examples,):
            raise ValueError(
                f"losses are of shape {tuple(losses.shape)} for {examples} examples but must be one number"
                ' for each example (reduction="none")'
            )
        return losses, outputs

    def parts(self, losses: Tensor) -> list[Part]:
        """The per-example gradients of the portion's losses, by parameter."""
        # A parameter gets a gradient only if code other than its layer uses it.
        leaves = [self._anchor, *self._parameters.values()]
        found: tuple[Tensor | None, ...] = ()
        if losses.requires_grad:
            self._in_backward = True
            try:
                found = torch.autograd.grad(losses, leaves, torch.ones_like(losses), allow_unused=True)
            finally:
                self._in_backward = False
        outside = {name for name, g in zip(self._parameters, found[1:]) if g is not None}
        unknown = [
            layer
            for layer in self._layers
            if not layer.known and not outside.isdisjoint(layer.trained.values())
        ]
        if unknown:
            raise refused({layer.name: layer.module for layer in unknown})
        for name in sorted(outside):
            raise Unsupported(
                f"{name} is used outside of its module but must be used there alone, for norms without gradients"
            )
        for layer in self._waiting:
            raise layer.unsupported("one whose output the loss depends on")
        return [part for part in self._parts.values() if part is not None]


def ghost_sums(
    model: nn.Module,
    forward: Forward,
    batch: Any,
    count: int,
    groups: Groups,
    microbatch_size: int,
    *,
    tested: Hashable = None,
    at_least: int = 0,
    agreed: Callable[[bool], bool] = bool,
) -> tuple[Sums, float]:
    """The sums of clipped gradients by parameter, and of losses. docs/python-torch.md proves the bound on
    one example.

    Args:
        forward: Returns the losses of a portion's examples, shape (examples,), and further tensors that
            must not depend on other examples either.
        count: Number of examples in `batch`.
        tested: Identifies the loss, whose independence of examples is tested once.
        at_least: Minimum number of portions, for processes that must run the model together.
        agreed: Returns whether a condition holds in any process, so that all processes try the same.
    """
    layers = layers_of(model)
    sums = {
        name: torch.zeros(p.shape, dtype=torch.float64, device=p.device)
        for name, p in trainable(model).items()
    }
    total = 0.0
    with _Taps(model, layers) as taps:
        if count == 0 and at_least:
            # A placeholder for absent examples; it enters no sum.
            batch = changed(batch, lambda leaf: leaf.new_zeros(1, *leaf.shape[1:]))
        first = partial(_first, taps, forward, sums)
        check_examples_independent(model, first, batch, microbatch_size, agreed, tested)
        for places, real in portions(count, microbatch_size, at_least):
            losses, _ = taps.losses(forward, portion_of(batch, places), len(places))
            _add(sums, taps.parts(losses), real, groups)
            total += float(losses[:real].detach().to(torch.float64).sum())
    return sums, total


def _first(taps: _Taps, forward: Forward, like: Sums, batch: Any, examples: int) -> tuple[list[Tensor], Sums]:
    """The losses and outputs of some examples, and the gradients of the first example: of that example only,
    if the model treats examples independently.
    """
    losses, outputs = taps.losses(forward, batch, examples)
    only_first = torch.arange(examples, device=losses.device) == 0
    sums = {name: torch.zeros_like(total) for name, total in like.items()}
    for part in taps.parts(losses):
        part.add_to(sums, only_first.to(torch.float64), only_first)
    return [*outputs, losses], sums


def _add(sums: Sums, parts: list[Part], count: int, groups: Groups) -> None:
    """Adds the clipped gradients of a portion's first `count` examples."""
    if not parts:
        return
    factors, kept = clip_factors([(part.name, part.squares) for part in parts], groups)
    there = torch.arange(len(kept), device=kept.device) < count
    everything = bool((kept & there).all())
    for part in parts:
        part.add_to(sums, torch.where(there, factors[part.name], 0.0), None if everything else kept & there)
