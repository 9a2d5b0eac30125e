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


def test_owners_take_part_as_the_plan_says_and_batches_are_those_of_the_command_line(
    tmp_path, key_file, antinoise
):
    names = [[f"user {i % 11}", f"user {(i * i + 2) % 11}"] for i in range(90)]
    owned = an.OwnedExamples(names)
    assert (len(owned), len(owned.users), owned.users[0]) == (90, 11, "user 0")
    plan = an.plan(
        examples=11,
        batch_size=3,
        steps=15,
        epsilon=8,
        delta=1e-3,
        setting="federated",
        min_sep=3,
        max_participations=4,
    )
    batches = owned.batches(plan, an.Key.from_file(key_file), run="b")
    taken = an.Participations(plan)
    for step, batch in enumerate(batches):
        owners = owned.owners(batch)
        assert sorted(owners) == sorted(
            owned.users.index(name) for i in batch.tolist() for name in set(names[i])
        )
        taken.record(step, owners)
    plan.save(tmp_path / "plan.toml")
    (tmp_path / "owners.txt").write_text("\n".join(",".join(of) for of in names))
    how = ["--plan", tmp_path / "plan.toml", "--owners", tmp_path / "owners.txt", "--run", "b", "--json"]
    told = json.loads(antinoise("batches", "--key-file", key_file, *how).stdout)["batches"]
    assert told == [batch.tolist() for batch in batches]
    with pytest.warns(UserWarning, match="1 user has a name that differs"):
        assert an.OwnedExamples([["7"], ["7.0", "ada"], ["Ada ", "7e0"]]).users == ["7", "ada", "Ada"]
    with pytest.raises(ValueError, match='owner of example 0 is "NA" but must be'):
        an.OwnedExamples([["NA"]])
    with pytest.raises(ValueError, match="owners of example 1 is absent"):
        an.OwnedExamples([["a"], []])
    with pytest.raises(ValueError, match="examples of the plan is 11 but must be 1"):
        an.OwnedExamples([["a"]]).batches(plan, an.Key.from_os())
    with pytest.raises(ValueError, match="batch is 90 but must be below 90"):
        owned.owners(np.array([90]))
