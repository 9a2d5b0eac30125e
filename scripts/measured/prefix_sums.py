"""Losses of prefix sums in the tables of the monograph and of the multi-epoch paper."""

import math
import struct
import tempfile
from pathlib import Path

from .program import antinoise, head, loss

NS = [8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192]


# Monograph, Tables 2.2 and 2.3: the published figure at each n of NS; None where it has none.
MAX_LOSS = {
    "identity": [2.828, 4.0, 5.657, 8.0, 11.314, 16.0, 22.627, 32.0, 45.255, 64.0, 90.51],
    "workload": [2.828, 4.0, 5.657, 8.0, 11.314, 16.0, 22.627, 32.0, 45.255, 64.0, 90.51],
    "blt:4": [1.723, 1.944, 2.168, 2.391, 2.61, 2.832, 3.054, 3.273, 3.494, 3.716, 3.939],
    "toeplitz": [1.718, 1.944, 2.167, 2.389, 2.61, 2.831, 3.052, 3.273, 3.493, 3.714, 3.935],
    "toeplitz+square-root+column-normalized": [
        1.573,
        1.783,
        1.997,
        2.212,
        2.428,
        2.645,
        2.863,
        3.081,
        3.299,
        3.518,
        3.737,
    ],
    "dense": [1.51, 1.704, 1.905, 2.111, 2.32, 2.532, 2.746, 2.958, 3.177, None, None],
}


RMS_LOSS = {
    "identity": [2.121, 2.915, 4.062, 5.701, 8.031, 11.336, 16.016, 22.638, 32.008, 45.26, 64.004],
    "workload": [2.828, 4.0, 5.657, 8.0, 11.314, 16.0, 22.627, 32.0, 45.255, 64.0, 90.51],
    "honaker-online": [2.178, 2.663, 3.156, 3.652, 4.151, 4.65, 5.15, 5.65, 6.15, 6.65, 7.15],
    "honaker-full": [1.656, 1.938, 2.227, 2.518, 2.81, 3.102, 3.394, 3.686, 3.978, 4.269, 4.56],
    "blt:4": [1.544, 1.751, 1.964, 2.18, 2.398, 2.617, 2.837, 3.057, 3.278, 3.499, 3.72],
    "toeplitz": [1.544, 1.75, 1.963, 2.179, 2.397, 2.616, 2.836, 3.057, 3.277, 3.498, 3.718],
    "toeplitz+column-normalized": [1.512, 1.714, 1.922, 2.135, 2.35, 2.567, 2.784, 3.003, 3.221, 3.44, 3.66],
    "dense": [1.494, 1.689, 1.892, 2.1, 2.311, 2.524, 2.739, 2.955, 3.172, None, None],
}


def table_of(published, objective):
    def section():
        rows = []
        for strategy, figures in published.items():
            for n, figure in zip(NS, figures):
                if figure is not None:
                    found = loss(f"--strategy {strategy} --steps {n} --objective {objective}")
                    rows.append({"strategy": strategy, "n": n, "published": figure, **found})
        return rows

    return section


def show_table(published, objective):
    def show(rows):
        lines = head("n", *published)
        for n in NS:
            cells = []
            for strategy in published:
                row = next((row for row in rows if (row["strategy"], row["n"]) == (strategy, n)), None)
                if row is None:
                    cells.append("")
                    continue
                found = row[f"{objective}_loss"]
                same = abs(found - row["published"]) <= 0.0005001
                cells.append(f"{found:.4f}" + ("" if same else f" (published {row['published']})"))
            lines.append(f"| {n} | " + " | ".join(cells) + " |")
        differing = [row for row in rows if abs(row[f"{objective}_loss"] - row["published"]) > 0.0005001]
        lines.append("")
        lines.append(
            f"{len(rows) - len(differing)} of {len(rows)} figures agree with the published ones to the digits"
            " printed; the others are marked."
        )
        return "\n".join(lines)

    return show


# Multi-epoch paper, Table 1, as printed: total loss for prefix sums, (k, b) = (20, 100), n = 2000.
MULTI_EPOCH = {
    1: ["5.8e6", "2.4e6", "2.3e6", "2.2e6", "1.6e6", "6.5e5"],
    2: ["3.3e6", "1.6e6", "1.8e6", "1.5e6", "1.37e6", "8.8e5"],
    4: [None, None, None, None, "1.4e6", "1.2e6"],
    5: ["2.1e6", "1.2e6", "1.6e6", "1.1e6", "1.5e6", None],
    10: ["2.0e6", "1.4e6", "1.9e6", "1.2e6", "1.8e6", None],
    20: ["2.1e6", "1.8e6", "2.5e6", "1.7e6", "2.5e6", None],
}


COLUMNS = [
    "honaker-online",
    "honaker-full",
    "fourier",
    "fourier-optimal",
    "dense, designed for one epoch",
    "dense, for all epochs",
]


def multi_epoch():
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for restarts, figures in MULTI_EPOCH.items():
            for column, figure in zip(COLUMNS, figures):
                if figure is None:
                    continue
                again = f"--restarts {restarts}" if restarts > 1 else ""
                if column == "dense, for all epochs":
                    found = loss(f"--strategy dense --steps 2000 {again} --participation cyclic:100,20")
                elif column.startswith("dense"):
                    path = Path(folder) / "strategy.toml"
                    loss(f"--strategy dense --steps 2000 {again} --out {path} --force")
                    found = loss(f"--strategy file:{path} --steps 2000 --participation cyclic:100,20")
                else:
                    found = loss(f"--strategy {column} --steps 2000 {again} --participation cyclic:100,20")
                rows.append({"restarts": restarts, "column": column, **found})
    return rows


def show_multi_epoch(rows):
    lines = head("restarts", *COLUMNS)
    checked = agree = 0
    for restarts in MULTI_EPOCH:
        cells = []
        for column in COLUMNS:
            row = next((row for row in rows if (row["restarts"], row["column"]) == (restarts, column)), None)
            printed = MULTI_EPOCH[restarts][COLUMNS.index(column)]
            if row is None or printed is None:
                cells.append("")
                continue
            checked += 1
            agree += as_printed(row["total_loss"], printed)
            cells.append(f"{row['total_loss']:.4g} ({printed})".replace("e+0", "e"))
        lines.append(f"| {restarts} | " + " | ".join(cells) + " |")
    return (
        "\n".join(lines) + f"\n\nIn brackets what the paper prints; {agree} of {checked} agree to its digits."
    )


def as_printed(x, printed):
    """Whether x, rounded to the digits of the text `printed`, equals it."""
    digits = len(printed.split("e")[0].replace(".", ""))
    return math.isclose(float(f"{x:.{digits - 1}e}"), float(printed))


# Multi-epoch paper, Table 6, as printed, with all entries of C^T C that count at least 0 (Eq. 36).
FEW_STEPS = {"prefix": 6.461, "momentum:0.95": 16.131}


def few_steps():
    command = "--strategy dense --steps 6 --participation cyclic:2,3 --workload"
    return [{"workload": workload, **loss(f"{command} {workload}")} for workload in FEW_STEPS]


def show_few_steps(rows):
    lines = head("workload", "sqrt of total loss", "printed")
    for row in rows:
        printed = FEW_STEPS[row["workload"]]
        lines.append(f"| {row['workload']} | {math.sqrt(row['total_loss']):.4f} | {printed} |")
    lines.append(
        "\nThe four errors under other constraints on these entries, which no command has, are reproduced by"
        " the test of `mechanism/src/design/dense/tests.rs`."
    )
    return "\n".join(lines)


def one_draw():
    """Root mean square errors of the prefix sums of 2000 draws in two dimensions."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        key = Path(folder) / "key"
        key.write_bytes(bytes(range(32)))
        key.chmod(0o600)
        for strategy in ["dense", "identity"]:
            out = Path(folder) / f"{strategy}.npy"
            antinoise(
                f"noise --strategy {strategy} --objective max --steps 40 --dim 4000 --key-file {key} --out"
                f" {out}"
            )
            data = out.read_bytes()
            numbers = struct.unpack("<160000f", data[-640000:])
            errors = []
            for draw in range(2000):
                sums, squares = [0.0, 0.0], 0.0
                for step in range(40):
                    for axis in (0, 1):
                        sums[axis] += numbers[4000 * step + 2 * draw + axis]
                    squares += sums[0] ** 2 + sums[1] ** 2
                errors.append(math.sqrt(squares / 40))
            errors.sort()
            found[strategy] = {"median": errors[1000], "low": errors[50], "high": errors[1949]}
    return found


def show_one_draw(found):
    lines = head("strategy", "one draw, published", "median of 2000", "95% of them")
    for strategy, published in [("dense", 2.34), ("identity", 6.02)]:
        row = found[strategy]
        lines.append(
            f"| {strategy} | {published} | {row['median']:.2f} | {row['low']:.2f} to {row['high']:.2f} |"
        )
    return "\n".join(lines)


SECTIONS = {
    "max-loss": (
        "Streaming prefix sums, max loss",
        "Monograph, Table 2.2: one participation, max loss.",
        table_of(MAX_LOSS, "max"),
        show_table(MAX_LOSS, "max"),
    ),
    "rms-loss": (
        "Streaming prefix sums, RMS loss",
        "Monograph, Table 2.3: one participation, RMS loss.",
        table_of(RMS_LOSS, "rms"),
        show_table(RMS_LOSS, "rms"),
    ),
    "multi-epoch": (
        "Several epochs",
        (
            "Multi-epoch paper, Table 1: total loss sens^2 ||B||_F^2 of prefix sums, "
            "20 participations exactly 100 apart, 2000 steps."
        ),
        multi_epoch,
        show_multi_epoch,
    ),
    "few-steps": (
        "Signs of the entries of C^T C",
        "Multi-epoch paper, Table 6: n = 6, three participations two apart.",
        few_steps,
        show_few_steps,
    ),
    "one-draw": (
        "One draw in two dimensions",
        (
            "Monograph, figure 1.6: n = 40, unit noise, the dense mechanism of least max "
            "loss; root mean square error of the prefix sums."
        ),
        one_draw,
        show_one_draw,
    ),
}
