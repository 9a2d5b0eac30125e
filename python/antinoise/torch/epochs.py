"""The plan's batches for loops that pass over their data epoch by epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from torch import Tensor
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, RandomSampler, Sampler, SequentialSampler

from .. import Batches, Key, Plan


class EpochSampler(Sampler[list[int]]):
    """The plan's batches: a pass begins with the step that comes next and ends with its epoch.

    `next_step` tells which one that is, by asking the noise: batches and noise cannot come apart, whether a pass was broken off or a run
    is resumed. `on_start` is called before each pass. Of `parts` processes, each takes its `part` of every batch.
    """

    def __init__(
        self,
        plan: Plan,
        key: Key,
        next_step: Callable[[], int],
        *,
        run: str | None = None,
        on_start: Callable[[], None] | None = None,
        part: int = 0,
        parts: int = 1,
    ) -> None:
        self._batches, self._next_step, self._on_start = Batches(plan, key, run=run), next_step, on_start
        self._part, self._parts = part, parts
        self._epoch = max(round(plan.examples / plan.expected_batch_size), 1)

    def __iter__(self) -> Iterator[list[int]]:
        if self._on_start is not None:
            self._on_start()
        step, steps = self._next_step(), len(self._batches)
        if step == steps:
            raise ValueError(f"step is {step} but must be below {steps}: all steps of the plan have been made")
        for step in range(step, min(step - step % self._epoch + self._epoch, steps)):
            yield self._batches.at(step)[self._part :: self._parts].tolist()

    def __len__(self) -> int:
        """Batches in a whole epoch."""
        return self._epoch

    def first(self) -> list[int]:
        """The first batch, whole: all processes of a run must have the same."""
        numbers: list[int] = self._batches.at(0).tolist()
        return numbers

    def check(self, examples: int) -> None:
        """Refuses a batch that does not have as many examples as that of the step which comes next."""
        step = self._next_step()
        if step < len(self._batches) and examples != (wanted := len(self._batches.at(step))):
            raise ValueError(f"batch of step {step} is of {examples} examples but must be the plan's, of {wanted}")


class _CollateNothing:
    """A `collate_fn` that makes of no example what the wrapped one makes of one, with nothing in it: a sampled batch may be empty."""

    def __init__(self, collate: Callable[[list[Any]], Any], dataset: Any) -> None:
        self._collate, self._dataset = collate, dataset

    def __call__(self, examples: list[Any]) -> Any:
        return self._collate(examples) if examples else _none_of(self._collate([self._dataset[0]]))


def _none_of(batch: Any) -> Any:
    if isinstance(batch, Tensor):
        return batch[:0]
    if isinstance(batch, Mapping):
        return {name: _none_of(part) for name, part in batch.items()}
    if isinstance(batch, (list, tuple)):
        return [_none_of(part) for part in batch]
    raise ValueError(f"batch is one with a {type(batch).__name__} but must be made of tensors, for an empty one to be made")


def planned_loader(loader: DataLoader[Any], plan: Plan, sampler: EpochSampler) -> DataLoader[Any]:
    """`loader` with the plan's batches in place of its own: the same data set, workers and memory."""
    if isinstance(loader.dataset, IterableDataset):
        raise ValueError(f"data set of the loader is a {type(loader.dataset).__name__} but must be one whose examples have numbers")
    examples = len(loader.dataset)  # type: ignore[arg-type]
    if examples != plan.examples:
        raise ValueError(f"data set of the loader is of {examples} examples but must be of the plan's {plan.examples}")
    batches = loader.batch_sampler
    if type(batches) is not BatchSampler or not isinstance(batches.sampler, (RandomSampler, SequentialSampler)):
        found = f"sampler of the loader is {type(getattr(batches, 'sampler', batches)).__name__}"
        raise ValueError(f"{found} but must be left out, and batch_size given: the plan samples")
    if batches.batch_size != plan.batch_size:
        raise ValueError(f"batch_size of the loader is {batches.batch_size} but must be the plan's, {plan.batch_size}")
    same = ("num_workers", "pin_memory", "timeout", "worker_init_fn", "multiprocessing_context", "generator", "prefetch_factor")
    kept = {name: getattr(loader, name) for name in (*same, "persistent_workers")}
    collate = loader.collate_fn
    if plan.sampler["kind"] == "poisson":
        collate = _CollateNothing(collate, loader.dataset)
    return DataLoader(loader.dataset, batch_sampler=sampler, collate_fn=collate, **kept)
