"""Sums of clipped gradients where parameters are sharded over the processes that train together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor, nn

from .layout import is_sharded
from .processes import exchanged

Sums = dict[str, Tensor]


def sharded_sums(
    parameters: Mapping[str, nn.Parameter], ghost_sums: Callable[..., tuple[Sums, float]], examples: int, micro_batch: int
) -> tuple[Sums, float]:
    """The sums over the examples of all processes, laid out as the parameters are.

    A forward pass brings the parameters together, so that every process must run as many portions as the others.
    """
    most = max(exchanged(-(-examples // micro_batch)))
    sums, losses = ghost_sums(at_least=most, agreed=lambda here: any(exchanged(here)))
    return {name: _reduced(parameters[name], sums.pop(name)) for name in parameters}, losses


def _reduced(p: Any, own: Tensor) -> Tensor:
    """The sum of what each process has of the whole, in the layout of `p`."""
    if not is_sharded(p):
        return own
    from torch.distributed.tensor import DTensor, Partial

    whole = DTensor.from_local(own, p.device_mesh, [Partial()] * p.device_mesh.ndim, run_check=False)
    reduced: Tensor = whole.redistribute(placements=p.placements)
    return reduced
