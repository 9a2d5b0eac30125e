"""Fixtures and helpers of all tests: small plans, key files and the command line."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

import antinoise as an

# A shell that starts the tests in the background makes them ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)

STEPS = 24


def small_plan(**other):
    """A plan of two epochs of 12 steps, with a BLT, whose noise has a state."""
    how = dict(examples=240, batch_size=20, epochs=2, epsilon=4, delta=1e-5, dim=5000, mechanism="blt:2")
    return an.plan(**(how | other))


def pytest_sessionfinish(session):
    """Fails a session that skipped a test, where `scripts/python.sh stacks` says that its framework is
    installed.
    """
    skipped = session.config.pluginmanager.get_plugin("terminalreporter").stats.get("skipped", [])
    if skipped and "ANTINOISE_NO_SKIPS" in os.environ:
        print("\nskipped though nothing may be:", *(report.longrepr for report in skipped), sep="\n")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def computes(process, seconds=0.3):
    """Returns once a process has used that much CPU time from now on: it is then in the middle of its work,
    on a machine of any speed.
    """

    def used():
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    start = used()
    while used() < start + seconds:
        assert process.poll() is None, "it ended before it computed"
        time.sleep(0.01)


@contextmanager
def other_thread():
    """A thread that counts milliseconds while it may run; its count, in a list."""
    counted, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            counted[0] += 1
            time.sleep(0.001)

    other = threading.Thread(target=count)
    other.start()
    try:
        yield counted
    finally:
        stop.set()
        other.join()


def interrupted(work, wait):
    """Runs the work, which must end by Ctrl-C. Another thread sends it as soon as wait returns, which it
    calls after the work has begun: an interrupt before that would end the test, not the work."""
    begun = threading.Event()

    def send():
        begun.wait()
        wait()
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=send, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        begun.set()
        work()


def answers_in_a_fork(uses):
    """Calls the uses in a forked process, which keeps none of them: for each, the text of its value or of its
    RuntimeError."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        answers = []
        while uses:
            try:
                answers.append(str(uses.pop(0)()))
            except RuntimeError as error:
                answers.append(str(error))
        os.write(write, "\n".join(answers).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        answers = pipe.read().splitlines()
    assert os.waitpid(child, 0)[1] == 0
    return answers


@pytest.fixture(scope="session")
def plan():
    return small_plan()


@pytest.fixture(scope="session")
def plain():
    return small_plan(arithmetic="plain")


@pytest.fixture
def key_file(tmp_path):
    path = tmp_path / "key"
    path.write_bytes(bytes(range(32)))
    path.chmod(0o600)
    return path


@pytest.fixture(scope="session")
def antinoise():
    """Runs `python -m antinoise` with these arguments."""

    def run(*arguments, **how):
        command = [sys.executable, "-m", "antinoise", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, **how)

    return run
