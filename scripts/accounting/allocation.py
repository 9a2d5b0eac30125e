"""delta of epochs with batches by random allocation, by Fourier transforms on even grids: an oracle that
shares no code or discretisation with the crate.

The likelihood ratio of an epoch of T steps is the mean of T independent ratios e^{mu z - mu^2 / 2}. Their law
is put on an even grid of ratios and raised to the power T by one transform; the law of the logarithm of the
mean is put on an even grid of losses, and raised to the power of the epochs by another.

Writes crates/accounting/tests/golden/allocated_delta.csv: 300 random settings (noise multiplier, steps of an
epoch, epochs) with an epsilon and the delta there, the worse of removal and addition. Needs numpy:
`python3 scripts/accounting/allocation.py`.
"""

from math import erfc, sqrt
from pathlib import Path

import numpy as np

FILE = Path(__file__).resolve().parents[2] / "crates/accounting/tests/golden/allocated_delta.csv"
ROWS = 300
SIZE = 1 << 20
REACH = 8.5


def spread(places, masses, step, size):
    """`masses` at `places`, on the multiples of `step` in the shares that keep the mean."""
    cell = np.floor(places / step).astype(np.int64)
    share = places / step - cell
    total = np.bincount(cell % size, masses * (1 - share), size)
    return total + np.bincount((cell + 1) % size, masses * share, size)


def ratios(sigma, steps):
    """The law of the mean of `steps` ratios under N(0, 1): values and masses."""
    mu = 1 / sigma
    z, width = np.linspace(-REACH, REACH + mu, 400_001, retstep=True)
    masses = np.exp(-0.5 * z * z) / sqrt(2 * np.pi) * width
    values = np.exp(mu * z - 0.5 * mu * mu)
    spread_of_sum = sqrt(steps * np.expm1(mu * mu))
    step = (steps + values[-1] + 12 * spread_of_sum) / SIZE
    law = np.fft.irfft(np.fft.rfft(spread(values, masses, step, SIZE)) ** steps, SIZE)
    kept = law > 1e-17
    return np.arange(SIZE)[kept] * step / steps, law[kept]


def deltas(sigma, steps, epochs, epsilons):
    """delta of removal and of addition at each epsilon."""
    values, masses = ratios(sigma, steps)
    values, masses = values[values > 0], masses[values > 0]
    losses = np.log(values)
    found = []
    for sign, weights in [(1, masses * values), (-1, masses)]:
        mean = np.sum(weights * losses) * sign
        deviation = sqrt(np.sum(weights * losses**2) - mean * mean)
        reach = epochs * abs(mean) + 14 * deviation * sqrt(epochs) + 1.1 * np.abs(losses).max()
        step = 2 * reach / SIZE
        law = np.fft.rfft(spread(sign * losses, weights, step, SIZE)) ** epochs
        total = np.fft.irfft(law, SIZE)
        places = np.arange(SIZE)
        places = np.where(places < SIZE // 2, places, places - SIZE) * step
        found.append([np.sum((total * -np.expm1(e - places))[places > e]) for e in epsilons])
    return np.max(found, axis=0)


def gaussian_delta(mu, epsilon):
    """delta of a Gaussian release."""
    below = lambda x: 0.5 * erfc(-x / sqrt(2))  # noqa: E731
    return below(0.5 * mu - epsilon / mu) - np.exp(epsilon) * below(-0.5 * mu - epsilon / mu)


def main():
    """Writes the file."""
    one = deltas(1.3, 1, 4, [1.0])[0]
    assert abs(one / gaussian_delta(2 / 1.3, 1.0) - 1) < 1e-6, one
    random = np.random.default_rng(20261127)
    rows = ["noise_multiplier,steps,epochs,epsilon,delta"]
    while len(rows) <= ROWS:
        sigma = float(f"{np.exp(random.uniform(0, np.log(8))):.4g}")
        steps = round(np.exp(random.uniform(np.log(2), np.log(2000))))
        epochs = round(np.exp(random.uniform(0, np.log(50))))
        epsilons = np.geomspace(0.01, 20, 60)
        curve = deltas(sigma, steps, epochs, epsilons)
        usable = np.flatnonzero((curve > 1e-6) & (curve < 0.1))
        if len(usable):
            at = random.choice(usable)
            rows.append(f"{sigma},{steps},{epochs},{epsilons[at]:.17g},{curve[at]:.9e}")
    FILE.write_text("\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
