"""A process that cannot clip its examples tells the others, which would wait for its sum."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, MutableMapping
from contextlib import contextmanager, suppress
from weakref import ref

from torch import Tensor, nn
from torch.utils.weak import WeakTensorKeyDictionary

from .collected import Report
from .layout import is_sharded
from .processes import exchanged, rank_and_world
from .sums import drop_sums

# Parameters whose sums a noise of several processes takes, as long as there is one.
_awaited: MutableMapping[Tensor, ref[object]] = WeakTensorKeyDictionary()


def await_sums(parameters: Collection[nn.Parameter], noise: object) -> None:
    """From now on, processes meet at each step of `noise`, which takes the sums of these."""
    for p in parameters:
        _awaited[p] = ref(noise)


@contextmanager
def told_to_others(parameters: Collection[nn.Parameter]) -> Iterator[None]:
    """Has what fails here fail in all processes at their step, where these are parameters that each of them clips by itself."""
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
    noises = [_awaited.get(p) for p in parameters]
    return any(noise is not None and noise() is not None for noise in noises)
