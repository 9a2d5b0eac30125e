"""What all tests share: small plans, key files and the command line."""

import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest

import antinoise as an

# A shell that starts the tests in the background makes them deaf to Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)

STEPS = 24


def small_plan(**other):
    """Two epochs of 12 steps with a BLT, which has a past."""
    how = dict(examples=240, batch_size=20, epochs=2, epsilon=4, delta=1e-5, dim=5000, mechanism="blt:2")
    return an.plan(**(how | other))


@contextmanager
def other_thread():
    """A thread that counts milliseconds, as far as it may run; its count, in a list."""
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


@pytest.fixture(scope="session")
def plan():
    return small_plan()


@pytest.fixture(scope="session")
def plain():
    return small_plan(release="plain")


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
