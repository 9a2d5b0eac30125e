"""Which examples make a batch."""

from __future__ import annotations

from collections.abc import Iterator

from torch.utils.data import Sampler

from .. import Batches, Key, Plan


class BatchSampler(Sampler[list[int]]):
    """The plan's batches, for `DataLoader(data, batch_sampler=...)`, whose data must be the plan's examples, in one order.

    `start` is the first step, for a run that is resumed.
    """

    def __init__(self, plan: Plan, key: Key, *, run: str | None = None, start: int = 0) -> None:
        if not 0 <= start <= plan.steps:
            raise ValueError(f"start is {start} but must be from 0 to {plan.steps}, the plan's steps")
        self._batches, self._start = Batches(plan, key, run=run), start

    def __iter__(self) -> Iterator[list[int]]:
        for step in range(self._start, len(self._batches)):
            yield self._batches.at(step).tolist()

    def __len__(self) -> int:
        return len(self._batches) - self._start
