"""Which examples make a batch, and which batch is in the loop's hands."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Sampler, default_collate

from .. import Batches, Key, NoiseStream, Plan
from .processes import rank_and_world
from .sources import Source, mark


class BatchSampler(Sampler[list[int]]):
    """The plan's batches, for a `DataLoader` whose data are the plan's examples, in one order. Where processes train together, each gets
    its share of every batch.

    `CorrelatedNoise.loader` makes a loader of them, `CorrelatedNoise.batch_sampler()` the batches alone; one that was made of the key serves a
    run once `attach` is given it. From then on each pass begins with the step that comes next, and a batch is handed out when its step comes
    next, not before: by the loader where it hands it to the loop, else where it is drawn, which leaves no room for workers. Before that,
    passes begin with step `start` and nothing is checked.
    """

    def __init__(self, plan: Plan, key: Key, *, run: str | None = None, start: int = 0) -> None:
        if not 0 <= start <= plan.steps:
            raise ValueError(f"start is {start} but must be from 0 to {plan.steps}, the plan's steps")
        self._wait()
        self._batches, self._of_key, self._start = Batches(plan, key, run=run), True, start

    @classmethod
    def following(cls) -> BatchSampler:
        """Batches of the noise that `follow` names."""
        made = cls.__new__(cls)
        made._wait()
        return made

    def _wait(self) -> None:
        """These are nobody's batches until there is noise to follow."""
        self._batches = None
        self._of_key, self._start = False, 0
        # What batches that were handed out are known by: the run's token.
        self._name = ""
        # Of the noise that is followed: the step that comes next.
        self._step: Callable[[], int] | None = None
        # Whether the pass that begins now is a loader's, which hands out by itself what its workers draw ahead.
        self._by_loader = False
        self._begin()

    def _begin(self) -> object:
        """A new pass, the only one from now on: nothing of it is handed out."""
        self._pass, self._handed, self._drawn = object(), None, {}
        return self._pass

    _batches: Batches | None
    # The step whose batch is in the loop's hands.
    _handed: int | None
    # Whole batches that were drawn and whose steps are not made yet: as few as workers draw ahead.
    _drawn: dict[int, NDArray[np.int64]]
    # What they are the batches of, where a loader says it.
    dataset: Any = None

    def check(self, noise: NoiseStream) -> None:
        """Refuses to be the batches of another run's noise, where they were made of a key."""
        if self._of_key and self.token != noise.token:
            raise ValueError("batches are of another run or key but must be those of the noise")

    def follow(self, plan: Plan, noise: NoiseStream, step: Callable[[], int]) -> None:
        """From now on these are the batches of `noise`, whose next step is `step()`. Earlier passes are over."""
        if not self._of_key:
            self._batches = Batches.of_noise(plan, noise)
        self._step, self._name = step, noise.token
        self._begin()

    @property
    def token(self) -> str:
        """A name for the run and its key."""
        return self._made().token

    def check_handed(self, step: int, clipped: Collection[Source]) -> None:
        """Refuses a step whose own batch is not in the loop's hands: one of an earlier step, which would be used twice, or from elsewhere; and sums
        that are known to be of another step's batch."""
        if self._handed != step:
            found = "no batch was handed out since the last step" if self._handed is None else f"the last one handed out was of step {self._handed}"
            raise RuntimeError(
                f"Step {step} has no batch of its own: {found}. Each step of the optimizer takes one batch of the plan, from noise.loader(dataset) or "
                "a loader of noise.batch_sampler(), and none is used again."
            )
        others = sorted(of for name, of in clipped if name == self._name and of != step)
        if others:
            raise RuntimeError(f"The sums of step {step} are of the batch of step {others[0]}, which would be used twice: clip the batch that was handed out last.")

    def at(self, step: int) -> NDArray[np.int64]:
        """The batch of a step, of all processes together: the one that was drawn, where it was."""
        drawn = self._drawn.get(step)
        return self._made().at(step) if drawn is None else drawn

    def use(self) -> None:
        """Says that the step of the batch in the loop's hands is made."""
        if self._handed is not None:
            self._drawn.pop(self._handed, None)
        self._handed = None

    def handed_out(self, begin: Callable[[], Iterable[Any]]) -> Iterator[Any]:
        """The batches of a pass that `begin` begins over a loader of these, each when the loop asks for it and its step comes next."""
        mine, step, self._by_loader = self._begin(), self._next_step(), True
        try:
            batches = iter(begin())
            found = list(islice(batches, 1))
        finally:
            self._by_loader = False
        while found:
            self._handed = step
            mark(found, (self._name, step))
            yield found.pop()
            step += 1
            self._check_turn(step, mine, "Each batch is one step; a batch to look at is drawn in a pass of its own")
            found = list(islice(batches, 1))

    def _check_turn(self, step: int, mine: object, advice: str) -> None:
        if self._pass is not mine:
            raise RuntimeError("This pass over the batches is over: another one was begun, or the noise is of another state. Draw from a new pass.")
        now = self._next_step()
        if now != step:
            raise RuntimeError(
                f"The batch of step {step} is asked for where step {now} comes next, so that a batch would be dropped. {advice}: iter(loader) begins "
                f"with the batch of step {now} again."
            )

    def _made(self) -> Batches:
        if self._batches is None:
            raise RuntimeError("There is no noise yet whose batches these are: it is made before they are drawn.")
        return self._batches

    def _next_step(self) -> int:
        return self._start if self._step is None else self._step()

    def _shares(self, first: int, last: int) -> Iterator[list[int]]:
        """This process's share of the batches of steps `first` to `last` - 1."""
        if self._step is None or self._by_loader:
            return map(self._share, range(first, last))
        return self._handing_out(first, last, self._begin())

    def _share(self, step: int) -> list[int]:
        rank, world = rank_and_world()
        batch = self._made().at(step)
        # Without a noise no step is made.
        if self._step is not None:
            self._drawn[step] = batch
        mine: list[int] = batch[rank * len(batch) // world : (rank + 1) * len(batch) // world].tolist()
        return mine

    def _handing_out(self, first: int, last: int, mine: object) -> Iterator[list[int]]:
        """Those that are handed out where they are drawn."""
        for step in range(first, last):
            self._check_turn(step, mine, "For workers, or whatever else draws ahead, noise.loader(dataset, num_workers=...) makes the loader; else")
            self._handed = step
            yield self._share(step)

    def __iter__(self) -> Iterator[list[int]]:
        return self._shares(self._next_step(), len(self._made()))

    def __len__(self) -> int:
        return len(self._made()) - self._next_step()


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
