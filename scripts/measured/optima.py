"""Optimised losses next to references, and the seconds of designs."""

import math

from .program import head, loss

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
    lines = head("what", "`antinoise loss`", "figure", "found", "reference", "gap", "seconds")
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


SECTIONS = {
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
}
