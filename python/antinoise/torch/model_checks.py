"""Requirements on a model whose examples are clipped one by one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from .distributed.layout import is_sharded
from .relied import ANY_NORM, BATCH_NORM, version_of


def check_clipping(model: nn.Module, clip_norm: float, microbatch_size: int | None, kept_bytes: int) -> None:
    """Refuses numbers out of range, and a model with a layer that mixes examples or stores statistics of
    them.
    """
    if not clip_norm > 0 or not math.isfinite(clip_norm):
        raise ValueError(f"clip_norm is {clip_norm} but must be a finite number above 0")
    if microbatch_size is not None and microbatch_size < 1:
        raise ValueError(f"microbatch_size is {microbatch_size} but must be at least 1")
    if kept_bytes < 0:
        raise ValueError(f"kept_bytes is {kept_bytes} but must be at least 0")
    for name, module in model.named_modules():
        if isinstance(module, (nn.Embedding, nn.EmbeddingBag)) and module.max_norm is not None:
            raise ValueError(
                f"{name} is a {type(module).__name__} with max_norm but must be without: it shortens the rows"
                " of the batch's tokens, without noise"
            )
        if not module.training:
            continue
        if isinstance(module, BATCH_NORM):
            raise ValueError(
                f"{name} is a {type(module).__name__} but must treat examples apart (GroupNorm, LayerNorm)"
            )
        if isinstance(module, ANY_NORM) and module.track_running_stats:
            raise ValueError(
                f"{name} is a {type(module).__name__} with track_running_stats but must be without: it would"
                " store statistics of examples"
            )


# For each model, the training modes of its modules in which the contents of its buffers were compared.
_compared: WeakKeyDictionary[nn.Module, set[tuple[bool, ...]]] = WeakKeyDictionary()


@contextmanager
def unchanged_state(model: nn.Module) -> Iterator[None]:
    """Refuses a model whose forward pass changes a buffer or a parameter: its content depends on examples,
    has no noise, and is saved with the model.

    A change through `.data` is visible only in the content; the content of buffers is compared the first
    time.
    """
    modes = tuple(module.training for module in model.modules())
    is_first = modes not in _compared.get(model, ())
    before = {
        name: (kept, version_of(kept), kept.detach().clone() if is_first and kind == "buffer" else None)
        for kind, name, kept in _state(model)
    }
    yield
    for kind, name, now in _state(model):
        if kind == "parameter" and name not in before:
            continue
        kept, version, content = before.get(name, (None, None, None))
        if kept is not now or version != version_of(now) or (content is not None and _differs(content, now)):
            must_be = (
                "left as it was: create the model again, since this one now stores content of examples"
                " without noise"
            )
            raise ValueError(f"{kind} {name} is changed by the forward pass but must be {must_be}")
    _compared.setdefault(model, set()).add(modes)


def _state(model: nn.Module) -> Iterator[tuple[str, str, Tensor]]:
    """Buffers and parameters, except sharded parameters, which FSDP2 replaces during a pass."""
    yield from (("buffer", name, buffer) for name, buffer in model.named_buffers())
    yield from (("parameter", name, p) for name, p in model.named_parameters() if not is_sharded(p))


def _differs(content: Tensor, now: Tensor) -> bool:
    return not torch.equal(content.nan_to_num(), now.detach().nan_to_num())


def refuse_reentrant(loss: Tensor) -> None:
    """Refuses a loss of which a part is recomputed by reentrant checkpointing: the parameters in that part
    get no gradient from `torch.autograd.grad`.
    """
    found, left = set(), [loss.grad_fn]
    while left:
        node = left.pop()
        if node is None or node in found:
            continue
        found.add(node)
        if node.name() == "CheckpointFunctionBackward":
            raise ValueError(
                "gradient checkpointing is reentrant but must not be: its parameters would get no gradient."
                " Use use_reentrant=False"
            )
        left += [before for before, _ in node.next_functions]
