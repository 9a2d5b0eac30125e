"""A guard on all optimizers of the process: none may apply a gradient without noise to a parameter that has
noise.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any, Protocol
from weakref import WeakSet

from torch import Tensor, nn
from torch.optim import Optimizer

from .._relied import relied
from .held_sums import held_sum
from .relied import on_every_step, version_of

_NOISY = "antinoise_version"


class Guarded(Protocol):
    """The noise of some parameters."""

    def serves(self, optimizer: Optimizer) -> bool:
        """Whether a hook on this optimizer's step adds the noise."""

    def attached_to(self) -> Optimizer | None:
        """The optimizer before whose steps the noise is added, if there is one."""

    def takes(self, p: nn.Parameter) -> bool:
        """Whether this noise is added to the sums of `p`."""


_guarded: WeakSet[Guarded] = WeakSet()
_watching: list[Any] = []
# Noises whose second optimizer was warned of.
_warned: WeakSet[Guarded] = WeakSet()


def guard(noise: Guarded) -> None:
    """Checks each later step of any optimizer that holds a parameter of `noise`."""
    if not _watching:
        _watching.append(on_every_step(_before_step))
    _guarded.add(noise)


def mark_noisy(grad: Tensor) -> None:
    """Marks this gradient as a noisy mean, until it is changed in place."""
    setattr(grad, _NOISY, version_of(grad))


def has_hook(optimizer: Optimizer, handle: Any) -> bool:
    """Whether the optimizer still has this hook: a copy of an optimizer has none."""
    return handle.id in relied("torch", optimizer, "_optimizer_step_pre_hooks")


def check_holds(optimizer: Optimizer, parameters: Mapping[str, nn.Parameter]) -> None:
    """Refuses an optimizer that holds other parameters than these: a parameter without noise would be moved
    by its raw gradient.
    """
    held = {id(p) for group in optimizer.param_groups for p in group["params"]}
    missing = [name for name, p in parameters.items() if id(p) not in held]
    others = len(held) - (len(parameters) - len(missing))
    if missing or others:
        found = [f"without {', '.join(missing)}"] * bool(missing) + [f"with {others} others"] * bool(others)
        raise ValueError(
            f"parameters of the optimizer are others than the model's trainable ones ({' and '.join(found)}) but"
            " must be these, all of them"
        )


def check_only_noise(noise: Guarded | None, parameters: Iterable[nn.Parameter]) -> None:
    """Refuses a second noise of the same parameters: each sum gets one noise."""
    held = list(parameters)
    for other in list(_guarded):
        if other is not noise and other.attached_to() is not None and any(map(other.takes, held)):
            raise RuntimeError(
                "another noise is attached to an optimizer of these parameters, and a sum gets one"
                " noise only: call detach() of that noise first"
            )


def _before_step(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
    noises = list(_guarded)
    served = any(noise.serves(optimizer) for noise in noises)
    for noise in noises:
        if noise.serves(optimizer):
            continue
        mine = [p for group in optimizer.param_groups for p in group["params"] if noise.takes(p)]
        what = f"this {type(optimizer).__name__}"
        if not served and any(held_sum(p) is not None for p in mine):
            raise RuntimeError(
                f"{what} steps while clipped sums of its parameters wait for noise, which is attached to"
                " another optimizer, or to none: call attach() with the optimizer that steps, or apply_() right"
                " before the step"
            )
        grads = [p.grad for p in mine if p.grad is not None]
        if any(getattr(grad, _NOISY, None) != version_of(grad) for grad in grads):
            raise RuntimeError(
                f"{what} would apply a gradient without noise: its parameters have noise that is attached to"
                f" another optimizer, or to none (a copied or unpickled optimizer has no hooks). Step with the optimizer that"
                " attach() was given, or call apply_() right before the step and leave .grad as it is"
            )
        if grads and not served and noise.attached_to() is not None and noise not in _warned:
            _warned.add(noise)
            warnings.warn(
                f"{what} applies a noisy mean that another optimizer applies too. It is as private, but"
                " a step of the plan then moves the model twice: one optimizer should hold all parameters",
                stacklevel=4,
            )
