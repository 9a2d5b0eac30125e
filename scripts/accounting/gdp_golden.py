"""Golden values of Gaussian differential privacy, in 60-digit arithmetic (400 where delta may be 1 less a
tiny number).

Writes crates/accounting/tests/golden/gdp_delta.csv (mu, epsilon, ln delta) and gdp_epsilon.csv (mu, delta,
epsilon). Needs mpmath: `pip install mpmath`, then `python3 scripts/accounting/gdp_golden.py`.
"""

from pathlib import Path

from mpmath import erfc, exp, findroot, log, mp, mpf, nstr, sqrt, workdps

mp.dps = 60
FOLDER = Path(__file__).resolve().parents[2] / "crates/accounting/tests/golden"
MUS = [1e-3, 2.5e-3, 0.01, 0.03, 0.1, 0.25, 0.5, 0.9999, 1.0, 1.0001, 1.7, 3.0, 5.5, 10.0, 25.0, 60.0, 100.0]
DELTAS = [0.3, 0.1, 1e-2, 1e-3, 1e-5, 1e-6, 1e-9, 1e-12, 1e-20, 1e-50, 1e-100, 1e-200, 1e-300]


def upper_tail(x):
    return erfc(x / sqrt(mpf(2))) / 2


def delta(mu, epsilon):
    return upper_tail(epsilon / mu - mu / 2) - exp(epsilon) * upper_tail(epsilon / mu + mu / 2)


def epsilon_for(mu, target):
    """The epsilon of a delta by bisection (delta falls in epsilon), polished by the secant rule."""
    low, high = mpf(0), mu * mu / 2 + mu * sqrt(-2 * log(target))
    for _ in range(120):
        middle = (low + high) / 2
        if delta(mu, middle) > target:
            low = middle
        else:
            high = middle
    return findroot(lambda e: log(delta(mu, e)) - log(target), (low, high), tol=1e-40)


def main():
    with open(FOLDER / "gdp_delta.csv", "w") as out:
        out.write("mu,epsilon,ln_delta\n")
        for mu in MUS:
            # Epsilons in units of mu/2 and mu: from 0 through the centre of the loss to its far tail.
            for steps in [0.0, 1e-6, 0.01, 0.3, 1.0, 2.0, 5.0, 12.0, 20.0, 36.0]:
                for epsilon in {steps * mu, mu * mu / 2 + steps * mu}:
                    with workdps(400):
                        value = log(delta(mpf(mu), mpf(epsilon)))
                    out.write(f"{mu!r},{epsilon!r},{nstr(value, 20)}\n")
    with open(FOLDER / "gdp_epsilon.csv", "w") as out:
        out.write("mu,delta,epsilon\n")
        for mu in MUS:
            for target in DELTAS:
                if delta(mpf(mu), mpf(0)) > target:
                    out.write(f"{mu!r},{target!r},{nstr(epsilon_for(mpf(mu), mpf(target)), 20)}\n")


if __name__ == "__main__":
    main()
