"""Copies, forks, threads and Ctrl-C in a Python process."""

import copy
import os
import pickle
import statistics
import subprocess
import sys
import time

import numpy as np
import pytest
from conftest import answers_in_a_fork, interrupted, other_thread, small_plan

import antinoise as an


@pytest.fixture
def secrets(plan):
    key = an.Key.from_os()
    return {"Key": key, "NoiseStream": an.NoiseStream(plan, 10, key), "Batches": an.Batches(plan, key)}


def test_importing_loads_no_other_package():
    program = "import sys; before = set(sys.modules); import antinoise; print(*(set(sys.modules) - before))"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    packages = {name.partition(".")[0] for name in found.split()} - sys.stdlib_module_names
    assert packages == {"antinoise"}


@pytest.mark.parametrize("name", ["Key", "NoiseStream", "Batches"])
def test_secrets_are_not_copied(secrets, name):
    for copied in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match=f"a {name} cannot be pickled or copied"):
            copied(secrets[name])


def test_a_key_is_never_shown(key_file):
    assert repr(an.Key.from_file(key_file)) == str(an.Key.from_os()) == "Key(..)"
    key_file.chmod(0o644)
    with pytest.raises(ValueError, match="key file is .* with mode 644 but must be for its owner alone"):
        an.Key.from_file(key_file)


def test_after_a_fork_secrets_are_refused_and_the_rest_works(secrets, plan):
    answers = answers_in_a_fork(
        [
            lambda: secrets["NoiseStream"].next_into(np.empty(10, np.float32)),
            lambda: secrets["NoiseStream"].seek(3),
            lambda: secrets["Batches"].at(0),
            lambda: an.Batches(plan, secrets["Key"]),
            lambda: an.NoiseStream(plan, 10, secrets["Key"], run="1"),
            lambda: an.NoiseStream(plan, 5000, an.Key.from_os()).next_into(np.empty(5000, np.float32)),
            lambda: an.loss("blt:2", 64)["rms_loss"],
        ]
    )
    assert len(answers) == 7, answers
    assert all("copied by a fork into process" in answer for answer in answers[:5]), answers
    assert answers[5] == "None" and float(answers[6]) == an.loss("blt:2", 64)["rms_loss"]


def test_other_threads_run_while_a_row_is_made():
    plan = small_plan(dim=20_000_000)
    noise, row = (
        an.NoiseStream(plan, 20_000_000, an.Key.from_os(), threads=1, memory=0),
        np.empty(20_000_000, np.float32),
    )
    noise.seek(20)  # from here on, each row takes as long as 20 steps
    counted = []
    with other_thread() as counts:
        for _ in range(4):
            before = counts[0]
            noise.next_into(row)
            counted.append(counts[0] - before)
    # A thread that had to wait for a whole row would count once or twice.
    assert max(counted) > 5, counted


def test_ctrl_c_stops_a_long_seek_and_a_long_design():
    plan = an.plan(
        examples=10**6,
        batch_size=10,
        steps=200_000,
        epsilon=4,
        delta=1e-9,
        mechanism="blt:4",
        arithmetic="plain",
    )
    noise = an.NoiseStream(plan, 10**5, an.Key.from_os(), threads=1)
    for _ in range(3):
        before = noise.step
        interrupted(lambda: noise.seek(200_000 - 1), lambda: time.sleep(0.3))
        # The interrupt comes long before the work would be done.
        assert before < noise.step < 150_000
    # It resumes where it stopped, with the same bits as an uninterrupted run.
    at, row, again = noise.step, np.empty(10**5, np.float32), np.empty(10**5, np.float32)
    noise.next_into(row)
    noise.seek(at, reuse_noise_unprotected=True)
    noise.next_into(again)
    assert (row == again).all()


DESIGN = """
import os, signal, threading, time
import numpy as np
import antinoise as an
plan = an.plan(1000, 10, epochs=2, epsilon=4, delta=1e-6, dim=10_000, mechanism="blt:2")
noise, row = an.NoiseStream(plan, 10_000, an.Key.from_os()), np.empty(10_000, np.float32)
start = time.perf_counter()
an.loss("dense", 500, objective="max")
print(0, time.perf_counter() - start)
for _ in range(4):
    sent = time.perf_counter() + 0.3
    try:
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        an.loss("dense", 2000, objective="max")
    except KeyboardInterrupt:
        waited = time.perf_counter() - sent
        noise.next_into(row)
        print(waited, time.perf_counter() - sent - waited)
"""


def test_ctrl_c_stops_a_design_and_leaves_the_threads_to_others():
    done = subprocess.run([sys.executable, "-c", DESIGN], capture_output=True, text=True, timeout=600)
    (_, whole), *times = [[float(x) for x in line.split()] for line in done.stdout.splitlines()]
    assert len(times) == 4, done.stderr
    # A design of 500 steps in the same process takes a fiftieth of the interrupted work's time, and far
    # longer than stopping or a row may take.
    waited, row = (statistics.median(column) for column in zip(*times))
    assert waited < whole and row < whole, (whole, times)


def test_progress_may_raise(plan):
    noise = an.NoiseStream(plan, 10, an.Key.from_os())

    def stop(at, of):
        raise LookupError(f"{at} of {of}")

    with pytest.raises(LookupError, match="0 of 20"):
        noise.seek(20, progress=stop)
    assert noise.step == 0
