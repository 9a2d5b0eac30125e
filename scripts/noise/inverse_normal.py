#!/usr/bin/env python3
"""Writes crates/noise/src/normal/single_table.rs (needs mpmath): the inverse normal distribution, piece by
piece.

A word w, as a signed number, becomes s = (w (1 - 2^-24) + 1/2) 2^-16; the normal is the sign of s times z(p),
where p = (|w + 1/2|) 2^-32 and z(p) is the point beyond which a standard normal lies with probability p.
Pieces are halves of the octaves of |s| from 2 up; in each, z is a polynomial in the mantissa's offset t from
the piece's middle, by interpolation at Chebyshev nodes in 40 digits.

The tail (|s| < 2) is z = r - Q(1 / r), r = sqrt(-2 ln p), with Q fitted for p from 2^-97 to 2^-15.
"""

import struct
from pathlib import Path

from mpmath import chebyfit, erfc, erfinv, exp, findroot, log, mp, mpf, nstr, pi, sqrt

mp.dps = 60
DEGREE = 5
OCTAVES = 14
TAIL_DEGREE = 8


def beyond(p):
    """The z with P(Z > z) = p."""
    if p > mpf(2) ** -20:
        return sqrt(mpf(2)) * erfinv(1 - 2 * p)
    r = sqrt(-2 * log(p))
    start = r - log(r * sqrt(2 * pi)) / r
    return findroot(lambda z: log(erfc(z / sqrt(mpf(2))) / 2) - log(p), start)


def probability(s):
    return ((s * 2**16 - mpf(1) / 2) / (1 - mpf(2) ** -24) + mpf(1) / 2) / mpf(2) ** 32


def piece(octave, half):
    middle = mpf("1.25") + mpf(half) / 2
    return chebyfit(
        lambda t: beyond(probability(mpf(2) ** (octave + 1) * (middle + t))),
        [-0.25, 0.25],
        DEGREE + 1,
        error=True,
    )


def single(x):
    return struct.unpack("f", struct.pack("f", float(x)))[0]


def shortest(x):
    """The shortest decimal that reads back as the single-precision number x."""
    return repr(float(next(t for digits in range(1, 12) if single(t := f"{x:.{digits}g}") == x)))


def tail():
    ends = [1 / sqrt(2 * 97 * log(mpf(2))), 1 / sqrt(2 * mpf("14.99") * log(mpf(2)))]

    def part(q):
        r = 1 / q
        return r - beyond(exp(-r * r / 2))

    return chebyfit(part, ends, TAIL_DEGREE + 1, error=True)


def main():
    table = [[0.0] * 32 for _ in range(DEGREE + 1)]
    worst = mpf(0)
    for octave in range(OCTAVES):
        for half in range(2):
            coefficients, error = piece(octave, half)
            worst = max(worst, error)
            for power, c in enumerate(reversed(coefficients)):
                table[power][2 * octave + half] = single(c)
    far, error = tail()
    print(f"worst error of a piece {nstr(worst, 3)}, of the tail {nstr(error, 3)}")
    lines = [
        "use crate::simd::Aligned;",
        "",
        "/// By power of t, then by piece: `scripts/noise/inverse_normal.py` writes this file.",
        "#[rustfmt::skip]",
    ]
    lines += [f"pub(super) static PIECES: Aligned<[[f32; 32]; {DEGREE + 1}]> = Aligned(["]
    for row in table:
        lines.append("    [")
        lines += ["        " + ", ".join(shortest(x) for x in row[i : i + 8]) + "," for i in range(0, 32, 8)]
        lines.append("    ],")
    lines += ["]);", "", "/// r - z by power of 1 / r, lowest first."]
    lines += [f"pub(super) const TAIL: [f64; {TAIL_DEGREE + 1}] = ["]
    lines += [f"    {float(c)!r}," for c in reversed(far)] + ["];", ""]
    path = Path(__file__).resolve().parents[2] / "crates/noise/src/normal/single_table.rs"
    path.write_text("\n".join(lines))


main()
