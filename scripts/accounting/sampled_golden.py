"""Golden values of two sampled Gaussian steps, by quadrature in 25-digit arithmetic.

Writes crates/accounting/tests/golden/sampled_delta.csv: sigma and rate of both steps, epsilon, and delta of
their composition (the worse direction of add-or-remove). delta is the mean, over the loss of the first step,
of the second step's privacy curve, which has a closed form. Needs mpmath: `pip install mpmath`, then
`python3 scripts/accounting/sampled_golden.py`.
"""

from pathlib import Path

from mpmath import erfc, exp, log, mp, mpf, nstr, pi, quad, sqrt

mp.dps = 25
FILE = Path(__file__).resolve().parents[2] / "crates/accounting/tests/golden/sampled_delta.csv"
CASES = [
    # sigma, rate of the first and of the second step
    (1.0, 0.5, 1.0, 0.5),
    (1.0, 0.01, 1.0, 0.01),
    (0.5, 0.1, 0.5, 0.1),
    (2.0, 0.1, 1.0, 0.3),
    (0.8, 1e-3, 0.8, 1e-3),
    (5.0, 0.2, 3.0, 0.9),
    (1.0, 0.3, 2.0, 1.0),
    (0.4, 1e-4, 0.6, 1e-2),
]


def upper_tail(x):
    return erfc(x / sqrt(mpf(2))) / 2


def loss(x, sigma, q):
    """The privacy loss at x: ln of the density of the mixture over that of N(0, sigma^2)."""
    return log(1 - q + q * exp((2 * x - 1) / (2 * sigma**2)))


def threshold(level, sigma, q):
    """The x at which the loss is ln(level); None if the loss is larger everywhere."""
    return sigma**2 * log((level - (1 - q)) / q) + mpf(1) / 2 if level > 1 - q else None


def mixture_tail(x, sigma, q):
    return (1 - q) * upper_tail(x / sigma) + q * upper_tail((x - 1) / sigma)


def curve_remove(epsilon, sigma, q):
    """Delta in one direction: the integral of (mixture - e^epsilon N(0))_+."""
    t = exp(epsilon)
    x = threshold(t, sigma, q)
    if x is None:
        return 1 - t
    return mixture_tail(x, sigma, q) - t * upper_tail(x / sigma)


def curve_add(epsilon, sigma, q):
    """Delta in the other direction: the integral of (N(0) - e^epsilon mixture)_+, over all x below the point
    where the loss is -epsilon.
    """
    t = exp(epsilon)
    x = threshold(1 / t, sigma, q)
    if x is None:
        return mpf(0)
    return 1 - upper_tail(x / sigma) - t * (1 - mixture_tail(x, sigma, q))


def density(x, sigma):
    return exp(-(x**2) / (2 * sigma**2)) / (sigma * sqrt(2 * pi))


def composed(case, epsilon):
    s1, q1, s2, q2 = map(mpf, case)
    places = [mpf(p) * s1 / 2 for p in range(-24, 25)] + [1 + mpf(p) * s1 / 2 for p in range(-24, 25)]
    # The curve of the second step has a kink where its support ends.
    for direction in (1, -1):
        end = threshold(exp(direction * epsilon) / (1 - q2), s1, q1) if q2 < 1 else None
        if end is not None:
            places.append(end)
    places = sorted(set(places))
    remove = quad(
        lambda x: (
            ((1 - q1) * density(x, s1) + q1 * density(x - 1, s1))
            * curve_remove(epsilon - loss(x, s1, q1), s2, q2)
        ),
        places,
        maxdegree=4,
    )
    add = quad(lambda x: density(x, s1) * curve_add(epsilon + loss(x, s1, q1), s2, q2), places, maxdegree=4)
    return max(remove, add)


def main():
    with open(FILE, "w") as out:
        out.write("sigma_1,rate_1,sigma_2,rate_2,epsilon,delta\n")
        for case in CASES:
            for epsilon in [0.0, 0.01, 0.1, 0.5, 1.0, 3.0]:
                value = composed(case, mpf(epsilon))
                if value > mpf(10) ** -18:
                    out.write(",".join(map(repr, case)) + f",{epsilon!r},{nstr(value, 15)}\n")


if __name__ == "__main__":
    main()
