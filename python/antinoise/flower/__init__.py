"""Federated training with Flower and user-level differential privacy: users' updates are clipped and
summed, and the plan's noise is added, before a strategy sees the result.

    strategy = CorrelatedNoise(FedAdam(), plan, key, ledger="ledger.db")
    strategy.start(grid=grid, initial_arrays=arrays, num_rounds=strategy.rounds_left(arrays))

Clients use `held_users` and `asked_users` to answer which users they hold, and to read for which users to
train.
"""

from .ledger import Ledger
from .strategy import CorrelatedNoise, RoundReport
from .users import AskedUsers, asked_users, held_users, nodes_are_users, user_record

__all__ = [
    "AskedUsers",
    "CorrelatedNoise",
    "Ledger",
    "RoundReport",
    "asked_users",
    "held_users",
    "nodes_are_users",
    "user_record",
]
