"""The plan's batches, and the check that each step takes its own batch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Sampler, default_collate

from ... import Batches, Key, NoiseStream, Plan
from ..distributed.processes import rank_and_world
from .sources import Source, mark
from .trees import changed


class BatchSampler(Sampler[list[int]]):
    """Yields the plan's batches for a `DataLoader` whose dataset is the plan's examples, in a fixed order.

    With several processes, each gets its share of every batch. `CorrelatedNoise.loader` and
    `CorrelatedNoise.batch_sampler` make one; a `BatchSampler` made directly, from the key, serves a run once
    it is passed to `CorrelatedNoise.attach`. From then on each pass begins with the noise's next step, and a
    batch is handed out only when its step is the next one. A loader of `CorrelatedNoise.loader` does so even
    with workers that prefetch; in any other loader a batch counts as handed out when it is drawn, so that
    workers are not possible. Before `attach`, passes begin with step `start` and nothing is checked.

    Args:
        plan: The plan of the run.
        key: The key of the run.
        run: The name of the run.
        start: First step of a pass until `attach`, from 0 to the plan's steps.
    """

    def __init__(self, plan: Plan, key: Key, *, run: str | None = None, start: int = 0) -> None:
        if not 0 <= start <= plan.steps:
            raise ValueError(f"start is {start} but must be from 0 to {plan.steps}, the plan's steps")
        self._wait()
        self._batches, self._of_key, self._start = Batches(plan, key, run=run), True, start

    @classmethod
    def following(cls) -> BatchSampler:
        """Creates a sampler without batches; `follow` names the noise whose batches it yields."""
        made = cls.__new__(cls)
        made._wait()
        return made

    def _wait(self) -> None:
        """Resets to a sampler without batches, until `follow` names a noise."""
        self._batches = None
        self._of_key, self._start = False, 0
        # The run's token, which marks batches that were handed out.
        self._name = ""
        # Returns the next step of the noise that is followed.
        self._step: Callable[[], int] | None = None
        # Whether the pass that begins now belongs to a loader with workers that draw ahead: such a loader
        # hands out the batches itself.
        self._by_loader = False
        self._begin()

    def _begin(self) -> object:
        """Begins a new pass and ends all earlier ones; none of its batches is handed out yet."""
        self._pass, self._handed, self._drawn = object(), None, {}
        return self._pass

    _batches: Batches | None
    # The step whose batch was handed out and not yet used.
    _handed: int | None
    # Whole batches (of all processes) that were drawn and whose steps are not made yet: at most the
    # prefetched ones.
    _drawn: dict[int, NDArray[np.int64]]
    # The dataset, if a loader named it.
    dataset: Any = None

    def check(self, noise: NoiseStream) -> None:
        """Refuses the noise of another run, if this sampler was made from a key."""
        if self._of_key and self.token != noise.token:
            raise ValueError("batches are of another run or key but must be those of the noise")

    def follow(self, plan: Plan, noise: NoiseStream, step: Callable[[], int]) -> None:
        """From now on yields the batches of `noise`, whose next step is `step()`. Ends earlier passes."""
        if not self._of_key:
            self._batches = Batches.of_noise(plan, noise)
        self._step, self._name = step, noise.token
        self._begin()

    @property
    def token(self) -> str:
        """A public name of the pair of run and key."""
        return self._made().token

    def check_handed(self, step: int, clipped: Collection[Source]) -> None:
        """Refuses a step without a batch of its own.

        Args:
            step: The step about to be made.
            clipped: Sources of the sums, as far as known; sums of another step's batch are refused.

        Raises:
            RuntimeError: No batch was handed out since the last step, or the sums are of another step's
                batch.
        """
        if self._handed != step:
            found = (
                "no batch was handed out since the last step"
                if self._handed is None
                else f"the last one handed out was of step {self._handed}"
            )
            raise RuntimeError(
                f"Step {step} has no batch of its own: {found}. Each step of the optimizer takes one batch of"
                " the plan, from noise.loader(dataset) or a loader of noise.batch_sampler(), and none is"
                " used again."
            )
        others = sorted(of for name, of in clipped if name == self._name and of != step)
        if others:
            raise RuntimeError(
                f"The sums of step {step} are of the batch of step {others[0]}, which would be used twice:"
                " clip the batch that was handed out last."
            )

    def at(self, step: int) -> NDArray[np.int64]:
        """A step's batch over all processes: the drawn batch, or if none was drawn the computed one."""
        drawn = self._drawn.get(step)
        return self._made().at(step) if drawn is None else drawn

    def use(self) -> None:
        """Records that the step of the batch that was handed out last has been made."""
        if self._handed is not None:
            self._drawn.pop(self._handed, None)
        self._handed = None

    def handed_out(self, begin: Callable[[], Iterable[Any]]) -> Iterator[Any]:
        """The batches of a pass over a loader (`begin` starts it), each handed out on request once its step
        is the next one.
        """
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
            self._check_turn(
                step, mine, "Each batch is one step; a batch to look at is drawn in a pass of its own"
            )
            found = list(islice(batches, 1))

    def _check_turn(self, step: int, mine: object, advice: str) -> None:
        if self._pass is not mine:
            raise RuntimeError(
                "This pass over the batches is over: another one was begun, or the noise is of another state."
                " Draw from a new pass."
            )
        now = self._next_step()
        if now != step:
            raise RuntimeError(
                f"The batch of step {step} is asked for where step {now} comes next, so that a batch would be"
                f" dropped. {advice}: iter(loader) begins with the batch of step {now} again."
            )

    def _made(self) -> Batches:
        if self._batches is None:
            raise RuntimeError(
                "There is no noise yet whose batches these are: it is made before they are drawn."
            )
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
        # Without a noise no step is made, and nothing need be kept.
        if self._step is not None:
            self._drawn[step] = batch
        mine: list[int] = batch[rank * len(batch) // world : (rank + 1) * len(batch) // world].tolist()
        return mine

    def _handing_out(self, first: int, last: int, mine: object) -> Iterator[list[int]]:
        """This process's shares, each handed out when it is drawn."""
        for step in range(first, last):
            self._check_turn(
                step,
                mine,
                "For workers, or anything else that draws ahead, noise.loader(dataset, num_workers=...) makes"
                " the loader; else",
            )
            self._handed = step
            yield self._share(step)

    def __iter__(self) -> Iterator[list[int]]:
        return self._shares(self._next_step(), len(self._made()))

    def __len__(self) -> int:
        return len(self._made()) - self._next_step()


class CollateEmpty:
    """Collates an empty batch too, for `DataLoader(..., collate_fn=CollateEmpty(data))`.

    Poisson sampling can draw no example; the step still has noise and needs a batch of 0 examples. It is
    made by collating `data[0]` and slicing each tensor to length 0.

    Args:
        data: The dataset, with at least one example.
        collate: The collate function of non-empty batches.
    """

    def __init__(self, data: Any, collate: Callable[[list[Any]], Any] = default_collate) -> None:
        self._data, self._collate = data, collate

    def __call__(self, examples: list[Any]) -> Any:
        return self._collate(examples) if examples else changed(self._collate([self._data[0]]), _first_none)


def _first_none(tensor: Any) -> Tensor:
    """A tensor's first dimension cut to length 0."""
    if not isinstance(tensor, Tensor):
        raise ValueError(
            f"batch is one with a {type(tensor).__name__} but must be made of tensors, for an empty one to be"
            " made"
        )
    return tensor[:0]
