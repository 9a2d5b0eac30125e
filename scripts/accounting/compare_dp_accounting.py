"""Compares brackets on epsilon with dp-accounting (PyPI) and times both.

Makes a virtual environment in target/accounting-venv and installs dp-accounting there. On the same settings,
one after the other, runs the example `epsilon` of antinoise-accounting and dp-accounting's privacy loss
distributions. Prints each setting where they differ by more than 0.1% or where dp-accounting's figure is
below our lower bound, then a summary. Contour integration (bromwich.py) decides who is right.

    python3 scripts/accounting/compare_dp_accounting.py [--quick]
"""

import csv
import itertools
import os
import subprocess
import sys
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VENV = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "accounting-venv"


def grid(quick):
    sigmas = [0.3, 0.5, 0.8, 1.0, 2.0, 5.0, 15.0, 50.0]
    rates = [1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.5, 1.0]
    steps = [1, 10, 1000, 10**4, 10**5, 10**6]
    deltas = [1e-12, 1e-9, 1e-6, 1e-3]
    cases = list(itertools.product(sigmas, rates, steps, deltas))
    return cases[::29] if quick else cases


def ours(cases):
    command = ["cargo", "run", "-q", "--release", "-p", "antinoise-accounting", "--example", "epsilon"]
    lines = "".join(f"{s!r} {q!r} {n} {d!r}\n" for s, q, n, d in cases)
    out = subprocess.run(command, input=lines, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    return list(csv.DictReader(out.splitlines()))


def theirs(case, interval):
    from dp_accounting.pld import privacy_loss_distribution

    sigma, rate, steps, delta = case
    start = time.perf_counter()
    step = privacy_loss_distribution.from_gaussian_mechanism(
        sigma, sampling_prob=rate, value_discretization_interval=interval, use_connect_dots=True
    )
    epsilon = step.self_compose(steps).get_epsilon_for_delta(delta)
    return epsilon, time.perf_counter() - start


def affordable(case, interval):
    """Whether dp-accounting's arrays, with one entry per interval of the summed loss, fit in memory."""
    sigma, rate, steps, _ = case
    spread = 12 * steps**0.5 * min(1, 2 * rate) / sigma + steps * min(1, rate) ** 2 / sigma**2 + 10 / sigma**2
    return spread / interval < 3e6


def interval_for(epsilon):
    """The interval for dp-accounting: fine enough for 0.1%, its default of 1e-4, or less where epsilon is
    small.
    """
    return min(1e-4, max(1e-7, 2e-4 * epsilon))


def main():
    import bromwich

    cases = grid("--quick" in sys.argv)
    rows = ours(cases)

    def width(row):
        return (float(row["upper"]) - float(row["lower"])) / max(float(row["upper"]), 1e-300)

    wide = [row for row in rows if width(row) > 1e-3]
    print(
        f"{len(rows)} settings, {sum(float(r['seconds']) for r in rows):.1f} s, longest "
        f"{max(float(r['seconds']) for r in rows):.2f} s; wider than 0.1%: {len(wide)}"
    )
    for row in wide:
        print("  wide", {key: row[key] for key in list(row)[:6]}, f"{100 * width(row):.2f}%")
    compared, outside, differ, inside, decided = 0, 0, 0, 0, 0
    deadline = time.time() + float(os.environ.get("SECONDS_FOR_DP_ACCOUNTING", "400"))
    order = sorted(range(len(cases)), key=lambda i: (i * 7919) % len(cases))
    for i in order:
        case, row = cases[i], rows[i]
        lower, upper = float(row["lower"]), float(row["upper"])
        interval = interval_for(upper)
        if not affordable(case, interval) or upper == 0.0 or time.time() > deadline:
            continue
        epsilon, seconds = theirs(case, interval)
        compared += 1
        # dp-accounting's figure is an upper bound: one below our lower bound would contradict it.
        below, apart = epsilon < lower * (1 - 1e-9), abs(epsilon - upper) > 1e-3 * upper
        outside += below
        differ += apart
        if below or apart:
            low, high = 0.9 * min(epsilon, lower), 1.1 * upper
            truth = bromwich.epsilon(*case, low, high) if case[2] > 1 else None
            if truth is not None:
                decided += 1
                inside += lower * (1 - 1e-9) <= truth <= upper * (1 + 1e-9)
            note = "BELOW OUR LOWER BOUND" if below else "above" if epsilon > upper else "inside"
            print(
                f"  {case}: [{lower:.7g}, {upper:.7g}] theirs {epsilon:.7g} at interval {interval:g}"
                f" ({seconds:.2f} s) {note}; contour integration says {truth}"
            )
    print(
        f"compared with dp-accounting: {compared}; differ by more than 0.1%: {differ}; below our lower bound:"
        f" {outside}"
    )
    print(f"decided by contour integration: {decided}, of which inside our bracket: {inside}")
    case = (1.0, 0.01, 10**4, 1e-6)
    own = min(float(ours([case] * 5)[k]["seconds"]) for k in range(5))
    other = min(theirs(case, 1e-4)[1] for _ in range(3))
    print(f"time for {case}: {own * 1e3:.2f} ms against {other * 1e3:.0f} ms, {other / own:.0f} times")


if __name__ == "__main__":
    if Path(sys.prefix) != VENV:
        if not VENV.exists():
            venv.create(VENV, with_pip=True)
            subprocess.run([VENV / "bin/pip", "-q", "install", "dp-accounting"], check=True)
        os.execv(VENV / "bin/python", [str(VENV / "bin/python"), *sys.argv])
    main()
