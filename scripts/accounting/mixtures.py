"""delta of many Poisson-sampled steps in which a group of examples is removed, added or replaced, by contour
integration as in bromwich.py: an oracle that shares no code or discretisation with the crate.

Writes crates/accounting/tests/golden/changed_delta.csv: 300 random settings (noise multiplier, rate, steps,
examples that change, whether they are replaced) with an epsilon and the delta there, the worse of the two
directions. Needs numpy: `python3 scripts/accounting/mixtures.py`.
"""

from pathlib import Path

import numpy as np
from bromwich import Loss

FILE = Path(__file__).resolve().parents[2] / "crates/accounting/tests/golden/changed_delta.csv"
ROWS = 300


def ln_binomial(trials, rate):
    """ln of the probabilities of 0 to `trials` among `trials` examples."""
    k = np.arange(trials + 1)
    steps = np.log((trials - k[:-1]) / (k[:-1] + 1))
    return np.concatenate([[0.0], np.cumsum(steps)]) + k * np.log(rate) + (trials - k) * np.log1p(-rate)


def relative_mixture(z, mu, trials, rate):
    """The density of the mixture around 0, mu, ..., `trials` mu over that of N(0, 1), less 1; and its ln."""
    weights, total = np.exp(ln_binomial(trials, rate)), np.zeros_like(z)
    with np.errstate(over="ignore"):
        for i in range(1, trials + 1):
            total += weights[i] * np.expm1(i * mu * z - 0.5 * (i * mu) ** 2)
        return total, np.log1p(total)


class Change(Loss):
    """Losses and masses of P for `up` examples in P and `down` of the opposite contribution in Q."""

    def __init__(self, sigma, rate, up, down, spacing=0.02, reach=14.0):
        mu = 1.0 / sigma
        z = np.arange(-reach, reach + up * mu + spacing, spacing)
        (more, ln_p), (_, ln_q) = relative_mixture(z, mu, up, rate), relative_mixture(-z, mu, down, rate)
        assert np.isfinite(ln_p).all() and np.isfinite(ln_q).all(), (sigma, rate, up, down)
        normal = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi) * spacing
        self.loss, self.mass = ln_p - ln_q, normal * (1.0 + more)

    def renyi_epsilon(self, steps, ln_delta):
        """The epsilon at e^ln_delta by the best Renyi divergence."""
        theta = np.exp(np.linspace(-4, 6, 120))
        with np.errstate(over="ignore"):
            moments = steps * self.ln_moment(theta)
        bound = (moments - ln_delta - np.log1p(theta)) / theta - np.log1p(1 / theta)
        return np.nanmin(np.where(np.isfinite(bound), bound, np.inf))


def setting(random):
    """A setting with its delta; None where it is out of the reach of the integral."""
    sigma = np.round(np.exp(random.uniform(np.log(0.6), np.log(20.0))), 3)
    group, replaced = int(random.choice([1, 2, 3, 5, 8, 16])), bool(random.integers(2))
    if group == 1:
        replaced = True
    rate = float(f"{np.exp(random.uniform(np.log(1e-4), np.log(0.6))):.2e}")
    steps = int(np.exp(random.uniform(0, np.log(2e4)))) + 1
    if group / sigma > 12:
        return None
    pairs = [(group, group)] if replaced else [(group, 0), (0, group)]
    losses = [Change(sigma, rate, *pair) for pair in pairs]
    epsilon = max(loss.renyi_epsilon(steps, np.log(10.0) * random.uniform(-12, -3)) for loss in losses)
    if not 1e-3 < epsilon < 200:
        return None
    epsilon = float(f"{epsilon:.4g}")
    # A direction whose losses do not reach epsilon has no saddle, and a delta of 0.
    found = [loss.delta(steps, epsilon) for loss in losses if steps * loss.loss.max() > 1.001 * epsilon]
    if not found or None in found or not 1e-14 < max(found) < 0.1:
        return None
    return sigma, rate, steps, group, int(replaced), epsilon, max(found)


def main():
    random, rows = np.random.default_rng(1), []
    while len(rows) < ROWS:
        row = setting(random)
        if row is not None:
            rows.append(row)
    with open(FILE, "w") as out:
        out.write("sigma,rate,steps,group,replaced,epsilon,delta\n")
        for *numbers, delta in rows:
            plain = (x.item() if hasattr(x, "item") else x for x in numbers)
            out.write(",".join(f"{x!r}" for x in plain))
            out.write(f",{delta:.10g}\n")


if __name__ == "__main__":
    main()
