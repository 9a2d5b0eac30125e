"""epsilon of many Poisson-sampled Gaussian steps by contour integration: an oracle that shares no code or
method of discretisation with the crate. Not certified, but good to about 1e-9 where the characteristic
function decays.

    delta(epsilon) = 1/(2 pi) integral over w of M(z)^T e^{-z epsilon} / (z (1 + z)), z = theta + i w,

for any theta > 0, with M(z) = E_P e^{z L} the moment generating function of one step's loss. Both integrals
are of analytic functions, for which the trapezoid rule converges geometrically; theta is the saddle point.

Writes crates/accounting/tests/golden/composed_epsilon.csv. Needs numpy:
`python3 scripts/accounting/bromwich.py`.
"""

from pathlib import Path

import numpy as np

FILE = Path(__file__).resolve().parents[2] / "crates/accounting/tests/golden/composed_epsilon.csv"


class Loss:
    """One direction of adjacency: privacy losses at quadrature nodes, and the masses of P there."""

    def __init__(self, sigma, rate, remove, spacing=0.02, reach=16.0):
        mu = 1.0 / sigma
        z = np.arange(-reach, reach + mu + spacing, spacing)
        exponent = mu * (z - 0.5 * mu)
        ratio = np.log1p(rate * np.expm1(np.minimum(exponent, 30)))
        big = exponent > 30
        ratio[big] = exponent[big] + np.log(rate) + np.log1p((1 - rate) / rate * np.exp(-exponent[big]))
        normal = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi) * spacing
        shifted = np.exp(-0.5 * (z - mu) ** 2) / np.sqrt(2 * np.pi) * spacing
        self.loss = ratio if remove else -ratio
        self.mass = (1 - rate) * normal + rate * shifted if remove else normal

    def ln_moment(self, z):
        """ln M(z), from M - 1 so that small losses keep their digits."""
        zl = np.multiply.outer(z, self.loss)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.log1p(np.expm1(zl) @ self.mass)

    def saddle(self, steps, epsilon):
        low, high = -12.0, 12.0

        def f(u):
            return steps * self.ln_moment(np.array([np.exp(u)]))[0] - np.exp(u) * epsilon

        for _ in range(100):
            a, b = low + 0.382 * (high - low), low + 0.618 * (high - low)
            fa, fb = f(a), f(b)
            if not np.isfinite(fb) or fa < fb:
                high = b
            else:
                low = a
        return np.exp(0.5 * (low + high))

    def delta(self, steps, epsilon):
        """delta at epsilon; None where the characteristic function does not decay."""
        theta = self.saddle(steps, epsilon)
        centre = steps * self.ln_moment(np.array([theta]))[0] - theta * epsilon
        h = 1e-3 * theta
        curvature = (
            steps
            * (
                self.ln_moment(np.array([theta + h]))[0]
                + self.ln_moment(np.array([theta - h]))[0]
                - 2 * self.ln_moment(np.array([theta]))[0]
            )
            / h**2
        )
        # theta sqrt(curvature) is the distance to the pole in standard deviations: it sets the spacing.
        scale = min(1.0 / np.sqrt(curvature), theta)
        step, total, k, block = scale / 8, 0.0, 0, 256
        while k < 200_000:
            w = step * np.arange(k, k + block)
            z = theta + 1j * w
            value = np.exp(steps * self.ln_moment(z) - z * epsilon - centre) / (z * (1 + z))
            total += value.real.sum() - (0.5 * value.real[0] if k == 0 else 0.0)
            k += block
            if np.abs(value[-32:]).max() < 1e-13 * abs(total):
                return step / np.pi * total * np.exp(centre)
        return None


def delta(sigma, rate, steps, epsilon):
    values = [Loss(sigma, rate, remove).delta(steps, epsilon) for remove in (True, False)]
    return None if None in values else max(values)


def epsilon(sigma, rate, steps, target, low, high):
    """The root between low and high, by bisection to 1e-11; None where delta cannot be computed."""
    for _ in range(60):
        middle = 0.5 * (low + high)
        value = delta(sigma, rate, steps, middle)
        if value is None:
            return None
        low, high = (middle, high) if value > target else (low, middle)
        if high - low < 1e-11 * high:
            break
    return 0.5 * (low + high)


CASES = [
    # sigma, rate, steps, delta, and an interval that contains epsilon
    (1.0, 0.01, 10_000, 1e-6, 5.0, 9.0),
    (2.0, 0.01, 100_000, 1e-12, 11.0, 15.0),
    (50.0, 0.1, 100_000, 1e-12, 3.0, 6.0),
    (5.0, 0.1, 1000, 1e-9, 2.0, 10.0),
    (0.7, 0.05, 5000, 1e-5, 20.0, 400.0),
    (10.0, 0.5, 10_000, 1e-3, 5.0, 60.0),
    (1.0, 0.3, 1000, 1e-8, 20.0, 300.0),
    (20.0, 0.01, 1_000_000, 1e-6, 0.5, 10.0),
    (3.0, 0.02, 30_000, 1e-10, 1.0, 20.0),
    (1.5, 0.2, 2000, 1e-4, 5.0, 200.0),
]


def main():
    with open(FILE, "w") as out:
        out.write("sigma,rate,steps,delta,epsilon\n")
        for sigma, rate, steps, target, low, high in CASES:
            value = epsilon(sigma, rate, steps, target, low, high)
            assert value is not None and low < value * 0.999 and value * 1.001 < high, (
                sigma,
                rate,
                steps,
                value,
            )
            out.write(f"{sigma!r},{rate!r},{steps},{target!r},{value:.12g}\n")


if __name__ == "__main__":
    main()
