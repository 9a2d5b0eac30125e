"""The modules that ghost norms support, and their per-example gradients from inputs and output gradients."""

from __future__ import annotations

import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from weakref import WeakSet

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..._relied import relied
from ..held_sums import trainable
from ..relied import own_parameters, tree_leaves
from .matrices import Factors
from .parts import Use
from .tables import Lookups

# Arguments: the layer, its input and output gradient (examples first), and the full names of its trained
# parameters by their own names.
Uses = list[tuple[str, Use]]
_Gradients = Callable[[nn.Module, Tensor, Tensor, dict[str, str]], Uses]


class Unsupported(ValueError):
    """Raised for a model or layer whose ghost norms cannot be computed. Per-example gradients of `modules`
    may be computed instead.
    """

    def __init__(self, message: str, modules: Iterable[nn.Module] = ()) -> None:
        super().__init__(message)
        self.modules = tuple(modules)

    def without_traceback(self) -> Unsupported:
        """Returns the error without its traceback, whose frames hold tensors of the pass."""
        return Unsupported(str(self), self.modules)


def linear_uses(names: dict[str, str], x: Tensor, gradient: Tensor) -> Uses:
    """Per-example gradients of x W^T + b."""
    x, gradient = (v.reshape(len(v), 1, -1, v.shape[-1]).mT for v in (x, gradient))
    return _affine(x, gradient, names, x.shape[2])


def _linear(module: nn.Module, x: Tensor, gradient: Tensor, names: dict[str, str]) -> Uses:
    return linear_uses(names, x, gradient)


def _convolution(module: nn.Module, x: Tensor, gradient: Tensor, names: dict[str, str]) -> Uses:
    assert isinstance(module, (nn.Conv1d, nn.Conv2d, nn.Conv3d))
    gradient = gradient.reshape(len(gradient), module.groups, module.out_channels // module.groups, -1)
    windows = _windows(module, x) if "weight" in names else x
    return _affine(windows, gradient, names, module.weight.numel() // module.out_channels)


def _windows(module: nn.Conv1d | nn.Conv2d | nn.Conv3d, x: Tensor) -> Tensor:
    """For each output place of a convolution, the inputs from which it is computed, as a view of shape
    (examples, groups, inputs, kernel..., places...).
    """
    mode = "constant" if module.padding_mode == "zeros" else module.padding_mode
    x = functional.pad(x, relied("torch", module, "_reversed_padding_repeated_twice"), mode=mode).unflatten(
        1, (module.groups, -1)
    )
    for i, (size, stride, dilation) in enumerate(zip(module.kernel_size, module.stride, module.dilation)):
        x = x.unfold(3 + i, (size - 1) * dilation + 1, stride)[..., ::dilation]
    count = len(module.kernel_size)
    return x.permute(0, 1, 2, *range(3 + count, 3 + 2 * count), *range(3, 3 + count))


def _affine(x: Tensor, gradient: Tensor, names: dict[str, str], inputs: int) -> Uses:
    uses: Uses = []
    if "weight" in names:
        uses.append((names["weight"], Factors(x, gradient, inputs)))
    if "bias" in names:
        uses.append((names["bias"], gradient.sum(-1).flatten(1)))
    return uses


def _transposed_linear(module: nn.Module, x: Tensor, gradient: Tensor, names: dict[str, str]) -> Uses:
    """Per-example gradients of the `Conv1D` of transformers: a linear layer with a weight of shape (inputs,
    outputs).
    """
    x, gradient = (v.reshape(len(v), 1, -1, v.shape[-1]).mT for v in (x, gradient))
    uses = _affine(x, gradient, {own: name for own, name in names.items() if own == "bias"}, x.shape[2])
    if "weight" in names:
        uses.append((names["weight"], Factors(gradient, x, gradient.shape[2])))
    return uses


def _embedding(module: nn.Module, x: Tensor, gradient: Tensor, names: dict[str, str]) -> Uses:
    assert isinstance(module, nn.Embedding)
    return lookup_uses(names["weight"], module.num_embeddings, module.padding_idx, x, gradient)


def lookup_uses(name: str, rows: int, padding: int | None, x: Tensor, gradient: Tensor) -> Uses:
    """Per-example gradients of an embedding table from which the rows `x` are looked up."""
    row = x.reshape(len(x), -1).to(torch.int64)
    gradient = gradient.reshape(len(x), row.shape[1], gradient.shape[-1])
    if padding is not None:
        gradient = gradient.masked_fill((row == padding).unsqueeze(2), 0)
    return [(name, Lookups(row, gradient, rows))]


def _scale(normal: Tensor, gradient: Tensor, names: dict[str, str], over: list[int]) -> Uses:
    made = {"weight": normal * gradient, "bias": gradient}
    return [(names[name], made[name].sum(over) if over else made[name]) for name in names]


def _layer_norm(module: nn.Module, x: Tensor, gradient: Tensor, names: dict[str, str]) -> Uses:
    assert isinstance(module, nn.LayerNorm)
    normal = functional.layer_norm(x, module.normalized_shape, eps=module.eps)
    return _scale(normal, gradient, names, list(range(1, x.dim() - len(module.normalized_shape))))


def _group_norm(module: nn.Module, x: Tensor, gradient: Tensor, names: dict[str, str]) -> Uses:
    assert isinstance(module, nn.GroupNorm)
    normal = functional.group_norm(x, module.num_groups, eps=module.eps)
    return _scale(normal, gradient, names, list(range(2, x.dim())))


# Modules that use a trained parameter in ways other than products and look-ups.
_unknown: WeakSet[nn.Module] = WeakSet()
# Modules whose scale was checked.
_scales: WeakSet[nn.Module] = WeakSet()


def _has_scale(module: nn.Module) -> bool:
    """Whether a module may be a normalisation that multiplies by its weight, such as RMSNorm: it has an
    epsilon, a weight for each feature, and no other parameter, buffer or submodule.
    """
    own, weight = dict(_own_parameters(module)), getattr(module, "weight", None)
    has_epsilon = hasattr(module, "eps") or hasattr(module, "variance_epsilon")
    alone = own.keys() == {"weight"} and not list(module.children()) and not list(module.buffers())
    return has_epsilon and alone and isinstance(weight, Tensor) and weight.dim() == 1


def _scaled(module: nn.Module, x: Tensor, gradient: Tensor, names: dict[str, str]) -> Uses:
    """Finds `rest` and `normal` of a module whose output is `rest + weight * normal`, from its values at
    weights 0 and 1. Other weights, of both signs and the module's own, check once for each module that the
    output has that form.
    """
    width = x.shape[-1]

    def at(weight: Tensor) -> Tensor:
        own = own_parameters(module)
        kept = own["weight"]
        own["weight"] = weight  # type: ignore[assignment]
        try:
            # Without the module's hooks.
            found: Tensor = type(module).forward(module, x)
            return found
        finally:
            own["weight"] = kept

    with torch.no_grad():
        rest, at_one = at(x.new_zeros(width)), at(x.new_ones(width))
        normal = at_one - rest
        if module not in _scales:
            weights = torch.linspace(-2, 2, width, dtype=x.dtype, device=x.device)
            for weight in (weights, -weights, module.weight.detach().to(x)):  # type: ignore[operator]
                off, most = (
                    (at(weight) - rest - weight * normal).nan_to_num(0.0, 0.0, 0.0),
                    weight.abs().max().clamp(min=1),
                )
                if bool((off.abs() > 1e-5 * most * at_one.nan_to_num(0.0, 0.0, 0.0).abs().max()).any()):
                    raise Unsupported("weight is not a scale")
            # Infinities or NaN may hide a difference: then the next batch is tested too.
            if all_finite((rest, at_one)):
                _scales.add(module)
    return _scale(normal, gradient, names, list(range(1, x.dim() - 1)))


_KINDS: dict[type[nn.Module], _Gradients] = {
    nn.Linear: _linear,
    nn.Conv1d: _convolution,
    nn.Conv2d: _convolution,
    nn.Conv3d: _convolution,
    nn.Embedding: _embedding,
    nn.LayerNorm: _layer_norm,
    nn.GroupNorm: _group_norm,
}
_NAMES = ", ".join(kind.__name__ for kind in _KINDS)
_MUST_BE = f"one of {_NAMES}, Conv1D of transformers, or a normalisation that multiplies by its weight, as RMSNorm does"
KEEPS_NOTHING = "one that keeps nothing with a gradient besides its output"
_OTHERWISE = 'for ghost norms: norms="per_example" takes it'


def _gradients_of(module: nn.Module) -> _Gradients | None:
    # Compared by `forward`, so that a subclass with the same computation is supported.
    if "forward" in vars(module):
        return None
    for kind, gradients in {**_KINDS, **_of_transformers()}.items():
        if isinstance(module, kind) and type(module).forward is kind.forward:
            return gradients
    return _scaled if _has_scale(module) else None


def _of_transformers() -> dict[type[nn.Module], _Gradients]:
    """The supported layers of the package transformers, if it is loaded."""
    found = getattr(sys.modules.get("transformers.pytorch_utils"), "Conv1D", None)
    return {} if found is None else {found: _transposed_linear}


def _own_parameters(module: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
    return module.named_parameters(recurse=False, remove_duplicate=False)


def kept_by(module: nn.Module) -> list[Tensor]:
    """The tensors that are attributes of a module, or are in one, besides parameters."""
    kept = {name: value for name, value in vars(module).items() if name not in ("_parameters", "_modules")}
    return [value for value in tree_leaves(kept) if isinstance(value, Tensor)]


def widened(x: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor]:
    """`x` in single precision if it is in half precision; whole numbers are returned unchanged."""
    if not x.is_floating_point():
        return x, gradient
    wide = torch.promote_types(torch.promote_types(x.dtype, gradient.dtype), torch.float32)
    return x.to(wide), gradient.to(wide)


def all_finite(tensors: Iterable[Tensor]) -> bool:
    """Whether no value is infinite or NaN."""
    return all(bool(torch.isfinite(t).all()) for t in tensors)


def by_rows(x: Tensor, examples: int) -> Tensor:
    """Regroups rows of all examples, one example after the other, by example; returns other values
    unchanged.
    """
    flat = x.dim() == 2 and len(x) > examples > 0 and len(x) % examples == 0
    return x.unflatten(0, (examples, -1)) if flat else x


class Layer:
    """A module with trained parameters of its own.

    `trained` has the model's name of each parameter by its name in the module. In a module that is not
    `known`, calls of `functional.linear` and `functional.embedding` are captured. For a module that is
    `alone`, per-example gradients are computed.
    """

    def __init__(self, name: str, module: nn.Module, trained: dict[str, str], alone: bool) -> None:
        self.name, self.module, self.trained, self.alone = name, module, trained, alone
        if isinstance(module, nn.Embedding) and (module.max_norm is not None or module.scale_grad_by_freq):
            raise self.unsupported(
                "one without max_norm and scale_grad_by_freq, which look at other examples"
            )
        self._gradients = _gradients_of(module) if trained.keys() <= {"weight", "bias"} else None
        self.known = self._gradients is not None

    @property
    def is_half(self) -> bool:
        """Whether a parameter has less than single precision."""
        return any(p.dtype.itemsize < 4 for _, p in _own_parameters(self.module))

    def unsupported(self, must_be: str) -> Unsupported:
        what = f"{self.name or 'model'} is a {type(self.module).__name__}"
        return Unsupported(f"{what} but must be {must_be}, {_OTHERWISE}", [self.module])

    def check_input(self, x: Tensor, output: Tensor, examples: int) -> None:
        """Refuses an input or output without examples in the first dimension."""
        if not isinstance(self.module, nn.GroupNorm):
            x, output = by_rows(x, examples), by_rows(output, examples)
        apart = x.dim() > 0 and output.dim() > 0 and len(x) == len(output) == examples
        if isinstance(self.module, (nn.Conv1d, nn.Conv2d, nn.Conv3d)):
            # An unbatched input of a convolution has channels in the first dimension.
            apart = apart and x.dim() == 2 + len(self.module.kernel_size)
        elif not isinstance(self.module, nn.Embedding):
            own = len(self.module.normalized_shape) if isinstance(self.module, nn.LayerNorm) else 1
            apart = apart and x.dim() > own
        if not apart:
            raise self.unsupported("called with the examples in the first dimension")

    def uses(self, x: Tensor, gradient: Tensor, examples: int) -> Uses:
        """Per-example gradients of one call of the layer. Values in half precision are multiplied in single
        precision.
        """
        x, gradient = widened(by_rows(x, examples), by_rows(gradient, examples))
        assert self._gradients is not None
        if self._gradients is not _scaled:
            return self._gradients(self.module, x, gradient, self.trained)
        if x.shape[-1] != self.module.weight.numel():  # type: ignore[operator]
            raise self.unsupported(_MUST_BE)
        known, before = self.module in _scales, kept_by(self.module)
        try:
            made = _scaled(self.module, x, gradient, self.trained)
        except Unsupported as error:
            raise self.unsupported(_MUST_BE) from error
        # In the forward pass the weight was a plain tensor: what was made with it has no gradient to it.
        if not known and any(all(value is not other for other in before) for value in kept_by(self.module)):
            _scales.discard(self.module)
            raise self.unsupported(KEEPS_NOTHING)
        return made


def refused(modules: Mapping[str, nn.Module]) -> Unsupported:
    """The error for the named modules, which use a trained parameter in an unknown way. From now on it is
    raised before their forward pass.
    """
    _unknown.update(modules.values())
    found = ", ".join(f"{name or 'model'} is a {type(module).__name__}" for name, module in modules.items())
    return Unsupported(f"{found} but must be {_MUST_BE}, {_OTHERWISE}", modules.values())


def layers_of(model: nn.Module, alone: Container[nn.Module]) -> list[Layer]:
    """The trained layers of a model; refuses an unsupported layer. Per-example gradients are computed in
    the modules `alone`.
    """
    trained = {
        name: (module, {n: p for n, p in _own_parameters(module) if p.requires_grad})
        for name, module in model.named_modules()
    }
    trained = {name: (module, own) for name, (module, own) in trained.items() if own}
    unknown = {
        name: module for name, (module, _) in trained.items() if module in _unknown and module not in alone
    }
    if unknown:
        raise refused(unknown)
    # A parameter of several modules has one name: the first.
    names = {id(p): name for name, p in trainable(model).items()}
    return [
        Layer(name, module, {n: names[id(p)] for n, p in own.items()}, module in alone)
        for name, (module, own) in trained.items()
    ]
