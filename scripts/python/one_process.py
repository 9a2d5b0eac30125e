"""Flower's rounds in one process, in place of its own grid: one node holds all users."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from flwr.app import Array, ArrayRecord, Message, RecordDict
from flwr.serverapp.strategy import FedAvg
from flwr.supercore.task_identity import TaskIdentity

import antinoise as an
from antinoise.flower import CorrelatedNoise, ServerOptimizer, requested_users, user_record_key

TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1  # an app has them from Flower

# Start and names of users -> their models.
Devices = Callable[[np.ndarray, list[str]], list[np.ndarray]]


class Grid:
    """The node, which answers at once with the models of `devices`."""

    def __init__(self, devices: Devices):
        self.devices = devices

    def get_node_ids(self):
        return [1]

    def answer(self, message):
        start, records = message.content["arrays"]["model"].numpy(), RecordDict()
        names = requested_users(message)
        for name, model in zip(names, self.devices(start, names) if names else []):
            records[user_record_key(name)] = ArrayRecord({"model": Array(model)})
        return Message(records, reply_to=message)

    def send_and_receive(self, messages, *, timeout=None):
        return [self.answer(message) for message in messages]


def trained(
    plan: an.Plan,
    optimizer: ServerOptimizer,
    users: dict,
    devices: Devices,
    start: np.ndarray,
    zero_beyond: float,
    folder: str,
) -> np.ndarray:
    """The model after all rounds of `plan`, by Flower's FedAvg in `CorrelatedNoise` under a new key."""
    strategy = CorrelatedNoise(
        FedAvg(fraction_evaluate=0.0, min_train_nodes=1, min_available_nodes=1),
        plan,
        an.Key.from_os(),
        ledger=Path(folder) / "ledger.db",
        optimizer=optimizer,
        zero_beyond=zero_beyond,
        users=lambda grid: dict.fromkeys(users, 1),
    )
    arrays = ArrayRecord({"model": Array(start)})
    end = strategy.start(grid=Grid(devices), initial_arrays=arrays, num_rounds=plan.steps)
    strategy.close()
    return end.arrays["model"].numpy()
