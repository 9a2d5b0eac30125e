"""Helpers for the tests of antinoise.flower: a grid in one process, users whose training is a formula, and
a server that dies at a given point.

    python federated.py FOLDER ATTEMPT POINT STEP

runs a server that is killed at this point of this step, or ends normally if POINT is "none".
"""

import hashlib
import json
import os
import signal
import sys
from pathlib import Path

os.environ["FLWR_TELEMETRY_ENABLED"] = "0"

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.serverapp.strategy import FedAvg
from flwr.supercore.task_identity import TaskIdentity

import antinoise as an
from antinoise.flower import CorrelatedNoise, reply_with_users, requested_users, user_record_key

# Outside of an app, messages have no sender.
TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1

DIM = 7
COHORT = 4
SEED = 5


def federated_plan(**other):
    how = dict(examples=40, batch_size=COHORT, steps=8, epsilon=8, delta=1e-5, clip_norm=0.5, dim=DIM)
    return an.plan(**(how | dict(setting="federated", min_sep=3, max_participations=2) | other))


def key():
    return an.Key.from_seed_insecure(SEED)


def arrays_of(row, dtype=np.float32):
    w, b = np.asarray(row[:6], dtype).reshape(2, 3), np.asarray(row[6], dtype)
    return ArrayRecord({"w": Array(w), "b": Array(b)})


def row_of(arrays):
    return np.concatenate([np.ravel(array.numpy()) for array in arrays.values()])


START = arrays_of(np.linspace(-1, 1, DIM))


def trained(user, row):
    """A user's trained model: a function of the user's name and of the given model. Updates have lengths of
    about 0.1 to 2.
    """
    made = np.random.default_rng(list(hashlib.sha256(user.encode()).digest()))
    return (row + made.normal(size=DIM) * made.uniform(0.05, 0.8) - 0.1 * row).astype(np.float32)


def clipped(update, clip_norm):
    return update * min(1.0, clip_norm / np.linalg.norm(update))


class FakeGrid:
    """Nodes that reply at once; each has one or more users. `change` alters the replies to training
    messages.
    """

    def __init__(self, users=40, nodes=10, change=None):
        self.nodes = {100 + n: [f"user-{u}" for u in range(users) if u % nodes == n] for n in range(nodes)}
        self.change, self.asked, self.questions = change, [], 0

    def get_node_ids(self):
        return list(self.nodes)

    def answer(self, message):
        node = message.metadata.dst_node_id
        if message.metadata.message_type == "query.users":
            self.questions += 1
            return reply_with_users(message, self.nodes[node])
        assert message.metadata.message_type == "train"
        row = row_of(message.content["arrays"])
        records = {user_record_key(user): arrays_of(trained(user, row)) for user in requested_users(message)}
        return Message(
            RecordDict({**records, "metrics": MetricRecord({"num-examples": 7, "secret": 1.0})}),
            reply_to=message,
        )

    def send_and_receive(self, messages, *, timeout=None):
        messages = list(messages)
        replies = [reply for reply in map(self.answer, messages) if reply is not None]
        if not any(message.metadata.message_type == "train" for message in messages):
            return replies
        self.asked.append(sorted(user for message in messages for user in requested_users(message)))
        return replies if self.change is None else self.change(replies)


class Seen(FedAvg):
    """Records what a wrapped strategy sees."""

    def __init__(self, **how):
        super().__init__(fraction_evaluate=0.0, **how)
        self.seen = []

    def aggregate_train(self, server_round, replies):
        replies = list(replies)
        self.seen.append(replies)
        return super().aggregate_train(server_round, replies)


def naive_means(plan, cohorts, run=None, start=START):
    """The means that a strategy must see, step by step: computed from the cohorts, one user at a time, and
    a stream of the same key.
    """
    stream, row, out = an.NoiseStream(plan, DIM, key(), run=run), row_of(start), np.empty(DIM, np.float32)
    for cohort in cohorts:
        total = sum(
            (clipped(row - trained(user, row).astype(float), plan.clip_norm) for user in cohort),
            np.zeros(DIM),
        )
        stream.add_to_sum(np.asarray(total), out)
        row = (row.astype(float) - out.astype(float) / plan.expected_batch_size).astype(np.float32)
        yield row


def die():
    os.kill(os.getpid(), signal.SIGKILL)


class Watched:
    """A ledger whose methods can be replaced."""

    def __init__(self, ledger):
        self._ledger = ledger

    def __getattr__(self, name):
        return getattr(self._ledger, name)


def serve(folder, attempt, point, step):
    """Trains, saves the model after each round, and dies at a given point."""
    saved, log = folder / "model.npy", folder / "log.jsonl"

    def note(**what):
        with log.open("a") as file:
            file.write(json.dumps(what | {"attempt": attempt}) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def around(owner, name, where):
        """Dies before or after a call."""
        done = getattr(owner, name)

        def call(*given, **named):
            if (point, step) == (f"before {where}", strategy.ledger.step):
                die()
            at = strategy.ledger.step
            result = done(*given, **named)
            if (point, step) == (f"after {where}", at):
                die()
            return result

        setattr(owner, name, call)

    class Noted(Seen):
        def aggregate_train(self, server_round, replies):
            replies = list(replies)
            # The wrapped strategy sees the last finished step.
            note(
                kind="seen", step=strategy.ledger.step - 1, row=row_of(replies[0].content["arrays"]).tolist()
            )
            if (point, step) == ("in the strategy", strategy.ledger.step - 1):
                die()
            return super().aggregate_train(server_round, replies)

    class Noting(FakeGrid):
        def send_and_receive(self, messages, *, timeout=None):
            messages = list(messages)
            if users := [user for message in messages for user in requested_users(message)]:
                note(kind="asked", step=strategy.ledger.step, users=users)
            return super().send_and_receive(messages, timeout=timeout)

    # The first server dies before the ledger has begun.
    strategy = CorrelatedNoise(
        Noted(), federated_plan(), key() if attempt < 2 else None, ledger=folder / "ledger.db", timeout=0
    )
    strategy._ledger = Watched(strategy.ledger)
    around(strategy.ledger, "bind", "the beginning")
    around(strategy.ledger, "charge", "the charge")
    around(strategy.ledger, "record_noisy_sum", "the noisy sum")
    around(strategy, "_sum", "the sum")
    around(strategy, "_as_reply", "the reply")
    model = arrays_of(np.load(saved)) if saved.exists() else START

    def save(server_round, arrays):
        if (point, step) == ("before the model is saved", strategy.ledger.step - 1):
            die()
        np.save(folder / "new.npy", row_of(arrays))
        os.replace(folder / "new.npy", saved)
        if (point, step) == ("after the model is saved", strategy.ledger.step - 1):
            die()
        return MetricRecord({})

    rounds = strategy.rounds_left(model)
    strategy.start(
        grid=Noting(),
        initial_arrays=model,
        num_rounds=rounds,
        train_config=ConfigRecord({}),
        evaluate_fn=save,
    )
    strategy.close()


if __name__ == "__main__":
    serve(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
