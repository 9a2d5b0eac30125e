"""Sums of clipped gradients from one forward and one backward pass, without per-example gradients ("ghost
clipping", "book-keeping").
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Mapping
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from ..._groups import Groups
from ..data.trees import changed, portion_of
from ..held_sums import trainable
from ..norms import clip_factors, portions
from .choices import Choices
from .independence import Forward, check_examples_independent
from .layers import layers_of
from .made import Part, Sums
from .room import KEPT, Room
from .taps import Taps

# Places of each model's gradients.
_rooms: WeakKeyDictionary[nn.Module, Room] = WeakKeyDictionary()


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
    alone: Container[nn.Module] = (),
    kept: int = KEPT,
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
        alone: Modules whose per-example gradients are computed.
        kept: Maximum bytes of per-example gradients of matrices that are kept until they are summed, beyond
            the memory of activations and their gradients; further ones are made twice.
    """
    layers, parameters, total = layers_of(model, alone), trainable(model), 0.0
    sums: Sums = {}
    room = _rooms.setdefault(model, Room(kept))
    room.resize(kept, 8 * sum(p.numel() for p in parameters.values()))
    with Taps(model, layers, room) as taps:
        if count == 0 and at_least:
            # A placeholder for absent examples; it enters no sum.
            batch = changed(batch, lambda leaf: leaf.new_zeros(1, *leaf.shape[1:]))
        first = partial(_first, taps, forward)
        how = (tested, *(id(layer.module) for layer in layers if layer.alone))
        check_examples_independent(model, first, batch, microbatch_size, agreed, how)
        for places, real in portions(count, microbatch_size, at_least):
            losses, parts = _passed(taps, forward, portion_of(batch, places), len(places))
            _add(sums, parameters, parts, real, groups)
            total += float(losses[:real].to(torch.float64).sum())
    return {name: sums[name] if name in sums else _zeros(p) for name, p in parameters.items()}, total


def _zeros(p: nn.Parameter) -> Tensor:
    return torch.zeros(p.shape, dtype=torch.float64, device=p.device)


def _passed(taps: Taps, forward: Forward, portion: Any, examples: int) -> tuple[Tensor, list[Part]]:
    """The losses of a portion and its gradients, without the graph."""
    losses = taps.losses(forward, portion, examples)[0]
    return losses.detach(), taps.parts(losses)


def _first(
    taps: Taps, forward: Forward, batch: Any, examples: int, choices: Choices
) -> tuple[list[Tensor], dict[str, list[Tensor]]]:
    """The losses and outputs of some examples, computed while `choices` records; and the tensors that
    determine the gradient of the first loss, which is the first example's if the model treats examples
    independently.
    """
    with choices:
        losses, outputs = taps.losses(forward, batch, examples)
    taps.check_apart(losses)
    # Copies, because the buffers of gradients are reused.
    first = {part.name: [v.clone() for v in part.first()] for part in taps.parts(losses)}
    return [*outputs, losses], first


def _add(
    sums: Sums, parameters: Mapping[str, nn.Parameter], parts: list[Part], count: int, groups: Groups
) -> None:
    """Adds the clipped gradients of a portion's first `count` examples, and removes each of `parts` when it
    is added.
    """
    if not parts:
        return
    factors, kept = clip_factors([(part.name, part.squares) for part in parts], groups)
    there = torch.arange(len(kept), device=kept.device) < count
    everything = bool((kept & there).all())
    while parts:
        part = parts.pop(0)
        name = part.name
        if name not in sums:
            sums[name] = _zeros(parameters[name])
        part.add_to(sums, torch.where(there, factors[name], 0.0), None if everything else kept & there)
