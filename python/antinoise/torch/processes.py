"""Processes that make parts of one noise: what they must agree on, and who holds the same coordinates."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray

from .. import Key
from .layout import Ranges


Made = TypeVar("Made")


def rank_and_world() -> tuple[int, int]:
    """Which process this is, of how many."""
    if dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    return 0, 1


def exchanged(mine: Any) -> list[Any]:
    """What every process has, by rank."""
    _, world = rank_and_world()
    if world == 1:
        return [mine]
    found: list[Any] = [None] * world
    dist.all_gather_object(found, mine)
    return found


def together(error: Exception | None) -> None:
    """Raises in every process if one of them has something to refuse, so that none waits for the others."""
    errors = exchanged(None if error is None else str(error))
    if error is not None:
        raise error
    for rank, told in enumerate(errors):
        if told is not None:
            raise ValueError(f"{told} (rank {rank})")


def all_make(make: Callable[[], Made]) -> Made:
    """What `make` makes or checks in each process; where it fails in one, it fails in all, so that none waits
    for that one."""
    error, made = None, []
    try:
        made.append(make())
    except Exception as other:
        error = other
    together(error)
    return made[0]


def agree(name: str, mine: Any) -> None:
    """Refuses, in every process, what is not the same in all of them."""
    found = exchanged(mine)
    others = [rank for rank, other in enumerate(found) if other != found[0]]
    if others:
        raise ValueError(f"{name} is {found[others[0]]} on rank {others[0]} but must be {found[0]}, as on rank 0")


def shared_key(key: Key | None, device: torch.device) -> Key:
    """The key of all processes: each one's own where all have one (from the same file), else the one of rank
    0, drawn if it has none, by one broadcast of 32 bytes."""
    rank, world = rank_and_world()
    given = exchanged(key is not None)
    if key is not None and all(given):
        return key
    if any(given[1:]):
        having = [rank for rank, has in enumerate(given) if has]
        raise ValueError(f"key is given on ranks {having} but must be on all of {world}, on rank 0 alone, or on none")
    if world == 1:
        return Key.from_os()

    def broadcast(secret: NDArray[np.uint8]) -> None:
        host = torch.from_numpy(secret)
        sent = host.to(device, copy=True)
        dist.broadcast(sent, 0)
        host.copy_(sent)
        sent.zero_()

    return Key.shared(broadcast, key or Key.from_os() if rank == 0 else None)


@dataclass(frozen=True)
class Replicas:
    """Parameters whose coordinates the same processes hold, each of which makes the noise of a part of
    them."""

    names: tuple[str, ...]
    ranks: tuple[int, ...]
    group: Any


def _group(ranks: tuple[int, ...], world: int) -> Any:
    """A group of these processes; of all of them the one that there is, with the time limit that it was
    given."""
    if len(ranks) == 1:
        return None
    return dist.group.WORLD if len(ranks) == world else dist.new_group(list(ranks))


def replicas(held: Sequence[tuple[str, Ranges]]) -> list[Replicas]:
    """Which processes hold the same coordinates of each of these parameters; the same list, in the same
    order, for the same coordinates."""
    rank, world = rank_and_world()
    if world == 1:
        return [Replicas(tuple(name for name, _ in held), (0,), None)]
    found = exchanged([hashlib.sha256(repr(ranges).encode()).hexdigest() for _, ranges in held])
    owners = [
        [tuple(r for r in range(world) if found[r][i] == found[of][i]) for of in range(world)] for i in range(len(held))
    ]
    # Every process makes all groups, in the same order.
    groups = {ranks: _group(ranks, world) for ranks in sorted({r for of in owners for r in of})}
    mine: dict[tuple[int, ...], list[str]] = {}
    for (name, _), of in zip(held, owners):
        mine.setdefault(of[rank], []).append(name)
    return [Replicas(tuple(names), ranks, groups[ranks]) for ranks, names in mine.items()]
