"""Events in each library's type of table, and releases that count them."""

import subprocess

import numpy as np

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
NAMES = dict(time="t", user="u", key="k")
ROW = {"t": 0, "u": "x", "k": "a"}
