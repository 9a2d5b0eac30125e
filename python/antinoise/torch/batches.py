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
        self._start = start
        self._begin(start)
        # Of the noise that is followed: the step that comes next.
        self._step: Callable[[], int] | None = None

    @classmethod
    def following(cls) -> BatchSampler:
        """Batches of the noise that `follow` tells of; each pass over them begins at the step that comes next there."""
        made = cls.__new__(cls)
        made._wait()
        return made

    def _wait(self) -> None:
        """These are nobody's batches until there is noise to follow."""
        self._batches, self._start, self._step = None, 0, None
        self._begin(0)

    def _begin(self, step: int) -> None:
        """A pass begins with this step: nothing of it is drawn, nothing is taken."""
        self._drawn = self._taken = step
        # How many batches a loader has drawn when one is taken: as many at the next ones, or up to what it is known to.
        self._ahead, self._pass = 0, object()

    # What a loader with its one batch and those of its workers draws at most, where that is known.
    most: int | None = None
    # One that cuts batches into parts draws now more, now fewer.
    evenly = True

    def check(self, noise: NoiseStream) -> None:
        """Refuses to be the batches of another run's noise, where they were made of a key."""
        if self._batches is not None and self._step is None and self._batches.token != noise.token:
            raise ValueError("batches are of another run or key but must be those of the noise")

    def follow(self, plan: Plan, noise: NoiseStream, step: Callable[[], int]) -> None:
        """From now on these are the batches of `noise`, if they were not made of a key."""
        if self._batches is None or self._step is not None:
            self._batches, self._step = Batches.of_noise(plan, noise), step
            # What a loader drew before is of another run.
            self._begin(step())

    @property
    def token(self) -> str:
        """A name for the run and its key."""
        return self._made().token

    def check_drawn(self, step: int) -> None:
        """Refuses a step whose batch was not drawn, and one after a batch that was dropped: all after it would be used a step too early, and their
        examples take part closer to each other than the plan says. A loader may draw ahead of what it hands out, by as many batches at each
        step: there are more of them where one was dropped.
        """
        if self._drawn <= step:
            raise ValueError(f"batch of step {step} is from elsewhere but must be drawn from batch_sampler(), or attach()'s batches")
        if step != self._taken:
            raise ValueError(f"batch of step {step} is that of {self._taken} in its pass but must be its own: begin another pass, at this step")
        ahead = self._drawn - step
        limits = [self._ahead if self.evenly and self._ahead else ahead, ahead if self.most is None else self.most]
        if ahead > min(limits):
            must_be = "used each in its step: begin another pass, which draws this step's again"
            raise ValueError(f"batches before step {step} are drawn and dropped but must be {must_be}")
        self._ahead = self._ahead or ahead

    def take(self, step: int) -> None:
        """Says that the batch of this step is used up."""
        self._taken = step + 1

    def _made(self) -> Batches:
        if self._batches is None:
            raise ValueError("noise of the batches is not there yet but must be: it is made before they are drawn")
        return self._batches

    def _first(self) -> int:
        return self._start if self._step is None else self._step()

    def _shares(self, first: int, last: int) -> Iterator[list[int]]:
        """This process's share of the batches of steps `first` to `last` - 1."""
        rank, world = rank_and_world()
        self._begin(first)
        mine = self._pass
        for step in range(first, last):
            if self._pass is not mine:
                raise ValueError("pass is an earlier one, or of another run, but must be the last that was begun: batches would be used twice")
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
