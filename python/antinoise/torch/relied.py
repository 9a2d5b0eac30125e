"""Attributes of PyTorch that are used here although they are not a stable API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from .._relied import relied

tree_leaves: Callable[[Any], list[Any]] = relied("torch", "torch.utils._pytree", "tree_leaves")
tree_map: Callable[..., Any] = relied("torch", "torch.utils._pytree", "tree_map")
WeakTensorKeyDictionary: Callable[[], Any] = relied("torch", "torch.utils.weak", "WeakTensorKeyDictionary")
on_every_step: Callable[..., Any] = relied(
    "torch", "torch.optim.optimizer", "register_optimizer_step_pre_hook"
)
BATCH_NORM: Any = relied("torch", "torch.nn.modules.batchnorm", "_BatchNorm")
ANY_NORM: Any = relied("torch", "torch.nn.modules.batchnorm", "_NormBase")


def own_parameters(module: nn.Module) -> dict[str, nn.Parameter | None]:
    """A module's own parameters by name (not its submodules'). Changing this dict changes the module."""
    found: dict[str, nn.Parameter | None] = relied("torch", module, "_parameters")
    return found


def hooks(module: nn.Module, when: str) -> dict[int, Callable[..., Any]]:
    """A module's hooks of one kind: `forward_pre`, `forward`, `backward_pre` or `backward`. Changing this
    dict changes the module.
    """
    found: dict[int, Callable[..., Any]] = relied("torch", module, f"_{when}_hooks")
    return found


def global_hooks(when: str) -> dict[int, Callable[..., Any]]:
    """Hooks of one kind that run for all modules: `forward_pre`, `forward`, `backward_pre` or `backward`."""
    found: dict[int, Callable[..., Any]] = relied("torch", "torch.nn.modules.module", f"_global_{when}_hooks")
    return found


def is_view(tensor: Any) -> bool:
    """Whether a tensor is a view: then autograd carries changes in place over to its base."""
    found: bool = relied("torch", tensor, "_is_view")()
    return found


def base_of(view: Any) -> Tensor:
    """The tensor that a view is a view of."""
    base: Tensor = relied("torch", view, "_base")
    return base


def version_of(tensor: Any) -> int:
    """A counter of the tensor's changes in place."""
    version: int = relied("torch", tensor, "_version")
    return version
