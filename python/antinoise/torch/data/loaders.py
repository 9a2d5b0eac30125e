"""Loaders that hand out each batch of the plan once, when its step is the next one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from torch.utils import data
from torch.utils.data import (
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
)

from ... import Plan
from .batches import BatchSampler, CollateEmpty
from .padding import Padded

# Arguments of `DataLoader` that the plan determines.
_PLANNED = ("batch_size", "shuffle", "sampler", "batch_sampler", "drop_last", "in_order")
_KEPT = (
    "num_workers",
    "pin_memory",
    "timeout",
    "worker_init_fn",
    "multiprocessing_context",
    "generator",
    "prefetch_factor",
    "persistent_workers",
)


class PlannedLoader(DataLoader[Any]):
    """A `DataLoader` over a `BatchSampler`. Its workers may draw ahead; batches are handed out in the
    loop."""

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        return _handed_out(self.batch_sampler, super().__iter__)


class HandingOut:
    """Wraps a loader over a `BatchSampler` that may prefetch, so that batches are handed out in the loop.
    Other attributes are the loader's.
    """

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __iter__(self) -> Iterator[Any]:
        return _handed_out(self._loader.batch_sampler, self._loader.__iter__)

    def __len__(self) -> int:
        return len(self._loader)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


def _handed_out(sampler: Any, begin: Callable[[], Iterator[Any]]) -> Iterator[Any]:
    made: BatchSampler = sampler
    return made.handed_out(begin)


def loader_of(
    dataset: Dataset[Any], plan: Plan, sampler: BatchSampler, /, *, padded: bool = False, **how: Any
) -> DataLoader[Any]:
    """A loader of the plan's batches of `dataset`, which the sampler fills up with number -1 if they are
    `padded`; `how` are further arguments of `DataLoader`.
    """
    check_examples(dataset, plan)
    for name in _PLANNED:
        if name in how:
            raise ValueError(
                f"{name} is given but must be left out: the plan says which examples make a batch"
            )
    least, _ = plan.batch_sizes(0) or (1, None)
    if least == 0:
        collate = how.get("collate_fn")
        how["collate_fn"] = CollateEmpty(dataset) if collate is None else CollateEmpty(dataset, collate)
    sampler.dataset = dataset
    return PlannedLoader(Padded(dataset) if padded else dataset, batch_sampler=sampler, **how)


def number_of_examples(dataset: Any) -> int:
    """The length of a data set. Refuses one without a length or without access to examples by number."""
    numbered = hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__")
    if isinstance(dataset, IterableDataset) or not numbered:
        raise ValueError(
            f"data set of the loader is a {type(dataset).__name__} but must be one with a length, whose"
            " examples have numbers, such as a list of them: the plan says which numbers make a batch"
        )
    return len(dataset)


def check_examples(dataset: Any, plan: Plan) -> None:
    """Refuses a data set whose length is not the plan's number of examples."""
    if (found := number_of_examples(dataset)) != plan.examples:
        raise ValueError(
            f"data set of the loader is of {found} examples but must be of the plan's {plan.examples}"
        )


def check_sampler(batches: Any) -> None:
    """Refuses batches of a loader that are not in order, shuffled or dealt out to processes: the plan's take
    their place, so that any other choice of examples would be lost.
    """
    if batches is None:
        raise ValueError("batch_size of the loader is None but must be given: a batch of the plan is a step")
    if type(batches) is not data.BatchSampler or not isinstance(
        batches.sampler, (RandomSampler, SequentialSampler, DistributedSampler)
    ):
        found = f"sampler of the loader is {type(getattr(batches, 'sampler', batches)).__name__}"
        raise ValueError(
            f"{found} but must be left out, and batch_size given: the plan samples, and its batches would"
            " replace those of the sampler"
        )


def planned_loader(
    loader: DataLoader[Any],
    plan: Plan,
    sampler: BatchSampler,
    *,
    batches: Any = None,
    shares: int = 1,
    padded: bool = False,
) -> DataLoader[Any]:
    """A copy of `loader` that draws the plan's batches, with the same dataset, workers and memory settings.

    Args:
        loader: The loader to replace.
        plan: The plan of the run.
        sampler: Draws the plan's batches.
        batches: The loader's own batch sampler, where `loader.batch_sampler` wraps it.
        shares: Number of processes that share a batch: the loader's batch size is the plan's divided by
            `shares`, rounded up.
        padded: Whether the sampler fills batches up.
    """
    check_examples(loader.dataset, plan)
    batches = batches or loader.batch_sampler
    check_sampler(batches)
    wanted = -(-plan.batch_size // shares)
    if batches.batch_size != wanted:
        must_be = (
            f"the plan's, {wanted}"
            if shares == 1
            else f"{wanted}, a process's share of the plan's, {plan.batch_size}"
        )
        raise ValueError(f"batch_size of the loader is {batches.batch_size} but must be {must_be}")
    kept = {name: getattr(loader, name) for name in _KEPT}
    return loader_of(loader.dataset, plan, sampler, padded=padded, collate_fn=loader.collate_fn, **kept)
