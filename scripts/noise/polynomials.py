#!/usr/bin/env python3
"""Prints the polynomial coefficients of crates/noise/src/normal/double.rs (needs mpmath).

Each is the near-minimax fit (interpolation at Chebyshev nodes, in 60 digits) of the smooth remainder that the
code multiplies by a power of its argument, so that relative accuracy holds at 0.
"""

from mpmath import chebyfit, cos, log, log1p, mp, mpf, pi, polyval, sin, sqrt, taylor

mp.dps = 60


def remainder(function, order, series):
    """The map x -> (function(x) minus its Taylor terms below `order`) / x^order, by its series near 0."""
    coefficients = taylor(function, 0, order + 40)

    def value(x):
        if abs(x) < mpf("0.05"):
            return polyval(coefficients[order:][::-1], x)
        return (function(x) - polyval(coefficients[:order][::-1], x)) / x**order

    return value


def in_square(function):
    """The map y -> function(sqrt(y)), for an even function."""
    return lambda y: function(sqrt(y)) if y >= 0 else function(mpf(0))


def table(name, function, interval, count):
    coefficients, error = chebyfit(function, interval, count, error=True)
    print(
        f"{name}: {count} coefficients, lowest power first; absolute error of the remainder"
        f" {mp.nstr(error, 3)}"
    )
    for c in reversed(coefficients):
        print(f"    {mp.nstr(c, 19)},")


octant = (pi / 4) ** 2
sine, cosine = remainder(sin, 3, 40), remainder(cos, 4, 40)
table("f64 sin x = x + x^3 P(x^2)", in_square(sine), [0, octant], 6)
table("f64 cos x = 1 - x^2/2 + x^4 P(x^2)", in_square(cosine), [0, octant], 6)
logarithm = remainder(lambda f: -2 * log1p(f), 2, 40)
table("f64 -2 ln(1+f) = -2 f + f^2 P(f)", logarithm, [-mpf(1) / 32, mpf(1) / 33], 7)
inverses = [float(mpf(32) / (33 + 2 * k)) for k in range(16)]
print("f64 c near 1 / (1 + k/16), then 2 ln c:")
for c in inverses:
    print(f"    {c!r}, {float(2 * log(mpf(c)))!r},")
