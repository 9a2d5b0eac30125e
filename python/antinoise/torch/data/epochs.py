"""The plan's batches for loops that pass over their data epoch by epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ... import Plan
from .batches import BatchSampler


class EpochSampler(BatchSampler):
    """The batches of a noise that is made later, one epoch per pass.

    A pass begins with the next step and ends with its epoch, also after an interrupted pass or a resume.
    `on_start` is called before each pass.
    """

    def __init__(self, plan: Plan, on_start: Callable[[], None]) -> None:
        self._wait()
        self._on_start = on_start
        self._epoch = max(round(plan.examples / plan.expected_batch_size), 1)

    def __iter__(self) -> Iterator[list[int]]:
        steps = len(self._made())
        self._on_start()
        first = self._next_step()
        if first == steps:
            raise RuntimeError(f"All {steps} steps of the plan have been made: no batch is left.")
        return self._shares(first, min(first - first % self._epoch + self._epoch, steps))

    @property
    def epochs_left(self) -> range:
        """The epochs that are not finished, counted from 0."""
        return range(self._next_step() // self._epoch, -(-len(self._made()) // self._epoch))

    def __len__(self) -> int:
        """Batches in a whole epoch."""
        return self._epoch
