#!/usr/bin/env python3
"""Makes crates/release/tests/data/events.parquet, as other programs write such files, and the same rows as
an Arrow file (.arrow), an Arrow stream (.arrows), a compressed Arrow file (.feather) and CSV.

    pip install pyarrow && python3 scripts/release/parquet.py
"""

import csv
import datetime
from pathlib import Path

import pyarrow
import pyarrow.feather
import pyarrow.parquet

FOLDER = Path(__file__).resolve().parents[2] / "crates" / "release" / "tests" / "data"
START = datetime.datetime(2026, 3, 1, 22, tzinfo=datetime.timezone.utc)
SHOPS = ["north", "south", "east", "elsewhere"]


def rows():
    for i in range(500):
        yield {
            "time": START + datetime.timedelta(minutes=7 * i),
            "user": 100 + i * i % 37,
            "shop": SHOPS[i * 5 % 7 % 4],
            "minutes": i * 11 % 50 / 2,
            "late": i * i % 5 < 2,
        }


def main():
    FOLDER.mkdir(exist_ok=True)
    columns = {name: [row[name] for row in rows()] for name in next(rows())}
    table = pyarrow.table(columns).append_column("note", pyarrow.nulls(500, pyarrow.list_(pyarrow.int8())))
    pyarrow.parquet.write_table(table, FOLDER / "events.parquet", row_group_size=128, compression="zstd")
    # Text as indices into a dictionary, as other programs write columns with few different texts.
    words = table.set_column(2, "shop", table["shop"].dictionary_encode())
    for name, begin in [("arrow", pyarrow.ipc.new_file), ("arrows", pyarrow.ipc.new_stream)]:
        with begin(FOLDER / f"events.{name}", words.schema) as writer:
            writer.write_table(words, max_chunksize=128)
    pyarrow.feather.write_feather(table, FOLDER / "events.feather")
    with open(FOLDER / "events.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(
            {**row, "time": row["time"].strftime("%Y-%m-%dT%H:%M:%S"), "late": str(row["late"]).lower()}
            for row in rows()
        )


if __name__ == "__main__":
    main()
