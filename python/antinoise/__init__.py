"""Differential privacy with correlated noise.

`plan` chooses a mechanism for a training and states its privacy; a `Key` is the secret of a run; `Batches`
says who takes part in which step, `NoiseStream` makes the noise, and `SavedState` continues it.
`RunningCounts` publishes counts over a stream, period by period.
"""

from ._antinoise import (
    Batches,
    Key,
    NoiseStream,
    Participations,
    Plan,
    RunningCounts,
    SavedState,
    Strategy,
    Table,
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
    "Participations",
    "Plan",
    "RunningCounts",
    "SavedState",
    "Strategy",
    "Table",
    "__version__",
    "account",
    "calibrate",
    "compare",
    "loss",
    "plan",
]
