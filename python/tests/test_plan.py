"""Plans: the same in Python, in files and on the command line, and never with a false privacy statement."""

import json
import pickle
import re
from typing import get_args

import pytest
from conftest import small_plan

import antinoise as an
from antinoise import types


def test_numbers_are_those_of_the_command_line(tmp_path, antinoise):
    path = tmp_path / "plan.toml"
    made = antinoise(
        "plan", "--examples", 240, "--batch-size", 20, "--epochs", 2, "--epsilon", 4, "--delta", "1e-5", "--setting", "cyclic",
        "--dim", 5000, "--out", path, "--json",
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    told, plan = json.loads(made.stdout), small_plan(mechanism=None)
    assert plan.to_toml() == path.read_text()
    assert an.Plan.load(path) == plan and hash(an.Plan.load(path)) == hash(plan)
    numbers = told["plan"]
    for name in ("examples", "batch_size", "steps", "clip_norm", "noise_multiplier", "sensitivity"):
        assert getattr(plan, name) == numbers[name], name
    for name in ("epsilon", "epsilon_lower", "delta", "unit", "adjacency", "accountant"):
        assert getattr(plan, name) == numbers["privacy"][name], name
    assert plan.sampler == numbers["sampler"] == {"kind": "cyclic", "groups": 12}
    assert (plan.participation, plan.workload, plan.arithmetic) == ("cyclic:12,2", "prefix", "grid")
    assert plan.expected_batch_size == 20
    assert plan.noise_std >= plan.noise_multiplier * plan.sensitivity["value"] * plan.widened_clip_norm
    assert plan.widened_clip_norm > plan.clip_norm + plan.sum_allowance
    assert len(plan.candidates) == len(told["candidates"])
    for ours, theirs in zip(plan.candidates, told["candidates"]):
        for name in (
            "noise_multiplier",
            "sensitivity",
            "rms_loss",
            "relative_to_independent",
            "state_bytes",
            "noise_seconds",
            "amplified",
        ):
            assert ours[name] == theirs[name], name
    assert [row["chosen"] for row in plan.candidates].index(True) == told["chosen"]
    verified = json.loads(antinoise("verify", path, "--json").stdout)
    assert (
        verified["holds"]
        and verified["digest"] == plan.digest
        and verified["statement"].strip() == plan.statement.strip()
    )


def test_a_plan_makes_the_round_trip(plan, tmp_path):
    path = tmp_path / "plan.toml"
    plan.save(path)
    plan.verify()
    for again in (an.Plan.load(path), an.Plan.from_toml(plan.to_toml()), pickle.loads(pickle.dumps(plan))):
        assert again == plan and again.digest == plan.digest and again.candidates == []
    with pytest.raises(ValueError, match="exists, and only force=True writes over it"):
        plan.save(path)
    plan.save(path, force=True)
    assert plan != small_plan(epsilon=3) and repr(plan).startswith("Plan(blt, steps=24, epsilon=")


def test_delta_is_by_default_that_of_the_command_line():
    made = {examples: small_plan(examples=examples, delta=None).delta for examples in (240, 10_000, 10_001)}
    assert made == {240: 1e-5, 10_000: 1e-5, 10_001: 1e-6}


@pytest.mark.parametrize("field", ["noise_multiplier", "epsilon", "clip_norm", "value"])
def test_an_altered_plan_is_refused(plan, field):
    less = {"noise_multiplier": 0.9, "epsilon": 0.9, "clip_norm": 1e-40, "value": 0.9}[field]
    alter = lambda found: f"{found[1]}{float(found[2]) * less!r}"  # noqa: E731
    altered, count = re.subn(rf"^({field} = )([-+.e0-9]+)$", alter, plan.to_toml(), flags=re.M)
    assert count >= 1
    with pytest.raises(ValueError) as caught:
        an.Plan.from_toml(altered)
    assert re.search("was altered|but must be", str(caught.value))
    with pytest.raises(ValueError, match="unknown field `extra`"):
        an.Plan.from_toml("extra = 1\n" + plan.to_toml())


def test_settings():
    federated = small_plan(setting="federated", min_sep=6, max_participations=3)
    assert (federated.unit, federated.sampler, federated.participation) == (
        "user",
        {"kind": "external"},
        "min-sep:6,3",
    )
    assert (
        small_plan(setting="poisson", mechanism=["identity", "banded-toeplitz:2"]).accountant
        == "sampled-gaussian"
    )
    assert small_plan(adjacency="replace-one").sensitivity["value"] == pytest.approx(
        2 * small_plan().sensitivity["value"], rel=0.05
    )
    assert small_plan(epochs=None, steps=12, setting="single").steps == 12


@pytest.mark.parametrize(
    "options, message",
    [
        (dict(epochs=None), "epochs is absent but must be given, or steps"),
        (dict(steps=3), "steps is 3 but must be left out if epochs is given"),
        (dict(batch_size=241), "batch_size is 241 but must be from 1 to examples = 240"),
        (dict(epsilon=0), "epsilon is 0"),
        (
            dict(setting="other"),
            'setting is "other" but must be one of ' + ", ".join(get_args(types.SettingName)),
        ),
        (dict(setting="federated"), "min_sep is absent but must be given with setting federated"),
        (dict(min_sep=3), "min_sep is 3 but must be left out: only setting federated takes it"),
        (dict(arithmetic="exact"), 'arithmetic is "exact" but must be grid or plain'),
        (dict(unit="row"), 'unit is "row" but must be example or user'),
        (dict(unit="user"), "unit of the plan is user but must be example"),
        (dict(memory=1), "memory is 1 but must be at least"),
        (dict(noise_time=0), "noise_time is 0"),
        (dict(tolerance=1), "tolerance is 1.0 but must be at least 0 and below 1"),
        (dict(dim=0, memory=1), "dim is 0 but must be the number of model parameters"),
        (dict(mechanism="blt:x"), 'strategy is "blt:x" but must be one of'),
    ],
)
def test_what_is_wrong_is_named(options, message):
    with pytest.raises(ValueError) as caught:
        small_plan(**options)
    assert str(caught.value).startswith(message)
