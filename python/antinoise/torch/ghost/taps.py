"""Per-example gradients of each parameter from one forward and one backward pass, as parts whose lengths are
known without the gradients.

A layer's input and its output's gradient determine its per-example gradients. Hooks capture both; weights
are excluded from the backward pass, which would sum their gradients.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import CheckpointError

from ..data.trees import changed, leaves_of
from ..distributed.layout import is_sharded
from ..held_sums import trainable
from ..model_checks import refuse_reentrant
from ..relied import base_of, global_hooks, is_view, own_parameters, version_of
from .alone import APART, Call, EachExample, check_total
from .biases import Bias, table_of
from .captured import Captured, by_example
from .experts import Experts, are_experts
from .independence import Forward
from .layers import Layer, Unsupported, Uses, refused, widened
from .made import Part
from .parts import Use, part_of
from .room import Room


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
    """The only input of a layer, positional or by any name."""
    x: Tensor = args[0] if args else next(iter(kwargs.values()))
    return x


def _product_of(layer: Layer, x: Tensor, output: Tensor) -> Tensor:
    """The tensor whose gradient is captured: a layer's output or, where that is a view of all of the layer's
    product, the product. After a change of a view in place, PyTorch differentiates the product instead of the
    view, and hooks that the view had before do not run: they change no gradient here either.
    """
    if not is_view(output):
        return output
    # A graph of `torch.compile` does not say what its tensors are views of.
    if not layer.alone and not torch.compiler.is_compiling() and _is_of_own_product(x, output):
        return base_of(output)
    # A tensor with the same memory that is no view: a change in place keeps its node in the backward pass.
    apart: Tensor = torch.ops.aten._unsafe_view(output, output.shape)
    return apart


def _is_of_own_product(x: Tensor, view: Tensor) -> bool:
    """Whether `view` has all values of what it is a view of, in their order, and `x` does not share them."""
    base = base_of(view)
    apart = base is not x and not (is_view(x) and base is base_of(x))
    return apart and base.numel() == view.numel() and base.is_contiguous() and view.is_contiguous()


def _or_zeros(like: Tensor, gradient: Tensor | None) -> Tensor:
    wide = torch.promote_types(like.dtype, torch.float32)
    return torch.zeros_like(like, dtype=wide) if gradient is None else gradient.to(wide)


def _gradients(losses: Tensor, leaves: list[Tensor], retain_graph: bool = False) -> tuple[Tensor | None, ...]:
    """Gradients of the sum of `losses`, which may be one number."""
    refuse_reentrant(losses)
    try:
        return torch.autograd.grad(
            losses, leaves, torch.ones_like(losses), retain_graph=retain_graph, allow_unused=True
        )
    except CheckpointError as error:
        raise Unsupported(
            "gradient checkpointing is used but must not be around followed layers, for ghost norms: they free"
            " what a layer saw themselves"
        ) from error


class Taps:
    """Hooks that capture each layer's input and the gradient of its output."""

    def __init__(self, model: nn.Module, layers: list[Layer], room: Room) -> None:
        self._room = room
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
        # Whether the backward pass of the losses is running, not a backward pass inside the model.
        self._in_backward = False
        # Whether a module runs for one example at a time, or `check_apart` differentiates: not followed.
        self._running_again = self._asking = False
        # Per-example gradients of modules that contain followed ones: their sum is compared with PyTorch's
        # gradient of the sum of losses.
        self._made: dict[tuple[Layer, str], list[Any]] = {}
        self._each: list[EachExample] = []
        self._biases: list[Bias] = []
        self._experts: list[Experts] = []
        self._layer_of = {layer.module: layer for layer in layers}
        self._captured = Captured(
            {id(p): name for name, p in self._parameters.items()}, self._follow_captured, self._look_ups
        )

    def __enter__(self) -> Taps:
        if global_hooks("forward"):
            raise Unsupported(
                "register_module_forward_hook is used but must not be, for ghost norms: these hooks"
                " run before a layer's output is seen"
            )
        with_tables = [module for module in self._model.modules() if table_of(module) is not None]
        experts = {module for module in self._model.modules() if are_experts(module)}
        experts -= {layer.module for layer in self._layers if layer.alone}
        for module in experts:
            layer_of = self._layer_of.get(module)
            self._experts.append(
                Experts(module, layer_of, self._parameters, self._follow, self._followed_examples)
            )
        for layer in self._layers:
            if layer.module in experts:
                continue
            if layer.alone and not any(part in self._layer_of for part in list(layer.module.modules())[1:]):
                self._each.append(EachExample(layer, self._parameters))
                continue
            if not layer.known and not layer.alone:
                begin, end = partial(self._begin, layer), lambda *_: self._end()
                self._handles.append(layer.module.register_forward_pre_hook(begin))
                self._handles.append(layer.module.register_forward_hook(end, prepend=True))
                continue
            for module in with_tables:
                if table_of(module) is layer.module and not layer.alone:
                    self._biases.append(Bias(module, layer, self._follow_bias))
            before, after = partial(self._before, layer), partial(self._after, layer)
            # Runs last before the module's own forward and first after it, whatever other hooks it has.
            self._handles.append(layer.module.register_forward_pre_hook(before, with_kwargs=True))
            self._handles.append(layer.module.register_forward_hook(after, with_kwargs=True, prepend=True))
        return self

    def __exit__(self, *raised: object) -> None:
        for handle in self._handles:
            handle.remove()
        for each in self._each:
            each.end()
        for bias in self._biases:
            bias.end()
        for each_experts in self._experts:
            each_experts.end()
        self._captured.end_all()
        for layer in list(self._own):
            self._give_back(layer)
        # This object and its hooks refer to each other: gradients would stay until Python looks for cycles.
        self._uses, self._parts, self._made, self._each = {}, {}, {}, []

    def _followed_examples(self) -> int:
        return 0 if self._running_again else self._examples

    def _end(self) -> None:
        if not self._running_again:
            self._captured.end()

    def _begin(self, layer: Layer, module: nn.Module, args: Any) -> None:
        if self._running_again:
            return
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

    def _follow_bias(
        self, table: Layer, uses: Callable[[Tensor, Tensor], Uses], rows: Tensor, output: Tensor
    ) -> Tensor:
        return self._follow(table, table.trained.values(), uses, rows, output)

    def _give_back(self, layer: Layer) -> None:
        own_parameters(layer.module).update(self._own.pop(layer))

    def _before(self, layer: Layer, module: nn.Module, args: Any, kwargs: Any) -> Any:
        if self._running_again:
            return None
        if not layer.alone and sum(value is not None for value in (*args, *kwargs.values())) != 1:
            raise layer.unsupported("called with one input")
        # After a call that did not end (such as one that is recomputed in part), the module's own parameters
        # are known already.
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
                if layer.alone:
                    continue
                # A plain tensor during the pass: it gets no gradient.
                own_parameters(module)[name] = p.detach()  # type: ignore[assignment]
        if layer.alone:
            return None
        x = _input_of(args, kwargs)
        if isinstance(module, nn.Embedding) and (found := self._look_ups(module, x)) is not x:
            return (found,), {}
        return None

    def _look_ups(self, module: nn.Module, x: Tensor) -> Tensor:
        """Repeats a look-up that is made once for all examples, such as that of positions, for each example;
        other inputs are returned unchanged.
        """
        if not (x.dim() > 1 and len(x) == 1 < self._examples):
            return x
        self._repeated = self._layer_of[module]
        return x.expand(self._examples, *x.shape[1:])

    def _after(
        self, layer: Layer, module: nn.Module, args: Any, kwargs: Any, output: Tensor
    ) -> Tensor | None:
        if self._running_again:
            return None
        self._give_back(layer)
        if not torch.is_grad_enabled():
            return None
        if layer.alone:
            call = Call(layer, args, kwargs, output, self._examples)
            return self._follow(layer, layer.trained.values(), call.uses, call.first, output)
        x = _input_of(args, kwargs)
        if any(bias.table is layer and bias.looked_up(x, output) for bias in self._biases):
            return None
        layer.check_input(x, output, self._examples)
        uses = partial(layer.uses, examples=self._examples)
        return self._follow(layer, layer.trained.values(), uses, x, output)

    def _follow(
        self,
        layer: Layer,
        names: Iterable[str],
        uses: Callable[[Tensor, Tensor], Uses],
        x: Tensor,
        output: Tensor,
    ) -> Tensor:
        """Captures the gradient of a call's output; `uses` makes the gradients of the parameters `names`."""
        product, shape = _product_of(layer, x, output), output.shape
        if not product.requires_grad:
            product = _Anchor.apply(product, self._anchor)
        node = product.grad_fn
        if node is None:
            raise layer.unsupported("one whose output is not a parameter or input as it is")
        for name in names:
            self._parts[name] = None
            self._calls[name] += 1
        self._waiting.append(layer)
        # A hook of the node, not of the output: it gets the gradient after all hooks of the output have run,
        # those that are added later included.
        found = partial(self._gradient, layer, uses, [x.detach()], version_of(x), product.output_nr, shape)
        node.register_hook(found)
        return product if product.shape == shape else product.view(shape)

    def _gradient(
        self,
        layer: Layer,
        uses: Callable[[Tensor, Tensor], Uses],
        held: list[Tensor],
        version: int,
        number: int,
        shape: torch.Size,
        _: object,
        gradients: Sequence[Tensor | None],
    ) -> None:
        if self._asking:
            return
        if held and version_of(held[0]) != version:
            raise layer.unsupported("given an input that is not changed in place later")
        if not self._in_backward or layer not in self._waiting or not held:
            raise layer.unsupported("one whose gradient is not taken within the model")
        gradient = gradients[number]
        if gradient is None:
            # The layer still waits for a gradient from another pass.
            return
        self._waiting.remove(layer)
        # The hook lives as long as the graph; the input only as long as it is needed.
        x = held.pop()
        self._running_again = layer.alone
        try:
            made = uses(x, gradient.reshape(shape))
        finally:
            self._running_again = False
        for name, use in made:
            if layer.alone:
                self._made.setdefault((layer, name), []).append(use)
            self._add_use(name, use)

    def _add_use(self, name: str, use: Use) -> None:
        found = self._uses.setdefault(name, [])
        found.append(use)
        if len(found) == self._calls[name]:
            self._parts[name] = part_of(name, self._uses.pop(name), self._room)

    def _of_each(self) -> list[tuple[str, list[Tensor]]]:
        """The examples' own parameters, by the model's name, of each call of a module that runs for each
        example.
        """
        found = []
        for each in self._each:
            for call in each.calls:
                for own, name in each.layer.trained.items():
                    found.append((name, [parameters[own] for parameters in call]))
                    self._parts[name] = None
                    self._calls[name] += 1
        return found

    def check_apart(self, losses: Tensor) -> None:
        """Refuses a module that runs for one example at a time if the first example's loss depends on the
        parameters of another one: through a value that the module keeps somewhere.
        """
        for each in self._each:
            others = [p for call in each.calls for parameters in call[1:] for p in parameters.values()]
            if not others or not losses.requires_grad:
                continue
            self._asking = True
            try:
                found = _gradients(losses[0], others, retain_graph=True)
            finally:
                self._asking = False
            if any(bool(g.nan_to_num().any()) for g in found if g is not None):
                raise each.layer.unsupported(APART)

    def losses(self, forward: Forward, portion: Any, examples: int) -> tuple[Tensor, list[Tensor]]:
        """Returns the result of `forward` for a portion. A call of `parts`, if any, must follow before
        another portion.
        """
        self._examples, self._parts, self._waiting, self._repeated = examples, {}, [], None
        self._uses.clear()
        self._calls.clear()
        self._made.clear()
        self._room.begin()
        for each in self._each:
            each.begin(examples)
        for bias in self._biases:
            bias.examples = examples
        self._anchor = torch.zeros((), device=next(leaves_of(portion)).device, requires_grad=True)
        with torch.enable_grad():
            try:
                losses, outputs = forward(changed(portion, Tensor.detach))
            except (RuntimeError, ValueError, IndexError) as error:
                if self._repeated is None or isinstance(error, Unsupported):
                    raise
                # The model itself may repeat the found rows for each example.
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
        of_each = self._of_each()
        leaves += [p for _, examples in of_each for p in examples]
        found: tuple[Tensor | None, ...] = ()
        if losses.requires_grad:
            self._in_backward = True
            try:
                found = _gradients(losses, leaves)
            finally:
                self._in_backward = False
        totals = dict(zip(self._parameters, found[1:]))
        # Each is freed when it has been stacked.
        gradients = deque(found[1 + len(totals) :])
        del found
        for name, examples in of_each:
            own = (gradients.popleft() if gradients else None for _ in examples)
            self._add_use(name, torch.stack([*map(_or_zeros, examples, own)]))
        for (layer, name), made in self._made.items():
            check_total(layer, name, sum(made[1:], made[0]), totals.pop(name, None))
        outside = {name for name, g in totals.items() if g is not None}
        unknown = [
            layer
            for layer in self._layers
            if not layer.known and not layer.alone and not outside.isdisjoint(layer.trained.values())
        ]
        if unknown:
            raise refused({layer.name: layer.module for layer in unknown})
        for name in sorted(outside):
            raise Unsupported(
                f"{name} is used outside of its module but must be used only within it, for norms without"
                " gradients"
            )
        for layer in self._waiting:
            raise layer.unsupported("one whose output the loss depends on")
        parts, self._parts = self._parts, {}
        return [part for part in parts.values() if part is not None]
