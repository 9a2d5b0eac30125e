"""A wrapped strategy sees noisy means alone, users take part as the plan says, and neither forgets when a server is killed."""

import copy
import json
import os
import pickle
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("flwr")

from federated import COHORT, DIM, START, FakeGrid, Seen, arrays_of, clipped, federated_plan, key, naive_means, row_of, trained
from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message, RecordDict
from flwr.serverapp.strategy import FedAdam, FedAvg, Strategy

import antinoise as an
from antinoise.flower import AskedUsers, CorrelatedNoise, Ledger, nodes_are_users, user_record
from antinoise.flower.updates import add_clipped

PLAN = federated_plan()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


def wrapped(path, strategy=None, plan=PLAN, **how):
    return CorrelatedNoise(strategy or Seen(), plan, how.pop("key", key()), **(dict(ledger=path, wait=0) | how))


def train(strategy, grid, rounds, arrays=START):
    return strategy.start(grid=grid, initial_arrays=arrays, num_rounds=rounds)


def check_schedule(ledger, plan=PLAN):
    steps = defaultdict(list)
    for user, step in ledger.participations():
        steps[user].append(step)
    gaps = [b - a for found in steps.values() for a, b in zip(found, found[1:])]
    assert steps and gaps and min(gaps) >= 3 and max(map(len, steps.values())) <= 2
    return steps


def test_a_strategy_sees_noisy_means_alone(path):
    inner, grid = Seen(), FakeGrid()
    strategy = wrapped(path, inner, run="a")
    result = train(strategy, grid, PLAN.steps)
    assert strategy.step == PLAN.steps == len(grid.asked) == len(inner.seen)
    wanted = list(naive_means(PLAN, grid.asked, run="a"))
    for replies, row in zip(inner.seen, wanted, strict=True):
        (reply,) = replies
        got = row_of(reply.content["arrays"])
        # The sum's own rounding may move a point of the grid.
        assert got.dtype == np.float32 and np.allclose(got, row, atol=3e-4) and len(set(got)) == DIM
        assert dict(reply.content["metrics"]) == {"num-examples": 1} and set(reply.content) == {"arrays", "metrics"}
    assert np.array_equal(row_of(result.arrays), got) and all(not metrics for metrics in result.train_metrics_clientapp.values())
    steps = check_schedule(strategy.ledger)
    assert sorted((user, t) for user, found in steps.items() for t in found) == sorted((u, t) for t, c in enumerate(grid.asked) for u in c)
    assert all(len(set(cohort)) == COHORT for cohort in grid.asked) and grid.questions == 10
    assert [(r.asked, r.used, r.missing) for r in strategy.reports] == [(COHORT, COHORT, 0)] * PLAN.steps


def test_one_step_is_bit_by_bit_that_of_a_stream(path):
    inner, grid = Seen(), FakeGrid()
    train(wrapped(path, inner), grid, 1)
    total, row = np.zeros(DIM), row_of(START)
    for user in grid.asked[0]:
        total += clipped(trained(user, row).astype(float) - row, (1 - 2**-20) * PLAN.clip_norm)
    out, stream = np.empty(DIM, np.float32), an.NoiseStream(PLAN, DIM, key())
    stream.release(total, out)
    assert np.array_equal(row_of(inner.seen[0][0].content["arrays"]), (row + out.astype(float) / COHORT).astype(np.float32))


def test_an_adaptive_strategy_is_post_processing(path):
    inner, grid = FedAdam(fraction_evaluate=0.0, eta=0.1), FakeGrid()
    strategy = wrapped(path, inner)
    result = train(strategy, grid, 3)
    assert strategy.step == 3 and (row_of(result.arrays) != row_of(START)).all()
    assert (inner.fraction_train, inner.min_train_nodes, inner.min_available_nodes) == (1.0, 2, 2)
    # It changes precisions; updates of either kind are taken.
    assert {report.used for report in strategy.reports} == {COHORT}


def test_the_divisor_does_not_depend_on_who_answers(path):
    kept = []

    def change(replies):
        kept.append(row_of(next(iter(replies[0].content.array_records.values()))))
        return replies[:1]

    inner, grid = Seen(), FakeGrid(nodes=40, change=change)
    strategy = wrapped(path, inner)
    train(strategy, grid, 1)
    assert (strategy.reports[0].asked, strategy.reports[0].used, strategy.reports[0].missing) == (COHORT, 1, COHORT - 1)
    stream, out, row = an.NoiseStream(PLAN, DIM, key()), np.empty(DIM, np.float32), row_of(START)
    stream.release(clipped(kept[0].astype(float) - row, PLAN.clip_norm), out)
    assert np.allclose(row_of(inner.seen[0][0].content["arrays"]), row + out / COHORT, atol=3e-4)


def test_clipped_updates_are_never_longer_than_the_clip_norm():
    made, cut = np.random.default_rng(1), 0
    for _ in range(200):
        update, total = made.normal(size=50) * made.uniform(0.01, 1), np.zeros(50)
        assert add_clipped(total, update, 0.7)
        length, clip = np.linalg.norm(total), 0.7
        assert np.allclose(total, update * min(1, clip / np.linalg.norm(update)), rtol=2e-6) and length <= clip * (1 - 2**-21)
        cut += np.linalg.norm(update) > clip
    assert 50 < cut < 200


def changed(record):
    """One of the replies is changed."""

    def change(replies):
        name = next(iter(replies[0].content.array_records))
        replies[0].content[name] = record(replies[0].content[name])
        return replies

    return change


NUMBERS = np.zeros((2, 3), np.float32)
BROKEN = Array(dtype="float32", shape=(2, 3), stype="numpy.ndarray", data=b"no numbers")


@pytest.mark.parametrize(
    "record, what",
    [
        (lambda r: arrays_of(np.full(DIM, np.nan)), "not_finite"),
        (lambda r: arrays_of(np.r_[np.inf, np.zeros(6)]), "not_finite"),
        (lambda r: arrays_of(np.full(DIM, 1e200), np.float64), "not_finite"),
        (lambda r: ArrayRecord({"w": Array(NUMBERS)}), "malformed"),
        (lambda r: ArrayRecord({"w": Array(NUMBERS.T.copy()), "b": r["b"]}), "malformed"),
        (lambda r: ArrayRecord({"w": Array(NUMBERS.astype(int)), "b": r["b"]}), "malformed"),
        (lambda r: ArrayRecord({"w": Array(np.array([["x"] * 3] * 2)), "b": r["b"]}), "malformed"),
        (lambda r: ArrayRecord({"w": BROKEN, "b": r["b"]}), "malformed"),
        (lambda r: ArrayRecord({}), "malformed"),
    ],
)
def test_what_is_no_update_counts_as_zero(path, record, what):
    inner, grid = Seen(), FakeGrid(nodes=40, change=changed(record))
    strategy = wrapped(path, inner)
    train(strategy, grid, 1)
    (report,) = strategy.reports
    assert (getattr(report, what), report.used, report.missing) == (1, COHORT - 1, 0)
    row, stream, got = row_of(START), an.NoiseStream(PLAN, DIM, key()), row_of(inner.seen[0][0].content["arrays"])
    found = []
    for left_out in grid.asked[0]:
        out, stream = np.empty(DIM, np.float32), an.NoiseStream(PLAN, DIM, key())
        stream.release(sum(clipped(trained(u, row).astype(float) - row, 0.5) for u in grid.asked[0] if u != left_out), out)
        found.append(np.abs(row + out / COHORT - got).max())
    assert min(found) < 3e-4 < max(found)


def test_a_user_counts_once_and_only_if_asked(path):
    def change(replies):
        for reply in replies:  # what nobody asked for
            reply.content[user_record("stranger")] = arrays_of(np.full(DIM, 9.0))
        stranger = Message(RecordDict({"arrays": arrays_of(np.full(DIM, 9.0))}), reply_to=Message(RecordDict(), 999, "train"))
        failed = Message(Error(code=0, reason="no"), reply_to=Message(RecordDict(), 998, "train"))
        return [stranger, failed, *replies, *replies]

    inner, grid = Seen(), FakeGrid(change=change)
    strategy = wrapped(path, inner)
    train(strategy, grid, 1)
    assert strategy.reports[0].used == COHORT
    assert np.allclose(row_of(inner.seen[0][0].content["arrays"]), next(naive_means(PLAN, grid.asked)), atol=3e-4)


def test_a_node_of_one_user_names_its_record_as_it_likes(path):
    class Plain(FakeGrid):
        def answer(self, message):
            row = row_of(message.content["arrays"])
            return Message(RecordDict({"arrays": arrays_of(trained(str(message.metadata.dst_node_id), row))}), reply_to=message)

    inner, grid = Seen(), Plain(nodes=20)
    strategy = wrapped(path, inner, users=nodes_are_users)
    train(strategy, grid, 1)
    assert strategy.reports[0].used == COHORT and set(grid.asked[0]) < {str(100 + n) for n in range(20)}
    assert np.allclose(row_of(inner.seen[0][0].content["arrays"]), next(naive_means(PLAN, grid.asked)), atol=3e-4)


def test_users_are_asked_for_once_and_belong_to_one_node():
    grid, users = FakeGrid(users=6, nodes=3), AskedUsers()
    grid.nodes[200] = ["user-0", "late", ""]
    silent = {101}

    def answer(message):
        reply = FakeGrid.answer(grid, message)
        return None if message.metadata.dst_node_id in silent else reply

    grid.answer = answer
    assert users(grid) == {"user-0": 100, "user-3": 100, "user-2": 102, "user-5": 102, "late": 200}
    silent.clear()
    assert set(users(grid)) == {f"user-{n}" for n in range(6)} | {"late"} and grid.questions == 5  # one of them twice
    del grid.nodes[100]
    assert users(grid)["user-0"] == 200 and "user-3" not in users(grid)


def test_too_few_users_are_an_error_and_not_a_wait_for_ever(path):
    strategy, grid = wrapped(path), FakeGrid(users=10)
    with pytest.raises(
        ValueError, match="users who may take part in step 2 are 2 of 10 who are connected but must be at least the cohort, 4"
    ):
        train(strategy, grid, 8)
    assert strategy.step == 2 and len(grid.asked) == 2
    assert len(strategy.ledger.participations()) == 8  # nobody was charged for the step that was refused
    grid.nodes[999] = ["new-1", "new-2"]
    train(strategy, grid, 1)
    assert strategy.step == 3


def test_it_waits_for_users_who_connect_in_time(path):
    grid = FakeGrid(users=2)
    grid.get_node_ids = lambda calls=[]: calls.append(1) or (list(grid.nodes) if len(calls) < 3 else [*grid.nodes, *later])
    later = {300: ["a", "b", "c"]}
    full = grid.nodes | later
    grid.answer = lambda m: (setattr(grid, "nodes", full), FakeGrid.answer(grid, m))[1]
    strategy = wrapped(path, wait=5.0)
    train(strategy, grid, 1)
    assert strategy.step == 1


def test_no_round_past_the_plans_last(path):
    strategy, grid = wrapped(path), FakeGrid()
    result = train(strategy, grid, 5)
    assert strategy.rounds_left(result.arrays) == 3
    result = train(strategy, grid, 3, result.arrays)  # Flower counts from 1 again
    asked = len(grid.asked)
    for arrays in (result.arrays, START):
        with pytest.raises(RuntimeError, match="all 8 steps of this plan have been made"):
            train(strategy, grid, 1, arrays)
    assert len(grid.asked) == asked == 8 and strategy.rounds_left(result.arrays) == 0


def test_evaluation_by_clients_is_left_out_unless_it_is_public(path, tmp_path):
    class Evaluating(Seen):
        def configure_evaluate(self, *given):
            return ["message"]

        def aggregate_evaluate(self, *given):
            return "metrics"

    private = wrapped(path, Evaluating())
    assert private.configure_evaluate(1, START, ConfigRecord(), None) == [] and private.aggregate_evaluate(1, []) is None
    public = wrapped(tmp_path / "other.db", Evaluating(), evaluation_is_public=True)
    assert public.configure_evaluate(1, START, ConfigRecord(), None) == ["message"] and public.aggregate_evaluate(1, []) == "metrics"


def test_a_strategy_that_fails_gets_the_same_bits_again(path):
    class Failing(Seen):
        def aggregate_train(self, server_round, replies):
            done = super().aggregate_train(server_round, replies)
            if len(self.seen) == 2:
                raise OSError("disk is full")
            return done

    inner, grid = Failing(), FakeGrid()
    strategy = wrapped(path, inner)
    first = train(strategy, grid, 1).arrays
    with pytest.raises(OSError):
        train(strategy, grid, 1, first)
    assert strategy.step == 2 and strategy.rounds_left(first) == PLAN.steps - 1
    train(strategy, grid, 2, first)
    assert strategy.step == 3 and len(grid.asked) == 3  # nobody was asked again
    seen = [row_of(replies[0].content["arrays"]) for replies in inner.seen]
    assert np.array_equal(seen[1], seen[2]) and not np.array_equal(seen[2], seen[3])


def test_a_model_that_stays_as_it_was_gets_fresh_releases(path):
    class Idle(Seen):
        def aggregate_train(self, server_round, replies):
            super().aggregate_train(server_round, replies)
            return START, None

    inner = Idle()
    strategy = wrapped(path, inner)
    train(strategy, FakeGrid(), 3)
    assert strategy.step == 3 and len({row_of(r[0].content["arrays"]).tobytes() for r in inner.seen}) == 3


def test_a_round_that_failed_half_way_ends_the_strategy_and_not_the_run(path, monkeypatch):
    strategy, grid = wrapped(path), FakeGrid()
    monkeypatch.setattr(strategy.ledger, "release", lambda release: (_ for _ in ()).throw(sqlite3.OperationalError("disk I/O error")))
    with pytest.raises(sqlite3.OperationalError):
        train(strategy, grid, 1)
    with pytest.raises(RuntimeError, match="an earlier round failed half way"):
        train(strategy, grid, 1)
    strategy.close()
    later = wrapped(path, key=None)
    assert later.step == 0
    train(later, grid, 1)
    assert later.step == 1 and not set(grid.asked[0]) & set(grid.asked[1])


def test_the_ledger_is_its_owners_and_one_servers(path):
    strategy = wrapped(path)
    train(strategy, FakeGrid(), 1)
    for file in (path, Path(f"{path}.noise")):
        assert file.stat().st_mode & 0o777 == 0o600
    with pytest.raises(ValueError, match="is database is locked but must be free: one server at a time"):
        wrapped(path)
    code = f"import sys; from federated import *; CorrelatedNoise(Seen(), federated_plan(), None, ledger={str(path)!r})"
    done = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parent, capture_output=True, text=True, timeout=100)
    assert done.returncode == 1 and "must be free: one server at a time" in done.stderr
    strategy.close()
    assert wrapped(path, key=None).step == 1


def begun(path):
    strategy = wrapped(path)
    train(strategy, FakeGrid(), 2)
    strategy.close()


def test_a_ledger_of_something_else_is_refused(path, tmp_path):
    begun(path)
    for how, message in (
        (dict(plan=federated_plan(epsilon=7)), "plan is [0-9a-f]{64} but must be the ledger's, [0-9a-f]{64}"),
        (dict(run="other"), "run is other but must be the ledger's, 0"),
    ):
        with pytest.raises(ValueError, match=message):
            wrapped(path, **how)
    other = wrapped(path, key=None)
    with pytest.raises(ValueError, match=r"arrays are .*\(7,\).* but must be the ledger's"):
        train(other, FakeGrid(), 1, ArrayRecord({"w": Array(np.zeros(7, np.float32))}))
    other.close()
    (tmp_path / "text").write_text("not a database, and long enough for one to be looked for " * 40)
    database = sqlite3.connect(tmp_path / "database")
    database.execute("CREATE TABLE t (x)")
    database.commit()
    database.close()
    for name, message in (("text", "is another file but must be a ledger"), ("database", "is another database but must be a ledger")):
        os.chmod(tmp_path / name, 0o600)
        with pytest.raises(ValueError, match=message):
            wrapped(tmp_path / name)
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version = 2")
    database.close()
    with pytest.raises(ValueError, match="version of .* is 2 but must be 1"):
        wrapped(path)
    os.chmod(path, 0o644)
    with pytest.raises(ValueError, match="is 0644 but must be 0600"):
        wrapped(path)


def test_an_old_copy_of_the_ledger_is_refused(path, tmp_path):
    begun(path)
    shutil.copy(path, tmp_path / "copy")
    strategy = wrapped(path, key=None)
    train(strategy, FakeGrid(), 1)
    strategy.close()
    shutil.copy(tmp_path / "copy", path)
    with pytest.raises(ValueError, match="step of the ledger is 2, while .* is at 3, but must be no earlier"):
        train(wrapped(path, key=None), FakeGrid(), 1)


def test_without_its_noise_a_ledger_does_not_go_on(path):
    begun(path)
    Path(f"{path}.noise").unlink()
    with pytest.raises((ValueError, OSError), match="noise"):
        train(wrapped(path), FakeGrid(), 1)


def test_a_ledger_does_not_begin_beside_used_noise(path):
    begun(path)
    noise = Path(f"{path}.noise")
    kept = noise.read_bytes()
    path.unlink()
    with pytest.raises(ValueError, match="ledger.db.noise is at step 2 but must be absent where a ledger begins"):
        train(wrapped(path), FakeGrid(), 1)
    for other in (dict(run="another"), dict(plan=federated_plan(epsilon=7))):
        path.unlink()
        with pytest.raises(ValueError, match="ledger.db.noise is of another run but must be absent"):
            train(wrapped(path, **other), FakeGrid(), 1)
    assert noise.read_bytes() == kept
    # A start that was killed before its ledger began left noise that nobody has used.
    path.unlink()
    an.NoiseStream(PLAN, DIM, key()).save(noise)
    strategy = wrapped(path)
    train(strategy, FakeGrid(), 1)
    assert strategy.step == 1
    strategy.close()
    noise.chmod(0o640)
    with pytest.raises(ValueError, match="mode of .*noise is 0640 but must be 0600"):
        train(wrapped(path, key=None), FakeGrid(), 1)


def test_a_record_of_another_user_is_not_taken(path):
    def change(replies):
        (name,) = replies[0].content.array_records
        replies[0].content[user_record("another")] = replies[0].content.pop(name)
        return replies

    strategy = wrapped(path)
    train(strategy, FakeGrid(nodes=40, change=change), 1)
    assert (strategy.reports[0].used, strategy.reports[0].missing) == (COHORT - 1, 1)


@pytest.mark.parametrize(
    "how, message",
    [
        (dict(key=None), "key is None but must be a key: the ledger has not begun"),
        (
            dict(plan=an.plan(40, 4, epochs=2, epsilon=8, delta=1e-5)),
            "participation of the plan is cyclic:10,2 of units example but must be that of users",
        ),
    ],
)
def test_what_is_wrong_is_named(path, how, message):
    with pytest.raises(ValueError, match=message):
        wrapped(path, **how)


def test_arrays_that_cannot_be_noised_are_refused(path):
    strategy = wrapped(path)
    with pytest.raises(ValueError, match="count is of dtype int64 but must be of a floating one"):
        train(strategy, FakeGrid(), 1, ArrayRecord({"count": Array(np.zeros(3, int))}))
    with pytest.raises(ValueError, match="arrays are without numbers"):
        train(strategy, FakeGrid(), 1, ArrayRecord({}))
    with pytest.raises(RuntimeError, match="aggregate_train was called before configure_train"):
        strategy.aggregate_train(1, [])


def test_a_strategy_that_chooses_nodes_itself_is_refused(path):
    class Choosing(Seen):
        def configure_train(self, server_round, arrays, config, grid):
            return list(super().configure_train(server_round, arrays, config, grid))[:1]

    strategy = wrapped(path, Choosing())
    with pytest.raises(ValueError, match="messages of the strategy are for 1 nodes but must be one for each"):
        train(strategy, FakeGrid(nodes=40), 1)
    assert strategy.ledger.participations() == []


def test_its_statement_says_what_is_assumed(path):
    statement = wrapped(path).statement
    assert statement.startswith(PLAN.statement) and "nodes name users rightly" in statement


def test_it_is_not_copied(path):
    strategy = wrapped(path)
    for copied in (lambda: pickle.dumps(strategy), lambda: copy.copy(strategy), lambda: copy.deepcopy(strategy)):
        with pytest.raises(TypeError, match="two of them would release the same noise twice"):
            copied()
    assert isinstance(strategy, Strategy) and not isinstance(strategy, FedAvg)


def test_the_ledger_refuses_what_the_plan_does(path):
    from antinoise.flower.ledger import Release

    ledger = Ledger(path, PLAN)

    def step():
        ledger.release(Release(ledger.step, "", b""))

    ledger.charge(["a", "b"])
    for users in (["a"], ["c", "b"], ["d", "d"]):
        with pytest.raises(
            ValueError, match="participants of step 0 are .* but must be users who took part less than 2 times, 3 steps ago"
        ):
            ledger.charge(users)
    assert ledger.participations() == [("a", 0), ("b", 0)] and ledger.eligible(["a", "c"]) == ["c"]
    with pytest.raises(ValueError, match="step of a release is 1 but must be 0, which comes next"):
        ledger.release(Release(1, "", b""))
    for _ in range(2):
        step()
        assert ledger.eligible(["a", "c"]) == ["c"]
    step()
    assert ledger.eligible(["a", "c"]) == ["a", "c"]
    ledger.charge(["a"])
    for _ in range(4):
        step()
    ledger.close()
    again = Ledger(path, PLAN)
    assert again.step == 7 and again.eligible(["a", "b", "c"]) == ["b", "c"]  # a took part twice
    assert again.participations() == [("a", 0), ("a", 3), ("b", 0)]


POINTS = [
    "before the charge",
    "after the charge",
    "before the sum",
    "after the sum",
    "before the release",
    "in the database",
    "after the release",
    "before the reply",
    "in the strategy",
    "before the model is saved",
    "after the model is saved",
]


def served(folder, attempt, point, step):
    command = [sys.executable, "federated.py", folder, attempt, point, step]
    return subprocess.run([*map(str, command)], cwd=Path(__file__).parent, capture_output=True, text=True, timeout=100)


def check_run(folder):
    """After kills and restarts: each step's noise was in one release, and the ledger counts whoever was asked."""
    seen, asked = defaultdict(set), defaultdict(list)
    last = {}
    for line in (folder / "log.jsonl").read_text().splitlines():
        entry = json.loads(line)
        if entry["kind"] == "asked":
            asked[entry["step"]].append(entry["users"])
            last[entry["step"]] = entry["users"]
        else:
            seen[entry["step"]].add(tuple(entry["row"]))
    assert sorted(seen) == list(range(PLAN.steps)) and {len(found) for found in seen.values()} == {1}
    # The cohort that was asked last is the one whose updates were released.
    wanted = list(naive_means(PLAN, [last[t] for t in range(PLAN.steps)]))
    for t, row in enumerate(wanted):
        assert np.allclose(next(iter(seen[t])), row, atol=1e-3), t
    ledger = Ledger(folder / "ledger.db", PLAN)
    steps = check_schedule(ledger)
    charged = {(user, t) for user, found in steps.items() for t in found}
    assert {(user, t) for t, cohorts in asked.items() for cohort in cohorts for user in cohort} <= charged
    assert ledger.step == PLAN.steps
    ledger.close()
    assert np.allclose(np.load(folder / "model.npy"), wanted[-1], atol=1e-3)


@pytest.mark.parametrize("points", [POINTS[:4], POINTS[4:8], POINTS[8:]], ids=["before", "in", "after"])
def test_a_server_that_is_killed_goes_on(tmp_path, points):
    # Killed at one point after the other, two steps later each time; first of all before the run has begun.
    points = ["before the beginning", *points]
    for attempt, point in enumerate(points):
        done = served(tmp_path, attempt, point, 2 * max(attempt - 1, 0))
        assert done.returncode == -signal.SIGKILL, (point, done.stderr)
    done = served(tmp_path, len(points), "none", 0)
    assert done.returncode == 0, done.stderr
    check_run(tmp_path)
