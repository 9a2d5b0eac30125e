"""Federated training with Flower and user-level differential privacy: users' updates are clipped and
summed, and the plan's noise is added, before a strategy sees the result.

    strategy = CorrelatedNoise(FedAdam(), plan, key, ledger="ledger.db")
    strategy.start(grid=grid, initial_arrays=arrays, num_rounds=strategy.rounds_left(arrays))

Clients use `reply_with_users` and `requested_users` to answer which users they hold, and to read for which
users to train.
"""

from .. import Ledger
from .rounds import RoundReport
from .server_optimizer import ServerOptimizer
from .strategy import CorrelatedNoise
from .users import QueryUsers, one_user_per_node, reply_with_users, requested_users, user_record_key

__all__ = [
    "QueryUsers",
    "CorrelatedNoise",
    "Ledger",
    "RoundReport",
    "ServerOptimizer",
    "requested_users",
    "reply_with_users",
    "one_user_per_node",
    "user_record_key",
]
