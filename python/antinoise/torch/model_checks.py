"""Requirements on a model whose examples are clipped one by one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

from .relied import ANY_NORM, BATCH_NORM, version_of


def check_clipping(model: nn.Module, clip_norm: float, microbatch_size: int | None) -> None:
    """Refuses numbers out of range, and a model with a layer that mixes examples or keeps statistics of
    them.
    """
    if not clip_norm > 0 or not math.isfinite(clip_norm):
        raise ValueError(f"clip_norm is {clip_norm} but must be a finite number above 0")
    if microbatch_size is not None and microbatch_size < 1:
        raise ValueError(f"microbatch_size is {microbatch_size} but must be at least 1")
    for name, module in model.named_modules():
        if not module.training:
            continue
        if isinstance(module, BATCH_NORM):
            raise ValueError(
                f"{name} is a {type(module).__name__} but must treat examples apart (GroupNorm, LayerNorm)"
            )
        if isinstance(module, ANY_NORM) and module.track_running_stats:
            raise ValueError(
                f"{name} is a {type(module).__name__} with track_running_stats but must be without: it would"
                " keep what it saw"
            )


@contextmanager
def unchanged_buffers(model: nn.Module) -> Iterator[None]:
    """Refuses a model whose forward pass changes a buffer: its content depends on examples, has no noise,
    and is saved with the model.
    """
    before = {name: (buffer, version_of(buffer)) for name, buffer in model.named_buffers()}
    yield
    now = dict(model.named_buffers())
    for name, buffer in now.items():
        if name not in before or before[name][0] is not buffer or before[name][1] != version_of(buffer):
            must_be = (
                "left as it was: make the model anew, this one keeps what it saw of the examples, without"
                " noise"
            )
            raise ValueError(f"buffer {name} is changed by the forward pass but must be {must_be}")
