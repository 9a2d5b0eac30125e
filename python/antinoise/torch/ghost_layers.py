"""The modules that ghost norms support, and their per-example gradients from inputs and output gradients."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from .._relied import relied
from .ghost_parts import Factors, Made, Part, Rows, matrix

# Arguments: the layer, its input and output gradient (examples first), and the full names of its trained
# parameters by their own names.
_Gradients = Callable[[nn.Module, Tensor, Tensor, dict[str, str]], list[Part]]


class Unsupported(ValueError):
    """A model, or a layer, whose ghost norms are not known."""


def _linear(module: nn.Module, x: Tensor, gradient: Tensor, names: dict[str, str]) -> list[Part]:
    assert isinstance(module, nn.Linear)
    x, gradient = (v.reshape(len(v), 1, -1, v.shape[-1]).mT for v in (x, gradient))
    return _affine(x, gradient, names, module.in_features)


def _convolution(module: nn.Module, x: Tensor, gradient: Tensor, names: dict[str, str]) -> list[Part]:
    assert isinstance(module, (nn.Conv1d, nn.Conv2d, nn.Conv3d))
    gradient = gradient.reshape(len(gradient), module.groups, module.out_channels // module.groups, -1)
    windows = _windows(module, x) if "weight" in names else x
    return _affine(windows, gradient, names, module.weight.numel() // module.out_channels)


def _windows(module: nn.Conv1d | nn.Conv2d | nn.Conv3d, x: Tensor) -> Tensor:
    """The inputs of each output place, as a view of shape (examples, groups, inputs, kernel...,
    places...)."""
    mode = "constant" if module.padding_mode == "zeros" else module.padding_mode
    x = functional.pad(x, relied("torch", module, "_reversed_padding_repeated_twice"), mode=mode).unflatten(
        1, (module.groups, -1)
    )
    for i, (size, stride, dilation) in enumerate(zip(module.kernel_size, module.stride, module.dilation)):
        x = x.unfold(3 + i, (size - 1) * dilation + 1, stride)[..., ::dilation]
    count = len(module.kernel_size)
    return x.permute(0, 1, 2, *range(3 + count, 3 + 2 * count), *range(3, 3 + count))


def _affine(x: Tensor, gradient: Tensor, names: dict[str, str], inputs: int) -> list[Part]:
    parts: list[Part] = []
    if "weight" in names:
        parts.append(matrix(names["weight"], Factors(x, gradient, inputs)))
    if "bias" in names:
        parts.append(Made(names["bias"], gradient.sum(-1).flatten(1)))
    return parts


def _embedding(module: nn.Module, x: Tensor, gradient: Tensor, names: dict[str, str]) -> list[Part]:
    assert isinstance(module, nn.Embedding)
    rows, examples = module.num_embeddings, len(x)
    place = torch.arange(examples, device=x.device).repeat_interleave(x[0].numel()) * rows + x.reshape(-1).to(
        torch.int64
    )
    gradient = gradient.reshape(-1, module.embedding_dim).to(torch.float64)
    if module.padding_idx is not None:
        gradient = gradient.masked_fill((x.reshape(-1) == module.padding_idx).unsqueeze(1), 0)
    # Look-ups of one row by one example add up to one gradient.
    found, which = torch.unique(place, return_inverse=True)
    made = gradient.new_zeros(len(found), module.embedding_dim).index_add_(0, which, gradient)
    return [Rows(names["weight"], made, found.div(rows, rounding_mode="floor"), found % rows, examples)]


def _scale(normal: Tensor, gradient: Tensor, names: dict[str, str], over: list[int]) -> list[Part]:
    made = {"weight": normal * gradient, "bias": gradient}
    return [Made(names[name], made[name].sum(over) if over else made[name]) for name in names]


def _layer_norm(module: nn.Module, x: Tensor, gradient: Tensor, names: dict[str, str]) -> list[Part]:
    assert isinstance(module, nn.LayerNorm)
    normal = functional.layer_norm(x, module.normalized_shape, eps=module.eps)
    return _scale(normal, gradient, names, list(range(1, x.dim() - len(module.normalized_shape))))


def _group_norm(module: nn.Module, x: Tensor, gradient: Tensor, names: dict[str, str]) -> list[Part]:
    assert isinstance(module, nn.GroupNorm)
    normal = functional.group_norm(x, module.num_groups, eps=module.eps)
    return _scale(normal, gradient, names, list(range(2, x.dim())))


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


class Layer:
    """A module with trained parameters of its own."""

    def __init__(self, name: str, module: nn.Module, trained: dict[str, str]) -> None:
        self.name, self.module, self._trained = name, module, trained
        # Compared by `forward`, so that a subclass with the same computation is supported.
        kinds = [kind for kind in _KINDS if isinstance(module, kind) and type(module).forward is kind.forward]
        if not kinds or not trained.keys() <= {"weight", "bias"}:
            raise self.unsupported(f"one of {_NAMES}")
        if isinstance(module, nn.Embedding) and (module.max_norm is not None or module.scale_grad_by_freq):
            raise self.unsupported(
                "one without max_norm and scale_grad_by_freq, which look at other examples"
            )
        self._gradients = _KINDS[kinds[0]]

    def unsupported(self, must_be: str) -> Unsupported:
        what = f"{self.name or 'model'} is a {type(self.module).__name__}"
        return Unsupported(
            f'{what} but must be {must_be}, for norms without gradients: norms="each" takes it'
        )

    def check_input(self, x: Tensor, output: Tensor, examples: int) -> None:
        """Refuses an input or output without examples in the first dimension."""
        apart = x.dim() > 0 and output.dim() > 0 and len(x) == len(output) == examples
        if isinstance(self.module, (nn.Conv1d, nn.Conv2d, nn.Conv3d)):
            # An unbatched input of a convolution has channels in the first dimension.
            apart = apart and x.dim() == 2 + len(self.module.kernel_size)
        elif not isinstance(self.module, nn.Embedding):
            own = len(self.module.normalized_shape) if isinstance(self.module, nn.LayerNorm) else 1
            apart = apart and x.dim() > own
        if not apart:
            raise self.unsupported("called with the examples in the first dimension")

    def parts(self, x: Tensor, gradient: Tensor) -> list[Part]:
        """Its per-example gradients. Values in half precision are multiplied in single precision."""
        if x.is_floating_point():
            wide = torch.promote_types(torch.promote_types(x.dtype, gradient.dtype), torch.float32)
            x, gradient = x.to(wide), gradient.to(wide)
        return self._gradients(self.module, x, gradient, self._trained)


def layers_of(model: nn.Module) -> list[Layer]:
    """The trained layers of a model; refuses an unsupported layer, and a parameter that two layers share."""
    owner: dict[int, str] = {}
    layers = []
    for name, module in model.named_modules():
        own = {
            n: p for n, p in module.named_parameters(recurse=False, remove_duplicate=False) if p.requires_grad
        }
        if not own:
            continue
        layer = Layer(name, module, {n: f"{name}.{n}" if name else n for n in own})
        for p in own.values():
            if owner.setdefault(id(p), name) != name:
                raise layer.unsupported(f"one that shares no parameter: it has one of {owner[id(p)]}")
        layers.append(layer)
    return layers
