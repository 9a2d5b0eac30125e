"""A wrapped strategy sees noisy means, and nothing else of the users' messages."""

import copy
import pickle

import numpy as np
import pytest

pytest.importorskip("flwr")

from federated import (
    COHORT,
    DIM,
    START,
    FakeGrid,
    Seen,
    arrays_of,
    clipped,
    key,
    naive_means,
    row_of,
    trained,
)
from flower_run import PLAN, check_schedule, path, train, wrapped
from flwr.app import Array, ArrayRecord, ConfigRecord
from flwr.serverapp.strategy import FedAdam, FedAvg, Strategy

import antinoise as an
from antinoise.flower.updates import Model, sum_of_clipped


def test_a_strategy_sees_noisy_means_alone(path):
    inner, grid = Seen(), FakeGrid()
    strategy = wrapped(path, inner, run="a")
    result = train(strategy, grid, PLAN.steps)
    assert strategy.step == PLAN.steps == len(grid.asked) == len(inner.seen)
    wanted = list(naive_means(PLAN, grid.asked, run="a"))
    for replies, row in zip(inner.seen, wanted, strict=True):
        (reply,) = replies
        got = row_of(reply.content["arrays"])
        # Rounding of the sum may change it by one point of the grid.
        assert got.dtype == np.float32 and np.allclose(got, row, atol=3e-4) and len(set(got)) == DIM
        assert dict(reply.content["metrics"]) == {"num-examples": 1} and set(reply.content) == {
            "arrays",
            "metrics",
        }
    assert np.array_equal(row_of(result.arrays), got) and all(
        not metrics for metrics in result.train_metrics_clientapp.values()
    )
    steps = check_schedule(strategy.ledger)
    assert sorted((user, t) for user, found in steps.items() for t in found) == sorted(
        (u, t) for t, c in enumerate(grid.asked) for u in c
    )
    assert all(len(set(cohort)) == COHORT for cohort in grid.asked) and grid.questions == 10
    assert [(r.requested, r.aggregated, r.missing) for r in strategy.reports] == [
        (COHORT, COHORT, 0)
    ] * PLAN.steps


def test_one_step_is_bit_by_bit_that_of_a_stream(path):
    inner, grid = Seen(), FakeGrid()
    train(wrapped(path, inner), grid, 1)
    total, row = np.zeros(DIM), row_of(START)
    for user in grid.asked[0]:
        update = (row - trained(user, row).astype(float)).astype(np.float32)
        total += clipped(update.astype(float), (1 - 2**-20) * PLAN.clip_norm)
    out, stream = np.empty(DIM, np.float32), an.NoiseStream(PLAN, DIM, key())
    stream.add_to_sum(total, out)
    assert np.array_equal(
        row_of(inner.seen[0][0].content["arrays"]), (row - out.astype(float) / COHORT).astype(np.float32)
    )


def test_an_adaptive_strategy_is_post_processing(path):
    inner, grid = FedAdam(fraction_evaluate=0.0, eta=0.1), FakeGrid()
    strategy = wrapped(path, inner)
    result = train(strategy, grid, 3)
    assert strategy.step == 3 and (row_of(result.arrays) != row_of(START)).all()
    assert (inner.fraction_train, inner.min_train_nodes, inner.min_available_nodes) == (1.0, 2, 2)
    # The strategy changes precisions; updates in either precision are accepted.
    assert {report.aggregated for report in strategy.reports} == {COHORT}


def test_the_divisor_does_not_depend_on_who_answers(path):
    kept = []

    def change(replies):
        kept.append(row_of(next(iter(replies[0].content.array_records.values()))))
        return replies[:1]

    inner, grid = Seen(), FakeGrid(nodes=40, change=change)
    strategy = wrapped(path, inner)
    train(strategy, grid, 1)
    assert (strategy.reports[0].requested, strategy.reports[0].aggregated, strategy.reports[0].missing) == (
        COHORT,
        1,
        COHORT - 1,
    )
    stream, out, row = an.NoiseStream(PLAN, DIM, key()), np.empty(DIM, np.float32), row_of(START)
    stream.add_to_sum(clipped(row - kept[0].astype(float), PLAN.clip_norm), out)
    assert np.allclose(row_of(inner.seen[0][0].content["arrays"]), row - out / COHORT, atol=3e-4)


def test_clipped_updates_are_never_longer_than_the_clip_norm():
    made, cut = np.random.default_rng(1), 0
    for _ in range(200):
        update = (made.normal(size=50) * made.uniform(0.01, 1)).astype(np.float32)
        model = Model(ArrayRecord({"w": Array(np.zeros(50, np.float32))}))
        trained = ArrayRecord({"w": Array(-update)})
        total, fates = sum_of_clipped(model, [trained, None], 0.7, None, lambda reason: None)
        length, clip = np.linalg.norm(total), 0.7
        assert fates == ["aggregated", None]
        assert np.allclose(
            total, update * min(1, clip / np.linalg.norm(update)), rtol=2e-6
        ) and length <= clip * (1 - 2**-21)
        cut += np.linalg.norm(update) > clip
    assert 50 < cut < 200


@pytest.mark.parametrize("bound", [0.0, -1.0, float("nan")])
def test_a_bound_on_updates_is_above_zero(path, bound):
    with pytest.raises(ValueError, match="zero_beyond is .* but must be above 0"):
        wrapped(path, zero_beyond=bound)


def changed(record):
    """One of the replies is changed."""

    def change(replies):
        name = next(iter(replies[0].content.array_records))
        replies[0].content[name] = record(replies[0].content[name])
        return replies

    return change


NUMBERS = np.zeros((2, 3), np.float32)

BROKEN = Array(dtype="float32", shape=(2, 3), stype="numpy.ndarray", data=b"no numbers")


@pytest.mark.parametrize(
    "record, what",
    [
        (lambda r: arrays_of(np.full(DIM, np.nan)), "not_finite"),
        (lambda r: arrays_of(np.r_[np.inf, np.zeros(6)]), "not_finite"),
        (lambda r: arrays_of(np.full(DIM, 1e200), np.float64), "not_finite"),
        (lambda r: arrays_of(np.r_[1e3, row_of(r)[1:]]), "zeroed"),
        (lambda r: ArrayRecord({"w": Array(NUMBERS)}), "malformed"),
        (lambda r: ArrayRecord({"w": Array(NUMBERS.T.copy()), "b": r["b"]}), "malformed"),
        (lambda r: ArrayRecord({"w": Array(NUMBERS.astype(int)), "b": r["b"]}), "malformed"),
        (lambda r: ArrayRecord({"w": Array(np.array([["x"] * 3] * 2)), "b": r["b"]}), "malformed"),
        (lambda r: ArrayRecord({"w": BROKEN, "b": r["b"]}), "malformed"),
        (lambda r: ArrayRecord({}), "malformed"),
    ],
)
def test_what_is_no_update_counts_as_zero(path, record, what):
    inner, grid = Seen(), FakeGrid(nodes=40, change=changed(record))
    strategy = wrapped(path, inner, zero_beyond=100.0)
    train(strategy, grid, 1)
    (report,) = strategy.reports
    assert (getattr(report, what), report.aggregated, report.missing) == (1, COHORT - 1, 0)
    row, stream, got = (
        row_of(START),
        an.NoiseStream(PLAN, DIM, key()),
        row_of(inner.seen[0][0].content["arrays"]),
    )
    found = []
    for left_out in grid.asked[0]:
        out, stream = np.empty(DIM, np.float32), an.NoiseStream(PLAN, DIM, key())
        stream.add_to_sum(
            sum(clipped(row - trained(u, row).astype(float), 0.5) for u in grid.asked[0] if u != left_out),
            out,
        )
        found.append(np.abs(row - out / COHORT - got).max())
    assert min(found) < 3e-4 < max(found)


def test_no_round_past_the_plans_last(path):
    strategy, grid = wrapped(path), FakeGrid()
    result = train(strategy, grid, 5)
    assert strategy.rounds_left(result.arrays) == 3
    result = train(strategy, grid, 3, result.arrays)  # Flower counts from 1 again
    asked = len(grid.asked)
    for arrays in (result.arrays, START):
        with pytest.raises(RuntimeError, match="all 8 steps of this plan have been made"):
            train(strategy, grid, 1, arrays)
    assert len(grid.asked) == asked == 8 and strategy.rounds_left(result.arrays) == 0


def test_evaluation_by_clients_is_left_out_unless_it_is_public(path, tmp_path):
    class Evaluating(Seen):
        def configure_evaluate(self, *given):
            return ["message"]

        def aggregate_evaluate(self, *given):
            return "metrics"

    private = wrapped(path, Evaluating())
    assert (
        private.configure_evaluate(1, START, ConfigRecord(), None) == []
        and private.aggregate_evaluate(1, []) is None
    )
    public = wrapped(tmp_path / "other.db", Evaluating(), evaluation_is_public=True)
    assert (
        public.configure_evaluate(1, START, ConfigRecord(), None) == ["message"]
        and public.aggregate_evaluate(1, []) == "metrics"
    )


def test_a_strategy_that_fails_gets_the_same_bits_again(path):
    class Failing(Seen):
        def aggregate_train(self, server_round, replies):
            done = super().aggregate_train(server_round, replies)
            if len(self.seen) == 2:
                raise OSError("disk is full")
            return done

    inner, grid = Failing(), FakeGrid()
    strategy = wrapped(path, inner)
    first = train(strategy, grid, 1).arrays
    with pytest.raises(OSError):
        train(strategy, grid, 1, first)
    assert strategy.step == 2 and strategy.rounds_left(first) == PLAN.steps - 1
    train(strategy, grid, 2, first)
    assert strategy.step == 3 and len(grid.asked) == 3  # nobody was asked again
    seen = [row_of(replies[0].content["arrays"]) for replies in inner.seen]
    assert np.array_equal(seen[1], seen[2]) and not np.array_equal(seen[2], seen[3])


def test_a_model_that_stays_as_it_was_gets_fresh_noisy_sums(path):
    class Idle(Seen):
        def aggregate_train(self, server_round, replies):
            super().aggregate_train(server_round, replies)
            return START, None

    inner = Idle()
    strategy = wrapped(path, inner)
    train(strategy, FakeGrid(), 3)
    assert strategy.step == 3 and len({row_of(r[0].content["arrays"]).tobytes() for r in inner.seen}) == 3


@pytest.mark.parametrize(
    "how, message",
    [
        (dict(key=None), "key is None but must be a key: the ledger has not begun"),
        (
            dict(plan=an.plan(40, 4, epochs=2, epsilon=8, delta=1e-5)),
            "participation of the plan is cyclic:10,2 of units example but must be min-sep:B,K of users",
        ),
    ],
)
def test_what_is_wrong_is_named(path, how, message):
    with pytest.raises(ValueError, match=message):
        wrapped(path, **how)


def test_arrays_that_cannot_be_noised_are_refused(path):
    strategy = wrapped(path)
    with pytest.raises(ValueError, match="count is of dtype int64 but must be of a floating one"):
        train(strategy, FakeGrid(), 1, ArrayRecord({"count": Array(np.zeros(3, int))}))
    with pytest.raises(ValueError, match="arrays are without numbers"):
        train(strategy, FakeGrid(), 1, ArrayRecord({}))
    with pytest.raises(RuntimeError, match="aggregate_train was called before configure_train"):
        strategy.aggregate_train(1, [])


def test_a_strategy_that_chooses_nodes_itself_is_refused(path):
    class Choosing(Seen):
        def configure_train(self, server_round, arrays, config, grid):
            return list(super().configure_train(server_round, arrays, config, grid))[:1]

    strategy = wrapped(path, Choosing())
    with pytest.raises(ValueError, match="messages of the strategy are for 1 nodes but must be one for each"):
        train(strategy, FakeGrid(nodes=40), 1)
    assert strategy.ledger.participations() == []


def test_its_statement_says_what_is_assumed(path):
    statement = wrapped(path).statement
    assert statement.startswith(PLAN.statement) and "nodes name users rightly" in statement


def test_it_is_not_copied(path):
    strategy = wrapped(path)
    for copied in (
        lambda: pickle.dumps(strategy),
        lambda: copy.copy(strategy),
        lambda: copy.deepcopy(strategy),
    ):
        with pytest.raises(TypeError, match="two of them would use the same noise twice"):
            copied()
    assert isinstance(strategy, Strategy) and not isinstance(strategy, FedAvg)
