"""Running counts: the command line's figures, from every kind of table, also after kills."""

import copy
import csv
import ctypes
import datetime
import decimal
import io
import json
import os
import pickle
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest
from conftest import interrupted, other_thread

import antinoise as an

HOW = dict(periods=6, epsilon=2, delta=1e-6, max_periods=3, max_rows=2, left_out=False)
EVENTS = [
    {"day": i % 6, "user": f"u{i * 7 % 23}", "shop": "abc"[i % 3], "value": float(i % 50)} for i in range(600)
]
COLUMNS = dict(time="day", user="user", key="shop")


def create(folder, **other):
    return an.RunningCounts.create(folder, ["a", "b", "c"], **(HOW | other))


def columns(events=EVENTS):
    return {name: [row[name] for row in events] for name in events[0]}


def tables(events=EVENTS):
    """The events in each library's type of table."""
    named = columns(events)
    yield "dicts", events
    yield "generator", (row for row in events)
    yield "lists", named
    yield "arrays", {name: np.array(cells) for name, cells in named.items()}
    try:
        import pyarrow as pa
    except ImportError:
        return
    table = pa.table(named)
    yield "pyarrow", table
    yield (
        "batches",
        pa.Table.from_batches(
            [batch for i in range(0, len(events), 7) for batch in table.slice(i, 7).to_batches()]
        ),
    )
    for text in (pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())):
        cast = {name: table[name].cast(text) for name in ("user", "shop")}
        yield str(text), table.set_column(1, "user", cast["user"]).set_column(2, "shop", cast["shop"])
    try:
        import pandas

        yield "pandas", pandas.DataFrame(named)
        yield (
            "categories",
            pandas.DataFrame(named).astype({"shop": "category", "day": "uint16", "value": "float32"}),
        )
        import polars

        yield "polars", polars.DataFrame(named)
        import duckdb

        yield "duckdb", duckdb.from_arrow(table)
    except ImportError:
        return


def copies(folder, tmp_path, names):
    """One release in several folders: equal publications show that equal counts were frozen."""
    for name in names:
        subprocess.run(["cp", "-r", folder, tmp_path / name], check=True)
        an.RunningCounts.adopt(tmp_path / name).close()
    return [tmp_path / name for name in names]


MARGINALS = "marginals:shop=a|b|c;value@10,20;ways=1,2"
QUERIES = ["counts", "window:2", "decay:0.5", "sum:0,40", "histogram:10,20", "cdf:10,20", MARGINALS]


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


def test_what_cannot_be_read_is_refused_and_leaves_nothing_behind(tmp_path):
    pa = pytest.importorskip("pyarrow")
    counts = create(tmp_path / "counts", queries=["counts", "sum:0,1"])
    good = {"t": [1, 1, 1], "u": ["x", "y", "z"], "k": ["a", "b", "c"], "v": [1.0, 2.0, 3.0]}
    names = dict(time="t", user="u", key="k", value="v")
    refusals = [
        ({"u": ["x", None, "z"]}, r"user of an event \(row 1\) is null but must be given"),
        ({"k": ["a", "b", None]}, r"key of an event \(row 2\) is null but must be given"),
        ({"t": [None, 1, 1]}, r"time of an event \(row 0\) is null but must be given"),
        ({"v": [1.0, None, 3.0]}, r"value of an event \(row 1\) is null but must be given"),
        ({"v": [1.0, 2.0, float("nan")]}, r"value of an event \(row 2\) is"),
        ({"k": ["a", "b", "?"]}, r'key of an event \(row 2\) is "\?" but must be one of the release\'s keys'),
        ({"u": ["x", "", "z"]}, r"user of an event \(row 1\) is empty but must be given"),
        ({"t": [2, 2, 2]}, "period is 1 but must be one in which some of the events lie"),
    ]
    for change, message in refusals:
        for events in (pa.table(good | change), good | change):
            with pytest.raises(ValueError, match=message):
                counts.freeze(1, events, **names)
    types = [
        (
            {"u": [datetime.date(2026, 3, 1)] * 3},
            r'"u" is of type Date32 but must be text, numbers or true and false',
        ),
        (
            {"k": [b"a", b"b", b"c"]},
            r'"k" is of type Binary but must be text, whole numbers or true and false',
        ),
        ({"v": ["1", "2", "3"]}, r'"v" is of type Utf8 but must be numbers'),
    ]
    for change, message in types:
        with pytest.raises(ValueError, match=message):
            counts.freeze(1, pa.table(good | change), **names)
    for events in (pa.table(good | {"u": [2.0, 1.5, 3.0]}), good | {"u": [2.0, 1.5, 3.0]}):
        with pytest.raises(
            ValueError, match=r'user of an event \(row 1\) is "1.5" but must be a name or a whole number'
        ):
            counts.freeze(1, events, **names)
    for change in ({"u": [datetime.date(2026, 3, 1)] * 3}, {"k": [b"a", b"b", b"c"]}, {"v": ["1", "2", "3"]}):
        with pytest.raises(ValueError, match=r"\(row 0\) is of type .* but must be"):
            counts.freeze(1, good | change, **names)
    with pytest.raises(ValueError, match='column "k" is absent but must be one of the columns t, u, v'):
        counts.freeze(1, pa.table({n: good[n] for n in "tuv"}), **names)
    with pytest.raises(ValueError, match='column "k" is absent'):
        counts.freeze(1, {n: good[n] for n in "tuv"}, **names)
    with pytest.raises(
        ValueError, match="user is absent but must be the name of a column: users are protected"
    ):
        counts.freeze(1, good, time="t", key="k", value="v")
    with pytest.raises(ValueError, match="events is of type int but must be a table"):
        counts.freeze(1, 7, **names)
    with pytest.raises(ValueError, match="shorter|longer"):
        counts.freeze(1, good | {"v": [1.0]}, **names)
    for word, message in (({"late": "no"}, "late is"), ({"unknown": "no"}, "unknown is")):
        with pytest.raises(ValueError, match=message):
            counts.freeze(1, good, **names, **word)
    broken = pa.Array.from_buffers(
        pa.utf8(), 3, [None, pa.array([0, 1, 2, 3], pa.int32()).buffers()[1], pa.py_buffer(b"a\xffc")]
    )
    with pytest.raises(ValueError, match='column "k" is not as its type says'):
        counts.freeze(1, pa.table(good | {"k": broken}), **names)

    def breaks_off():
        yield {"t": 1, "u": "x", "k": "a", "v": 1.0}
        raise LookupError("no more")

    with pytest.raises(LookupError, match="no more"):
        counts.freeze(1, breaks_off(), **names)
    assert counts.status()["frozen"] == 0 and counts.freeze(1, good, **names)["counted"] == 3
    with pytest.raises(ValueError, match="1 was frozen, and a row is counted once"):
        counts.freeze(1, good, **names)


def test_rows_that_do_not_belong(tmp_path):
    rows = [
        {"t": t, "u": f"u{i}", "k": k} for i, (t, k) in enumerate([(0, "a"), (1, "a"), (2, "a"), (1, "?")])
    ]
    names = dict(time="t", user="u", key="k", unknown="leave")
    left = create(tmp_path / "leave").freeze(1, rows, **names, yes=True)
    exact = dict(rows=2, counted=1, beyond_max_rows=0, beyond_max_periods=0, unknown_keys=1)
    assert left == exact | dict(late=1, lost=0, later=1, skipped=0)
    assert create(tmp_path / "next").freeze(1, rows, **names, late="next")["counted"] == 2
    with pytest.raises(
        ValueError, match=r"time of an event \(row 0\) is 0 but must be not before the period 1"
    ):
        create(tmp_path / "refuse").freeze(1, rows, **names, late="refuse")


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


def test_one_writer_and_no_copies(antinoise, tmp_path):
    counts = create(tmp_path / "counts")
    with pytest.raises(ValueError, match="in use by another process"):
        an.RunningCounts.open(tmp_path / "counts")
    beside = antinoise("release", "publish", tmp_path / "counts")
    assert beside.returncode == 2 and "in use by another process" in beside.stderr
    assert antinoise("release", "status", tmp_path / "counts").returncode == 0
    for copied in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="a RunningCounts cannot be pickled or copied"):
            copied(counts)
    with pytest.raises(TypeError):
        an.RunningCounts()
    counts.freeze(0, EVENTS, **COLUMNS)
    counts.close()
    counts.close()
    with pytest.raises(ValueError, match="counts is closed"):
        counts.publish()
    assert counts.status()["frozen"] == 1
    with an.RunningCounts.open(tmp_path / "counts") as again:
        assert len(again.publish()) == 3
    subprocess.run(["cp", "-r", tmp_path / "counts", tmp_path / "copy"], check=True)
    with pytest.raises(
        ValueError,
        match=r"a copy \(release.db is another file\) but must be the folder that the release was made in",
    ):
        an.RunningCounts.open(tmp_path / "copy")


def test_after_a_fork_counts_are_refused_and_the_parents_go_on(tmp_path):
    counts = create(tmp_path / "counts")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        told = []
        for use in (
            lambda: counts.freeze(0, EVENTS, **COLUMNS),
            counts.publish,
            counts.published,
            counts.status,
            counts.close,
        ):
            try:
                use()
                told.append("done")
            except RuntimeError as error:
                told.append(str(error))
        del use, counts
        os.write(write, "\n".join(told).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        told = pipe.read().splitlines()
    assert os.waitpid(child, 0)[1] == 0
    assert len(told) == 5 and all("copied by a fork into process" in line for line in told), told
    assert counts.freeze(0, EVENTS, **COLUMNS)["counted"] > 0 and len(counts.publish()) == 3


KILLED = """
import sys, antinoise as an
sys.path.insert(0, sys.argv[2])
from test_counts import COLUMNS, EVENTS
with an.RunningCounts.open(sys.argv[1]) as counts:
    print("open", flush=True)
    for day in range(counts.status()["frozen"], 6):
        counts.freeze(day, EVENTS, **COLUMNS)
        counts.publish()
    counts.publish()
"""


def test_killed_at_any_moment_it_goes_on_with_the_same_figures(tmp_path):
    create(tmp_path / "made", queries=["counts", "window:2"]).close()
    whole, killed = copies(tmp_path / "made", tmp_path, ["whole", "killed"])
    command = [sys.executable, "-c", KILLED]
    subprocess.run([*command, whole, os.path.dirname(__file__)], check=True, stdout=subprocess.DEVNULL)
    for delay in [0.002 * i for i in range(12)]:
        running = subprocess.Popen([*command, killed, os.path.dirname(__file__)], stdout=subprocess.PIPE)
        running.stdout.readline()
        time.sleep(delay)
        running.kill()
        running.wait()
        running.stdout.close()
    subprocess.run([*command, killed, os.path.dirname(__file__)], check=True, stdout=subprocess.DEVNULL)
    with an.RunningCounts.open(whole) as one, an.RunningCounts.open(killed) as other:
        assert len(one.published()) == 36 and one.published().to_dict() == other.published().to_dict()


def test_other_threads_run_and_ctrl_c_leaves_nothing_behind(tmp_path):
    pa = pytest.importorskip("pyarrow")
    rows = 4_000_000
    users = pa.array(np.arange(rows) % 1000)
    events = pa.table(
        {
            "t": pa.array(np.zeros(rows, np.int64)),
            "u": users,
            "k": pa.array(["a"]).take(pa.array(np.zeros(rows, np.int64))),
        }
    )
    counts, names = create(tmp_path / "counts"), dict(time="t", user="u", key="k")
    with other_thread() as passed:
        for rows in (events, ({"t": 0, "u": i, "k": "a"} for i in range(10**9))):

            def other_threads_run():
                turn = passed[0] + 6
                while passed[0] < turn:
                    time.sleep(0.001)

            interrupted(lambda rows=rows: counts.freeze(0, rows, **names), other_threads_run)
    assert counts.status()["frozen"] == 0

    def reentrant():
        yield {"t": 0, "u": "x", "k": "a"}
        counts.publish()

    with pytest.raises(RuntimeError, match="another call uses this RunningCounts"):
        counts.freeze(0, reentrant(), **names)
    assert counts.freeze(0, [{"t": 0, "u": "x", "k": "a"}], **names)["counted"] == 1


NAMES = dict(time="t", user="u", key="k")
ROW = {"t": 0, "u": "x", "k": "a"}


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
        told = counts.publish().to_dict()["period"][::3]
        assert told == ([0, 1, 2, 3, 4] if name == "numbers" else [str(day) for day in days])
    with pytest.raises(ValueError, match=r"of type datetime but must be .*give day.date\(\) or text"):
        counts.freeze(moment, [], **NAMES)


class Changed:
    """A table's Arrow stream after `change` of each array, whose first integers are length, null_count,
    offset, n_buffers and n_children.
    """

    def __init__(self, table, change):
        self.table, self.change = table, change

    def __arrow_c_stream__(self, requested_schema=None):
        capsule = self.table.__arrow_c_stream__()
        pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
        pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        # get_schema, get_next, get_last_error, release and private_data.
        stream = (ctypes.c_void_p * 5).from_address(pointer_of(capsule, b"arrow_array_stream"))
        kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
        get_next = kind(stream[1])

        def changed(this, out):
            code = get_next(this, out)
            self.change((ctypes.c_int64 * 10).from_address(out))
            return code

        self.kept = kind(changed)
        stream[1] = ctypes.cast(self.kept, ctypes.c_void_p).value
        return capsule


def test_tables_that_contradict_themselves_are_refused_and_the_folder_is_given_back(tmp_path):
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"t": [0, 0], "u": ["x", "y"], "k": ["a", "b"]})

    def fewer_columns(array):
        array[4] = min(array[4], 2)

    def longer(array):
        array[0] = min(array[0], 1) * 9

    counts = create(tmp_path / "counts")
    for change in (fewer_columns, longer):
        with pytest.raises(ValueError, match="events is a stream that cannot be read"):
            counts.freeze(0, Changed(table, change), **NAMES)
    assert counts.freeze(0, Changed(table, lambda array: None), **NAMES)["counted"] == 2
    with (
        pytest.raises(
            ValueError,
            match=(
                r"events is a stream that cannot be read \(its parts contradict each other\) but must be as Arrow"
            ),
        ),
        counts,
    ):
        counts.freeze(1, Changed(table, fewer_columns), **NAMES)
    with an.RunningCounts.open(tmp_path / "counts") as counts:
        nested = pa.int64()
        for depth in range(100):
            nested = pa.list_(nested)
            schema = pa.schema(
                [("t", pa.int64()), ("u", pa.string()), ("k", pa.string()), ("unread", nested)]
            )
            if depth in (50, 99):
                empty = pa.Table.from_batches([], schema=schema)
                if depth == 50:
                    counts.freeze(1, empty, **NAMES, yes=True)
                    continue
                with pytest.raises(ValueError, match="nested deeper than 64"):
                    counts.freeze(2, empty, **NAMES)
        used = table.to_reader()
        list(used)
        counts.freeze(2, used, **NAMES)
        capsule = table.__arrow_c_stream__()
        given = type("Given", (), {"__arrow_c_stream__": lambda self, schema=None: capsule})()
        assert counts.freeze(3, given, **NAMES, late="next", yes=True)["counted"] == 2
        with pytest.raises(ValueError, match="it was used up"):
            counts.freeze(4, given, **NAMES)


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


def test_rows_that_are_null_as_a_whole_are_refused(tmp_path):
    pa = pytest.importorskip("pyarrow")
    cells = [pa.array([0, 0, 0]), pa.array(["x", "hidden", "y"]), pa.array(["a", "b", "c"])]
    counts = create(tmp_path / "counts")
    for mask in ([False, True, False], [False] * 3):
        rows = pa.chunked_array([pa.StructArray.from_arrays(cells, ["t", "u", "k"], mask=pa.array(mask))])
        if any(mask):
            for part in (rows, rows.slice(1)):
                with pytest.raises(
                    ValueError,
                    match="events is a table with 1 rows that are null as a whole but must be one without such rows",
                ):
                    counts.freeze(0, part, **NAMES)
        else:
            assert counts.freeze(0, rows, **NAMES)["counted"] == 3


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


ENDLESS = """
import sys, antinoise as an
with an.RunningCounts.open(sys.argv[1]) as counts:
    print("open", flush=True)
    try:
        counts.query("WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT COUNT(*) FROM n")
    except KeyboardInterrupt:
        print("interrupted", counts.query("SELECT 1 AS one").to_dict(), flush=True)
"""


def test_ctrl_c_ends_a_query(tmp_path):
    create(tmp_path / "counts").close()
    running = subprocess.Popen(
        [sys.executable, "-c", ENDLESS, tmp_path / "counts"], stdout=subprocess.PIPE, text=True
    )
    try:
        running.stdout.readline()
        time.sleep(0.2)
        running.send_signal(signal.SIGINT)
        assert running.communicate(timeout=60)[0] == "interrupted {'one': [1]}\n"
    finally:
        running.kill()


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


def test_columns_are_sequences_of_cells(tmp_path):
    counts = create(tmp_path / "counts")
    for column in ("ab", b"ab", bytearray(b"ab"), {"a": 1, "b": 2}, {"a", "b"}, frozenset("ab")):
        with pytest.raises(
            ValueError, match='column "k" is of type .* but must be a list, an array or another sequence'
        ):
            counts.freeze(0, {"t": [0, 0], "u": ["x", "y"], "k": column}, **NAMES)
    assert (
        counts.freeze(0, {"t": (0, 0), "u": iter("xy"), "k": np.array(["a", "b"])}, **NAMES)["counted"] == 2
    )


def test_counts_of_many_keys_are_found_by_name(tmp_path):
    keys = [f"k{i}" for i in range(20_000)]
    counts = an.RunningCounts.create(
        tmp_path / "counts", keys, periods=2, epsilon=1000, delta=1e-6, unit="event"
    )
    counts.freeze_counts(0, {key: 1000 * i for i, key in enumerate(keys)})
    assert all(abs(value - 1000 * i) < 400 for i, value in enumerate(counts.publish().to_dict()["value"]))


def test_tables_of_equal_columns_and_of_no_rows(tmp_path):
    counts = create(tmp_path / "counts")
    counts.freeze(0, [ROW], **NAMES)
    published = counts.publish()
    for sql in ("SELECT 1 AS a, 2 AS a", "SELECT key, key FROM published"):
        with pytest.raises(
            ValueError,
            match="sql is a SELECT of two columns .* but must be one whose columns have different names",
        ):
            counts.query(sql)
    assert counts.query("SELECT 1 AS a, 2 AS A").to_dict() == {"a": [1], "A": [2]}
    pa = pytest.importorskip("pyarrow")
    assert pa.table(counts.publish()).schema == pa.table(published).schema
    assert pa.concat_tables([pa.table(published), pa.table(counts.publish())]).num_rows == 3


def test_iterators_are_used_up(tmp_path):
    counts = create(tmp_path / "counts")
    rows = csv.DictReader(io.StringIO("t,u,k\n0,x,a\n1,y,b\n"))
    assert counts.freeze(0, rows, **NAMES)["rows"] == 1
    with pytest.raises(ValueError, match="no row is counted in 1"):
        counts.freeze(1, rows, **NAMES)
    assert counts.freeze(1, rows, **NAMES, yes=True)["rows"] == 0


def test_generators_of_tables_may_be_interrupted(tmp_path):
    pa = pytest.importorskip("pyarrow")
    batch = pa.record_batch({name: [cell] for name, cell in ROW.items()})

    def batches():
        yield batch
        signal.raise_signal(signal.SIGINT)
        yield batch

    counts = create(tmp_path / "counts")
    with pytest.raises(KeyboardInterrupt):
        counts.freeze(0, pa.RecordBatchReader.from_batches(batch.schema, batches()), **NAMES)
    assert counts.status()["frozen"] == 0

    def breaks_off():
        yield batch
        raise LookupError("no more")

    with pytest.raises(ValueError, match="events is a stream that broke off .*no more"):
        counts.freeze(0, pa.RecordBatchReader.from_batches(batch.schema, breaks_off()), **NAMES)
    assert counts.freeze(0, batch, **NAMES)["counted"] == 1


def test_a_generator_that_forks_freezes_in_the_parent_alone(tmp_path):
    counts, parent = create(tmp_path / "counts"), os.getpid()

    def forks():
        yield ROW
        child = os.fork()
        if child:
            told.append(os.waitpid(child, 0)[1])
        yield {"t": 0, "u": "parent" if child else "child", "k": "b"}

    told = []
    try:
        found = counts.freeze(0, forks(), **NAMES)
        error = ""
    except RuntimeError as refused:
        error = str(refused)
    if os.getpid() != parent:
        os._exit(7 if "copied by a fork into process" in error else 1)
    assert os.waitstatus_to_exitcode(told[0]) == 7 and found["counted"] == 2
    assert counts.status()["frozen"] == 1


def test_a_folder_stays_where_it_was_made(tmp_path, monkeypatch):
    for place in ("north", "south"):
        (tmp_path / place).mkdir()
        monkeypatch.chdir(tmp_path / place)
        counts = an.RunningCounts.create("visits", ["a"], periods=2, epsilon=1, delta=1e-6, unit="event")
        if place == "north":
            north = counts
    north.freeze(0, [{"t": 0, "k": "a"}], time="t", key="k")
    rows = north.publish().to_dict()
    assert north.published().to_dict() == rows and north.status()["published"] == 1
    assert counts.published().to_dict()["key"] == [] and counts.status()["published"] == 0
    assert os.path.samefile(north.folder, tmp_path / "north" / "visits")


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
