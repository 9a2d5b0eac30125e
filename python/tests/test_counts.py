"""Running counts: the command line's figures and settings, from every kind of table."""

import csv
import json
import time

import pytest
from counts_tables import COLUMNS, EVENTS, HOW, MARGINALS, NAMES, QUERIES, columns, copies, create, tables

import antinoise as an


def test_marginals_need_no_key_and_add_up(tmp_path):
    with an.RunningCounts.create(tmp_path / "made", ["all"], queries=MARGINALS, **HOW) as counts:
        counts.freeze(0, EVENTS, time="day", user="user")
        table = counts.publish().to_dict()
        values = dict(zip(table["bucket"], table["value"]))
        summed = sum(values[f"shop=a;value {bucket}"] for bucket in ("below 10", "10 to 20", "20 or above"))
        assert summed == pytest.approx(values["shop=a"], abs=1e-9)
        (query,) = counts.status()["queries"]
        assert [table["columns"] for table in query["tables"]] == ["shop", "value", "shop,value"]
        with pytest.raises(ValueError, match="shop of an event"):
            counts.freeze(1, [{"day": 1, "user": "u", "shop": "d", "value": 3.5}], time="day", user="user")


def test_figures_are_the_command_lines_bit_for_bit_from_every_table(antinoise, tmp_path):
    create(
        tmp_path / "made", queries=QUERIES, weights=[1, 1, 1, 2, 1, 1, 1], non_negative=True, monotone=True
    ).close()
    found = dict(tables())
    told, *others = copies(tmp_path / "made", tmp_path, ["told", *found])
    (tmp_path / "events.csv").write_text(
        "day,user,shop,value\n" + "".join("{day},{user},{shop},{value}\n".format(**row) for row in EVENTS)
    )
    options = [
        "--events",
        "events.csv",
        "--time",
        "day",
        "--user",
        "user",
        "--key",
        "shop",
        "--value",
        "value",
        "--json",
    ]
    frozen, rows = [], []
    for day in range(3):
        frozen.append(
            json.loads(antinoise("release", "freeze", told, day, *options, cwd=tmp_path).stdout)["frozen"][0]
        )
        rows += json.loads(antinoise("release", "publish", told, "--json").stdout)["published"]
    for (name, events), folder in zip(found.items(), others):
        events = list(events) if name == "generator" else events
        with an.RunningCounts.open(folder) as counts:
            published = []
            for day in range(3):
                report = counts.freeze(day, events, **COLUMNS, value="value")
                assert frozen[day] == {"period": day} | report, name
                published.append(counts.publish().to_dict())
            assert {n: sum((t[n] for t in published), []) for n in published[0]} == {
                n: [row[n] for row in rows] for n in rows[0]
            }, name
            assert counts.published().to_dict() == {n: [row[n] for row in rows] for n in rows[0]}


def test_settings_are_the_command_lines(antinoise, tmp_path):
    counts = create(tmp_path / "counts", queries=QUERIES)
    status = counts.status()
    told = json.loads(antinoise("release", "status", tmp_path / "counts", "--json").stdout)
    assert {name: told[name] for name in status if name != "queries"} == {
        n: v for n, v in status.items() if n != "queries"
    }
    assert [query["query"] for query in status["queries"]] == QUERIES
    assert [q["largest_standard_deviation"] for q in status["queries"]] == [
        q["largest_standard_deviation"] for q in told["queries"]
    ]
    for change, message in (
        ({"epsilon": -1}, "epsilon is -1"),
        ({"max_periods": None}, "max_periods is absent"),
        ({"queries": "windows:3"}, 'query is "windows:3" but must be counts'),
        ({"weights": [1, 2]}, "weights is 2 but must be one for each of 1 queries"),
        ({"unit": "person"}, 'unit is "person" but must be user or event'),
    ):
        with pytest.raises(ValueError, match=message):
            create(tmp_path / "refused", **change)
    assert not (tmp_path / "refused").exists()
    with pytest.raises(ValueError, match="folder is .* but must be a new folder"):
        create(tmp_path / "counts")
    with pytest.raises(ValueError, match="absent but must be a release"):
        an.RunningCounts.open(tmp_path / "absent")


def test_frames_take_the_figures(tmp_path):
    counts = create(tmp_path / "counts")
    for day in range(2):
        counts.freeze(day, EVENTS, **COLUMNS)
    published = counts.publish()
    plain = published.to_dict()
    assert (
        len(published) == 6
        and published.columns == list(plain)
        and "Table(6 rows: period, key" in repr(published)
    )
    assert plain["key"] == ["a", "b", "c"] * 2 and plain["period"] == [0, 0, 0, 1, 1, 1]
    assert (
        all(isinstance(value, int) for value in plain["value"] + plain["lower"])
        and plain["query"] == ["counts"] * 6
    )
    assert len(counts.publish()) == 0 and counts.published().to_dict() == plain
    answer = counts.query(
        "SELECT key, MAX(upper) AS most, 0.5 AS half, NULL AS empty FROM published GROUP BY key ORDER BY key"
    )
    most = [max(u for u, k in zip(plain["upper"], plain["key"]) if k == key) for key in "abc"]
    expected = {"key": ["a", "b", "c"], "most": most, "half": [0.5] * 3, "empty": [None] * 3}
    assert answer.to_dict() == expected
    for sql in (
        "SELECT * FROM participations",
        "DELETE FROM published",
        "WITH x AS (SELECT 1) DELETE FROM published",
        "nothing",
    ):
        with pytest.raises(ValueError, match="one SELECT on the table published"):
            counts.query(sql)
    sums = create(tmp_path / "sums", queries=["sum:-1,1"], unit="event", max_periods=None, max_rows=1)
    sums.freeze("2026-03-01", {"t": ["2026-03-01"], "k": ["a"], "v": [2]}, time="t", key="k", value="v")
    assert [type(x) for x in sums.publish().to_dict()["value"]] == [float] * 3
    pa = pytest.importorskip("pyarrow")
    assert pa.table(published).to_pydict() == plain and pa.table(answer).to_pydict() == expected
    assert pa.table(counts.publish()).num_rows == 0
    polars, duckdb, pandas = (pytest.importorskip(name) for name in ("polars", "duckdb", "pandas"))
    assert polars.DataFrame(published).to_dict(as_series=False) == plain
    assert duckdb.sql("SELECT SUM(value) FROM published").fetchall() == [(sum(plain["value"]),)]
    assert pandas.DataFrame(plain).value.sum() == sum(plain["value"])


def test_counts_of_a_warehouse(tmp_path):
    counts = create(tmp_path / "counts", epsilon=20)
    for given, message in (({"d": 1}, "key is"), ({"a": -1}, "key is")):
        with pytest.raises(ValueError, match=message):
            counts.freeze_counts(0, given)
    counts.freeze_counts(0, {"a": 100_000, "c": 7})
    assert "their supplier vouches" in " ".join(counts.status()["statement"].split())
    value = counts.publish().to_dict()["value"]
    assert abs(value[0] - 100_000) < 500 and abs(value[1]) < 500


def test_status_without_an_end_is_the_command_lines(antinoise, tmp_path):
    folder = tmp_path / "counts"
    made = antinoise(
        "release",
        "init",
        folder,
        *[
            "--keys",
            "a,b",
            "--periods",
            "open",
            "--epsilon",
            "1",
            "--delta",
            "1e-6",
            "--unit",
            "user",
            "--max-periods",
            "3",
        ],
    )
    assert made.returncode == 0, made.stderr
    told = json.loads(antinoise("release", "status", folder, "--json").stdout)
    with an.RunningCounts.open(folder) as counts:
        status = counts.status()
    assert status["periods"] is None and len(status["queries"][0]["after"]) == 5
    assert {name: told[name] for name in status if name != "queries"} == {
        n: v for n, v in status.items() if n != "queries"
    }
    assert [query["after"] for query in status["queries"]] == [query["after"] for query in told["queries"]]


def test_counts_of_many_keys_are_found_by_name(tmp_path):
    keys = [f"k{i}" for i in range(20_000)]
    counts = an.RunningCounts.create(
        tmp_path / "counts", keys, periods=2, epsilon=1000, delta=1e-6, unit="event"
    )
    counts.freeze_counts(0, {key: 1000 * i for i, key in enumerate(keys)})
    assert all(abs(value - 1000 * i) < 400 for i, value in enumerate(counts.publish().to_dict()["value"]))


def test_users_at_their_bounds_are_published(tmp_path):
    counts = an.RunningCounts.create(tmp_path / "left", ["a"], **(HOW | dict(epsilon=1000, left_out=True)))
    for day in range(4):
        rows = [{"t": day, "u": f"u{i}", "k": "a"} for i in range(50) for _ in range(1 + i % 4)]
        counts.freeze(day, rows, **NAMES)
    figures = counts.publish().to_dict()
    last = dict(zip(figures["query"], figures["value"]))
    # All 50 in 3 periods; 12 with 3 rows and 12 with 4, in each of three.
    assert abs(last["users-at-bound"] - 50) < 10 and abs(last["users-over-rows"] - 72) < 10
    queries = {query["query"]: query for query in counts.status()["queries"]}
    assert queries["users-at-bound"]["of_all"] and not queries["counts"]["of_all"]
    given = an.RunningCounts.create(tmp_path / "given", ["a"], **(HOW | dict(left_out=True)))
    with pytest.raises(ValueError, match="users-over-rows is absent"):
        given.freeze_counts(0, {"a": 3})
    given.freeze_counts(0, {"a": 3, "users-over-rows": 1, "users-at-bound": 0})
