"""A guard on all optimizers of the process: none may apply a gradient without noise to a parameter that has
noise.
"""

from __future__ import annotations

from typing import Any, Protocol
from weakref import WeakSet

from torch import Tensor, nn
from torch.optim import Optimizer

from .._relied import relied
from .relied import on_every_step, version_of

_NOISY = "antinoise_version"


class Guarded(Protocol):
    """The noise of some parameters."""

    def serves(self, optimizer: Optimizer) -> bool:
        """Whether a hook on this optimizer's step adds the noise."""

    def takes(self, p: nn.Parameter) -> bool:
        """Whether this noise is added to the sums of `p`."""


_guarded: WeakSet[Guarded] = WeakSet()
_watching: list[Any] = []


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


def _before_step(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
    for noise in list(_guarded):
        if noise.serves(optimizer):
            continue
        for group in optimizer.param_groups:
            for p in group["params"]:
                if (
                    p.grad is not None
                    and noise.takes(p)
                    and getattr(p.grad, _NOISY, None) != version_of(p.grad)
                ):
                    raise RuntimeError(
                        f"this {type(optimizer).__name__} would apply a gradient without noise: its"
                        " parameters have noise that is attached to another optimizer, or to none (a copied"
                        " or unpickled optimizer has no hooks). Step with the optimizer that attach() was"
                        " given, or call add_() right before the step and leave .grad as it is"
                    )
