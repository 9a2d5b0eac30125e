"""Federated learning over users with Flower: a server that stops after half of its rounds and starts again.

Each person of docs/visits.csv is a user with a device, who knows how long the own visits to four branches
were. The model is the length of a visit to each branch, in hours.
"""

import csv
import secrets
import tempfile
from pathlib import Path

import numpy as np
from flwr.app import Array, ArrayRecord, Message, MetricRecord, RecordDict
from flwr.serverapp.strategy import FedAvg
from flwr.supercore.task_identity import TaskIdentity

import antinoise as an
from antinoise.flower import CorrelatedNoise, one_user_per_node

TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1  # an app has them from Flower
BRANCHES = ["north", "south", "east", "west"]
visits = {}
with (Path(__file__).resolve().parents[1] / "docs" / "visits.csv").open(newline="") as file:
    for row in csv.DictReader(file):
        branch, hours = BRANCHES.index(row["branch"]), float(row["minutes"]) / 60
        visits.setdefault(row["person"], []).append((branch, hours))
people = list(visits.values())


def train(message):
    """A device takes one step on the own visits."""
    model = message.content["arrays"]["model"].numpy()
    own = people[message.metadata.dst_node_id]
    step = np.zeros(len(BRANCHES))
    for branch, hours in own:
        step[branch] += (hours - model[branch]) / len(own)
    records = {
        "arrays": ArrayRecord({"model": Array((model + step).astype(np.float32))}),
        "metrics": MetricRecord({"num-examples": 1}),
    }
    return Message(RecordDict(records), reply_to=message)


class Grid:
    """One process in place of Flower's own grid."""

    def get_node_ids(self):
        return range(len(people))

    def send_and_receive(self, messages, *, timeout=None):
        return [train(message) for message in messages]


plan = an.plan(
    examples=len(people), batch_size=len(people) // 10, steps=40, epsilon=4, delta=1e-4,
    setting="federated", min_sep=8, max_participations=5, dim=len(BRANCHES),
)  # fmt: skip
print(plan.statement.split("\n\n")[0])
with tempfile.TemporaryDirectory() as folder:
    key_file, ledger = Path(folder) / "key", Path(folder) / "ledger.db"
    key_file.write_bytes(secrets.token_bytes(32))
    key_file.chmod(0o600)
    arrays = ArrayRecord({"model": Array(np.zeros(len(BRANCHES), np.float32))})
    for _ in range(2):  # the second server knows the key, the ledger and the last model
        strategy = CorrelatedNoise(
            FedAvg(fraction_evaluate=0.0),
            plan,
            an.Key.from_file(key_file),
            ledger=ledger,
            users=one_user_per_node,
        )
        rounds = min(20, strategy.rounds_left(arrays))
        arrays = strategy.start(grid=Grid(), initial_arrays=arrays, num_rounds=rounds).arrays
        print(f"{strategy.step} of {plan.steps} rounds")
        del strategy
for branch, hours in zip(BRANCHES, arrays["model"].numpy(), strict=True):
    print(f"{branch}: a visit takes {60 * hours:.0f} minutes")
