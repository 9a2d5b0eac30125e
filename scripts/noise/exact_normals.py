#!/usr/bin/env python3
"""Writes crates/noise/tests/golden/exact_normals.rs (needs mpmath): the Box-Muller parts of 128-bit words."""

from pathlib import Path

from mpmath import cos, log, mp, mpf, pi, sin, sqrt

mp.dps = 60
WORDS = [
    0,
    1,
    2**64 + 12345,
    2**100 + 987654321,
    0x243F6A8885A308D313198A2E03707344,
    0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF,
    0x80000000000000000000000000000000,
    0xA4093822299F31D0082EFA98EC4E6C89,
    0xF1000000000000000000000000000FFF,
    2**128 - 2**70 - 5,
    2**128 - 1,
]


def pair(x):
    hi = float(x)
    return f"({hi!r}, {float(x - mpf(hi))!r})"


def main():
    path = Path(__file__).resolve().parents[2] / "crates/noise/tests/golden/exact_normals.rs"
    lines = [
        "/// (word, high part, low part) of the radius.",
        f"const RADII: [(u128, f64, f64); {len(WORDS)}] = [",
    ]
    for w in WORDS:
        lines.append(f"    ({w:#x}, {pair(sqrt(-2 * log((mpf(w) + 0.5) / mpf(2) ** 128)))[1:]},")
    kind = f"[(u128, f64, f64, f64, f64); {len(WORDS)}]"
    lines += ["];", "", "/// (word, cosine, sine), each as high part, low part.", f"const TURNS: {kind} = ["]
    for w in WORDS:
        angle = 2 * pi * (mpf(w) + 0.5) / mpf(2) ** 128
        lines.append(f"    ({w:#x}, {pair(cos(angle))[1:-1]}, {pair(sin(angle))[1:]},")
    path.write_text("\n".join([*lines, "];", ""]))


main()
