"""The server's optimizer: the bits of a run in Rust, and a state that outlives the server."""

import hashlib

import numpy as np
import pytest

pytest.importorskip("flwr")

from federated import DIM, START, FakeGrid, Seen, arrays_of, row_of
from flower_run import PLAN, path, train, wrapped
from flwr.app import Message, RecordDict

import antinoise as an
from antinoise.flower import CorrelatedNoise, ServerOptimizer, requested_users, user_record_key

RECIPE = dict(momentum=0.9, schedule="cooldown:0.5,0.1", weight_decay=0.01)


class Devices(FakeGrid):
    """Nodes of one user each, whose trained model is exact in any arithmetic up to single rounding."""

    def __init__(self):
        super().__init__(users=30, nodes=30)

    def answer(self, message):
        if message.metadata.message_type != "train":
            return super().answer(message)
        row, records = row_of(message.content["arrays"]), RecordDict()
        for user in requested_users(message):
            number, j = int(user.removeprefix("user-")), np.arange(DIM)
            pull = ((7 * number + 3 * j) % 17 / 16 - 0.5).astype(np.float32)
            records[user_record_key(user)] = arrays_of(np.float32(0.875) * row + pull)
        return Message(records, reply_to=message)


def test_a_run_has_the_bits_of_a_run_in_rust(path):
    """The digest is that of `federated/tests/federation/devices.rs`."""
    plan = an.plan(
        examples=30,
        batch_size=6,
        steps=12,
        epsilon=8,
        delta=1e-6,
        setting="federated",
        min_sep=3,
        max_participations=3,
        clip_norm=0.5,
        dim=DIM,
        mechanism="blt:2",
    )
    strategy = CorrelatedNoise(
        Seen(),
        plan,
        an.Key.from_seed_insecure(3),
        ledger=path,
        optimizer=ServerOptimizer(0.1, **RECIPE),
        zero_beyond=1.0,
    )
    start = arrays_of(np.full(DIM, 0.5))
    end = strategy.start(grid=Devices(), initial_arrays=start, num_rounds=plan.steps).arrays
    taken = "".join(f"{user} {step}\n" for user, step in strategy.ledger.participations())
    found = hashlib.sha256(row_of(end).astype("<f4").tobytes() + taken.encode()).hexdigest()
    assert found == "89484d8c81e26040034dd472b3401a796603b6febc2f7be06db7a17028e67f3a"


def cycle(path, strategy, arrays, rounds=1):
    """One server's rounds; the model after them."""
    made = train(strategy, FakeGrid(), rounds, arrays).arrays
    strategy.close()
    return made


@pytest.mark.parametrize("recipe", [RECIPE, dict(rule="adam"), dict(rule="nesterov"), dict(momentum=0.0)])
def test_servers_that_restart_have_the_bits_of_one_that_does_not(path, tmp_path, recipe):
    optimizer = ServerOptimizer(0.5, **recipe)
    whole = cycle(path, wrapped(path, optimizer=optimizer), START, PLAN.steps)
    other, arrays = tmp_path / "other.db", START
    for step in range(PLAN.steps):
        left = cycle(other, wrapped(other, optimizer=optimizer), arrays)
        # Every second server dies before it saves the model: the next one is handed the same noisy sum.
        again = cycle(other, wrapped(other, optimizer=optimizer), arrays) if step % 2 else left
        assert np.array_equal(row_of(left), row_of(again))
        arrays = left
    assert np.array_equal(row_of(whole), row_of(arrays))


def test_a_state_of_something_else_is_refused(path):
    optimizer = ServerOptimizer(0.5, **RECIPE)
    left = cycle(path, wrapped(path, optimizer=optimizer), START, 2)
    state = path.with_name(f"{path.name}.optimizer")
    assert state.stat().st_mode & 0o777 == 0o600
    for other in (None, ServerOptimizer(0.5, momentum=0.5)):
        strategy = wrapped(path, optimizer=other)
        with pytest.raises(ValueError, match="optimizer is .* but must be the ledger's"):
            train(strategy, FakeGrid(), 1, left)
        strategy.close()

    def resume():
        strategy = wrapped(path, optimizer=optimizer)
        try:
            train(strategy, FakeGrid(), 0, left)
            strategy.configure_train(1, left, None, None)
        finally:
            strategy.close()

    held = state.read_bytes()
    for altered in (held[:-1], held[:100] + bytes([held[100] ^ 1]) + held[101:], b""):
        state.write_bytes(altered)
        with pytest.raises(RuntimeError, match="is not the file that was saved"):
            resume()
    state.write_bytes(held)
    assert row_of(cycle(path, wrapped(path, optimizer=optimizer), left)).shape == (DIM,)


@pytest.mark.parametrize(
    "how, message",
    [
        (dict(learning_rate=0.0), "learning_rate is 0.0 but must be"),
        (dict(learning_rate=float("nan")), "learning_rate is NaN but must be"),
        (dict(learning_rate=1.0, momentum=1.0), "momentum is 1.0 but must be"),
        (dict(learning_rate=1.0, rule="adam", momentum=0.9), "momentum is 0.9 but must be left out except"),
        (dict(learning_rate=1.0, rule="ftrl"), "radius is absent but must be given with ftrl"),
        (dict(learning_rate=1.0, radius=1.0), "radius is 1 but must be left out except with ftrl"),
        (dict(learning_rate=1.0, rule="lamb"), 'optimizer is "lamb" but must be sgd, nesterov, ftrl or adam'),
        (dict(learning_rate=1.0, schedule="up"), 'schedule is "up" but must be constant, linear'),
    ],
)
def test_a_setting_out_of_range_is_named(how, message):
    with pytest.raises(ValueError, match=message):
        ServerOptimizer(**how)


@pytest.mark.parametrize(
    "how, message",
    [
        (dict(warm_up=8), "warm_up is 8 but must be below the 8 steps"),
        (dict(schedule="drop:1,0"), "schedule is drop:1,0 but must be one with a learning rate above 0"),
        (dict(weight_decay=3.0), "weight_decay is 3 but must be below 1 / learning_rate"),
        (dict(zero_beyond=-1.0), "zero_beyond is -1.0 but must be"),
    ],
)
def test_a_recipe_that_does_not_fit_the_plan_is_refused(path, how, message):
    with pytest.raises(ValueError, match=message):
        wrapped(path, optimizer=ServerOptimizer(0.5, **how))


def test_a_plan_is_designed_for_the_optimizer():
    def loss(optimizer):
        workload = optimizer.workload(64)
        return workload, an.loss("blt:2", 64, workload=workload)["rms_loss"]

    constant, of_constant = loss(ServerOptimizer(0.5))
    scheduled, of_scheduled = loss(ServerOptimizer(0.5, **RECIPE))
    assert str(constant) == "last-iterate:0.9" and repr(constant) == 'Workload("last-iterate:0.9")'
    assert of_constant == an.loss("blt:2", 64, workload="last-iterate:0.9")["rms_loss"] != of_scheduled
    assert "rates" in str(scheduled)
    with pytest.raises(ValueError, match="steps is 0 but must be at least 1"):
        ServerOptimizer(0.5).workload(0)
