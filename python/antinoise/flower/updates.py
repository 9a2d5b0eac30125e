"""Models, and users' updates of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from flwr.app import Array, ArrayRecord
from numpy.typing import NDArray

from .._antinoise import _clipped_update_sum

Fate = Literal["aggregated", "malformed", "not_finite", "zeroed"]


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

    def update(self, trained: ArrayRecord) -> NDArray[np.float32]:
        """A user's update, this model minus the trained one, as a float32 row."""
        if set(trained) != set(self._arrays):
            raise Malformed(f"arrays {sorted(trained)}")
        row, start = np.empty(self.dim, np.float32), 0
        for name, now in self._arrays.items():
            try:
                new = trained[name].numpy()
            except Exception as error:  # a client may send any bytes
                raise Malformed(f"{name}: {error}") from error
            if new.shape != now.shape or not np.issubdtype(new.dtype, np.floating):
                raise Malformed(f"{name} of dtype {new.dtype} and shape {new.shape}")
            with np.errstate(all="ignore"):
                row[start : start + now.size] = (now.astype(np.float64) - new.astype(np.float64)).ravel()
            start += now.size
        return row

    def moved(self, mean: NDArray[np.float64]) -> ArrayRecord:
        """The model minus the mean update, in its own dtypes."""
        return self._record(lambda now, part: now.astype(np.float64) - part, mean)

    def replaced(self, weights: NDArray[np.float32]) -> ArrayRecord:
        """The model with other weights, in its own dtypes."""
        return self._record(lambda _, part: part, weights)

    def _record(self, made_of: Callable[[Any, Any], Any], row: NDArray[Any]) -> ArrayRecord:
        made, start = {}, 0
        for name, now in self._arrays.items():
            part = row[start : start + now.size].reshape(now.shape)
            made[name] = Array(np.asarray(made_of(now, part), dtype=now.dtype))
            start += now.size
        return ArrayRecord(made)


def sum_of_clipped(
    model: Model,
    trained: Sequence[ArrayRecord | None],
    clip_norm: float,
    zero_beyond: float | None,
    dropped: Callable[[Malformed], None],
) -> tuple[NDArray[np.float64], list[Fate | None]]:
    """The sum of a cohort's updates, each clipped to `clip_norm`, and their fates.

    An update that is not finite, or has an entry larger than `zero_beyond`, adds nothing. A fate depends on
    the update alone.

    Args:
        model: The model that the cohort started from.
        trained: Each user's trained model, in an order that is the same for the same cohort; None for a user
            without a reply.
        dropped: Called with the reason for each malformed reply.
    """
    fates: list[Fate | None] = [None] * len(trained)

    def update(user: int) -> NDArray[np.float32] | None:
        reply = trained[user]
        if reply is None:
            return None
        try:
            row = model.update(reply)
        except Malformed as reason:
            fates[user] = "malformed"
            dropped(reason)
            return None
        fates[user] = fate(row, zero_beyond)
        return row if fates[user] == "aggregated" else None

    return _clipped_update_sum(update, len(trained), model.dim, clip_norm), fates


def fate(update: NDArray[np.float32], zero_beyond: float | None) -> Fate:
    """Whether an update is added to the sum, or why not."""
    if not np.isfinite(update).all():
        return "not_finite"
    return "aggregated" if zero_beyond is None or float(np.abs(update).max()) <= zero_beyond else "zeroed"
