#!/usr/bin/env python3
"""Makes crates/train/data/digits.bin.gz from the digits.csv.gz that scikit-learn's wheel carries.

    pip download --no-deps scikit-learn
    python3 scripts/train/embed_digits.py scikit_learn-*.whl crates/train/data/digits.bin.gz

Layout after gunzip: 1,797 images of 64 bytes (rows from the top, ink 0..16), then 1,797 label bytes (0..9),
both in the order of the CSV file.
"""

import gzip
import sys
import zipfile

MEMBER = "sklearn/datasets/data/digits.csv.gz"


def main(wheel: str, output: str) -> None:
    text = gzip.decompress(zipfile.ZipFile(wheel).read(MEMBER)).decode("ascii")
    rows = [[int(float(cell)) for cell in line.split(",")] for line in text.split()]
    assert len(rows) == 1797 and all(len(row) == 65 for row in rows)
    assert all(0 <= ink <= 16 for row in rows for ink in row[:64])
    assert all(0 <= row[64] <= 9 for row in rows)
    raw = bytes(ink for row in rows for ink in row[:64]) + bytes(row[64] for row in rows)
    with open(output, "wb") as file:
        file.write(gzip.compress(raw, 9, mtime=0))


if __name__ == "__main__":
    main(*sys.argv[1:])
