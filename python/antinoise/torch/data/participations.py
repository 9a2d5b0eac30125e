"""Checks, before each noisy sum, that participations of examples follow the plan's schema."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ... import Batches, NoiseStream, Participations, Plan
from ..distributed.processes import all_gather
from .batches import BatchSampler


class StepExamples:
    """The examples of a run's steps: the plan's batches or, if batches come from elsewhere, the examples that
    the caller named.
    """

    def __init__(self, plan: Plan, external: bool) -> None:
        self._plan, self._external = plan, external
        self._recorded = Participations(plan)
        self._named: NDArray[np.int64] | None = None

    def name(self, examples: Sequence[int] | NDArray[np.int64]) -> None:
        """Names this process's examples of the next step."""
        if not self._external:
            raise RuntimeError(
                "set_batch() was called, but this run draws the plan's batches: leave it out, or say"
                " external_batches=True."
            )
        self._named = np.array(examples, np.int64).reshape(-1)

    def take_named(self) -> NDArray[np.int64] | None:
        """Takes the examples named for the current step; they are used once, even if the step is refused."""
        named, self._named = self._named, None
        return named

    def of_step(
        self, step: int, batches: BatchSampler | None, named: NDArray[np.int64] | None
    ) -> NDArray[np.int64] | None:
        """The step's examples over all processes, where they are known; refused if the plan does not
        account for them.
        """
        if step == self._plan.steps:
            return None
        if not self._external:
            assert batches is not None
            batch = batches.at(step)
        else:
            parts = all_gather(named)
            known = [part is not None for part in parts]
            recorded = self._recorded.next_step
            if any(known) != all(known) or step > 0 and all(known) != (recorded == step):
                raise RuntimeError(
                    f"set_batch() named the examples of step {step} in {sum(known)} of {len(known)} processes,"
                    f" and the examples of {recorded} of the {step} steps before it. Name those of all steps and"
                    " processes, or of none."
                )
            if not all(known):
                return None
            batch = np.concatenate(parts)
        self._recorded.check(step, batch)
        return batch

    def record(self, step: int, batch: NDArray[np.int64]) -> None:
        """Records the participations of a step."""
        self._recorded.record(step, batch)

    def saved(self) -> Tensor:
        """The saved form: 8 bytes plus 8 per example. As secret as the key where sampling amplifies
        privacy.
        """
        return torch.frombuffer(bytearray(self._recorded.to_bytes()), dtype=torch.uint8)

    def restored(self, saved: Tensor, stream: NoiseStream, step: int) -> Participations:
        """The participations before `step` from a saved form. They must be those of the plan's batches,
        unless batches come from elsewhere.
        """
        found = Participations.from_bytes(self._plan, saved.cpu().numpy().tobytes())
        if self._external:
            fits = found.next_step in (0, step)
        else:
            made = Participations.of_batches(self._plan, Batches.of_noise(self._plan, stream), step)
            fits = found.to_bytes() == made.to_bytes()
        if not fits:
            must_be = (
                "those of the plan's batches, or where batches are from elsewhere, those that set_batch()"
                " named"
            )
            raise ValueError(
                f"participations of the state are not those of the {step} steps of its run but must be"
                f" {must_be}"
            )
        return found

    def resume(self, recorded: Participations) -> None:
        """Replaces the record by `recorded`, with which the run continues."""
        self._recorded, self._named = recorded, None
