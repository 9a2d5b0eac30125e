"""Which examples take part in each step of a run, held against the plan's schema before the step is
released."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .. import Batches, NoiseStream, Participations, Plan
from .batches import BatchSampler
from .processes import exchanged


class StepExamples:
    """The examples of a run's steps: those of the plan's batches, or where batches are from elsewhere those
    that are named, if any."""

    def __init__(self, plan: Plan, from_elsewhere: bool) -> None:
        self._plan, self._from_elsewhere = plan, from_elsewhere
        self._recorded = Participations(plan)
        self._named: NDArray[np.int64] | None = None

    def name(self, examples: Sequence[int] | NDArray[np.int64]) -> None:
        """Names this process's examples of the next step."""
        if not self._from_elsewhere:
            raise ValueError("batch is given but must be left to the plan, unless batches_from_elsewhere=True")
        self._named = np.array(examples, np.int64).reshape(-1)

    def take_named(self) -> NDArray[np.int64] | None:
        """What was named for the step that is made now, or refused: it is for no other."""
        named, self._named = self._named, None
        return named

    def of_step(self, step: int, batches: BatchSampler | None, named: NDArray[np.int64] | None) -> NDArray[np.int64] | None:
        """The examples of this step, all processes' together, where they are known; refused where the plan
        does not account for them."""
        if step == self._plan.steps:
            return None
        if not self._from_elsewhere:
            assert batches is not None
            batch = batches.at(step)
        else:
            parts = exchanged(named)
            known = [part is not None for part in parts]
            recorded = self._recorded.next_step
            if any(known) != all(known) or step > 0 and all(known) != (recorded == step):
                where = f"set_batch() named the examples of step {step} in {sum(known)} of {len(known)} processes"
                raise RuntimeError(f"{where}, and of the {step} steps before it those of {recorded}. Name those of all steps and processes, or of none.")
            if not all(known):
                return None
            batch = np.concatenate(parts)
        self._recorded.check(step, batch)
        return batch

    def record(self, step: int, batch: NDArray[np.int64]) -> None:
        """Says that these took part in this step."""
        self._recorded.record(step, batch)

    def saved(self) -> Tensor:
        """What is saved of it, as secret as the key where sampling amplifies privacy: 8 bytes, and 8 for each
        example."""
        return torch.frombuffer(bytearray(self._recorded.to_bytes()), dtype=torch.uint8)

    def restored(self, saved: Tensor, stream: NoiseStream, step: int) -> Participations:
        """Those of the steps before `step` in what was saved, which must be those of the plan's batches
        unless batches are from elsewhere."""
        found = Participations.from_bytes(self._plan, saved.cpu().numpy().tobytes())
        if self._from_elsewhere:
            fits = found.next_step in (0, step)
        else:
            made = Participations.of_batches(self._plan, Batches.of_noise(self._plan, stream), step)
            fits = found.to_bytes() == made.to_bytes()
        if not fits:
            must_be = "those of the plan's batches, or where batches are from elsewhere, those that set_batch() named"
            raise ValueError(f"participations of the state are others than of the {step} steps of its run but must be {must_be}")
        return found

    def resume(self, recorded: Participations) -> None:
        """Goes on after these."""
        self._recorded, self._named = recorded, None
