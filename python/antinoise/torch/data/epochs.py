"""The plan's batches for loops that pass over their data epoch by epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ... import Plan
from ..distributed.processes import rank_and_world
from .batches import BatchSampler
from .padding import PADDING


class EpochSampler(BatchSampler):
    """The batches of a noise that is made later, one epoch per pass.

    A pass begins with the next step and ends with its epoch, also after an interrupted pass or a resume.
    `on_start` is called before each pass. Batches are `padded` to the plan's largest one, or this process's
    shares to the largest share, by number -1 (`Padded`).
    """

    def __init__(self, plan: Plan, on_start: Callable[[], None], *, padded: bool = False) -> None:
        if padded and plan.max_batch_size is None:
            raise ValueError(
                "padded is True but must be left out where batches have no largest size: a plan of"
                " max_batch_size='auto' cuts them at one"
            )
        self._wait()
        self._on_start = on_start
        self._size = -(-(plan.max_batch_size or 0) // rank_and_world()[1]) if padded else None
        self._epoch = max(round(plan.examples / plan.expected_batch_size), 1)

    def __iter__(self) -> Iterator[list[int]]:
        steps = len(self._made())
        self._on_start()
        first = self._next_step()
        if first == steps:
            raise RuntimeError(f"All {steps} steps of the plan have been made: no batch is left.")
        return self._shares(first, min(first - first % self._epoch + self._epoch, steps))

    def _share(self, step: int) -> list[int]:
        mine = super()._share(step)
        return mine if self._size is None else mine + [PADDING] * (self._size - len(mine))

    def present_in(self, step: int, first: int, count: int) -> list[bool]:
        """Which of `count` rows of this process's share of a step's batch, from row `first` on, are examples
        and not padding.

        Raises:
            ValueError: The share has fewer rows.
        """
        if self._size is None:
            return [True] * count
        if first + count > self._size:
            raise ValueError(
                f"batch of step {step} is of {first + count} rows but must be of {self._size}, padding included"
            )
        real = len(super()._share(step))
        return [first + row < real for row in range(count)]

    @property
    def epochs_left(self) -> range:
        """The epochs that are not finished, counted from 0."""
        return range(self._next_step() // self._epoch, -(-len(self._made()) // self._epoch))

    def __len__(self) -> int:
        """Batches in a whole epoch."""
        return self._epoch
