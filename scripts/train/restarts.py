#!/usr/bin/env python3
"""Accuracy by number of restarts, and by the number of epochs for which a strategy was designed.

    cargo build --release && python3 scripts/train/restarts.py [--epsilon 2,8] [--repeats 12]

The same two ablations as Figures 7 and 8 of Choquette-Choo et al. (2023), on the digits in the program: 20
epochs of 15 steps, SGD with momentum 0.9, prefix sums as the workload. `honaker-online` and `dense` start
anew in s runs of 20 / s epochs each (`+xS`); with s runs, `dense` is designed for the 20 / s participations
of one of them. Each is trained at the best of its learning rates by test accuracy. The loss is that of the
whole training, 20 epochs.
"""

import argparse
import tempfile
from pathlib import Path

from program import run

RUNS = [1, 2, 5, 10, 20]
CLASSES = ["honaker-online", "dense"]
SETTINGS = (
    "--data digits --model mlp --batch-size 96 --epochs 20 --momentum 0.9 --setting cyclic --workload prefix"
)


def trained(specs, epsilon, repeats, folder):
    """The finished runs of these mechanisms, by their names."""
    chosen = [word for spec in specs for word in ("--mechanism", spec)]
    privacy = ["--epsilon", epsilon, "--delta", "1e-5", "--seed", 1]
    how = ["--compare", "--repeats", repeats, "--json", "--out", Path(folder) / "runs"]
    found = run("train", *SETTINGS.split(), *privacy, *chosen, *how)["runs"]
    return {row["mechanism"]: row for row in found}


def table(epsilon, repeats):
    """Lines of the table for one epsilon."""
    columns = "".join(f" RMS loss, `{name}` | test accuracy |" for name in CLASSES)
    lines = [f"| runs | epochs of a run |{columns}", "|---|---|" + "---|---|" * len(CLASSES)]
    specs = [[name + (f"+x{s}" if s > 1 else "") for name in CLASSES] for s in RUNS]
    with tempfile.TemporaryDirectory() as folder:
        found = trained(sum(specs, []), epsilon, repeats, folder)
    for s, names in zip(RUNS, specs):
        cells = [
            f" {row['rms_loss']:.4f} | {100 * row['test_accuracy']:.2f} +- {100 * row['standard_error']:.2f} |"
            for row in (found[name] for name in names)
        ]
        lines.append(f"| {s} | {20 // s} |" + "".join(cells))
    return lines


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--epsilon", default="2,8")
    parser.add_argument("--repeats", type=int, default=12, help="at least 2, of which errors are computed")
    options = parser.parse_args()
    for epsilon in options.epsilon.split(","):
        lines = table(float(epsilon), options.repeats)
        print(
            f"Epsilon {epsilon}, delta 1e-5, {options.repeats} repeats:", "", *lines, "", sep="\n", flush=True
        )


if __name__ == "__main__":
    main()
