"""Running counts through kills, forks, threads, Ctrl-C and a second writer."""

import copy
import os
import pickle
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from conftest import answers_in_a_fork, interrupted, other_thread
from counts_tables import COLUMNS, EVENTS, NAMES, ROW, copies, create

import antinoise as an


def test_one_writer_and_no_copies(antinoise, tmp_path):
    counts = create(tmp_path / "counts")
    with pytest.raises(ValueError, match="in use by another process"):
        an.RunningCounts.open(tmp_path / "counts")
    beside = antinoise("release", "publish", tmp_path / "counts")
    assert beside.returncode == 2 and "in use by another process" in beside.stderr
    assert antinoise("release", "status", tmp_path / "counts").returncode == 0
    for copied in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="a RunningCounts cannot be pickled or copied"):
            copied(counts)
    with pytest.raises(TypeError):
        an.RunningCounts()
    counts.freeze(0, EVENTS, **COLUMNS)
    counts.close()
    counts.close()
    with pytest.raises(ValueError, match="counts is closed"):
        counts.publish()
    assert counts.status()["frozen"] == 1
    with an.RunningCounts.open(tmp_path / "counts") as again:
        assert len(again.publish()) == 3
    subprocess.run(["cp", "-r", tmp_path / "counts", tmp_path / "copy"], check=True)
    with pytest.raises(
        ValueError,
        match=r"a copy \(release.db is another file\) but must be the folder that the release was made in",
    ):
        an.RunningCounts.open(tmp_path / "copy")


def test_after_a_fork_counts_are_refused_and_the_parents_go_on(tmp_path):
    counts = create(tmp_path / "counts")

    def drop():
        nonlocal counts
        del counts

    answers = answers_in_a_fork(
        [
            lambda: counts.freeze(0, EVENTS, **COLUMNS),
            counts.publish,
            counts.published,
            counts.status,
            counts.close,
            drop,
        ]
    )
    assert len(answers) == 6 and answers[5] == "None", answers
    assert all("copied by a fork into process" in answer for answer in answers[:5]), answers
    assert counts.freeze(0, EVENTS, **COLUMNS)["counted"] > 0 and len(counts.publish()) == 3


KILLED = """
import sys, antinoise as an
sys.path.insert(0, sys.argv[2])
from counts_tables import COLUMNS, EVENTS
with an.RunningCounts.open(sys.argv[1]) as counts:
    print("open", flush=True)
    for day in range(counts.status()["frozen"], 6):
        counts.freeze(day, EVENTS, **COLUMNS)
        counts.publish()
    counts.publish()
"""


def test_killed_at_any_moment_it_goes_on_with_the_same_figures(tmp_path):
    create(tmp_path / "made", queries=["counts", "window:2"]).close()
    whole, killed = copies(tmp_path / "made", tmp_path, ["whole", "killed"])
    command = [sys.executable, "-c", KILLED]
    subprocess.run([*command, whole, os.path.dirname(__file__)], check=True, stdout=subprocess.DEVNULL)
    for delay in [0.002 * i for i in range(12)]:
        running = subprocess.Popen([*command, killed, os.path.dirname(__file__)], stdout=subprocess.PIPE)
        running.stdout.readline()
        time.sleep(delay)
        running.kill()
        running.wait()
        running.stdout.close()
    subprocess.run([*command, killed, os.path.dirname(__file__)], check=True, stdout=subprocess.DEVNULL)
    with an.RunningCounts.open(whole) as one, an.RunningCounts.open(killed) as other:
        assert len(one.published()) == 36 and one.published().to_dict() == other.published().to_dict()


def test_other_threads_run_and_ctrl_c_leaves_nothing_behind(tmp_path):
    pa = pytest.importorskip("pyarrow")
    rows = 4_000_000
    users = pa.array(np.arange(rows) % 1000)
    events = pa.table(
        {
            "t": pa.array(np.zeros(rows, np.int64)),
            "u": users,
            "k": pa.array(["a"]).take(pa.array(np.zeros(rows, np.int64))),
        }
    )
    counts, names = create(tmp_path / "counts"), dict(time="t", user="u", key="k")
    with other_thread() as passed:
        for rows in (events, ({"t": 0, "u": i, "k": "a"} for i in range(10**9))):

            def other_threads_run():
                turn = passed[0] + 6
                while passed[0] < turn:
                    time.sleep(0.001)

            interrupted(lambda rows=rows: counts.freeze(0, rows, **names), other_threads_run)
    assert counts.status()["frozen"] == 0

    def reentrant():
        yield {"t": 0, "u": "x", "k": "a"}
        counts.publish()

    with pytest.raises(RuntimeError, match="another call uses this RunningCounts"):
        counts.freeze(0, reentrant(), **names)
    assert counts.freeze(0, [{"t": 0, "u": "x", "k": "a"}], **names)["counted"] == 1


ENDLESS = """
import sys, antinoise as an
with an.RunningCounts.open(sys.argv[1]) as counts:
    print("open", flush=True)
    try:
        counts.query("WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT COUNT(*) FROM n")
    except KeyboardInterrupt:
        print("interrupted", counts.query("SELECT 1 AS one").to_dict(), flush=True)
"""


def test_ctrl_c_ends_a_query(tmp_path):
    create(tmp_path / "counts").close()
    running = subprocess.Popen(
        [sys.executable, "-c", ENDLESS, tmp_path / "counts"], stdout=subprocess.PIPE, text=True
    )
    try:
        running.stdout.readline()
        time.sleep(0.2)
        running.send_signal(signal.SIGINT)
        assert running.communicate(timeout=60)[0] == "interrupted {'one': [1]}\n"
    finally:
        running.kill()


def test_generators_of_tables_may_be_interrupted(tmp_path):
    pa = pytest.importorskip("pyarrow")
    batch = pa.record_batch({name: [cell] for name, cell in ROW.items()})

    def batches():
        yield batch
        signal.raise_signal(signal.SIGINT)
        yield batch

    counts = create(tmp_path / "counts")
    with pytest.raises(KeyboardInterrupt):
        counts.freeze(0, pa.RecordBatchReader.from_batches(batch.schema, batches()), **NAMES)
    assert counts.status()["frozen"] == 0

    def breaks_off():
        yield batch
        raise LookupError("no more")

    with pytest.raises(ValueError, match="events is a stream that broke off .*no more"):
        counts.freeze(0, pa.RecordBatchReader.from_batches(batch.schema, breaks_off()), **NAMES)
    assert counts.freeze(0, batch, **NAMES)["counted"] == 1


def test_a_generator_that_forks_freezes_in_the_parent_alone(tmp_path):
    counts, parent = create(tmp_path / "counts"), os.getpid()

    def forks():
        yield ROW
        child = os.fork()
        if child:
            statuses.append(os.waitpid(child, 0)[1])
        yield {"t": 0, "u": "parent" if child else "child", "k": "b"}

    statuses = []
    try:
        found = counts.freeze(0, forks(), **NAMES)
        error = ""
    except RuntimeError as refused:
        error = str(refused)
    if os.getpid() != parent:
        os._exit(7 if "copied by a fork into process" in error else 1)
    assert os.waitstatus_to_exitcode(statuses[0]) == 7 and found["counted"] == 2
    assert counts.status()["frozen"] == 1


def test_a_folder_stays_where_it_was_made(tmp_path, monkeypatch):
    for place in ("north", "south"):
        (tmp_path / place).mkdir()
        monkeypatch.chdir(tmp_path / place)
        counts = an.RunningCounts.create("visits", ["a"], periods=2, epsilon=1, delta=1e-6, unit="event")
        if place == "north":
            north = counts
    north.freeze(0, [{"t": 0, "k": "a"}], time="t", key="k")
    rows = north.publish().to_dict()
    assert north.published().to_dict() == rows and north.status()["published"] == 1
    assert counts.published().to_dict()["key"] == [] and counts.status()["published"] == 0
    assert os.path.samefile(north.folder, tmp_path / "north" / "visits")
