#!/usr/bin/env python3
"""How far are designs for the RMS and for the max error from the design for another p-norm of the errors?

    python3 scripts/plan/norms.py [--steps 64,256]

The error of query i is the norm r_i of row i of B = A C^-1. RMS is p = 2 and max is p = infinity; a design
for p minimises (mean of r_i^p)^(1/p) over all lower-triangular C with columns of norm 1 (a single
participation), by L-BFGS. For each p, the table has the excess of the designs for RMS and for max over the
best, and that of the better of the two. Quantiles are not norms and have many local minima: for each the best
of all p is the reference. Needs numpy and scipy.
"""

import argparse

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import minimize

POWERS = [2, 3, 4, 6, 8, 16, 32, np.inf]
# The p that stands for infinity is approached from below, as the maximum is not differentiable.
LARGEST = [8, 32, 128, 1024]
QUANTILES = [0.5, 0.75, 0.9]


def prefix(steps):
    return np.tril(np.ones((steps, steps)))


def momentum(steps, beta=0.9):
    lag = np.subtract.outer(np.arange(steps), np.arange(steps))
    return np.where(lag >= 0, (1 - beta ** (np.maximum(lag, 0) + 1.0)) / (1 - beta), 0.0)


def rows(a, c):
    """The errors r_i, and B."""
    b = solve_triangular(c, a.T, lower=True, trans="T").T
    return np.sqrt((b * b).sum(1)), b


def norm(r, p):
    return r.max() if np.isinf(p) else r.max() * np.mean((r / r.max()) ** p) ** (1 / p)


def objective(flat, a, p):
    """The logarithm of the p-norm, and its gradient, as a function of a C whose columns are then scaled to
    norm 1."""
    steps = len(a)
    free = np.zeros((steps, steps))
    free[np.tril_indices(steps)] = flat
    scale = np.linalg.norm(free, axis=0)
    c = free / scale
    r, b = rows(a, c)
    weight = (r / r.max()) ** p
    weight = weight / weight.sum() / r**2
    by_c = -np.tril(solve_triangular(c, (b.T * weight) @ b, lower=True, trans="N").T)
    # B^T G B C^-T, transposed twice: the product is symmetric.
    along = (by_c * c).sum(0)
    by_free = (by_c - c * along) / scale
    return np.log(norm(r, p)), by_free[np.tril_indices(steps)]


def design(a, p, start):
    steps = len(a)
    for power in LARGEST if np.isinf(p) else [p]:
        found = minimize(
            objective,
            start[np.tril_indices(steps)],
            args=(a, power),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 4000, "maxfun": 8000, "ftol": 1e-13, "gtol": 1e-9, "maxcor": 30},
        )
        start = np.zeros((steps, steps))
        start[np.tril_indices(steps)] = found.x
    return start / np.linalg.norm(start, axis=0)


def square_root(steps):
    """The Toeplitz square root of prefix sums, from which designs start."""
    first = np.cumprod(np.concatenate([[1.0], 1 - 0.5 / np.arange(1, steps)]))
    lag = np.subtract.outer(np.arange(steps), np.arange(steps))
    c = np.where(lag >= 0, first[np.maximum(lag, 0)], 0.0)
    return c / np.linalg.norm(c, axis=0)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", default="64,256")
    options = parser.parse_args()
    print("| workload | steps | measure | design for RMS | design for max | the better one |")
    print("|---|---|---|---|---|---|")
    for steps in map(int, options.steps.split(",")):
        for name, workload in [("prefix", prefix), ("momentum:0.9", momentum)]:
            a = workload(steps)
            c, errors = square_root(steps), {}
            for p in POWERS:
                c = design(a, p, c)
                errors[p] = rows(a, c)[0]
            measures = [(f"p = {p}", lambda r, p=p: norm(r, p)) for p in POWERS]
            measures += [(f"quantile {q}", lambda r, q=q: np.quantile(r, q)) for q in QUANTILES]
            for label, measure in measures:
                best = min(measure(r) for r in errors.values())
                excess = [100 * (measure(errors[p]) / best - 1) for p in (2, np.inf)]
                cells = " | ".join(f"{x:.2f}%" for x in [*excess, min(excess)])
                print(f"| {name} | {steps} | {label} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
