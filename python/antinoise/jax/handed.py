"""Tracks which batch was handed out, and checks that participations follow the plan."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import numpy as np
from numpy.typing import NDArray

from .. import Batches, NoiseStream, Participations, Plan


class HandedOut:
    """The plan's batches of a run, each handed out for its own step, and its examples' participations,
    checked against the plan.
    """

    def __init__(self, plan: Plan, stream: NoiseStream) -> None:
        self._stream, self._batches = stream, Batches.of_noise(plan, stream)
        self._size = plan.max_batch_size
        self._recorded = Participations.of_batches(plan, self._batches, stream.step)
        self._pass: object = None
        # Step and examples of the batch handed out last, until its step is made.
        self._handed: tuple[int, NDArray[np.int64]] | None = None

    def handed_out(self, padded: bool) -> Iterator[NDArray[np.int64]]:
        """The batches of a pass, from the next step on; `padded` with -1 to the size of the largest one. A
        batch that was handed out but not used is handed out again.
        """
        if padded and self._size is None:
            raise ValueError(
                "padded is True but must be left out where batches have no largest size: a plan of"
                " max_batch_size='auto' cuts them at one"
            )
        return self._handing_out(self._size if padded else None)

    def _handing_out(self, size: int | None) -> Iterator[NDArray[np.int64]]:
        mine = self._pass = object()
        times: dict[int, int] = {}
        while (step := self._next_step()) < len(self._batches):
            if self._pass is not mine:
                raise RuntimeError(
                    "This pass over the batches is over: another one was begun. Take batches from that one."
                )
            times = {step: times.get(step, 0) + 1}
            if times[step] > 2:
                raise RuntimeError(
                    f"The batch of step {step} was handed out twice, and another one is asked for before the"
                    " step is made. Each batch belongs to one step. A new call of batches() begins with this"
                    " batch; class Batches gives batches to look at."
                )
            self._handed = (step, self._batches.at(step))
            batch = self._handed[1]
            missing = 0 if size is None else size - len(batch)
            yield np.pad(batch, (0, missing), constant_values=-1)

    def _next_step(self) -> int:
        # A jitted function makes its step in a callback, for which the loop does not wait by itself.
        jax.effects_barrier()  # type: ignore[no-untyped-call]
        return self._stream.step

    def own_batch(self) -> NDArray[np.int64]:
        """The next step's batch; refused if another batch was handed out, or the plan does not allow its
        participations.
        """
        step = self._stream.step
        if self._handed is None or self._handed[0] != step:
            raise RuntimeError(
                f"Step {step} has no batch of its own: none was handed out since the last step. Each step"
                " takes one batch from batches(), and no batch is used twice. For batches that other code forms"
                " as the plan states, pass external_batches=True."
            )
        self._recorded.check(step, self._handed[1])
        return self._handed[1]

    def use_up(self, batch: NDArray[np.int64]) -> None:
        """Records that the step of this batch has been made."""
        self._recorded.record(self._stream.step - 1, batch)
        self._handed = None
