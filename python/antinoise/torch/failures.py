"""A process that cannot clip its examples tells the others, which would wait for its sum."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from typing import Protocol
from weakref import WeakSet

from torch import nn

from .collected import Report
from .layout import is_sharded
from .processes import exchanged, rank_and_world
from .sums import drop_sums


class Awaiting(Protocol):
    """What takes the sums of some parameters."""

    def takes(self, p: nn.Parameter) -> bool:
        """Whether it takes those of `p`."""


# At whose steps processes meet. Not by parameter: PyTorch moves none that has a weak reference.
_awaiting: WeakSet[Awaiting] = WeakSet()


def await_sums(noise: Awaiting) -> None:
    """From now on, processes meet at each step of `noise`."""
    _awaiting.add(noise)


@contextmanager
def told_to_others(parameters: Collection[nn.Parameter]) -> Iterator[None]:
    """Has what fails here fail in all processes at their step, where these are parameters that each of them
    clips by itself."""
    try:
        yield
    except Exception as error:
        if _are_awaited(parameters):
            what = f"{type(error).__name__}: {error}"
            warnings.warn(f"clipping failed, which the other processes hear at their next step: {what}", stacklevel=4)
            # If they are gone, this process's own error is what is left to say.
            with suppress(Exception):
                exchanged(Report(what, -1, "", None, ()))
            # As the others do with theirs.
            drop_sums(parameters)
        raise


def _are_awaited(parameters: Collection[nn.Parameter]) -> bool:
    # Where parameters are sharded, the others may be within a forward pass, and are met there.
    if rank_and_world()[1] == 1 or any(is_sharded(p) for p in parameters):
        return False
    return any(noise.takes(p) for noise in _awaiting for p in parameters)
