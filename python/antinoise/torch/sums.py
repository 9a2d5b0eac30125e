"""What clipping leaves on a parameter and noise takes from it: the sum of clipped gradients."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

_NAME = "_antinoise_sum"


@dataclass(frozen=True)
class ClippedSum:
    """Of a step and a parameter: the sum of its clipped gradients in double precision, how many examples are in it, and clipped to what."""

    total: Tensor
    examples: int
    clip_norm: float


def trainable(model: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters that are trained, by name, in the model's order."""
    return {name: p for name, p in model.named_parameters() if p.requires_grad}


def held_sum(p: nn.Parameter) -> ClippedSum | None:
    """What was left on `p`."""
    held: ClippedSum | None = getattr(p, _NAME, None)
    return held


def leave_sum(p: nn.Parameter, total: Tensor, examples: int, clip_norm: float) -> None:
    """Leaves a sum on `p`, or adds it to the one that is there."""
    if (held := held_sum(p)) is not None:
        total, examples, clip_norm = held.total + total, held.examples + examples, max(held.clip_norm, clip_norm)
    setattr(p, _NAME, ClippedSum(total, examples, clip_norm))


def drop_sum(p: nn.Parameter) -> None:
    """Takes away what was left on `p`."""
    if hasattr(p, _NAME):
        delattr(p, _NAME)
