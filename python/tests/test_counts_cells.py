"""Running counts: what the cells of periods, times and users mean."""

import datetime
import decimal
import io
import time
import warnings

import numpy as np
import pytest
from counts_tables import HOW, NAMES, ROW, create, tables

import antinoise as an


def instants():
    """The same instants in several types, and the day on each column's own clock."""
    pa = pytest.importorskip("pyarrow")
    moments = [
        datetime.datetime(2026, 3, 1, 23, 30),
        datetime.datetime(2026, 3, 2, 0, 30),
        datetime.datetime(1969, 12, 31, 23),
    ]
    for unit in ("s", "ms", "us", "ns"):
        yield pa.array(moments, pa.timestamp(unit)), 1
        yield pa.array(moments, pa.timestamp(unit, "UTC")), 1
        # An hour east of UTC both instants are on 2 March; an hour west, on 1 March.
        yield pa.array(moments, pa.timestamp(unit, "+01:00")), 0
        yield pa.array(moments, pa.timestamp(unit, "-01:00")), 2
    days = [moment.date() for moment in moments]
    yield pa.array(days, pa.date32()), 1
    yield pa.array(days, pa.date64()), 1
    yield pa.array([moment.isoformat() for moment in moments]), 1


def test_times_are_read_by_their_own_clock(tmp_path):
    pa = pytest.importorskip("pyarrow")
    for i, (times, expected) in enumerate(instants()):
        table = pa.table({"t": times, "user": pa.array([1, 2, 3], pa.int64()), "key": ["a", "b", "c"]})
        counts = create(tmp_path / str(i))
        # The first row is of the day before, which has to be confirmed.
        with pytest.raises(
            ValueError, match="before 2026-03-01, the first period|2026-03-01 is after|no row lies"
        ):
            counts.freeze("2026-03-01", table, time="t", user="user", key="key")
        found = counts.freeze("2026-03-01", table, time="t", user="user", key="key", yes=True)
        assert (found["counted"], found["late"]) == (expected, 1), times.type
    moments = [
        datetime.datetime(2026, 3, 1, 23, 30),
        datetime.date(2026, 3, 1),
        np.datetime64("2026-03-01T05:00:00.5"),
        "2026-03-01",
    ]
    rows = [{"t": t, "user": np.int64(i), "key": np.str_("a")} for i, t in enumerate(moments)]
    assert (
        create(tmp_path / "rows").freeze(datetime.date(2026, 3, 1), rows, time="t", user="user", key="key")[
            "counted"
        ]
        == 4
    )
    zone = pa.table(
        {"t": pa.array(moments[:1], pa.timestamp("s", "Europe/Berlin")), "user": ["u"], "key": ["a"]}
    )
    with pytest.raises(ValueError, match="Europe/Berlin.* must be .*at a fixed offset or without a zone"):
        create(tmp_path / "zone").freeze("2026-03-01", zone, time="t", user="user", key="key")


def test_periods_are_text_whole_numbers_or_dates(tmp_path):
    class Index:
        def __index__(self):
            return 3

    good = [0, np.int64(1), np.uint8(2), Index(), "4"]
    days = [
        "2026-03-01",
        datetime.date(2026, 3, 2),
        np.datetime64("2026-03-03"),
        np.str_("2026-03-04"),
        np.datetime64("2026-04"),
    ]
    moment = datetime.datetime(2026, 3, 1)
    bad = [
        None,
        True,
        np.True_,
        b"1",
        [1],
        1.0,
        decimal.Decimal(1),
        moment,
        datetime.time(1),
        np.datetime64("NaT", "D"),
        np.datetime64("2026-03-01T05"),
    ]
    bad += [
        np.datetime64("2026-03-01", "ns"),
        np.datetime64("2026"),
        np.datetime64("2026-03-05", "W"),
        np.timedelta64(1, "D"),
        np.timedelta64(1),
        2**70,
        {},
    ]
    try:
        import pandas

        bad += [
            pandas.NaT,
            pandas.NA,
            pandas.Timestamp(moment),
            pandas.Period("2026-03-01"),
            pandas.Timedelta(1),
        ]
    except ImportError:
        pass
    for name, periods in (("numbers", good), ("days", days)):
        counts = create(tmp_path / name)
        for period in bad:
            for freeze in (
                lambda: counts.freeze(period, [], **NAMES),
                lambda: counts.freeze_counts(period, {}),
            ):
                with pytest.raises(ValueError, match="period is .* must be"):
                    freeze()
        for period in periods:
            counts.freeze(period, [], **NAMES, yes=True)
        published = counts.publish().to_dict()["period"][::3]
        assert published == ([0, 1, 2, 3, 4] if name == "numbers" else [str(day) for day in days])
    with pytest.raises(ValueError, match=r"of type datetime but must be .*give day.date\(\) or text"):
        counts.freeze(moment, [], **NAMES)


def test_a_mistyped_period_is_refused(tmp_path):
    names = dict(time="t", user="u", key="k")
    rows = [{"t": "2026-03-02", "u": "ada", "k": "a"}]
    with create(tmp_path / "counts") as counts:
        wanted = {"counted": 1, "left_out": 0, "lost": 0, "late": 0, "later": 0, "problems": []}
        assert counts.freeze("2026-03-02", rows, **names, check=True) == wanted
        found = counts.freeze("2062-03-02", rows, **names, check=True)
        assert found["problems"] == ["2062-03-02 is after the only row"] and found["counted"] == 0
        with pytest.raises(ValueError, match="2062-03-02 but must be confirmed by yes=True or corrected"):
            counts.freeze("2062-03-02", rows, **names)
        assert counts.status()["frozen"] == 0
        assert counts.freeze("2026-03-02", rows, **names)["skipped"] == 0
        later = [{"t": f"2026-03-0{day}", "u": "ada", "k": "a"} for day in (3, 5)]
        with pytest.raises(ValueError, match="1 row between 2026-03-02 and 2026-03-05"):
            counts.freeze("2026-03-05", later, **names)
        found = counts.freeze("2026-03-05", later, **names, yes=True)
        assert (found["lost"], found["skipped"]) == (1, 2)
        with pytest.raises(ValueError, match="differs in form from the first period, 2026-03-02"):
            counts.freeze_counts("2026-04", {"a": 1})
        with pytest.raises(
            ValueError, match="3652 periods between 2026-03-05 and 2036-03-05 would be skipped"
        ):
            counts.freeze_counts("2036-03-05", {"a": 1})
        with pytest.raises(
            ValueError, match="2026-02-30.* must be a month, a date or a time of the calendar"
        ):
            counts.freeze_counts("2026-02-30", {"a": 1})
        counts.freeze_counts("2026-04", {"a": 1}, yes=True)
        assert counts.status()["intervals"].startswith("of the rows counted: at most ")


def test_cells_of_python_mean_what_cells_of_tables_do(tmp_path):
    bools = [True, False, np.True_, "true", "false", 1]
    counts = create(tmp_path / "users", max_rows=1)
    # The values are user "true" three times (True), user "false" twice (False), and another user (1).
    assert counts.freeze(0, [{"t": 0, "u": u, "k": "a"} for u in bools], **NAMES)["counted"] == 3
    keys = an.RunningCounts.create(tmp_path / "keys", ["true", "1"], **HOW)
    assert keys.freeze(0, {"t": [0, 0], "u": ["x", "y"], "k": [True, 1]}, **NAMES)["counted"] == 2
    with pytest.raises(ValueError, match=r"time of an event \(row 0\) is of type bool but must be"):
        keys.freeze(1, {"t": [True], "u": ["x"], "k": [True]}, **NAMES)
    moments = [
        np.datetime64(f"2026-03-01T05:00:00.{i}", unit) for i, unit in enumerate(("s", "ms", "us", "ns"))
    ]
    days = create(tmp_path / "days")
    rows = [{"t": moment, "u": i, "k": "a"} for i, moment in enumerate(moments)]
    assert days.freeze("2026-03-01", rows, **NAMES)["counted"] == 4
    assert (
        days.freeze(
            "2026-03-02",
            {"t": np.array(moments, "datetime64[ns]"), "u": [0] * 4, "k": ["a"] * 4},
            **NAMES,
            late="next",
            # All rows are of the day before.
            yes=True,
        )["rows"]
        == 4
    )
    with pytest.raises(ValueError, match="time of an event .* is of type timedelta64"):
        days.freeze("2026-03-03", [ROW | {"t": np.timedelta64(5, "ns")}], **NAMES)
    for user in (np.datetime64(5, "ns"), np.timedelta64(5, "ns"), decimal.Decimal(7)):
        with pytest.raises(
            ValueError, match="user of an event .* but must be text, a whole number, or true or false"
        ):
            days.freeze("2026-03-03", [ROW | {"t": "2026-03-03", "u": user}], **NAMES)
    sums = create(tmp_path / "sums", queries="sum:0,9")
    for value in (np.datetime64(5, "ns"), np.timedelta64(5, "ns"), True, np.True_):
        with pytest.raises(
            ValueError, match=r"value of an event \(row 0\) is of type .* but must be a number"
        ):
            sums.freeze(0, [ROW | {"v": value}], **NAMES, value="v")
    assert (
        sums.freeze(
            0,
            [ROW | {"v": value} for value in (1, 1.5, np.float32(2), decimal.Decimal("2.5"))],
            **NAMES,
            value="v",
        )["rows"]
        == 4
    )


def spellings(number):
    """Python values that mean this integer."""
    yield from (number, str(number), f" 0{number}", f"+{number}")
    yield from (np.uint64(number), *([np.int64(number)] if number < 2**63 else []))
    if number < 2**53:
        yield from (float(number), np.float64(number), f"{number}.0", f"{number:.16e}", repr(float(number)))
    if number < 2**24:
        yield np.float32(number)


def test_a_whole_number_is_one_user_in_every_table(tmp_path):
    pa, pandas = pytest.importorskip("pyarrow"), pytest.importorskip("pandas")
    random = np.random.default_rng(7)
    drawn = [
        int(number) >> int(shift)
        for number, shift in zip(random.integers(0, 2**63, 1500), random.integers(0, 60, 1500))
    ]
    numbers = sorted({0, 7, 2**53 - 1, 2**53 + 1, 2**64 - 1, *drawn})
    exact = [number for number in numbers if number < 2**53]
    one, words = dict(max_rows=1, max_periods=1, periods=20), dict(time="t", user="u", key="k")

    def rows(users, period=0):
        return [{"t": period, "u": user, "k": "a"} for user in users]

    with create(tmp_path / "rows", **one) as counts:
        assert counts.freeze(0, rows(cell for number in numbers for cell in spellings(number)), **words)[
            "counted"
        ] == len(numbers)
        # The same users in every other table: they are counted in one period, and none is left.
        texts = [
            str(cell) for number in numbers for cell in spellings(number) if isinstance(cell, (str, int))
        ]
        beside_an_empty_cell = pandas.DataFrame({"u": [*exact, None], "t": [1] * len(exact) + [99], "k": "a"})
        assert beside_an_empty_cell["u"].dtype == "float64"
        tables = [
            beside_an_empty_cell,
            pandas.read_csv(io.StringIO(beside_an_empty_cell.to_csv(index=False))),
            pa.table({"u": pa.array(numbers, pa.uint64())}),
            pa.table({"u": pa.array(texts).dictionary_encode()}),
            pa.table({"u": pa.array([float(number) for number in exact])}),
            pa.table({"u": pa.array(texts, pa.large_string())}),
            {"u": np.array(exact, "float64")},
            {"u": numbers},
        ]
        for period, table in enumerate(tables, 1):
            if not hasattr(table, "iloc"):
                size = len(table["u"])
                more = {"t": [period] * size, "k": ["a"] * size}
                table = pa.table({"u": table["u"], **more}) if isinstance(table, pa.Table) else table | more
            else:
                table = table.assign(t=table["t"].where(table["t"] == 99, period))
            tally = counts.freeze(period, table, **words, yes=True)
            assert tally["counted"] == 0 and tally["beyond_max_periods"] >= len(exact), period
        for user in (7.5, float("inf"), 2.0**53, np.float32(2**24), "7.5", "1e30", "nan"):
            with pytest.raises(ValueError, match=r"user of an event .*row 0.* is "):
                counts.freeze(15, rows([user], 15), **words)
        assert counts.status()["frozen"] == 1 + len(tables)


def test_names_that_are_nearly_the_same_are_warned_of(tmp_path):
    with create(tmp_path / "counts") as counts:
        users = [
            {"t": 0, "u": user, "k": "a"} for user in ("ada", "Ada", "e\u0301mile", "\u00e9mile", "grace")
        ]
        with pytest.warns(UserWarning, match='2 users have names that differ .* such as "Ada" and "ada"'):
            counts.freeze(0, users, time="t", user="u", key="k")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            counts.freeze(1, [{"t": 1, "u": "grace", "k": "a"}], time="t", user="u", key="k")
            with pytest.raises(UserWarning, match='"GRACE" and "grace"'):
                counts.freeze(2, [{"t": 2, "u": "GRACE", "k": "a"}], time="t", user="u", key="k")
        assert counts.status()["frozen"] == 2
