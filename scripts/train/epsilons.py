#!/usr/bin/env python3
"""Fashion-MNIST: accuracy against epsilon, with and without amplification by sampling.

    apt install dataset-fashion-mnist && cargo build --release
    python3 scripts/train/epsilons.py [--folder target/fashion-mnist] [--epochs 10] [--repeats 3] [--epsilon 1,2,4,8]

The CNN in batches of 500, clip norm 1, momentum 0.9, delta 1e-5, learning rates searched until none is on an edge. Two comparisons: batches
that are sampled (DP-SGD and what planning chooses there) and batches that come round (independent noise, banded, BLT, dense). Hours on two
cores; what is in the folder is not trained again, so that a run that was stopped goes on. Prints a table.
"""
import argparse
import json
import math
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "target" / "release" / "antinoise"
BATCH = 500
EXAMPLES = 60_000


def comparisons(options):
    """Name and options of each comparison: those of cyclic batches name their mechanisms, since planning chooses one alone."""
    bands = EXAMPLES // BATCH
    cyclic = ["identity", f"banded-toeplitz:{bands}", "blt:4", "dense"]
    common = ["--data", "fashion-mnist", "--epochs", options.epochs, "--batch-size", BATCH, "--repeats", options.repeats]
    common += ["--epsilon", options.epsilon]
    named = [part for mechanism in cyclic for part in ("--mechanism", mechanism)]
    return [("sampled", [*common, "--setting", "poisson"]), ("cyclic", [*common, "--setting", "cyclic", *named])]


def compared(folder, arguments):
    """The comparison at each epsilon, trained as far as it was not."""
    go_on = ["--resume", folder] if folder.exists() else [*arguments, "--out", folder]
    command = [str(part) for part in [PROGRAM, "train", *go_on, "--json"]]
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if run.returncode:
        raise SystemExit(run.returncode)
    return json.loads(run.stdout)["epsilons"]


def rows(name, at_epsilon):
    for run in at_epsilon["runs"]:
        if run["baseline"] == "none":
            yield "none", "no noise", run
        else:
            yield f"{at_epsilon['epsilon']:g}", f"{run['mechanism']} ({name})", run


def margin(first, second):
    """How many points the first is ahead, and the standard error of that."""
    apart = 100 * (first["test_accuracy"] - second["test_accuracy"])
    return apart, 100 * math.hypot(first["standard_error"] or 0, second["standard_error"] or 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=ROOT / "target" / "fashion-mnist")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--epsilon", default="1,2,4,8")
    options = parser.parse_args()
    if "," not in options.epsilon:
        parser.error(f"--epsilon is {options.epsilon} but must be two or more with commas between them")
    found, sampled = {}, {}
    for name, arguments in comparisons(options):
        options.folder.mkdir(parents=True, exist_ok=True)
        for at_epsilon in compared(options.folder / name, arguments):
            for epsilon, mechanism, run in rows(name, at_epsilon):
                # Both comparisons train without noise; the first of the two is told.
                found.setdefault((epsilon, mechanism), run)
                if run["baseline"] == "independent-amplified":
                    sampled[epsilon] = run
    print("| epsilon | mechanism (batches) | test accuracy | ahead of sampled DP-SGD | learning rate | mean at each rate | RMS loss |")
    print("|---|---|---|---|---|---|---|")
    for (epsilon, mechanism), run in sorted(found.items(), key=lambda item: item[0][0]):
        ahead = "{:+.1f} +- {:.1f}".format(*margin(run, sampled[epsilon])) if epsilon in sampled else ""
        rates = ", ".join(f"{rate:g}: {100 * accuracy:.1f}" for rate, accuracy in run["by_learning_rate"])
        print(
            f"| {epsilon} | {mechanism} | {100 * run['test_accuracy']:.2f} +- {100 * (run['standard_error'] or 0):.2f} | {ahead} "
            f"| {run['learning_rate']:g} | {rates} | {run['rms_loss']:.4f} |"
        )


if __name__ == "__main__":
    main()
