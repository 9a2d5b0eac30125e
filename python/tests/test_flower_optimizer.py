"""The server's optimizer: the bits of a run in Rust, and a state that outlives the server."""

import hashlib

import numpy as np
import pytest
from corruption import refuses_all

pytest.importorskip("flwr")

from federated import DIM, START, FakeGrid, Seen, arrays_of, row_of
from flower_run import PLAN, path, train, wrapped
from flwr.app import Message, RecordDict

import antinoise as an
from antinoise.flower import CorrelatedNoise, ServerOptimizer, requested_users, user_record_key
from antinoise.flower.server_optimizer import ServerState

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


@pytest.mark.parametrize(
    "recipe, digest",
    [
        (RECIPE, "89484d8c81e26040034dd472b3401a796603b6febc2f7be06db7a17028e67f3a"),
        (
            dict(rule="nesterov", momentum=0.8, schedule="drop:0.25,0.05"),
            "587c3a041233e15abdd6009353bf1868dfa12a7e293816cb3dd098803acb6240",
        ),
        (
            dict(rule="adam", schedule="steps:4,0.5", weight_decay=0.02),
            "029cbe96ac05ff93ddef5dfb4b8a5733d32b5c4d765e634fbcb1d0f0fddbf5c2",
        ),
    ],
)
def test_a_run_has_the_bits_of_a_run_in_rust(path, recipe, digest):
    """The digests are those of `federated/tests/federation/devices.rs`."""
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
        optimizer=ServerOptimizer(0.1, **recipe),
        zero_beyond=1.0,
    )
    start = arrays_of(np.full(DIM, 0.5))
    end = strategy.start(grid=Devices(), initial_arrays=start, num_rounds=plan.steps).arrays
    taken = "".join(f"{user} {step}\n" for user, step in strategy.ledger.participations())
    found = hashlib.sha256(row_of(end).astype("<f4").tobytes() + taken.encode()).hexdigest()
    assert found == digest


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


def state_of(path):
    return path.with_name(f"{path.name}.optimizer")


def begun(path, key=3):
    """The model after two rounds of a run."""
    how = dict(optimizer=ServerOptimizer(0.5, **RECIPE), key=an.Key.from_seed_insecure(key))
    return cycle(path, wrapped(path, **how), START, 2)


def refused(path, arrays, error, message, **how):
    """No user is asked before a state is refused."""
    how = {"optimizer": ServerOptimizer(0.5, **RECIPE)} | how
    strategy, grid = wrapped(path, key=None, **how), FakeGrid()
    with pytest.raises(error, match=message):
        train(strategy, grid, 1, arrays)
    assert strategy.step == 2 and grid.asked == []
    strategy.close()


def test_a_state_of_another_run_or_optimizer_is_refused(path, tmp_path):
    left, earlier = begun(path), state_of(path).read_bytes()
    assert state_of(path).stat().st_mode & 0o777 == 0o600
    for other in (None, ServerOptimizer(0.5, momentum=0.5)):
        refused(path, left, ValueError, "optimizer is .* but must be the ledger's", optimizer=other)
    begun(tmp_path / "other.db", key=4)
    state_of(path).write_bytes(state_of(tmp_path / "other.db").read_bytes())
    refused(path, left, ValueError, "is of another run but must be the ledger's own")
    state_of(path).write_bytes(earlier)
    later = cycle(path, wrapped(path, key=None, optimizer=ServerOptimizer(0.5, **RECIPE)), left, 2)
    state_of(path).write_bytes(earlier)
    strategy = wrapped(path, key=None, optimizer=ServerOptimizer(0.5, **RECIPE))
    with pytest.raises(ValueError, match=r"is of steps \[1, 2\] but must be of step 4; any_arrays=True"):
        train(strategy, FakeGrid(), 1, later)
    assert strategy.step == 4


def test_a_damaged_or_lost_state_is_refused_before_users_are_asked(path, tmp_path):
    begun(tmp_path / "other.db", key=4)
    optimizer = ServerOptimizer(0.5, **RECIPE)
    cycle(path, wrapped(path, key=an.Key.from_seed_insecure(3), optimizer=optimizer), START)
    earlier = tmp_path / "earlier"
    earlier.write_bytes(state_of(path).read_bytes())
    path.unlink()
    path.with_name(f"{path.name}.noise").unlink()
    left = begun(path)
    held, ledger = state_of(path).read_bytes(), an.Ledger(path, PLAN)
    run = ledger.bound("token")
    ledger.close()
    others = [state_of(tmp_path / "other.db"), earlier]
    read = lambda: ServerState(optimizer, PLAN, state_of(path), any_arrays=False).load(2, DIM, run)  # noqa: E731
    refuses_all(state_of(path), others, read)
    for at in range(0, len(held), 7):
        state_of(path).write_bytes(held[:at] + bytes([held[at] ^ 1]) + held[at + 1 :])
        refused(path, left, RuntimeError, "is not the file that was saved")
    for cut in (0, 1, len(held) // 2, len(held) - 1):
        state_of(path).write_bytes(held[:cut])
        refused(path, left, RuntimeError, "is not the file that was saved")
    state_of(path).unlink()
    refused(path, left, ValueError, "is absent but must be of step 2; any_arrays=True continues without it")
    unfinished = path.with_name(f".{path.name}.optimizer.abcd_123")
    unfinished.write_bytes(held)
    how = dict(key=None, optimizer=ServerOptimizer(0.5, **RECIPE), any_arrays=True)
    cycle(path, wrapped(path, **how), left)
    assert state_of(path).exists() and not unfinished.exists()


def test_a_noisy_sum_that_came_to_no_model_is_left_out_on_request(path):
    optimizer = ServerOptimizer(0.5, **RECIPE)
    strategy = wrapped(path, optimizer=optimizer)
    left = train(strategy, FakeGrid(), 1).arrays

    def fail(*given):
        raise OSError("disk is full")

    strategy._server.moved = fail
    with pytest.raises(OSError, match="disk is full"):
        train(strategy, FakeGrid(), 1, left)
    strategy.close()
    other = arrays_of(row_of(left) + 1)
    end = cycle(path, wrapped(path, key=None, optimizer=optimizer, any_arrays=True), other)
    assert np.abs(row_of(end) - row_of(other)).max() < 0.5


def test_a_ledger_of_an_earlier_version_is_refused(path):
    ledger = an.Ledger(path, PLAN)
    ledger.bind("layout", "[]")
    ledger.close()
    for key in (None, an.Key.from_seed_insecure(3)):
        with pytest.raises(ValueError, match="is of an earlier version but must be one of this version"):
            wrapped(path, key=key)


def test_a_refused_optimizer_opens_no_ledger(path):
    for other, error in ((ServerOptimizer(0.5, warm_up=8), ValueError), ("adam", TypeError)):
        with pytest.raises(error):
            wrapped(path, optimizer=other)
        assert not path.exists()


def test_weights_beyond_single_precision_are_refused(path):
    strategy, grid = wrapped(path, optimizer=ServerOptimizer(0.5)), FakeGrid()
    with pytest.raises(ValueError, match="not finite in single precision"):
        train(strategy, grid, 1, arrays_of(np.full(DIM, 1e39), np.float64))
    assert grid.asked == []


@pytest.mark.parametrize(
    "how, message",
    [
        (dict(learning_rate=0.0), "learning_rate is 0.0 but must be"),
        (dict(learning_rate=float("nan")), "learning_rate is NaN but must be"),
        (dict(learning_rate=1.0, momentum=1.0), "momentum is 1.0 but must be"),
        (dict(learning_rate=1.0, rule="adam", momentum=0.9), "momentum is 0.9 but must be left out except"),
        (dict(learning_rate=1.0, rule="ftrl"), 'rule is "ftrl" but must be sgd, nesterov or adam'),
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
