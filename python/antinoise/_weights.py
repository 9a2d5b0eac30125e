"""A keyed sum that identifies the weights to which a saved state belongs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import NoiseStream


def sum_of_weights(stream: NoiseStream, weights: NDArray[Any]) -> int:
    """The keyed sum of this process's weights, as secret as the key.

    Sums of processes that hold different coordinates, added modulo 2^128, do not depend on how coordinates
    are split.

    Args:
        stream: The run's noise.
        weights: float32 or float64, one for each coordinate of `stream`.
    """
    halves = weights.view(np.int32).reshape(len(weights), weights.itemsize // 4)
    # One vector of 32-bit words, or for double precision two, concatenated.
    return stream.sum_of_words("weights", np.ascontiguousarray(halves.T).reshape(-1))
