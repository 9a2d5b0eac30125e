"""Differential privacy with correlated noise.

`plan` chooses a mechanism for a training and states its privacy; a `Key` is the secret of a run; `Batches` says who takes part in
which step, and `NoiseStream` makes the noise.
"""

from ._antinoise import (
    Batches,
    Key,
    NoiseStream,
    Plan,
    Strategy,
    __version__,
    account,
    calibrate,
    compare,
    loss,
    plan,
)

__all__ = [
    "Batches",
    "Key",
    "NoiseStream",
    "Plan",
    "Strategy",
    "__version__",
    "account",
    "calibrate",
    "compare",
    "loss",
    "plan",
]
