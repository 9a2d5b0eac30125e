"""Users at nodes: which users are asked, and which records are used."""

import logging
import re

import numpy as np
import pytest

pytest.importorskip("flwr")

from federated import COHORT, DIM, FakeGrid, Seen, arrays_of, naive_means, row_of, trained
from flower_run import PLAN, path, train, wrapped
from flwr.app import Error, Message, RecordDict

import antinoise.flower.strategy
from antinoise.flower import QueryUsers, one_user_per_node, reply_with_users, user_record_key


def test_a_user_counts_once_and_only_if_asked(path):
    def change(replies):
        for reply in replies:  # what nobody asked for
            reply.content[user_record_key("stranger")] = arrays_of(np.full(DIM, 9.0))
        stranger = Message(
            RecordDict({"arrays": arrays_of(np.full(DIM, 9.0))}), reply_to=Message(RecordDict(), 999, "train")
        )
        failed = Message(Error(code=0, reason="no"), reply_to=Message(RecordDict(), 998, "train"))
        return [stranger, failed, *replies, *replies]

    inner, grid = Seen(), FakeGrid(change=change)
    strategy = wrapped(path, inner)
    train(strategy, grid, 1)
    assert strategy.reports[0].aggregated == COHORT
    assert np.allclose(
        row_of(inner.seen[0][0].content["arrays"]), next(naive_means(PLAN, grid.asked)), atol=3e-4
    )


def test_a_node_of_one_user_names_its_record_as_it_likes(path):
    class Plain(FakeGrid):
        def answer(self, message):
            row = row_of(message.content["arrays"])
            return Message(
                RecordDict({"arrays": arrays_of(trained(str(message.metadata.dst_node_id), row))}),
                reply_to=message,
            )

    inner, grid = Seen(), Plain(nodes=20)
    strategy = wrapped(path, inner, users=one_user_per_node)
    train(strategy, grid, 1)
    assert strategy.reports[0].aggregated == COHORT and set(grid.asked[0]) < {str(100 + n) for n in range(20)}
    assert np.allclose(
        row_of(inner.seen[0][0].content["arrays"]), next(naive_means(PLAN, grid.asked)), atol=3e-4
    )


def test_users_are_asked_for_once_and_belong_to_one_node():
    grid, users = FakeGrid(users=6, nodes=3), QueryUsers()
    grid.nodes[200] = ["user-0", "late", ""]
    silent = {101}

    def answer(message):
        reply = FakeGrid.answer(grid, message)
        return None if message.metadata.dst_node_id in silent else reply

    grid.answer = answer
    assert users(grid) == {"user-0": 100, "user-3": 100, "user-2": 102, "user-5": 102, "late": 200}
    silent.clear()
    # one of them twice
    assert set(users(grid)) == {f"user-{n}" for n in range(6)} | {"late"} and grid.questions == 5
    del grid.nodes[100]
    assert users(grid)["user-0"] == 200 and "user-3" not in users(grid)


def test_too_few_users_are_an_error_and_not_a_wait_for_ever(path):
    strategy, grid = wrapped(path, any_arrays=True), FakeGrid(users=10)
    with pytest.raises(
        RuntimeError,
        match="Of 10 connected users 2 may take part in step 2, which needs a cohort of 4",
    ):
        train(strategy, grid, 8)
    assert strategy.step == 2 and len(grid.asked) == 2
    assert len(strategy.ledger.participations()) == 8  # nobody was charged for the step that was refused
    grid.nodes[999] = ["new-1", "new-2"]
    train(strategy, grid, 1)
    assert strategy.step == 3


def test_it_waits_for_users_who_connect_in_time(path):
    grid = FakeGrid(users=2)
    grid.get_node_ids = lambda calls=[]: (
        calls.append(1) or (list(grid.nodes) if len(calls) < 3 else [*grid.nodes, *later])
    )
    later = {300: ["a", "b", "c"]}
    full = grid.nodes | later
    grid.answer = lambda m: (setattr(grid, "nodes", full), FakeGrid.answer(grid, m))[1]
    strategy = wrapped(path, timeout=5.0)
    train(strategy, grid, 1)
    assert strategy.step == 1


def test_a_record_of_another_user_is_not_taken(path):
    def change(replies):
        (name,) = replies[0].content.array_records
        replies[0].content[user_record_key("another")] = replies[0].content.pop(name)
        return replies

    strategy = wrapped(path)
    train(strategy, FakeGrid(nodes=40, change=change), 1)
    assert (strategy.reports[0].aggregated, strategy.reports[0].missing) == (COHORT - 1, 1)


def test_a_user_has_one_name_and_similar_names_are_warned_of(path, monkeypatch):
    said = []
    monkeypatch.setattr(antinoise.flower.strategy, "log", lambda level, *words: said.append((level, words)))
    names = ["Ada", "ada", "7", "8", "9", "10"]
    strategy, grid = wrapped(path, users=lambda grid: dict.fromkeys(names, 100)), FakeGrid()
    train(strategy, grid, 1)
    warnings = [words[1] for level, words in said if level == logging.WARNING and "connected" in words[0]]
    assert len(warnings) == 1 and '"Ada" and "ada"' in warnings[0]
    first = grid.asked[0][0]
    with pytest.raises(ValueError, match=f'must be "{first}", as which this user takes part'):
        strategy.ledger.charge([f" {first}"])
    assert f" {first}" not in strategy.ledger.eligible([f" {first}"])


@pytest.mark.parametrize("name", ["half \ud83d", 7])
def test_a_name_that_cannot_be_written_is_refused_before_anyone_is_asked(path, name):
    message = f"name of a user is {re.escape(ascii(name))} but must be a string that can be encoded in UTF-8"
    grid = FakeGrid()
    strategy = wrapped(path, users=lambda grid: {name: 100} | {f"user-{n}": 100 for n in range(10)})
    with pytest.raises(ValueError, match=message):
        train(strategy, grid, 1)
    with pytest.raises(ValueError, match=message):
        strategy.ledger.charge(["user-1", name])
    with pytest.raises(ValueError, match=message):
        reply_with_users(Message(RecordDict(), 100, "query.users"), ["user-1", name])
    assert not grid.asked and strategy.step == 0 and strategy.ledger.participations() == []
