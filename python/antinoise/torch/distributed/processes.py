"""Processes that make parts of one noise: checks that they agree, and groups of processes that hold the same
coordinates.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray

from ... import Key
from .layout import Ranges

Made = TypeVar("Made")


def rank_and_world() -> tuple[int, int]:
    """This process's rank and the number of processes."""
    if dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    return 0, 1


def all_gather(mine: Any) -> list[Any]:
    """The values of all processes, by rank."""
    _, world = rank_and_world()
    if world == 1:
        return [mine]
    found: list[Any] = [None] * world
    dist.all_gather_object(found, mine)
    return found


def raise_on_all_ranks(error: Exception | None) -> None:
    """Raises in every process if one process has an error, so that none waits for the others."""
    errors = all_gather(None if error is None else str(error))
    if error is not None:
        raise error
    for rank, told in enumerate(errors):
        if told is not None:
            raise ValueError(f"{told} (rank {rank})")


def run_on_all_ranks(make: Callable[[], Made]) -> Made:
    """Returns `make()`. A failure in one process is raised in all, so that no process waits for the
    others.
    """
    error, made = None, []
    try:
        made.append(make())
    except Exception as other:
        error = other
    raise_on_all_ranks(error)
    return made[0]


def check_same_on_all_ranks(name: str, mine: Any) -> None:
    """Raises, in every process, if the value is not the same in all of them."""
    found = all_gather(mine)
    others = [rank for rank, other in enumerate(found) if other != found[0]]
    if others:
        raise ValueError(
            f"{name} is {found[others[0]]} on rank {others[0]} but must be {found[0]}, as on rank 0"
        )


def shared_key(key: Key | None, device: torch.device) -> Key:
    """The key of all processes.

    It is each process's own key if all have one (from the same file), else rank 0's, by a broadcast of 32
    bytes; rank 0 draws a key if it has none.
    """
    rank, world = rank_and_world()
    given = all_gather(key is not None)
    if key is not None and all(given):
        return key
    if any(given[1:]):
        having = [rank for rank, has in enumerate(given) if has]
        raise ValueError(
            f"key is given on ranks {having} but must be on all of {world}, on rank 0 alone, or on none"
        )
    if world == 1:
        return Key.from_os()

    def broadcast(secret: NDArray[np.uint8]) -> None:
        host = torch.from_numpy(secret)
        sent = host.to(device, copy=True)
        dist.broadcast(sent, 0)
        host.copy_(sent)
        sent.zero_()

    return Key.broadcast(broadcast, key or Key.from_os() if rank == 0 else None)


@dataclass(frozen=True)
class Replicas:
    """Parameters whose coordinates the same processes hold; each of these processes makes the noise of a part
    of the coordinates.
    """

    names: tuple[str, ...]
    ranks: tuple[int, ...]
    group: Any


def _group(ranks: tuple[int, ...], world: int) -> Any:
    """The process group of these ranks; for all ranks the default group, with its time limit."""
    if len(ranks) == 1:
        return None
    return dist.group.WORLD if len(ranks) == world else dist.new_group(list(ranks))


def replicas(held: Sequence[tuple[str, Ranges]]) -> list[Replicas]:
    """Groups parameters by the processes that hold the same coordinates. Processes with the same
    coordinates get the same list in the same order.
    """
    rank, world = rank_and_world()
    if world == 1:
        return [Replicas(tuple(name for name, _ in held), (0,), None)]
    found = all_gather([hashlib.sha256(repr(ranges).encode()).hexdigest() for _, ranges in held])
    owners = [
        [tuple(r for r in range(world) if found[r][i] == found[of][i]) for of in range(world)]
        for i in range(len(held))
    ]
    # Every process must make all groups, in the same order.
    groups = {ranks: _group(ranks, world) for ranks in sorted({r for of in owners for r in of})}
    mine: dict[tuple[int, ...], list[str]] = {}
    for (name, _), of in zip(held, owners):
        mine.setdefault(of[rank], []).append(name)
    return [Replicas(tuple(names), ranks, groups[ranks]) for ranks, names in mine.items()]
