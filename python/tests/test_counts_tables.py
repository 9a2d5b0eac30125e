"""Running counts: tables that are read, and tables that are refused."""

import csv
import ctypes
import datetime
import io
import time

import numpy as np
import pytest
from counts_tables import NAMES, ROW, columns, create

import antinoise as an


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
