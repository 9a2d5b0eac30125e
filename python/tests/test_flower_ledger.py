"""Users take part as the plan allows, and no noise is used twice, also after a server is killed."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from corruption import refuses_all

pytest.importorskip("flwr")

from federated import (
    COHORT,
    DIM,
    START,
    FakeGrid,
    Seen,
    Watched,
    arrays_of,
    federated_plan,
    key,
    naive_means,
    row_of,
)
from flower_run import PLAN, begun, check_schedule, path, train, wrapped
from flwr.app import Array, ArrayRecord
from flwr.serverapp.strategy import FedAdam

import antinoise as an
from antinoise.flower import CorrelatedNoise, Ledger


class Failing(Watched):
    """A ledger whose noisy sums cannot be written."""

    def record_noisy_sum(self, step, base, noisy_sum):
        raise OSError("disk is full")


def test_a_round_that_failed_half_way_ends_the_strategy_and_not_the_run(path, monkeypatch):
    strategy, grid = wrapped(path), FakeGrid()
    monkeypatch.setattr(strategy, "_ledger", Failing(strategy.ledger))
    with pytest.raises(OSError, match="disk is full"):
        train(strategy, grid, 1)
    with pytest.raises(RuntimeError, match="an earlier round failed half way"):
        train(strategy, grid, 1)
    strategy.close()
    later = wrapped(path, key=None)
    assert later.step == 0
    train(later, grid, 1)
    assert later.step == 1 and grid.asked[0] == grid.asked[1]


def test_the_ledger_is_its_owners_and_one_servers(path):
    strategy = wrapped(path)
    train(strategy, FakeGrid(), 1)
    for file in (path, Path(f"{path}.noise")):
        assert file.stat().st_mode & 0o777 == 0o600
    with pytest.raises(
        ValueError, match="is in use by another process but must be free: one process at a time"
    ):
        wrapped(path)
    code = f"import sys; from federated import *; CorrelatedNoise(Seen(), federated_plan(), None, ledger={str(path)!r})"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parent, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 1 and "must be free: one process at a time" in done.stderr
    strategy.close()
    assert wrapped(path, key=None).step == 1


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
    for name, message in (
        ("text", "is another file but must be a ledger"),
        ("database", "is another database, or one that was never initialised but must be a ledger"),
    ):
        os.chmod(tmp_path / name, 0o600)
        with pytest.raises(ValueError, match=message):
            wrapped(tmp_path / name)
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version = 1")
    database.close()
    with pytest.raises(ValueError, match="is of version 1 but must be of version 2"):
        wrapped(path)
    os.chmod(path, 0o644)
    with pytest.raises(ValueError, match="is 0644 but must be 0600"):
        wrapped(path)


@pytest.mark.parametrize("strategy", [Seen, FedAdam])
def test_a_round_starts_from_the_model_that_the_last_one_left(path, strategy):
    first = wrapped(path, strategy())
    before = train(first, FakeGrid(), 1).arrays
    left = train(first, FakeGrid(), 1, before).arrays
    first.close()
    moved = [row_of(left) + bit for bit in 1e-5 * np.eye(DIM)]
    for arrays in (START, *map(arrays_of, moved)):
        later, grid = wrapped(path, key=None), FakeGrid()
        with pytest.raises(
            ValueError,
            match="^arrays for step 2 are of a model other than the ledger's but must be the model that the round of step 1 made, or",
        ):
            train(later, grid, 1, arrays)
        assert later.step == 2 and grid.asked == []
        later.close()
    # Strategies change precisions, and so may the code that saves a model.
    for arrays, step in ((arrays_of(row_of(left)), 3), (START, 4)):
        later = wrapped(path, key=None, any_arrays=arrays is START)
        train(later, FakeGrid(), 1, arrays)
        assert later.step == step
        later.close()


def test_a_noisy_sum_that_came_to_no_model_is_for_the_model_that_it_started_from(path, monkeypatch):
    strategy = wrapped(path)
    left = train(strategy, FakeGrid(), 1).arrays
    monkeypatch.setattr(strategy, "_as_reply", lambda private: (_ for _ in ()).throw(OSError("disk is full")))
    with pytest.raises(OSError):
        train(strategy, FakeGrid(), 1, left)
    strategy.close()
    later, grid = wrapped(path, key=None), FakeGrid()
    with pytest.raises(ValueError, match="^arrays for step 2 are of a model other than the ledger's"):
        train(later, grid, 1, START)
    train(later, grid, 1, left)
    assert later.step == 2 and grid.asked == []
    later.close()


def test_an_old_copy_of_the_ledger_is_refused(path, tmp_path):
    begun(path)
    shutil.copy(path, tmp_path / "copy")
    strategy = wrapped(path, key=None, any_arrays=True)
    train(strategy, FakeGrid(), 1)
    strategy.close()
    shutil.copy(tmp_path / "copy", path)
    with pytest.raises(ValueError, match="step of the ledger is 2, while .* is at 3, but must be no earlier"):
        train(wrapped(path, key=None), FakeGrid(), 1)


@pytest.mark.parametrize(
    "sql, named",
    [
        ("DELETE FROM participations WHERE step = 0", "the participants of step 0"),
        (
            "UPDATE participations SET user = 'somebody' WHERE user = (SELECT MIN(user) FROM participations)",
            "the participants of step",
        ),
        ("DELETE FROM noisy_sums WHERE step = 1", "1 rounds are missing: it had recorded step 1"),
        ("UPDATE noisy_sums SET base = 'x' WHERE step = 0", "the noisy sum of step 0"),
        ("UPDATE noisy_sums SET noisy_sum = x'00' WHERE step = 1", "the noisy sum of step 1"),
        ("UPDATE run SET value = 'x' WHERE name = 'arrays'", "the recorded values"),
        ("DELETE FROM chain WHERE number = 3", "link 3 of its chain"),
        (
            "CREATE TRIGGER t AFTER INSERT ON participations BEGIN DELETE FROM participations; END",
            "there are others",
        ),
        ("CREATE TABLE other (name TEXT)", "there are others"),
    ],
)
def test_a_ledger_that_was_altered_is_refused_by_name(path, sql, named):
    begun(path)
    database = sqlite3.connect(path)
    database.execute(sql)
    database.commit()
    database.close()
    with pytest.raises(ValueError, match=rf"ledger .* is damaged \(.*{named}.*but must be as it was written"):
        Ledger(path, PLAN)


def test_a_ledger_is_whole_without_any_other_file(path, tmp_path):
    strategy = wrapped(path, any_arrays=True)
    for rounds in (1, 2):
        train(strategy, FakeGrid(), 1)
        shutil.copy(path, tmp_path / "copy.db")
        assert [file.name for file in path.parent.glob("ledger.db-wal")] == []
        assert Ledger(tmp_path / "copy.db", PLAN).step == rounds
        (tmp_path / "copy.db").unlink()
    strategy.close()
    database = sqlite3.connect(path)
    database.execute("PRAGMA journal_mode = WAL")
    database.close()
    with pytest.raises(ValueError, match="is in journal mode WAL but must be in journal mode DELETE"):
        Ledger(path, PLAN)


def test_without_its_noise_a_ledger_does_not_go_on(path):
    begun(path)
    Path(f"{path}.noise").unlink()
    with pytest.raises((ValueError, OSError), match="noise"):
        train(wrapped(path), FakeGrid(), 1)


def test_noise_that_was_damaged_or_is_of_another_key_is_refused(path, tmp_path):
    begun(path)
    noise, other, older = Path(f"{path}.noise"), tmp_path / "other", tmp_path / "older"
    stream = an.NoiseStream(PLAN, DIM, an.Key.from_seed_insecure(6))
    stream.seek(2)
    stream.save(other)
    stream = an.NoiseStream(PLAN, DIM, key())
    stream.seek(1)
    stream.save(older)
    refuses_all(noise, [other, older], lambda: an.NoiseStream.resume(noise, PLAN, DIM))
    whole = noise.read_bytes()
    for damaged, message in (
        (whole[:-1] + bytes([whole[-1] ^ 1]), "not a checkpoint of this stream"),
        (other.read_bytes(), "token is .* but must be the ledger's"),
    ):
        noise.write_bytes(damaged)
        strategy = wrapped(path, key=None)
        with pytest.raises(ValueError, match=message):
            train(strategy, FakeGrid(), 1)
        strategy.close()
    # Noise saved at an earlier step moves to the ledger's step.
    noise.write_bytes(older.read_bytes())
    strategy = wrapped(path, key=None, any_arrays=True)
    train(strategy, FakeGrid(), 1)
    assert strategy.step == 3 and noise.read_bytes() not in (whole, older.read_bytes())
    strategy.close()


def test_a_ledger_does_not_begin_beside_used_noise(path):
    begun(path)
    noise = Path(f"{path}.noise")
    kept = noise.read_bytes()
    path.unlink()
    with pytest.raises(
        ValueError, match="ledger.db.noise is at step 2 but must be absent where a ledger begins"
    ):
        train(wrapped(path), FakeGrid(), 1)
    for other in (dict(run="another"), dict(plan=federated_plan(epsilon=7))):
        path.unlink()
        with pytest.raises(ValueError, match="ledger.db.noise is of another run but must be absent"):
            train(wrapped(path, **other), FakeGrid(), 1)
    assert noise.read_bytes() == kept
    # A start that was killed before its ledger began left unused noise.
    path.unlink()
    an.NoiseStream(PLAN, DIM, key()).save(noise)
    strategy = wrapped(path)
    train(strategy, FakeGrid(), 1)
    assert strategy.step == 1
    strategy.close()
    noise.chmod(0o640)
    with pytest.raises(ValueError, match="mode of .*noise is 0640 but must be 0600"):
        train(wrapped(path, key=None), FakeGrid(), 1)


def test_the_ledger_refuses_what_the_plan_does(path):
    ledger = Ledger(path, PLAN)

    def step():
        ledger.charge([])
        ledger.record_noisy_sum(ledger.step, "", b"")

    ledger.charge(["a", "b"])
    for users in (["a"], ["c", "b"], ["d", "d"]):
        with pytest.raises(
            ValueError,
            match="participants of step 0 is .* but must be different users who took part fewer than 2 times",
        ):
            ledger.charge(users)
    assert ledger.participations() == [("a", 0), ("b", 0)] and ledger.eligible(["a", "c"]) == ["c"]
    with pytest.raises(ValueError, match="step of a noisy sum is 1 but must be 0, which comes next"):
        ledger.record_noisy_sum(1, "", b"")
    with pytest.raises(
        ValueError, match="users of step 1 is not recorded but must be recorded before their updates are used"
    ):
        step()
        ledger.record_noisy_sum(1, "", b"")
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


def test_a_charged_cohort_is_asked_again_by_those_who_are_connected(path):
    def fail(replies):
        raise OSError("the network is down")

    with pytest.raises(OSError, match="the network is down"):
        train(wrapped(path), FakeGrid(change=fail), 1)
    gone, grid = Ledger(path, PLAN), FakeGrid()
    cohort = gone.charged()
    assert len(cohort) == COHORT and gone.participations() == [(user, 0) for user in cohort]
    gone.close()
    nodes, grid.nodes = grid.nodes, {}
    with pytest.raises(RuntimeError, match="None of the 4 users who were charged for step 0 is connected"):
        train(wrapped(path, key=None), grid, 1)
    grid.nodes = {node: [user for user in users if user != cohort[1]] for node, users in nodes.items()}
    strategy = wrapped(path, key=None)
    train(strategy, grid, 1)
    there = [user for user in cohort if user != cohort[1]]
    assert grid.asked == [there] and strategy.ledger.charged() == [] and strategy.step == 1
    assert strategy.ledger.participations() == [(user, 0) for user in cohort]


POINTS = [
    "before the charge",
    "after the charge",
    "before the sum",
    "after the sum",
    "before the noisy sum",
    "after the noisy sum",
    "before the reply",
    "in the strategy",
    "before the model is saved",
    "after the model is saved",
]


def served(folder, attempt, point, step):
    command = [sys.executable, "federated.py", folder, attempt, point, step]
    return subprocess.run(
        [*map(str, command)], cwd=Path(__file__).parent, capture_output=True, text=True, timeout=100
    )


def check_run(folder):
    """After kills and restarts: the cohorts and the bits of a run that was never killed; and each step's
    noise was in one noisy sum.
    """
    seen, asked = defaultdict(set), defaultdict(list)
    for line in (folder / "log.jsonl").read_text().splitlines():
        entry = json.loads(line)
        if entry["kind"] == "asked":
            asked[entry["step"]].append(sorted(entry["users"]))
        else:
            seen[entry["step"]].add(tuple(entry["row"]))
    assert sorted(seen) == list(range(PLAN.steps)) and {len(found) for found in seen.values()} == {1}
    undisturbed, grid = wrapped(folder / "undisturbed.db"), FakeGrid()
    train(undisturbed, grid, PLAN.steps)
    for t, (cohort, replies) in enumerate(zip(grid.asked, undisturbed._strategy.seen, strict=True)):
        assert set(map(tuple, asked[t])) == {tuple(cohort)}, t
        assert np.array_equal(next(iter(seen[t])), row_of(replies[0].content["arrays"])), t
    for t, row in enumerate(naive_means(PLAN, grid.asked)):
        assert np.allclose(next(iter(seen[t])), row, atol=1e-3), t
    ledger = Ledger(folder / "ledger.db", PLAN)
    check_schedule(ledger)
    assert ledger.participations() == undisturbed.ledger.participations() and ledger.step == PLAN.steps
    ledger.close()
    assert np.array_equal(np.load(folder / "model.npy"), row_of(replies[0].content["arrays"]))


@pytest.mark.parametrize("points", [POINTS[:4], POINTS[4:8], POINTS[8:]], ids=["before", "in", "after"])
def test_a_server_that_is_killed_goes_on(tmp_path, points):
    # The server is killed at each point in turn, two steps later each time; the first kill is before the run
    # has begun.
    points = ["before the beginning", *points]
    for attempt, point in enumerate(points):
        done = served(tmp_path, attempt, point, 2 * max(attempt - 1, 0))
        assert done.returncode == -signal.SIGKILL, (point, done.stderr)
    done = served(tmp_path, len(points), "none", 0)
    assert done.returncode == 0, done.stderr
    check_run(tmp_path)
