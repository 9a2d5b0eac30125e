"""The plan's batches for loops that pass over their data epoch by epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from torch.utils import data
from torch.utils.data import DataLoader, IterableDataset, RandomSampler, SequentialSampler

from .. import Plan
from .batches import BatchSampler, CollateEmpty


class EpochSampler(BatchSampler):
    """The batches of a noise that is made later: a pass begins with the step that comes next and ends with its epoch, whether the last one was
    broken off or the run is resumed. `on_start` is called before each pass."""

    def __init__(self, plan: Plan, on_start: Callable[[], None]) -> None:
        self._wait()
        self._on_start = on_start
        self._epoch = max(round(plan.examples / plan.expected_batch_size), 1)

    def __iter__(self) -> Iterator[list[int]]:
        steps = len(self._made())
        self._on_start()
        first = self._first()
        if first == steps:
            raise ValueError(f"step is {first} but must be below {steps}: all steps of the plan have been made")
        yield from self._shares(first, min(first - first % self._epoch + self._epoch, steps))

    def __len__(self) -> int:
        """Batches in a whole epoch."""
        return self._epoch


def planned_loader(
    loader: DataLoader[Any], plan: Plan, sampler: EpochSampler, *, fetched: int = 1, batches: Any = None, shares: int = 1
) -> DataLoader[Any]:
    """`loader` with the plan's batches in place of its own: the same data set, workers and memory. Its caller has `fetched` batches beside the one
    that is trained with. `batches` are the loader's own, where something wraps them; they are one of so many `shares` of the plan's."""
    if isinstance(loader.dataset, IterableDataset):
        raise ValueError(f"data set of the loader is a {type(loader.dataset).__name__} but must be one whose examples have numbers")
    examples = len(loader.dataset)  # type: ignore[arg-type]
    if examples != plan.examples:
        raise ValueError(f"data set of the loader is of {examples} examples but must be of the plan's {plan.examples}")
    batches = batches or loader.batch_sampler
    if type(batches) is not data.BatchSampler or not isinstance(batches.sampler, (RandomSampler, SequentialSampler)):
        found = f"sampler of the loader is {type(getattr(batches, 'sampler', batches)).__name__}"
        raise ValueError(f"{found} but must be left out, and batch_size given: the plan samples")
    wanted = -(-plan.batch_size // shares)
    if batches.batch_size != wanted:
        must_be = f"the plan's, {wanted}" if shares == 1 else f"{wanted}, a process's share of the plan's, {plan.batch_size}"
        raise ValueError(f"batch_size of the loader is {batches.batch_size} but must be {must_be}")
    same = ("num_workers", "pin_memory", "timeout", "worker_init_fn", "multiprocessing_context", "generator", "prefetch_factor")
    kept = {name: getattr(loader, name) for name in (*same, "persistent_workers")}
    sampler.most = 1 + loader.num_workers * (loader.prefetch_factor or 0) + fetched
    sampler.evenly = loader.num_workers == 0
    collate = loader.collate_fn
    if plan.sampler["kind"] in ("poisson", "balls-in-bins", "b-min-sep"):
        collate = CollateEmpty(loader.dataset, collate)
    return DataLoader(loader.dataset, batch_sampler=sampler, collate_fn=collate, **kept)
