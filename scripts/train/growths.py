#!/usr/bin/env python3
"""How well do the weights of the spectrum of curvatures predict what noise at a step does to the final loss?

    cargo build --release && python3 scripts/train/growths.py

`antinoise probe` measures on the digits how much noise at each of 16 steps raises the final loss, by 8
repeated trainings, and `antinoise probe --by spectrum` computes weights of the curvatures. The correlations
are Pearson's, over the steps, of the measured growths with the sum of squared responses by weights: equal
ones, the spectrum's, and those fitted to the growths themselves. Writes docs/results/growths.json, of which
workloads_page.py makes a table in docs/results/workloads.md.
"""

import json
import resource
import statistics

from program import ROOT, run

GROWTHS = ROOT / "docs" / "results" / "growths.json"
# Model, epochs, learning rate and momentum.
TRAININGS = [
    ("logistic", 10, 0.03, 0.9),
    ("logistic", 10, 0.3, 0),
    ("mlp", 20, 0.03, 0.9),
    ("mlp", 20, 0.1, 0.9),
]


def squares(curvature, steps, momentum):
    """Squared responses of the last iterate to noise at each step, as in `Workload::LastIterate`."""
    by_iterate, by_velocity, found = 1.0, 0.0, []
    for _ in range(steps):
        effect = (1 - momentum) * by_iterate - by_velocity
        by_iterate, by_velocity = by_iterate - curvature * effect, -momentum * effect
        found.append(effect**2)
    return found[::-1]


def timed(*words):
    """What a command prints, and its processor time."""
    used = lambda: sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])  # noqa: E731
    before = used()
    return run(*words), used() - before


def measured(model, epochs, rate, momentum):
    training = ["--model", model, "--epochs", epochs, "--learning-rate", rate, "--momentum", momentum]
    words = ["probe", *training, "--batch-size", 96, "--noise-multiplier", 4, "--repeats", 8, "--json"]
    grown, of_trainings = timed(*words, "--probes", 16)
    found, of_spectrum = timed(*words, "--by", "spectrum")
    growths = grown["growths"]
    rows = [squares(h, found["steps"], momentum) for h in found["curvatures"]]

    def correlation(weights):
        predicted = [sum(w * row[g["step"]] for w, row in zip(weights, rows)) for g in growths]
        return statistics.correlation(predicted, [g["mean"] for g in growths])

    size = lambda key: sum(g[key] ** 2 for g in growths) ** 0.5  # noqa: E731
    return {
        "model": model,
        "learning_rate": rate,
        "momentum": momentum,
        "errors": size("error") / size("mean"),
        "equal": correlation([1.0] * len(rows)),
        "spectrum": correlation(found["weights"]),
        "fitted": statistics.correlation(grown["fitted"], [g["mean"] for g in growths]),
        "seconds": [of_trainings, of_spectrum],
    }


def main():
    GROWTHS.write_text(json.dumps([measured(*training) for training in TRAININGS], indent=1) + "\n")


if __name__ == "__main__":
    main()
