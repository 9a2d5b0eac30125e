"""Failures of clipping in one process, reported to the others, which would wait for its sum."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from typing import Protocol
from weakref import WeakSet

from torch import nn

from ..held_sums import drop_sums
from ..step_sums import RankReport
from .layout import is_sharded
from .processes import all_gather, rank_and_world


class Awaiting(Protocol):
    """A noise that takes the sums of some parameters."""

    def takes(self, p: nn.Parameter) -> bool:
        """Whether the noise takes the sums of `p`."""


# Noises at whose steps processes meet. Not keyed by parameter: PyTorch cannot move a parameter that has a
# weak reference.
_awaiting: WeakSet[Awaiting] = WeakSet()


def await_sums(noise: Awaiting) -> None:
    """Makes processes meet at each later step of `noise`."""
    _awaiting.add(noise)


@contextmanager
def broadcast_failure(parameters: Collection[nn.Parameter]) -> Iterator[None]:
    """Raises a failure of this block in all processes, at their next step, if each process clips these
    parameters separately.
    """
    try:
        yield
    except Exception as error:
        if _are_awaited(parameters):
            what = f"{type(error).__name__}: {error}"
            warnings.warn(
                f"clipping failed; the other processes are notified at their next step: {what}", stacklevel=4
            )
            # If the others are gone, only this process's own error is raised.
            with suppress(Exception):
                all_gather(RankReport(what, -1, "", None, ()))
            # The other processes drop their sums too.
            drop_sums(parameters)
        raise


def _are_awaited(parameters: Collection[nn.Parameter]) -> bool:
    # With sharded parameters the others may be in a forward pass, and failures are exchanged there.
    if rank_and_world()[1] == 1 or any(is_sharded(p) for p in parameters):
        return False
    return any(noise.takes(p) for noise in _awaiting for p in parameters)
