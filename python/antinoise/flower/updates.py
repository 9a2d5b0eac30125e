"""Models and what users' training made of them."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord
from numpy.typing import NDArray

from .._sums import SHORTER


class Malformed(Exception):
    """A reply that is no model of the run's shapes."""


class Model:
    """The arrays that a round starts from; their numbers follow each other in a row in the order of the
    record."""

    def __init__(self, arrays: ArrayRecord) -> None:
        self._arrays: dict[str, NDArray[Any]] = {name: array.numpy() for name, array in arrays.items()}
        for name, array in self._arrays.items():
            if not np.issubdtype(array.dtype, np.floating):
                raise ValueError(
                    f"{name} is of dtype {array.dtype} but must be of a floating one: what is not trained stays out of the arrays"
                )
        self.dim = sum(array.size for array in self._arrays.values())
        if self.dim == 0:
            raise ValueError("arrays are without numbers but must have some")

    def layout(self) -> str:
        """What a run is bound to: not precisions, which strategies change."""
        return str([(name, array.shape) for name, array in self._arrays.items()])

    def digest(self) -> str:
        """By which the same model is known again after a restart."""
        found = hashlib.sha256()
        for name, array in self._arrays.items():
            found.update(f"{name!r} {array.dtype.str} {array.shape} ".encode())
            found.update(np.ascontiguousarray(array).data)
        return found.hexdigest()

    def weights(self) -> NDArray[np.float32]:
        """Its numbers, as far as single precision holds them: strategies change precisions."""
        with np.errstate(all="ignore"):
            return np.concatenate([array.ravel().astype(np.float32) for array in self._arrays.values()])

    def update(self, trained: ArrayRecord) -> NDArray[np.float64]:
        """How far a user's training moved the model, as a row in double precision."""
        if set(trained) != set(self._arrays):
            raise Malformed(f"arrays {sorted(trained)}")
        row, start = np.empty(self.dim), 0
        for name, now in self._arrays.items():
            try:
                new = trained[name].numpy()
            except Exception as error:  # whatever bytes a client sent
                raise Malformed(f"{name}: {error}") from error
            if new.shape != now.shape or not np.issubdtype(new.dtype, np.floating):
                raise Malformed(f"{name} of dtype {new.dtype} and shape {new.shape}")
            with np.errstate(all="ignore"):
                row[start : start + now.size] = (new.astype(np.float64) - now.astype(np.float64)).ravel()
            start += now.size
        return row

    def moved(self, mean: NDArray[np.float64]) -> ArrayRecord:
        """The model after the mean update, in its own precisions."""
        made, start = {}, 0
        for name, now in self._arrays.items():
            part = mean[start : start + now.size].reshape(now.shape)
            made[name] = Array(np.asarray(now.astype(np.float64) + part, dtype=now.dtype))
            start += now.size
        return ArrayRecord(made)


def add_clipped(total: NDArray[np.float64], update: NDArray[np.float64], clip_norm: float) -> bool:
    """Adds an update, clipped to `clip_norm`, to a sum; one that is not finite adds nothing, and the answer
    is False."""
    with np.errstate(all="ignore"):
        length = float(np.sqrt(np.dot(update, update)))
    if not np.isfinite(length):
        return False
    most = SHORTER * clip_norm
    if length > most:
        update = update * (most / length)
    total += update
    return True
