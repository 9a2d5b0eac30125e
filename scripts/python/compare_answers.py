#!/usr/bin/env python3
"""Times epsilons, noise multipliers and designs here and in other libraries, and compares what they answer.

    python scripts/python/compare_answers.py [--rounds 5] [--json]

Run it with a Python that has antinoise, dp-accounting, Opacus and jax-privacy; what is not installed is left
out. Times are processor times; designs run three times. All answers are upper bounds, or losses, so smaller
is better. Losses of all matrices are computed by `antinoise.loss`.
"""

import argparse
import importlib.util
import time
import warnings
from collections.abc import Callable
from statistics import median

import numpy as np
from rounds import as_json, seconds

import antinoise as an

SIGMA, EPSILON, RATE, STEPS, DELTA = 1.0, 2.0, 0.01, 10_000, 1e-6
OURS = "antinoise"
Variants = dict[str, Callable[[], object]]


def has(package: str) -> bool:
    found = importlib.util.find_spec(package) is not None
    if not found:
        print(f"left out: {package} is not installed")
    return found


def epsilons() -> tuple[Variants, Callable[[object], float]]:
    ways: Variants = {OURS: lambda: an.account(SIGMA, DELTA, RATE, STEPS)["epsilon"]}
    if has("dp_accounting"):
        from dp_accounting.pld import privacy_loss_distribution as pld

        def of_dp_accounting() -> float:
            step = pld.from_gaussian_mechanism(SIGMA, sampling_prob=RATE, use_connect_dots=True)
            return float(step.self_compose(STEPS).get_epsilon_for_delta(DELTA))

        ways["dp_accounting, loss distributions"] = of_dp_accounting
    if has("opacus"):
        from opacus.accountants import PRVAccountant, RDPAccountant

        def of_opacus(kind: type) -> float:
            accountant = kind()
            accountant.history = [(SIGMA, RATE, STEPS)]
            return float(accountant.get_epsilon(DELTA))

        ways["Opacus, PRV"] = lambda: of_opacus(PRVAccountant)
        ways["Opacus, RDP"] = lambda: of_opacus(RDPAccountant)
    return ways, lambda found: float(found)


def noise_multipliers() -> tuple[Variants, Callable[[object], float]]:
    ways: Variants = {OURS: lambda: an.calibrate(EPSILON, DELTA, RATE, STEPS)}
    if has("dp_accounting"):
        import dp_accounting
        from dp_accounting.pld import PLDAccountant

        def event(sigma: float) -> object:
            step = dp_accounting.PoissonSampledDpEvent(RATE, dp_accounting.GaussianDpEvent(sigma))
            return dp_accounting.SelfComposedDpEvent(step, STEPS)

        ways["dp_accounting, loss distributions"] = lambda: dp_accounting.calibrate_dp_mechanism(
            PLDAccountant, event, EPSILON, DELTA, tol=1e-3
        )
    if has("opacus"):
        from opacus.accountants.utils import get_noise_multiplier

        ways["Opacus, RDP"] = lambda: get_noise_multiplier(
            target_epsilon=EPSILON,
            target_delta=DELTA,
            sample_rate=RATE,
            steps=STEPS,
            accountant="rdp",
            epsilon_tolerance=1e-3,
        )
    return ways, lambda found: float(found)


def designs(
    spec: str, steps: int, epochs: int, objective: str, theirs: Callable[[], object]
) -> tuple[Variants, Callable[[object], float]]:
    apart = steps // epochs
    participation = f"cyclic:{apart},{epochs}" if epochs > 1 else "single"

    def ours() -> an.Strategy:
        return an.Strategy.design(spec, steps, participation=participation, objective=objective)

    def loss(found: object) -> float:
        strategy = found if isinstance(found, an.Strategy) else an.Strategy.of_matrix(np.asarray(found))
        return an.loss(strategy, participation=participation, objective=objective)[f"{objective}_loss"]

    ways: Variants = {OURS: ours}
    if has("jax_privacy"):
        ways["jax_privacy"] = theirs
    return ways, loss


def dense() -> object:
    from jax_privacy.matrix_factorization import dense

    return dense.optimize(128, epochs=4)


def toeplitz() -> object:
    from jax_privacy.matrix_factorization import toeplitz

    found = toeplitz.optimize_banded_toeplitz(1024, 16)
    return toeplitz.materialize_lower_triangular(toeplitz.pad_coefs_to_n(found, 1024))


COMPARISONS = {
    "An epsilon of DP-SGD": (f"noise {SIGMA}, rate {RATE}, {STEPS} steps", "epsilon", epsilons),
    "A noise multiplier of DP-SGD": (
        f"epsilon {EPSILON}, rate {RATE}, {STEPS} steps",
        "noise multiplier",
        noise_multipliers,
    ),
    "A dense design": (
        "128 steps, 4 epochs",
        "RMS loss",
        lambda: designs("dense", 128, 4, "rms", dense),
    ),
    "A banded Toeplitz design": (
        "1024 steps, 16 bands",
        "RMS loss",
        lambda: designs("banded-toeplitz:16", 1024, 1, "rms", toeplitz),
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if has("jax_privacy"):
        import jax

        jax.config.update("jax_enable_x64", True)
    for title, (setting, value, make) in COMPARISONS.items():
        ways, read = make()
        last: dict[str, object] = {}
        steps = {name: lambda name=name: last.update({name: ways[name]()}) for name in ways}
        # Designs take seconds in some libraries.
        slow = make not in (epsilons, noise_multipliers)
        times = seconds(steps, 3 if slow else options.rounds, warm=0 if slow else 1, clock=time.process_time)
        answers = {name: read(found) for name, found in last.items()}
        if options.json:
            print(as_json(title, setting, OURS, times, (value, answers)), flush=True)
            continue
        print(f"{title}: {setting}, {len(times[OURS])} rounds")
        for name, of in times.items():
            ratio = median(theirs / ours for theirs, ours in zip(of, times[OURS], strict=True))
            print(f"  {name:36} {1e3 * median(of):10.2f} ms, {ratio:8.1f}x  {value} {answers[name]:.5g}")


if __name__ == "__main__":
    main()
