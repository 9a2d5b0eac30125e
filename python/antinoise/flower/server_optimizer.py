"""The server's optimizer of a federated run, and its state in a file."""

from __future__ import annotations

from glob import escape
from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .. import Plan
from .._antinoise import ServerOptimizer
from .._sealed import content_of, new_sealed

__all__ = ["ServerOptimizer", "ServerState"]

_RUN = "run"


class ServerState:
    """The state of an optimizer before and after the last step: a step whose model was lost is repeated from
    the state before it.
    """

    def __init__(self, optimizer: ServerOptimizer, plan: Plan, path: Path, *, any_arrays: bool) -> None:
        if not isinstance(optimizer, ServerOptimizer):
            raise TypeError(f"optimizer is {optimizer!r} but must be a ServerOptimizer, or None")
        optimizer._check(plan.steps)
        self._optimizer, self._plan, self._path, self._any_arrays = optimizer, plan, path, any_arrays
        self._run, self._states = "", dict[int, bytes]()

    def __repr__(self) -> str:
        return repr(self._optimizer)

    def begin(self, dim: int, run: str) -> None:
        """Writes the state before the first step of a run, which a token names."""
        self._keep({0: self._open(dim, run)})

    def load(self, step: int, dim: int, run: str) -> None:
        """Reads the file of a run whose next optimizer step is `step`."""
        first = self._open(dim, run)
        if self._path.exists():
            with np.load(BytesIO(content_of(self._path)), allow_pickle=False) as held:
                rows = {name: held[name].tobytes() for name in held.files}
            if rows.pop(_RUN, None) != run.encode() or {len(row) for row in rows.values()} != {len(first)}:
                raise ValueError(f"{self._path} is of another run but must be the ledger's own")
            self._states = {int(name): row for name, row in rows.items()}
        if step in self._states:
            return
        if not self._any_arrays:
            got = f"of steps {sorted(self._states)}" if self._states else "absent"
            must_be = f"of step {step}; any_arrays=True continues without it"
            raise ValueError(f"the optimizer's state in {self._path} is {got} but must be {must_be}")
        # Of a noisy sum that came to no model, or of a lost file.
        earlier = max((at for at in self._states if at < step), default=None)
        self._states = {step: first if earlier is None else self._states[earlier]}

    def moved(
        self, step: int, weights: NDArray[np.float32], noisy_sum: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Moves the weights along the noisy mean of a step, and keeps the state on the disk."""
        mean = noisy_sum * np.float32(1 / self._plan.expected_batch_size)
        before = self._states[step if step in self._states else max(self._states)]
        after = self._optimizer._moved(before, step, self._plan.steps, weights, mean)
        self._keep({step: before, step + 1: after})
        return weights

    def _keep(self, states: dict[int, bytes]) -> None:
        rows = {str(step): np.frombuffer(state, np.uint8) for step, state in states.items()}
        with new_sealed(self._path) as file:
            np.savez(file, **rows, **{_RUN: np.frombuffer(self._run.encode(), np.uint8)})  # type: ignore[arg-type]
        self._states = states

    def _open(self, dim: int, run: str) -> bytes:
        """Removes files that killed servers did not finish, since the ledger's lock is held, and returns the
        state before the first step.
        """
        for unfinished in self._path.parent.glob(f".{escape(self._path.name)}.????????"):
            unfinished.unlink()
        self._run = run
        return self._optimizer._first_state(dim, self._plan.steps)
