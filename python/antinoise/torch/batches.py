"""Which examples make a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from torch import Tensor
from torch.utils.data import Sampler, default_collate

from .. import Batches, Key, NoiseStream, Plan
from .processes import rank_and_world


class BatchSampler(Sampler[list[int]]):
    """The plan's batches, for `DataLoader(data, batch_sampler=...)`, whose data must be the plan's examples, in one order. Where processes train
    together, each gets its share of every batch.

    `start` is the first step, for a run that is resumed. `CorrelatedNoise.batch_sampler()` makes one that follows the noise.
    """

    def __init__(self, plan: Plan, key: Key, *, run: str | None = None, start: int = 0) -> None:
        if not 0 <= start <= plan.steps:
            raise ValueError(f"start is {start} but must be from 0 to {plan.steps}, the plan's steps")
        self._batches: Batches | None = Batches(plan, key, run=run)
        self._start = self._drawn = start
        # Of the noise that is followed: the step that comes next.
        self._step: Callable[[], int] | None = None

    @classmethod
    def following(cls) -> BatchSampler:
        """Batches of the noise that `follow` tells of; each pass over them begins at the step that comes next there."""
        made = cls.__new__(cls)
        made._batches, made._start, made._drawn, made._step = None, 0, 0, None
        return made

    def check(self, noise: NoiseStream) -> None:
        """Refuses to be the batches of another run's noise, where they were made of a key."""
        if self._batches is not None and self._step is None and self._batches.token != noise.token:
            raise ValueError("batches are of another run or key but must be those of the noise")

    def follow(self, plan: Plan, noise: NoiseStream, step: Callable[[], int]) -> None:
        """From now on these are the batches of `noise`, if they were not made of a key."""
        if self._batches is None or self._step is not None:
            self._batches, self._step, self._drawn = Batches.of_noise(plan, noise), step, step()

    @property
    def token(self) -> str:
        """A name for the run and its key."""
        return self._made().token

    @property
    def drawn(self) -> int:
        """The step whose batch is drawn next."""
        return self._drawn

    def _made(self) -> Batches:
        if self._batches is None:
            raise ValueError("noise of the batches is not there yet but must be: it is made before they are drawn")
        return self._batches

    def _first(self) -> int:
        return self._start if self._step is None else self._step()

    def _shares(self, first: int, last: int) -> Iterator[list[int]]:
        """This process's share of the batches of steps `first` to `last` - 1."""
        rank, world = rank_and_world()
        for step in range(first, last):
            batch = self._made().at(step)
            self._drawn = step + 1
            yield batch[rank * len(batch) // world : (rank + 1) * len(batch) // world].tolist()

    def __iter__(self) -> Iterator[list[int]]:
        return self._shares(self._first(), len(self._made()))

    def __len__(self) -> int:
        return len(self._made()) - self._first()


class CollateEmpty:
    """For `DataLoader(..., collate_fn=CollateEmpty(data))`: a sampled batch may have no example, which must be a batch of 0 all the same, for its
    step has noise. It makes of no example what `collate` makes of one, with nothing in it."""

    def __init__(self, data: Any, collate: Callable[[list[Any]], Any] = default_collate) -> None:
        self._data, self._collate = data, collate

    def __call__(self, examples: list[Any]) -> Any:
        return self._collate(examples) if examples else _none_of(self._collate([self._data[0]]))


def _none_of(batch: Any) -> Any:
    if isinstance(batch, Tensor):
        return batch[:0]
    if isinstance(batch, Mapping):
        return {name: _none_of(part) for name, part in batch.items()}
    if isinstance(batch, (list, tuple)):
        return [_none_of(part) for part in batch]
    raise ValueError(f"batch is one with a {type(batch).__name__} but must be made of tensors, for an empty one to be made")
