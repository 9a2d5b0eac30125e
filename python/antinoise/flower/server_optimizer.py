"""The server's optimizer of a federated run, and its state in a file."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .. import Plan
from .._antinoise import ServerOptimizer
from .._sealed import content_of, new_sealed

__all__ = ["ServerOptimizer", "ServerState"]


class ServerState:
    """The state of an optimizer before and after the last step: a step whose model was lost is repeated from
    the state before it.
    """

    def __init__(self, optimizer: ServerOptimizer, plan: Plan, path: Path, *, any_arrays: bool) -> None:
        optimizer._check(plan.steps)
        self._optimizer, self._plan, self._path, self._any_arrays = optimizer, plan, path, any_arrays
        self._states: dict[int, bytes] = {}

    def __repr__(self) -> str:
        return repr(self._optimizer)

    def begin(self, dim: int) -> None:
        """Writes the state before the first step."""
        self._keep({0: self._optimizer._first_state(dim, self._plan.steps)})

    def load(self) -> None:
        """Reads the states in the file."""
        with np.load(BytesIO(content_of(self._path)), allow_pickle=False) as held:
            self._states = {int(step): held[step].tobytes() for step in held.files}

    def moved(
        self, step: int, weights: NDArray[np.float32], noisy_sum: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Moves the weights along the noisy mean of a step, and keeps the state on the disk."""
        # A step whose noisy sum came to no model is missing; other arrays were then accepted on purpose.
        earlier = max((at for at in self._states if at <= step), default=None)
        if earlier is None or not (earlier == step or self._any_arrays):
            got, must_be = sorted(self._states), f"of step {step}: the file that belongs to the ledger"
            raise ValueError(f"state in {self._path} is of steps {got} but must be {must_be}")
        mean = noisy_sum * np.float32(1 / self._plan.expected_batch_size)
        before = self._states[earlier]
        after = self._optimizer._moved(before, step, self._plan.steps, weights, mean)
        self._keep({step: before, step + 1: after})
        return weights

    def _keep(self, states: dict[int, bytes]) -> None:
        rows = {str(step): np.frombuffer(state, np.uint8) for step, state in states.items()}
        with new_sealed(self._path) as file:
            np.savez(file, **rows)  # type: ignore[arg-type]
        self._states = states
