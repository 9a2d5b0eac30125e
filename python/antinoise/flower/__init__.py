"""Federated training with Flower in which users are protected: their updates are clipped and summed, and the
plan's noise is added, before a strategy sees anything.

    strategy = CorrelatedNoise(FedAdam(), plan, key, ledger="ledger.db")
    strategy.start(grid=grid, initial_arrays=arrays, num_rounds=strategy.rounds_left(arrays))

On the side of clients, `held_users` and `asked_users` make the two messages in which users have names.
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
