"""Sums of clipped gradients from one forward and one backward pass, without per-example gradients ("ghost
clipping", "book-keeping").
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from ..._groups import Groups
from ..data.trees import changed, portion_of
from ..held_sums import trainable
from ..norms import clip_factors, portions
from .choices import Choices
from .independence import Forward, check_examples_independent
from .layers import layers_of
from .parts import Part, Sums
from .taps import Taps


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
        alone: Modules whose gradients are made for each example.
    """
    layers = layers_of(model, alone)
    sums = {
        name: torch.zeros(p.shape, dtype=torch.float64, device=p.device)
        for name, p in trainable(model).items()
    }
    total = 0.0
    with Taps(model, layers) as taps:
        if count == 0 and at_least:
            # A placeholder for absent examples; it enters no sum.
            batch = changed(batch, lambda leaf: leaf.new_zeros(1, *leaf.shape[1:]))
        first = partial(_first, taps, forward, sums)
        how = (tested, *(id(layer.module) for layer in layers if layer.alone))
        check_examples_independent(model, first, batch, microbatch_size, agreed, how)
        for places, real in portions(count, microbatch_size, at_least):
            losses, _ = taps.losses(forward, portion_of(batch, places), len(places))
            _add(sums, taps.parts(losses), real, groups)
            total += float(losses[:real].detach().to(torch.float64).sum())
    return sums, total


def _first(
    taps: Taps, forward: Forward, like: Sums, batch: Any, examples: int, choices: Choices
) -> tuple[list[Tensor], Sums]:
    """The losses and outputs of some examples, found under the watch of `choices`, and the gradients of the
    first loss: those of the first example only, if the model treats examples independently.
    """
    with choices:
        losses, outputs = taps.losses(forward, batch, examples)
    only_first = torch.arange(examples, device=losses.device) == 0
    sums = {name: torch.zeros_like(total) for name, total in like.items()}
    for part in taps.parts(losses):
        part.add_to(sums, only_first.to(torch.float64), only_first)
    return [*outputs, losses], sums


def _add(sums: Sums, parts: list[Part], count: int, groups: Groups) -> None:
    """Adds the clipped gradients of a portion's first `count` examples."""
    if not parts:
        return
    factors, kept = clip_factors([(part.name, part.squares) for part in parts], groups)
    there = torch.arange(len(kept), device=kept.device) < count
    everything = bool((kept & there).all())
    for part in parts:
        part.add_to(sums, torch.where(there, factors[part.name], 0.0), None if everything else kept & there)
