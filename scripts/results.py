#!/usr/bin/env python3
"""Measures the figures of docs/RESULTS.md, and writes that page.

    scripts/results.py                    every section but the long ones
    scripts/results.py max-loss blt       these sections; the others keep what they measured last
    scripts/results.py --all              every section, fashion-mnist among them (hours on small machines)

Each section runs `antinoise` (built first) and stores its output in docs/results/SECTION.json; the page is
written from all of these files. Needs only Python's standard library.
"""

import json
import math
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import prose

ROOT = Path(__file__).resolve().parent.parent
STORE = ROOT / "docs" / "results"
NS = [8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192]
DENSE_NS = NS[:9]


def binary():
    subprocess.run(["cargo", "build", "--release", "--quiet"], cwd=ROOT, check=True)
    metadata = subprocess.run(
        ["cargo", "metadata", "--format-version", "1", "--no-deps"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return Path(json.loads(metadata)["target_directory"]) / "release" / "antinoise"


def antinoise(arguments):
    global BINARY
    BINARY = BINARY or binary()
    line = arguments.split()
    print("antinoise", arguments, file=sys.stderr)
    done = subprocess.run([str(BINARY), *line, "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"antinoise {arguments}: {done.stderr}")
    return json.loads(done.stdout)


def loss(arguments):
    found = antinoise("loss " + arguments)
    return {key: found[key] for key in ("max_loss", "rms_loss", "total_loss", "gap", "status", "seconds")}


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
        lines = ["| n | " + " | ".join(published) + " |", "|---|" + "---|" * len(published)]
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
    lines = ["| restarts | " + " | ".join(COLUMNS) + " |", "|---|" + "---|" * len(COLUMNS)]
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


# (description, command, figure, reference or bound, how they are compared)
TARGETS = [
    (
        "banded inverse under min-sep, the JAX library's",
        "--strategy banded-inverse:8 --steps 1024 --participation min-sep:64,16",
        "rms_loss",
        17.394,
        "<=",
    ),
    (
        "banded inverse under min-sep",
        "--strategy banded-inverse:4 --steps 256 --participation min-sep:16,16",
        "rms_loss",
        15.460,
        "<=",
    ),
    (
        "banded inverse, short separation",
        "--strategy banded-inverse:4 --steps 256 --participation cyclic:2,8 --objective max",
        "max_loss",
        22.839,
        "<=",
    ),
    (
        "dense, momentum",
        "--strategy dense --steps 3 --workload momentum:0.9 --objective max",
        "max_loss",
        2.710,
        "=",
    ),
    (
        "dense, several participations",
        "--strategy dense --steps 64 --workload nesterov:0.95 --participation cyclic:4,16 --objective max",
        "max_loss",
        240.6,
        "<=",
    ),
    (
        "dense under min-sep, all entries free",
        "--strategy dense --steps 16 --participation min-sep:1,5 --objective max",
        "max_loss",
        6.367,
        "<=",
    ),
    (
        "dense under min-sep, many patterns",
        "--strategy dense --steps 128 --participation min-sep:16,5",
        "rms_loss",
        6.303,
        "<=",
    ),
    (
        "Toeplitz, several participations",
        "--strategy toeplitz --steps 1024 --participation cyclic:64,16",
        "rms_loss",
        16.250,
        "<=",
    ),
    (
        "Toeplitz, windows",
        "--strategy toeplitz --steps 100 --workload window:10 --participation cyclic:25,4 --objective max",
        "max_loss",
        3.8679,
        "<=",
    ),
    (
        "banded Toeplitz, identity's loss",
        (
            "--strategy banded-toeplitz:8 --steps 16 --workload momentum:0.9 --participation "
            "cyclic:1,16 --objective max"
        ),
        "max_loss",
        93.40,
        "<=",
    ),
    ("banded Toeplitz optimum", "--strategy banded-toeplitz:16 --steps 1024", "rms_loss", 6.34279, "="),
    ("banded Toeplitz optimum", "--strategy banded-toeplitz:16 --steps 16384", "rms_loss", 23.09245, "="),
    ("banded Toeplitz optimum", "--strategy banded-toeplitz:32 --steps 16384", "rms_loss", 16.69789, "="),
    ("banded Toeplitz optimum", "--strategy banded-toeplitz:64 --steps 65536", "rms_loss", 23.45413, "="),
    ("banded Toeplitz optimum", "--strategy banded-toeplitz:16 --steps 100000", "rms_loss", 56.25084, "="),
    ("banded Toeplitz optimum", "--strategy banded-toeplitz:400 --steps 2000", "rms_loss", 3.51022, "="),
    ("banded Toeplitz, large", "--strategy banded-toeplitz:64 --steps 1e6", "rms_loss", None, ""),
    ("banded Toeplitz, large", "--strategy banded-toeplitz:16 --steps 1e7", "rms_loss", None, ""),
    ("general banded, squared", "--strategy banded:16 --steps 1024", "rms_loss^2", 39.6754, "<="),
    (
        "column-normalised Toeplitz, within 2% of it",
        "--strategy banded-toeplitz:16+column-normalized --steps 1024",
        "rms_loss^2",
        1.02**2 * 39.6754,
        "<=",
    ),
    (
        "planned 400 apart, 300 in truth: tapered",
        "--strategy banded-toeplitz:400+tapered:200 --steps 2000 --participation min-sep:300,5",
        "rms_loss",
        8.369,
        "=",
    ),
    (
        "the same, averaged",
        "--strategy banded-toeplitz:400+averaged:200 --steps 2000 --participation min-sep:300,5",
        "rms_loss",
        8.369,
        "<=",
    ),
    (
        "1 / i + c, within 1.0013 of the optimum",
        "--strategy banded-toeplitz:16+harmonic --steps 1024",
        "rms_loss",
        1.00135 * 6.34279,
        "<=",
    ),
    (
        "smooth tree, C(12, 6) = 924 labels: 6",
        "--strategy smooth-tree --steps 900 --objective max",
        "max_loss",
        6.0,
        "=",
    ),
    (
        "weighted tree, below Honaker online's 41.448",
        "--strategy weighted-tree --steps 1024 --participation cyclic:64,16",
        "rms_loss",
        41.448,
        "<=",
    ),
    ("Fourier beyond 4096 steps", "--strategy fourier-optimal --steps 1e5", "rms_loss", 4.645939, "<="),
    ("optimal 3-banded at n = 9, ||B||_F^2", "--strategy banded:3 --steps 9", "total_loss", 24.880865, "="),
    ("BLT, squared", "--strategy blt:2 --steps 2048 --objective max", "max_loss^2", 12.8492, "<="),
    ("BLT, squared", "--strategy blt:3 --steps 2048 --objective max", "max_loss^2", 12.2740, "<="),
    ("BLT, squared", "--strategy blt:4 --steps 2048 --objective max", "max_loss^2", 12.2095, "<="),
    ("BLT, squared", "--strategy blt:5 --steps 2048 --objective max", "max_loss^2", 12.2034, "<="),
    (
        "BLT, 16 participations, squared",
        "--strategy blt:4 --steps 2048 --objective max --participation min-sep:128,16",
        "max_loss^2",
        506.47,
        "<=",
    ),
    (
        "BLT, 16 participations, squared",
        "--strategy blt:4 --steps 2048 --participation min-sep:128,16",
        "rms_loss^2",
        327.63,
        "<=",
    ),
    (
        "BLT, a thousand participations",
        "--strategy blt:6 --steps 1e9 --participation min-sep:1000000,1000",
        "rms_loss",
        None,
        "",
    ),
    (
        "BLT, ten billion steps",
        "--strategy blt:5 --steps 1e10 --objective max",
        "max_loss",
        1.065 * (1 + math.log(1e10) / math.pi),
        "<=",
    ),
    (
        "BLT, ten billion steps",
        "--strategy blt:8 --steps 1e10 --objective max",
        "max_loss",
        1.0135 * (1 + math.log(1e10) / math.pi),
        "<=",
    ),
]


DENSE = [
    ("single participation", "--strategy dense --steps 1024", "rms_loss", None, ""),
    ("single participation", "--strategy dense --steps 2048", "rms_loss", None, ""),
    (
        "(k, b) = (20, 100)",
        "--strategy dense --steps 2000 --participation cyclic:100,20",
        "total_loss",
        6.55e5,
        "<=",
    ),
    (
        "(k, b) = (16, 64), squared",
        "--strategy dense --steps 1024 --participation cyclic:64,16",
        "rms_loss^2",
        215.03,
        "<=",
    ),
]


# Designs over many steps, to measure their seconds.
LARGE = [
    ("banded inverse", "--strategy banded-inverse:16 --steps 1e6", "rms_loss", 14.136525, "<="),
    ("banded inverse", "--strategy banded-inverse:16 --steps 1e7", "rms_loss", None, ""),
    ("many bands", "--strategy banded-toeplitz:100000 --steps 1e6", "rms_loss", 5.8559662, "<="),
    ("general banded", "--strategy banded:64 --steps 2000", "rms_loss", 5.058761, "<="),
    ("general banded", "--strategy banded:64 --steps 20000", "rms_loss", None, ""),
]


def targets(table):
    return lambda: [
        {
            "what": what,
            "command": command,
            "figure": figure,
            "reference": reference,
            "relation": relation,
            **loss(command),
        }
        for what, command, figure, reference, relation in table
    ]


def show_targets(rows):
    lines = [
        "| what | `antinoise loss` | figure | found | reference | gap | seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        name, _, power = row["figure"].partition("^")
        found = row[name] ** (2 if power else 1)
        reference = "" if row["reference"] is None else f"{row['relation']} {row['reference']:.8g}"
        gap = "" if row["gap"] is None else f"{row['gap']:.1e}"
        lines.append(
            f"| {row['what']} | `{row['command']}` | {row['figure']} | {found:.8g} | {reference} | {gap} | "
            f"{row['seconds']:.3g} |"
        )
    return "\n".join(lines)


def amplified():
    bands = "1,2,4,8,16,24,32,40,48,64,96,128,192,256,288,320,384,512,1024,2048"
    return antinoise(
        "bands --examples 2048000 --batch-size 1000 --epochs 8 --epsilon 0.5,1,2,4,8,16 --delta 1e-8 "
        f"--bands {bands} --against blt:2,blt:4,tree,honaker-online,tree+x8,toeplitz+square-root,dense+x8"
    )


def show_amplified(report):
    lines = [
        (
            "| epsilon | best bands | amplified | DP-SGD | 2048 bands, unamplified | BLT 2 | BLT 4 | tree |"
            " Honaker online | tree, restarted each epoch | square root | dense, restarted each epoch |"
        ),
        "|---|" + "---|" * 11,
    ]
    for target in report["targets"]:
        best, first, last = target["rows"][target["best"]], target["rows"][0], target["rows"][-1]
        least = best["amplified"]["rms_loss"]
        others = [first["amplified"], last["unamplified"], *target["against"]]
        ratios = " | ".join(f"{other['rms_loss'] / least:.3f}" for other in others)
        lines.append(f"| {target['epsilon']:g} | {best['bands']} | 1 ({least:.5g}) | {ratios} |")
    lines.append(
        "\nRatios of RMS loss to the amplified one. The paper's figure shows its best alternatives, DP-SGD"
        " and BLT, about twice as bad at epsilon 1, and amplified bands 19% better than the best of them"
        " at 8."
    )
    return "\n".join(lines)


# Multi-epoch paper, Table 3, as printed: noise multipliers at delta 1e-6 of matrix factorization, DP-SGD
# (1000 of 342,477 users in each of 2052 rounds) and gradient descent on all users.
NOISE_MULTIPLIERS = {
    17.648: [0.341, 0.402, 15.518],
    8.841: [0.600, None, None],
    8.824: [None, 0.491, 27.493],
    2.0: [2.231, 0.757, 106.023],
}
SAMPLING = ["", f"--sampling-rate {1000 / 342477!r} --steps 2052", "--sampling-rate 1 --steps 2052"]


def noise_multipliers():
    rows = []
    for epsilon, printed in NOISE_MULTIPLIERS.items():
        for column, figure in enumerate(printed):
            if figure is not None:
                found = antinoise(f"calibrate --epsilon {epsilon} --delta 1e-6 {SAMPLING[column]}")
                rows.append({"epsilon": epsilon, "column": column, "found": found["noise_multiplier"]})
    return rows


def show_noise_multipliers(rows):
    lines = ["| epsilon | one release | DP-SGD | all users in each step |", "|---|---|---|---|"]
    for epsilon, printed in NOISE_MULTIPLIERS.items():
        cells = []
        for column, figure in enumerate(printed):
            found = [row["found"] for row in rows if (row["epsilon"], row["column"]) == (epsilon, column)]
            cells.append(f"{found[0]:.3f} ({figure:.3f})" if found else "")
        lines.append(f"| {epsilon:g} | " + " | ".join(cells) + " |")
    lines.append(
        "\nIn brackets what the paper prints. Its accountant of that time has up to 5% more noise where steps are"
        " composed. The last column is a Gaussian mechanism, whose figure is exact:"
        " sqrt(2052) times that of the first column."
    )
    return "\n".join(lines)


# Multi-epoch paper, Table 6, as printed, with all entries of C^T C that count at least 0 (Eq. 36).
FEW_STEPS = {"prefix": 6.461, "momentum:0.95": 16.131}


def few_steps():
    command = "--strategy dense --steps 6 --participation cyclic:2,3 --workload"
    return [{"workload": workload, **loss(f"{command} {workload}")} for workload in FEW_STEPS]


def show_few_steps(rows):
    lines = ["| workload | sqrt of total loss | printed |", "|---|---|---|"]
    for row in rows:
        printed = FEW_STEPS[row["workload"]]
        lines.append(f"| {row['workload']} | {math.sqrt(row['total_loss']):.4f} | {printed} |")
    return "\n".join(lines)


BANDED = [
    "banded:16",
    "banded-toeplitz:16+column-normalized",
    "banded-toeplitz:16",
    "banded-toeplitz:16+square-root",
]


def bands_by_n():
    steps = [2**i for i in range(5, 15)]
    return [
        {"strategy": strategy, "n": n, **loss(f"--strategy {strategy} --steps {n}")}
        for strategy in BANDED
        for n in steps
    ]


def show_bands_by_n(rows):
    found = {(row["strategy"], row["n"]): row["rms_loss"] for row in rows}
    lines = ["| n | " + " | ".join(BANDED) + " |", "|---|" + "---|" * len(BANDED)]
    for n in sorted({n for _, n in found}):
        cells = [found[strategy, n] / min(found[other, n] for other in BANDED) for strategy in BANDED]
        lines.append(f"| {n} | " + " | ".join(f"{cell:.4f}" for cell in cells) + " |")
    lines.append(
        "\nRMS loss over the least of the row. As in the figure, columns of norm 1 cost at most 2%, and less for more"
        " steps, and the square root up to 25%."
    )
    return "\n".join(lines)


def bands_by_epochs():
    return antinoise(
        "bands --examples 16384 --steps 16384 --delta 1e-8 --epsilon 1,2,4,8 "
        "--batch-size 1,2,4,8,16,32,64,128,256,512,1024,4096,16384"
    )


def show_bands_by_epochs(report):
    lines = []
    for epsilon in sorted({target["epsilon"] for target in report["targets"]}):
        targets = [target for target in report["targets"] if target["epsilon"] == epsilon]
        full = next(t for t in targets if t["batch_size"] == 16384)["rows"][0]["amplified"]["rms_loss"]
        lines += [
            f"Epsilon {epsilon:g}, RMS loss over that of DP-SGD on all examples in each step:",
            "",
            "| epochs k | DP-SGD | n / k bands, not sampled | best bands, sampled | their number | gain by sampling |"
            " gain by correlation |",
            "|---|---|---|---|---|---|---|",
        ]
        for target in targets:
            rows = target["rows"]
            best = min(rows, key=lambda row: row["amplified"]["rms_loss"])
            last = min(row["unamplified"]["rms_loss"] for row in rows)
            first, least = rows[0]["amplified"]["rms_loss"], best["amplified"]["rms_loss"]
            lines.append(
                f"| {target['batch_size']} | {first / full:.3f} | {last / full:.3f} | {least / full:.3f} |"
                f" {best['bands']} | {last / least:.2f} | {first / least:.2f} |"
            )
        lines.append("")
    lines.append(
        "Bands are powers of 2 up to 4096 (so that one epoch without sampling has 4096, not 16384). The last two columns"
        " are figure 6: the loss without sampling, and without correlation, over that with both."
    )
    return "\n".join(lines)


BASELINES = ["blt:4", "toeplitz+square-root", "tree", "honaker-online"]


def baselines():
    against = f"--epsilon 4 --delta 1e-8 --against {','.join(BASELINES)}"
    sizes = [2**i for i in range(8, 17)]
    epochs = [1, 2, 4, 8, 16, 32, 64]
    return {
        "steps": [antinoise(f"bands --examples {n} --steps {n} --batch-size 8 {against}") for n in sizes],
        "epochs": [
            antinoise(f"bands --examples 8192 --steps 8192 --batch-size {k} {against}") for k in epochs
        ],
    }


def show_baselines(reports):
    lines = []
    for name, title in [
        ("steps", "8 epochs, by number of steps n"),
        ("epochs", "8192 steps, by number of epochs k"),
    ]:
        lines += [
            f"{title}:",
            "",
            "| | best bands, sampled | DP-SGD | n / k bands, not sampled | " + " | ".join(BASELINES) + " |",
            "|---|---|---|---|" + "---|" * len(BASELINES),
        ]
        for report in reports[name]:
            target = report["targets"][0]
            least = min(row["amplified"]["rms_loss"] for row in target["rows"])
            others = [
                target["rows"][0]["amplified"]["rms_loss"],
                min(row["unamplified"]["rms_loss"] for row in target["rows"]),
                *(other["rms_loss"] for other in target["against"]),
            ]
            size = report["steps"] if name == "steps" else target["batch_size"]
            ratios = " | ".join(f"{other / least:.3f}" for other in others)
            lines.append(f"| {size} | 1 ({least:.5g}) | {ratios} |")
        lines.append("")
    lines.append(
        "RMS loss over that of the best number of bands with sampling. Numbers of bands are powers of 2 up to n / k and"
        " 4096. The paper finds 25% less than the next best at n = 1e5; 1.503 is 33% less."
    )
    return "\n".join(lines)


# What is designed once, for a separation of 400 (a BLT: of 200 to 400), and used with another one.
FRAGILE = [
    "banded-toeplitz:400",
    "banded-toeplitz:400+tapered:200",
    "banded-toeplitz:400+averaged:200",
    "blt:4",
]
SEPARATIONS = range(200, 401, 25)


def separations():
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for strategy in FRAGILE:
            path = Path(folder) / "strategy.toml"
            planned = 300 if strategy.startswith("blt") else 400
            schema = f"--steps 2000 --participation min-sep:{planned},5"
            loss(f"--strategy {strategy} {schema} --out {path} --force")
            for separation in SEPARATIONS:
                found = loss(f"--strategy file:{path} --steps 2000 --participation min-sep:{separation},5")
                rows.append({"strategy": strategy, "separation": separation, **found})
    return rows


def show_separations(rows):
    found = {(row["strategy"], row["separation"]): row["rms_loss"] for row in rows}
    lines = ["| separation | " + " | ".join(FRAGILE) + " |", "|---|" + "---|" * len(FRAGILE)]
    for separation in SEPARATIONS:
        cells = [f"{found[strategy, separation]:.4f}" for strategy in FRAGILE]
        lines.append(f"| {separation} | " + " | ".join(cells) + " |")
    lines.append(
        "\nRMS loss, five participations. Bands are designed for a separation of 400, the BLT for 300. The paper's"
        " tapered bands are better than its BLT at every separation; this BLT is up to 0.4% better at 200 and 225."
    )
    return "\n".join(lines)


def rule_of_thumb():
    batches, epsilons = [1, 4, 16, 64, 256], "0.5,1,2,4,8"
    return [
        antinoise(
            f"bands --examples 4096 --steps 4096 --delta 1e-8 --epsilon {epsilons} --batch-size {batch}"
        )
        for batch in batches
    ]


def show_rule_of_thumb(reports):
    epsilons = [target["epsilon"] for target in reports[0]["targets"]]
    lines = [
        "| epochs k | " + " | ".join(f"epsilon {e:g}" for e in epsilons) + " |",
        "|---|" + "---|" * len(epsilons),
    ]
    for report in reports:
        cells = []
        for target in report["targets"]:
            epochs = target["batch_size"] * report["steps"] // report["examples"]
            most = report["examples"] // target["batch_size"]
            rule = min(max(target["epsilon"] * math.sqrt(report["steps"]) / epochs, 1), most)
            row = min(target["rows"], key=lambda row: abs(math.log(row["bands"] / rule)))
            best = target["rows"][target["best"]]
            excess = 100 * (row["amplified"]["rms_loss"] / best["amplified"]["rms_loss"] - 1)
            cells.append(f"{best['bands']} / {rule:.3g} (+{excess:.1f}%)")
        lines.append(f"| {epochs} | " + " | ".join(cells) + " |")
    lines.append(
        "\nBest power of 2 / the rule, at least 1 and at most n / k (and how much RMS loss following the rule"
        " costs)."
    )
    return "\n".join(lines)


def best_bands():
    return antinoise(
        "bands --examples 4096 --steps 2048 --delta 1e-5 --epsilon 1,2,5,10 --objective max "
        "--batch-size 2,8,32,128,512,2048"
    )


def show_best_bands(report):
    epsilons = sorted({target["epsilon"] for target in report["targets"]})
    lines = [
        "| batch size | epochs | " + " | ".join(f"epsilon {e:g}" for e in epsilons) + " | unamplified |",
        "|---|---|" + "---|" * (len(epsilons) + 1),
    ]
    for batch in sorted({target["batch_size"] for target in report["targets"]}):
        targets = {target["epsilon"]: target for target in report["targets"] if target["batch_size"] == batch}
        cells = []
        for epsilon in epsilons:
            best = min(targets[epsilon]["rows"], key=lambda row: row["amplified"]["max_loss"])
            least = min(row["unamplified"]["max_loss"] for row in targets[epsilon]["rows"])
            cells.append(f"{best['bands']} ({best['amplified']['max_loss'] / least:.2f})")
        best = min(targets[epsilons[0]]["rows"], key=lambda row: row["unamplified"]["max_loss"])
        lines.append(
            f"| {batch} | {batch * report['steps'] // report['examples']} | "
            + " | ".join(cells)
            + f" | {best['bands']} |"
        )
    lines.append(
        "\nBest power of 2, and its max loss over the least without amplification. As in the figure, small"
        " epsilon and large batches want few bands; at epsilon 10 sampling gains a hundredth at most, with at"
        " least half of the unamplified bands."
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
    lines = ["| strategy | one draw, published | median of 2000 | 95% of them |", "|---|---|---|---|"]
    for strategy, published in [("dense", 2.34), ("identity", 6.02)]:
        row = found[strategy]
        lines.append(
            f"| {strategy} | {published} | {row['median']:.2f} | {row['low']:.2f} to {row['high']:.2f} |"
        )
    return "\n".join(lines)


def training(arguments, figure=None):
    """The report of one training for each line of `arguments`; the accuracy curves of the first are drawn in
    `figure`.
    """
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for i, line in enumerate(arguments):
            report = antinoise(f"train {line} --out {folder}/run-{i}")
            for row in report["runs"]:
                # The curves are shown in the figure.
                del row["accuracy_by_step"]
            found.append({"arguments": line, **report})
        if figure:
            page = (Path(folder) / "run-0" / "report.html").read_text()
            picture = page[page.index("<svg") : page.index("</svg>") + 6]
            head, rest = picture.split(">", 1)
            background = '\n<rect width="100%" height="100%" fill="#FFFFFF"/>'
            figure.write_text(head + ">" + background + rest + "\n")
    return found


def show_training(found):
    lines = []
    for report in found:
        lines += [
            f"`antinoise train {report['arguments']}`",
            "",
            (
                "| mechanism | test accuracy, standard error | against the first, paired | best learning rate"
                " | mean at each rate | RMS loss | seconds a run |"
            ),
            "|---|---|---|---|---|---|---|",
        ]
        first = report["runs"][0]
        for run in report["runs"]:
            error = f" +- {100 * run['standard_error']:.2f}" if run["standard_error"] is not None else ""
            rates = ", ".join(
                f"{rate:g}: {100 * accuracy:.1f}%" for rate, accuracy in run["by_learning_rate"]
            )
            apart = [100 * (x - y) for x, y in zip(run["test_accuracies"], first["test_accuracies"])]
            mean = sum(apart) / len(apart)
            spread = math.sqrt(sum((x - mean) ** 2 for x in apart) / max(1, len(apart) - 1) / len(apart))
            paired = "" if run is first else f"{mean:+.1f} +- {spread:.1f} points"
            loss = f"{run['rms_loss']:.4f}" if run["epsilon"] is not None else "-"
            lines.append(
                f"| {run['mechanism']} | {100 * run['test_accuracy']:.2f}%{error} | {paired} | "
                f"{run['learning_rate']:g} | {rates} | {loss} | {run['seconds']:.1f} |"
            )
        lines += [
            "",
            (
                f"At epsilon {math.ceil(1e4 * first['epsilon']) / 1e4:g}, delta {first['delta']:g},"
                f" {first['steps']} steps, {len(first['test_accuracies'])} repeats. The learning rate is"
                " picked by test accuracy for all alike, which epsilon does not pay for."
            ),
            "",
        ]
    return "\n".join(lines).rstrip()


def digits():
    lines = [
        "--repeats 10 --setting cyclic",
        "--repeats 10",
        "--repeats 10 --setting cyclic --adjacency replace-one",
    ]
    return training(lines, ROOT / "docs" / "digits.svg")


def sampled():
    lines = [
        "--examples 1440 --batch-size 96 --epochs 20 --epsilon 4 --delta 1e-5",
        "--examples 60000 --batch-size 500 --epochs 4 --epsilon 4 --delta 1e-5",
        "--examples 1e6 --batch-size 1000 --epochs 4 --epsilon 2 --delta 1e-8",
        "--examples 50e6 --batch-size 5000 --epochs 4 --epsilon 1 --delta 1e-9",
    ]
    found = []
    for line in lines:
        report = antinoise(f"plan {line} --setting poisson")
        found.append(
            {
                "arguments": line,
                "chosen": report["candidates"][report["chosen"]],
                "independent": report["candidates"][0],
            }
        )
    return found


def show_sampled(found):
    lines = [
        "| `antinoise plan --setting poisson ...` | chosen | RMS loss | DP-SGD's | quotient |",
        "|---|---|---|---|---|",
    ]
    for row in found:
        chosen, independent = row["chosen"], row["independent"]
        lines.append(
            f"| `{row['arguments']}` | {chosen['name']} | {chosen['rms_loss']:.5f} |"
            f" {independent['rms_loss']:.5f} | {chosen['rms_loss'] / independent['rms_loss']:.2f} |"
        )
    return "\n".join(lines)


def worth():
    """The part of docs/README.md on training, from the last measurements."""
    cyclic, best, replaced = json.loads((STORE / "digits.json").read_text())
    plans = json.loads((STORE / "sampled.json").read_text())

    def cell(report, baseline):
        runs = [run for run in report["runs"] if run["baseline"] == baseline]
        if not runs:
            return "-"
        return f"{100 * runs[0]['test_accuracy']:.1f}% +- {100 * runs[0]['standard_error']:.1f}"

    lines = [
        (
            "| 1,440 digits, epsilon 4, 20 epochs, 10 repeats | independent noise | correlated noise | DP-SGD"
            " with sampling | no privacy |"
        ),
        "|---|---|---|---|---|",
    ]
    for report, where in [
        (cyclic, "cyclic batches"),
        (replaced, "cyclic batches, replace-one adjacency"),
        (best, "sampled batches where they help"),
    ]:
        cells = [
            cell(report, baseline) for baseline in ("independent", None, "independent-amplified", "none")
        ]
        lines.append(f"| {where} | {' | '.join(cells)} |")
    images = json.loads((STORE / "fashion-mnist.json").read_text())[0]["runs"]
    sampled_alone, both, plain = (
        {run["baseline"]: run for run in images}[name] for name in ("independent-amplified", None, "none")
    )
    apart = [100 * (x - y) for x, y in zip(both["test_accuracies"], sampled_alone["test_accuracies"])]
    points = sum(apart) / len(apart)
    error = math.sqrt(sum((x - points) ** 2 for x in apart) / (len(apart) - 1) / len(apart))
    last = plans[-1]
    few, many = (row["chosen"]["rms_loss"] / row["independent"]["rms_loss"] for row in (plans[0], last))
    lines += [
        "",
        (
            "Some batches cannot be drawn at random: federated users, streams, one pass over the data. There"
            " correlated noise gives what sampling would have given. Where batches can be sampled, both work"
            " together. At 50 million examples, batches of 5,000 and epsilon 1, the RMS loss (the noise"
            f" accumulated in the model) is {many:.2f} times that of DP-SGD. On the few steps of the digits"
            f" it is {few:.2f} times, and the accuracies are hardly different. On the 60,000 images of"
            " Fashion-MNIST, in 480 steps at epsilon 4, both together reach"
            f" {100 * both['test_accuracy']:.1f}%, {points:.1f} +- {error:.1f} points more than DP-SGD"
            f" ({100 * plain['test_accuracy']:.1f}% without privacy). Correlation gains least when steps are"
            " few and amplification is strong."
        ),
        "",
        (
            "Delta is 1e-5, and 1e-9 for 50 million examples. Each accuracy is that of the learning rate that"
            " was best by test accuracy, a choice that epsilon does not pay for: epsilon is that of one"
            " training."
        ),
    ]
    return "\n".join(lines)


def write_home():
    path = ROOT / "docs" / "README.md"
    start, end = "<!-- worth: written by scripts/results.py -->", "<!-- end of worth -->"
    text = path.read_text()
    before, rest = text.split(start, 1)
    path.write_text(prose.wrap(path, f"{before}{start}\n\n{worth()}\n\n{end}{rest.split(end, 1)[1]}"))


def fashion_mnist():
    return training(["--data fashion-mnist --delta 1e-5"])


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
    "targets": (
        "Optima",
        "Losses of optimised strategies; the reference is a published figure (=) or a bound (<=).",
        targets(TARGETS),
        show_targets,
    ),
    "dense": (
        "Dense strategies",
        "With certified gaps, relative to a lower bound.",
        targets(DENSE),
        show_targets,
    ),
    "large": (
        "Designs over many steps",
        "The reference is what was found before a faster solver.",
        targets(LARGE),
        show_targets,
    ),
    "amplified": (
        "Bands with amplification by sampling",
        "BandMF (McKenna), figure 1(b): n = 16384, 8 epochs, delta 1e-8.",
        amplified,
        show_amplified,
    ),
    "bands-by-epochs": (
        "Bands, epochs, and what sampling and correlation gain",
        "BandMF (McKenna), figures 2(a), 6 and 8: n = 16384, delta 1e-8.",
        bands_by_epochs,
        show_bands_by_epochs,
    ),
    "baselines": (
        "Bands against others by steps and by epochs",
        "BandMF (McKenna), figure 7: epsilon 4, delta 1e-8.",
        baselines,
        show_baselines,
    ),
    "bands-by-n": (
        "Three ways to design 16 bands",
        "BandMF (McKenna), figure 1(a): one participation, or several at least 16 apart.",
        bands_by_n,
        show_bands_by_n,
    ),
    "separations": (
        "A separation that is not known beforehand",
        "BandMF (McKenna), figure 10(b): n = 2000.",
        separations,
        show_separations,
    ),
    "noise-multipliers": (
        "Noise multipliers",
        "Multi-epoch paper, Table 3: 2052 rounds with 1000 of 342,477 users, delta 1e-6.",
        noise_multipliers,
        show_noise_multipliers,
    ),
    "few-steps": (
        "Signs of the entries of C^T C",
        "Multi-epoch paper, Table 6: n = 6, three participations two apart.",
        few_steps,
        show_few_steps,
    ),
    "rule-of-thumb": (
        "The best number of bands",
        "BandMF (McKenna), figure 2(b): n = 4096, delta 1e-8, against the rule epsilon sqrt(n) / k.",
        rule_of_thumb,
        show_rule_of_thumb,
    ),
    "best-bands": (
        "The best number of bands by batch size",
        "Monograph, figure 4.3: n = 2048, N = 4096, max loss.",
        best_bands,
        show_best_bands,
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
    "sampled": (
        "Correlation and sampling together",
        (
            "Standard deviation of the averaged prefix sums, of the plan that "
            "is chosen where every example can be sampled, against DP-SGD."
        ),
        sampled,
        show_sampled,
    ),
    "digits": (
        "Training on digits",
        (
            "A network with one hidden layer of 128 on 1,440 images: clip norm 1, momentum 0.9, 20 epochs of"
            ' batches of 96. dp-sgd is independent noise whose privacy sampling amplifies; "no noise" has'
            " neither clipping nor noise."
        ),
        digits,
        show_training,
    ),
    "fashion-mnist": (
        "Training on Fashion-MNIST",
        (
            "A CNN of 26,010 parameters on 60,000 images, clip norm 1, momentum 0.9, 4 epochs of batches of"
            " 500. By epsilon, over 10 epochs: [results/fashion-mnist.md](results/fashion-mnist.md)."
        ),
        fashion_mnist,
        show_training,
    ),
}
LONG = ["fashion-mnist", "large"]


def write_page():
    page = [
        "# What was measured",
        "",
        (
            "Every figure here was printed by `antinoise` and is measured again by `scripts/results.py"
            " SECTION`. Seconds are those of one machine (2 cores) and can be compared only with each other."
            " Monograph: K. Pillutla et al., arXiv 2506.08201. Multi-epoch paper: C. Choquette-Choo et al.,"
            " arXiv 2211.06530. BandMF: R. McKenna, arXiv 2405.15913."
        ),
        "",
    ]
    for name, (title, text, _, show) in SECTIONS.items():
        stored = STORE / f"{name}.json"
        if stored.exists():
            page += [
                f"## {title}",
                "",
                f"{text} `scripts/results.py {name}`",
                "",
                show(json.loads(stored.read_text())),
                "",
            ]
    extra = STORE / "by-hand.md"
    if extra.exists():
        page.append(extra.read_text())
    path = ROOT / "docs" / "RESULTS.md"
    path.write_text(prose.wrap(path, "\n".join(page).rstrip() + "\n"))
    write_home()


def main():
    wanted = sys.argv[1:] or [name for name in SECTIONS if name not in LONG]
    wanted = list(SECTIONS) if wanted == ["--all"] else wanted
    unknown = [name for name in wanted if name not in SECTIONS and name != "page"]
    if unknown:
        raise SystemExit(f"section is {unknown[0]!r} but must be one of {', '.join(SECTIONS)}, page or --all")
    STORE.mkdir(parents=True, exist_ok=True)
    for name in wanted:
        if name != "page":
            (STORE / f"{name}.json").write_text(json.dumps(SECTIONS[name][2](), indent=1) + "\n")
    write_page()


BINARY = None
main()
