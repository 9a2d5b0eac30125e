"""Differential privacy with correlated noise.

`plan` chooses a mechanism for a training run and states its privacy. A `Key` is the secret of a run;
`Batches` draws the examples of each step, `NoiseStream` makes the noise, and `SavedState` resumes it.
`RunningCounts` publishes counts of a stream, period by period.
"""

from ._antinoise import (
    Batches,
    Key,
    Ledger,
    NoiseStream,
    OwnedExamples,
    Participations,
    Plan,
    RunningCounts,
    SavedState,
    ServerOptimizer,
    Strategy,
    Table,
    Workload,
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
    "Ledger",
    "NoiseStream",
    "OwnedExamples",
    "Participations",
    "Plan",
    "RunningCounts",
    "SavedState",
    "ServerOptimizer",
    "Strategy",
    "Table",
    "Workload",
    "__version__",
    "account",
    "calibrate",
    "compare",
    "loss",
    "plan",
]
