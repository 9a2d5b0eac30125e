"""Design and accounting: the library's numbers and error messages."""

import copy
import pickle

import numpy as np
import pytest

import antinoise as an


def test_figures_of_the_monograph():
    # 1 + 1/2 + 3/8 + ...: the square root of the prefix sums.
    root = an.Strategy.design("toeplitz+square-root", 8)
    assert np.allclose(root.first_column[:4], [1, 1 / 2, 3 / 8, 5 / 16])
    assert an.loss("identity", 16, objective="max")["max_loss"] == 4.0
    assert an.loss("identity", 16, adjacency="replace-one")["sensitivity"] == {
        "value": 2.0,
        "kind": "exact",
        "source": an.loss("identity", 16)["sensitivity"]["source"],
    }
    assert round(an.calibrate(2, 1e-6), 5) == 2.23048
    found = an.account(2.23048, 1e-6)
    assert found["epsilon_lower"] <= found["epsilon"] and abs(found["epsilon"] - 2) < 1e-4
    sampled = an.calibrate(2, 1e-6, sampling_rate=0.01, steps=1000)
    assert (
        an.account(sampled, 1e-6, 0.01, 1000)["epsilon"]
        <= 2
        < an.account(0.99 * sampled, 1e-6, 0.01, 1000)["epsilon"]
    )


def test_accounting_takes_adjacency_groups_and_batches_of_a_fixed_size():
    poisson = {"sampling_rate": 0.01, "steps": 1000}
    replaced = an.calibrate(2, 1e-6, **poisson, adjacency="replace-one")
    assert 0.5 * an.calibrate(2, 1e-6, **poisson) < replaced < an.calibrate(2, 1e-6, **poisson)
    assert an.account(replaced, 1e-6, **poisson, adjacency="replace-one")["epsilon"] <= 2
    added = an.account(1.0, 1e-6, **poisson, adjacency="add-or-remove")
    assert added == an.account(1.0, 1e-6, **poisson)
    group = an.account(4.0, 1e-5, group_size=3)
    assert abs(group["epsilon"] / an.account(4 / 3, 1e-5)["epsilon"] - 1) < 1e-9
    fixed = {"fixed_batch_size": 500, "examples": 50_000, "steps": 1000}
    sigma = an.calibrate(2, 1e-6, **fixed)
    assert 1.99 < an.account(sigma, 1e-6, **fixed)["epsilon"] <= 2
    assert sigma > 1.5 * an.calibrate(2, 1e-6, **poisson)
    for wrong, message in [
        ({"fixed_batch_size": 5, "steps": 2}, "examples is absent"),
        ({"fixed_batch_size": 5, "examples": 5, "steps": 2}, "batch_size is 5 but must be from 1 to"),
        ({"fixed_batch_size": 5, "examples": 50, "sampling_rate": 0.1}, "must be None with sampling_rate"),
        ({**fixed, "adjacency": "add-or-remove"}, "must be zero-out or replace-one"),
        ({"random_allocation": 3, "steps": 10}, "a divisor of steps"),
        ({"random_allocation": 5, "steps": 10, "sampling_rate": 0.1}, "None with other sampling"),
        ({"random_allocation": 5, "steps": 10, "adjacency": "replace-one"}, "zero-out or add-or-remove"),
        ({"examples": 5}, "given with fixed_batch_size"),
        ({"adjacency": "none"}, "adjacency is .none. but must be zero-out, replace-one or add-or-remove"),
        ({"group_size": 0}, "group_size is 0 but must be at least 1"),
    ]:
        with pytest.raises(ValueError, match=message):
            an.account(1.0, 1e-6, **wrong)


def test_a_strategy_is_what_it_was_when_it_is_read_again(tmp_path):
    made = an.Strategy.design("blt", 100, order=3, participation="cyclic:50,2")
    assert (made.name, made.steps, made.status) == ("blt", 100, "converged")
    path = tmp_path / "blt.toml"
    made.save(path)
    for copied in [
        an.Strategy.load(path),
        an.Strategy.from_toml(made.to_toml()),
        pickle.loads(pickle.dumps(made)),
        copy.deepcopy(made),
    ]:
        assert copied.to_toml() == made.to_toml()
        assert (copied.first_column == made.first_column).all()
    same, direct = (
        an.loss(made, participation="cyclic:50,2"),
        an.loss("blt:3", 100, participation="cyclic:50,2"),
    )
    assert (
        same["rms_loss"]
        == direct["rms_loss"]
        == made.error()["rms"] * made.sensitivity(participation="cyclic:50,2")["value"]
    )
    with pytest.raises(ValueError, match="exists, and only force=True"):
        made.save(path)
    made.save(path, force=True)


def test_a_matrix_of_any_shape_is_a_strategy(tmp_path):
    random = np.random.default_rng(29)
    ones = np.tril(np.ones((12, 12)))
    for rows in (12, 15):
        c = random.normal(size=(rows, 12)) + 3 * np.eye(rows, 12)
        made = an.Strategy.of_matrix(c)
        assert (made.name, made.steps) == ("dense", 12)
        columns = np.linalg.norm(c, axis=0)
        assert np.isclose(made.sensitivity()["value"], columns.max(), rtol=1e-12)
        errors = np.sqrt(np.diag(ones @ np.linalg.inv(c.T @ c) @ ones.T))
        assert np.isclose(made.error()["max"], errors.max(), rtol=1e-12)
        path, archive = tmp_path / "c.npy", tmp_path / "c.npz"
        np.save(path, c)
        np.savez_compressed(archive, C=c, B=ones @ np.linalg.pinv(c), A=ones)
        for read in (
            an.Strategy.load(path),
            an.Strategy.load(archive),
            an.Strategy.of_matrix(np.asfortranarray(c)),
        ):
            assert read.to_toml() == made.to_toml()
        with pytest.raises(ValueError, match="must be 0.5, as in the workload decay:0.5"):
            an.Strategy.load(archive, workload="decay:0.5")
        options = {"epsilon": 2, "delta": 1e-5, "epochs": 1, "setting": "single"}
        plan = an.plan(240, 20, strategy=c, **options)
        assert plan.to_toml() == an.plan(240, 20, strategy=made, **options).to_toml()
        # Independent noise, the matrix, and DP-SGD with sampling to compare with.
        assert [row["is_given"] for row in plan.candidates] == [False, True, False]
        assert plan.sensitivity == made.sensitivity()
    assert an.Strategy.of_matrix(ones.astype(np.float32)).name == "toeplitz"
    for bad, why in [
        (ones[:5], "rows of C is 5"),
        (0 * ones, "column 0"),
        (np.nan * ones, "C\\[0, 0\\] is NaN"),
    ]:
        with pytest.raises(ValueError, match=why):
            an.Strategy.of_matrix(bad)


def test_workloads_and_schemas_may_be_numbers():
    prefix = an.loss("toeplitz", 4)["rms_loss"]
    assert an.loss("toeplitz", 4, workload=[1, 1, 1, 1])["rms_loss"] == pytest.approx(prefix, rel=1e-9)
    rows = [[1.0] * (i + 1) for i in range(4)]
    assert an.loss("identity", 4, workload=rows)["rms_loss"] == an.loss("identity", 4)["rms_loss"]
    queries = an.loss("identity", 4, workload=[[1, 1, 0, 0], [0, 0, 1, 1]])
    assert queries["max_error"] == pytest.approx(2**0.5)
    listed = an.loss("blt:1", 4, participation=[[0, 2], [1, 3]])["rms_loss"]
    assert listed == pytest.approx(an.loss("blt:1", 4, participation="cyclic:2,2")["rms_loss"], rel=1e-3)


def test_mechanisms_are_compared():
    rows = an.compare(["identity", "blt:2", "toeplitz"], [16, 64])
    assert [(row["spec"], row["steps"]) for row in rows[:3]] == [
        ("identity", 16),
        ("blt:2", 16),
        ("toeplitz", 16),
    ]
    for steps in (16, 64):
        losses = {row["spec"]: row["rms_loss"] for row in rows if row["steps"] == steps}
        assert losses["toeplitz"] <= losses["blt:2"] < losses["identity"]


@pytest.mark.parametrize(
    "wrong, message",
    [
        (lambda: an.loss("blt:4"), "steps is absent but must be given if the strategy is a name"),
        (
            lambda: an.loss("blt:4", 8, order=3),
            "order is 3 but must be left out, or 4 as the strategy's name says",
        ),
        (lambda: an.loss("blt", 0), "steps is 0 but must be at least 1"),
        (lambda: an.loss("identity", 8, bands=3), "bands is 3 but must be left out"),
        (lambda: an.loss("nothing", 8), 'strategy is "nothing" but must be one of identity'),
        (lambda: an.loss("blt", 8, objective="least"), 'objective is "least" but must be max or rms'),
        (lambda: an.loss("blt", 8, participation="cyclic:9,2"), "min_sep is 9 but must be"),
        (
            lambda: an.Strategy.from_toml("x = 1"),
            "strategy is text that cannot be read but must be a strategy in TOML",
        ),
        (lambda: an.calibrate(-1, 1e-6), "epsilon is -1"),
        (lambda: an.calibrate(1, 1e-6, steps=10), "sampling_rate is absent but must be given with steps"),
        (lambda: an.account(1, 2), "delta is 2"),
        (
            lambda: an.loss(an.Strategy.design("identity", 8), 9),
            "steps is 9 but must be left out: the strategy is given, over 8",
        ),
    ],
)
def test_what_is_wrong_is_named(wrong, message):
    with pytest.raises(ValueError) as caught:
        wrong()
    assert str(caught.value).startswith(message)


def test_a_file_that_is_absent_is_told_by_its_path(tmp_path):
    for read in (an.Strategy.load, an.Plan.load, an.Key.from_file):
        with pytest.raises(FileNotFoundError) as caught:
            read(tmp_path / "absent")
        assert caught.value.filename == str(tmp_path / "absent")
        assert str(caught.value) == f"[Errno 2] No such file or directory: '{tmp_path / 'absent'}'"
