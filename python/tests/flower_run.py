"""A small federation with a ledger, for its tests."""

from collections import defaultdict

import pytest
from federated import START, FakeGrid, Seen, federated_plan, key

from antinoise.flower import CorrelatedNoise

PLAN = federated_plan()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


def wrapped(path, strategy=None, plan=PLAN, **how):
    return CorrelatedNoise(
        strategy or Seen(), plan, how.pop("key", key()), **(dict(ledger=path, timeout=0) | how)
    )


def train(strategy, grid, rounds, arrays=START):
    return strategy.start(grid=grid, initial_arrays=arrays, num_rounds=rounds)


def check_schedule(ledger, plan=PLAN):
    steps = defaultdict(list)
    for user, step in ledger.participations():
        steps[user].append(step)
    gaps = [b - a for found in steps.values() for a, b in zip(found, found[1:])]
    assert steps and gaps and min(gaps) >= 3 and max(map(len, steps.values())) <= 2
    return steps


def begun(path):
    strategy = wrapped(path)
    train(strategy, FakeGrid(), 2)
    strategy.close()
