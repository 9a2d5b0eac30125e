"""Which examples make a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from torch import Tensor
from torch.utils._pytree import tree_map
from torch.utils.data import Sampler, default_collate

from .. import Batches, Key, NoiseStream, Plan
from .processes import rank_and_world


class BatchSampler(Sampler[list[int]]):
    """The plan's batches, for `DataLoader(data, batch_sampler=...)`, whose data must be the plan's examples, in one order. Where processes train
    together, each gets its share of every batch.

    `start` is the first step, for a run that is resumed.
    """

    def __init__(self, plan: Plan, key: Key, *, run: str | None = None, start: int = 0) -> None:
        if not 0 <= start <= plan.steps:
            raise ValueError(f"start is {start} but must be from 0 to {plan.steps}, the plan's steps")
        self._batches, self._start, self._noise, self._drawn = Batches(plan, key, run=run), start, None, start

    _noise: NoiseStream | None

    @classmethod
    def of_noise(cls, plan: Plan, noise: NoiseStream) -> BatchSampler:
        """The batches of the run whose noise this is; each pass over them begins at the step that the noise stands at."""
        made = cls.__new__(cls)
        made._batches, made._noise = Batches.of_noise(plan, noise), noise
        made._start = made._drawn = noise.step
        return made

    @property
    def token(self) -> str:
        """A name for the run and its key."""
        return self._batches.token

    @property
    def drawn(self) -> int:
        """The step whose batch is drawn next."""
        return self._drawn

    def check(self, noise: NoiseStream) -> None:
        """Refuses to be the batches of another run's noise."""
        if self.token != noise.token:
            raise ValueError("batches are of another run or key but must be those of the noise")

    def check_followed(self, noise: NoiseStream) -> None:
        """Refuses noise of another run, where these batches are of a key that stays what it is."""
        if self._noise is None:
            self.check(noise)

    def follow(self, plan: Plan, noise: NoiseStream) -> None:
        """From now on these are the batches of `noise`, if they were made of noise."""
        if self._noise is not None:
            self._batches, self._noise, self._drawn = Batches.of_noise(plan, noise), noise, noise.step

    def _first(self) -> int:
        return self._start if self._noise is None else self._noise.step

    def __iter__(self) -> Iterator[list[int]]:
        rank, world = rank_and_world()
        for step in range(self._first(), len(self._batches)):
            batch = self._batches.at(step)
            self._drawn = step + 1
            yield batch[rank * len(batch) // world : (rank + 1) * len(batch) // world].tolist()

    def __len__(self) -> int:
        return len(self._batches) - self._first()


class CollateEmpty:
    """For `DataLoader(..., collate_fn=CollateEmpty(data))`: a sampled batch may have no example, which must be a batch of 0 all the same, for its
    step has noise."""

    def __init__(self, data: Any, collate: Callable[[Sequence[Any]], Any] = default_collate) -> None:
        self._data, self._collate = data, collate

    def __call__(self, examples: Sequence[Any]) -> Any:
        if examples:
            return self._collate(examples)
        return tree_map(lambda x: x[:0] if isinstance(x, Tensor) else x, self._collate([self._data[0]]))
