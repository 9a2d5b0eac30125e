"""delta of few Poisson-sampled steps whose batches are cut at a maximum size, by enumeration of all batches:
an oracle that shares no code and no theorem with the crate.

The contributions are -1, 0 or 1 on a line. Every way to choose those of the other examples is tried, and both
orders of the two data sets; the largest delta is written. A step is then a mixture of normal distributions
around whole numbers, and the steps are composed by sums over all pairs (up to four: pairs of pairs) of points
of a grid of noise.

Writes crates/accounting/tests/golden/truncated_delta.csv (noise multiplier, rate, steps, examples, maximum
batch size, what changes, epsilon, delta) and truncated_tails.csv (n, p, m and the logarithm of
Pr[Bin(n, p) >= m] by 60-digit arithmetic). Needs numpy and mpmath: `python3 scripts/accounting/truncated.py`.
"""

from functools import cache
from itertools import product
from math import comb
from pathlib import Path

import mpmath
import numpy as np

GOLDEN = Path(__file__).resolve().parents[2] / "crates/accounting/tests/golden"
ROWS = 240
CHANGES = ("zero-out", "add-or-remove", "replace-one")


@cache
def batches(classes, rate, most):
    """The probability of each number of members of `classes` (its sizes) in a batch that is cut at `most`."""
    found = {}
    for drawn in product(*(range(size + 1) for size in classes)):
        chance = 1.0
        for size, count in zip(classes, drawn, strict=True):
            chance *= comb(size, count) * rate**count * (1.0 - rate) ** (size - count)
        ways = comb(sum(drawn), most) if sum(drawn) > most else 1
        for kept in product(*(range(count + 1) for count in drawn)):
            if sum(kept) == min(sum(drawn), most):
                those = np.prod([comb(count, few) for count, few in zip(drawn, kept, strict=True)])
                found[kept] = found.get(kept, 0.0) + chance * float(those) / ways
    return found


def sums(values, classes, rate, most):
    """The probability of each sum of a batch, where all members of a class contribute its value."""
    found = {}
    for kept, chance in batches(classes, rate, most).items():
        total = sum(value * count for value, count in zip(values, kept, strict=True))
        found[total] = found.get(total, 0.0) + chance
    return found


def neighbours(change, others, rate, most):
    """The sums of a batch in two neighbouring data sets; `others` are numbers of examples that contribute
    -1, 0 and 1."""
    values = (-1, 0, 1)
    with_one = sums((*values, 1), (*others, 1), rate, most)
    match change:
        case "zero-out":
            return with_one, sums((*values, 0), (*others, 1), rate, most)
        case "replace-one":
            return with_one, sums((*values, -1), (*others, 1), rate, most)
        case _:
            return with_one, sums(values, others, rate, most)


def step(up, down, sigma, points):
    """Losses and masses of both mixtures at the points of a grid of noise."""
    reach = 9.0 * sigma
    z = np.linspace(min(*up, *down) - reach, max(*up, *down) + reach, points)
    normal = np.exp(-0.5 * z**2 / sigma**2) / (sigma * np.sqrt(2 * np.pi)) * (z[1] - z[0])
    over = lambda law: sum(w * np.exp((m * z - 0.5 * m * m) / sigma**2) for m, w in law.items())  # noqa: E731
    p, q = over(up), over(down)
    return np.log(p) - np.log(q), normal * p, normal * q


def both(one, two):
    """Two steps, one after the other."""
    return (
        np.add.outer(one[0], two[0]).ravel(),
        np.multiply.outer(one[1], two[1]).ravel(),
        np.multiply.outer(one[2], two[2]).ravel(),
    )


def delta(first, last, epsilon):
    """E over `first` of the curve of `last`."""
    loss, p, q = last
    order = np.argsort(loss)
    beyond = lambda mass: np.append(np.cumsum(mass[order][::-1])[::-1], 0.0)  # noqa: E731
    p_beyond, q_beyond = beyond(p), beyond(q)
    at = np.searchsorted(loss[order], epsilon - first[0], side="right")
    return float(np.sum(first[1] * p_beyond[at] - np.exp(epsilon) * first[2] * q_beyond[at]))


def worst(sigma, rate, steps, examples, most, change, epsilon, points=500):
    """The largest delta of all contributions of the others."""
    nothing = (np.zeros(1), np.ones(1), np.ones(1))
    found = 0.0
    for minus in range(examples):
        for plus in range(examples - minus):
            others = (minus, examples - 1 - minus - plus, plus)
            laws = neighbours(change, others, rate, most)
            for up, down in (laws, laws[::-1]):
                one = step(up, down, sigma, points)
                two = both(one, one) if steps > 2 else one
                first = {1: nothing, 2: one, 3: one, 4: two}[steps]
                found = max(found, delta(first, two, epsilon))
    return found


def write_deltas():
    random, rows = np.random.default_rng(29), []
    while len(rows) < ROWS:
        sigma, rate = np.round(random.uniform(0.5, 3.0), 3), np.round(np.exp(random.uniform(-4.0, -0.5)), 4)
        examples = int(random.integers(2, 8))
        most, steps = int(random.integers(1, examples + 1)), int(random.choice([1, 1, 2, 2, 3, 4]))
        change, epsilon = CHANGES[random.integers(3)], np.round(random.uniform(0.05, 2.5), 3)
        found = worst(sigma, rate, steps, examples, most, change, epsilon, 220 if steps > 2 else 2000)
        if found > 1e-9:
            rows.append(f"{sigma},{rate},{steps},{examples},{most},{change},{epsilon},{found:.9e}")
    head = "sigma,rate,steps,examples,max_batch_size,change,epsilon,delta"
    (GOLDEN / "truncated_delta.csv").write_text("\n".join([head, *rows]) + "\n")


def ln_tail(n, p, m):
    """ln Pr[Bin(n, p) >= m] by the incomplete beta function, at 60 digits."""
    mpmath.mp.dps = 60
    first = mpmath.exp(
        mpmath.loggamma(n + 1)
        - mpmath.loggamma(m + 1)
        - mpmath.loggamma(n - m + 1)
        + m * mpmath.log(p)
        + (n - m) * mpmath.log1p(-mpmath.mpf(p))
    )
    total, term, k = mpmath.mpf(0), first, m
    while k <= n and term > total * mpmath.mpf(10) ** -40:
        total += term
        term *= mpmath.mpf(n - k) / (k + 1) * mpmath.mpf(p) / (1 - mpmath.mpf(p))
        k += 1
    return float(mpmath.log(total))


def write_tails():
    random, rows = np.random.default_rng(7), []
    while len(rows) < 200:
        n, p = int(np.exp(random.uniform(3.0, 35.0))), float(np.exp(random.uniform(-20.0, -0.05)))
        deviation = np.sqrt(n * p * (1 - p))
        m = int(n * p + random.uniform(3.0, 12.0) * deviation + random.uniform(0, 3))
        if m <= n and m - n * p < 3e5:
            rows.append(f"{n},{p!r},{m},{ln_tail(n, p, m)!r}")
    (GOLDEN / "truncated_tails.csv").write_text("\n".join(["n,p,m,ln_tail", *rows]) + "\n")


if __name__ == "__main__":
    write_tails()
    write_deltas()
