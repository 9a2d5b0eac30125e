"""Models, and users' updates of them."""

from __future__ import annotations

import hashlib
from typing import Any, Literal

import numpy as np
from flwr.app import Array, ArrayRecord
from numpy.typing import NDArray

from .._sums import SHORTER

Fate = Literal["aggregated", "not_finite", "zeroed"]


class Malformed(Exception):
    """A reply that is not a model with the run's names and shapes."""


class Model:
    """The arrays that a round starts from; a row has their coordinates in the record's order."""

    def __init__(self, arrays: ArrayRecord) -> None:
        self._arrays: dict[str, NDArray[Any]] = {name: array.numpy() for name, array in arrays.items()}
        for name, array in self._arrays.items():
            if not np.issubdtype(array.dtype, np.floating):
                raise ValueError(
                    f"{name} is of dtype {array.dtype} but must be of a floating one: what is not trained"
                    " stays out of the arrays"
                )
        self.dim = sum(array.size for array in self._arrays.values())
        if self.dim == 0:
            raise ValueError("arrays are without numbers but must have some")

    def layout(self) -> str:
        """Names and shapes, to which a run is bound. Precisions are left out: strategies change them."""
        return str([(name, array.shape) for name, array in self._arrays.items()])

    def digest(self) -> str:
        """A digest that identifies the model after a restart."""
        found = hashlib.sha256()
        for name, array in self._arrays.items():
            found.update(f"{name!r} {array.dtype.str} {array.shape} ".encode())
            found.update(np.ascontiguousarray(array).data)
        return found.hexdigest()

    def weights(self) -> NDArray[np.float32]:
        """The coordinates in single precision, since strategies change precisions."""
        with np.errstate(all="ignore"):
            return np.concatenate([array.ravel().astype(np.float32) for array in self._arrays.values()])

    def update(self, trained: ArrayRecord) -> NDArray[np.float64]:
        """A user's update (trained model minus this one), as a float64 row."""
        if set(trained) != set(self._arrays):
            raise Malformed(f"arrays {sorted(trained)}")
        row, start = np.empty(self.dim), 0
        for name, now in self._arrays.items():
            try:
                new = trained[name].numpy()
            except Exception as error:  # a client may send any bytes
                raise Malformed(f"{name}: {error}") from error
            if new.shape != now.shape or not np.issubdtype(new.dtype, np.floating):
                raise Malformed(f"{name} of dtype {new.dtype} and shape {new.shape}")
            with np.errstate(all="ignore"):
                row[start : start + now.size] = (new.astype(np.float64) - now.astype(np.float64)).ravel()
            start += now.size
        return row

    def moved(self, mean: NDArray[np.float64]) -> ArrayRecord:
        """The model plus the mean update, in its own dtypes."""
        made, start = {}, 0
        for name, now in self._arrays.items():
            part = mean[start : start + now.size].reshape(now.shape)
            made[name] = Array(np.asarray(now.astype(np.float64) + part, dtype=now.dtype))
            start += now.size
        return ArrayRecord(made)


def add_clipped(
    total: NDArray[np.float64], update: NDArray[np.float64], clip_norm: float, zero_beyond: float | None
) -> Fate:
    """Adds an update, clipped to `clip_norm`, to `total`. An update that is not finite, or has an entry
    larger than `zero_beyond`, adds nothing. The fate depends on the update alone.
    """
    with np.errstate(all="ignore"):
        length = float(np.sqrt(np.dot(update, update)))
    if not np.isfinite(length):
        return "not_finite"
    if zero_beyond is not None and not np.abs(update).max() <= zero_beyond:
        return "zeroed"
    most = SHORTER * clip_norm
    if length > most:
        update = update * (most / length)
    total += update
    return "aggregated"
