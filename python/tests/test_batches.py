"""Batches in Python, the command line and the Rust trainer are the same."""

import json

import numpy as np
import pytest
from conftest import small_plan

import antinoise as an


@pytest.mark.parametrize("how", [dict(), dict(setting="poisson", mechanism="banded-toeplitz:2")])
def test_batches_are_those_of_the_command_line(how, tmp_path, key_file, antinoise):
    plan, path = small_plan(**how), tmp_path / "plan.toml"
    plan.save(path)
    told = json.loads(
        antinoise("batches", "--plan", path, "--key-file", key_file, "--run", "b", "--json").stdout
    )["batches"]
    batches = an.Batches(plan, an.Key.from_file(key_file), run="b")
    assert len(batches) == len(told) == plan.steps
    for step, (found, wanted) in enumerate(zip(batches, told, strict=True)):
        assert found.dtype == np.int64 and found.tolist() == wanted == batches.at(step).tolist()
    other = an.Batches(plan, an.Key.from_file(key_file))
    assert [batch.tolist() for batch in other] != told


def test_a_stream_is_read_once_in_its_order():
    plan = small_plan(epochs=1, setting="stream")
    assert (plan.sampler, plan.accountant, plan.participation) == ({"kind": "stream"}, "gdp", "single")
    batches = an.Batches(plan, an.Key.from_os())
    assert [batch.tolist() for batch in batches] == np.arange(240).reshape(12, 20).tolist()


def test_everyone_has_one_turn_an_epoch(plan):
    batches = an.Batches(plan, an.Key.from_os())
    assert sorted(np.concatenate([batches.at(step) for step in range(12)])) == list(range(240))


def test_what_is_wrong_is_named(plan):
    batches = an.Batches(plan, an.Key.from_os())
    with pytest.raises(ValueError, match="step is 24 but must be from 0 to steps - 1 = 23"):
        batches.at(24)
    with pytest.raises(
        ValueError, match="sampler of the plan is external but must be one that forms batches"
    ):
        an.Batches(small_plan(setting="federated", min_sep=6), an.Key.from_os())
