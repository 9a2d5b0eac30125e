"""The weights that a state belongs to, as one number."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import NoiseStream


def sum_of_weights(stream: NoiseStream, weights: NDArray[Any]) -> int:
    """The keyed sum of weights, of float32 or float64, one for each coordinate of `stream`: the sums of
    processes that hold different coordinates, added modulo 2^128, are the same however coordinates are split.
    It is as secret as the key."""
    halves = weights.view(np.int32).reshape(len(weights), weights.itemsize // 4)
    # One vector, or two of double precision, one after the other.
    return stream.sum_of_words("weights", np.ascontiguousarray(halves.T).reshape(-1))
