#!/usr/bin/env python3
"""Fashion-MNIST: accuracy against epsilon, with and without amplification by sampling.

    apt install dataset-fashion-mnist && cargo build --release
    python3 scripts/train/epsilons.py [--epsilon 1,2,4,8] [--epochs 10] [--repeats 3]

The CNN in batches of 500, clip norm 1, momentum 0.9, delta 1e-5, learning rates searched until none is on an
edge. Two comparisons at each epsilon: batches that are sampled (DP-SGD and what planning chooses there) and
cyclic batches (independent noise, banded, BLT, dense). Hours on two cores. Each finished comparison
is kept in docs/results/epsilons.json and not repeated; one that was stopped resumes from its folder. Writes
docs/results/fashion-mnist.md.
"""

import argparse
import json
import math
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "target" / "release" / "antinoise"
STORE = ROOT / "docs" / "results" / "epsilons.json"
PAGE = ROOT / "docs" / "results" / "fashion-mnist.md"
DEBIAN_FOLDER = "/usr/share/datasets/fashion-mnist"
BATCH = 500
EXAMPLES = 60_000
BANDS = EXAMPLES // BATCH
# For sampled batches, planning names the mechanism. For cyclic batches mechanisms are named here, since
# planning would choose only one.
CYCLIC = ["identity", f"banded-toeplitz:{BANDS}", "blt:4", "dense"]
SETTINGS = {
    "sampled": ["--setting", "poisson"],
    "cyclic": ["--setting", "cyclic", *(word for name in CYCLIC for word in ("--mechanism", name))],
}


def compared(folder, name, epsilon, options, with_reference):
    """The rows of one comparison, after its missing trainings. Training without noise is left out if the data
    are named with their folder."""
    data = "fashion-mnist" if with_reference else f"fashion-mnist:{DEBIAN_FOLDER}"
    arguments = [
        "--data",
        data,
        "--epochs",
        options.epochs,
        "--batch-size",
        BATCH,
        "--compare",
        "--repeats",
        options.repeats,
        "--epsilon",
        epsilon,
        "--delta",
        "1e-5",
    ]
    go_on = ["--resume", folder] if folder.exists() else [*arguments, *SETTINGS[name], "--out", folder]
    run = subprocess.run(
        [str(part) for part in [PROGRAM, "train", *go_on, "--json"]], stdout=subprocess.PIPE, text=True
    )
    if run.returncode:
        raise SystemExit(run.returncode)
    return [kept(row) for row in json.loads(run.stdout)["runs"]]


def kept(row):
    """The entries of a row that the page uses."""
    names = [
        "mechanism",
        "baseline",
        "test_accuracy",
        "standard_error",
        "learning_rate",
        "by_learning_rate",
        "rms_loss",
    ]
    return {name: row[name] for name in names} | {"share_in_noise": row["seconds_in_noise"] / row["seconds"]}


def store(options):
    """Earlier results for the same epochs and repeats."""
    settings = {"epochs": options.epochs, "repeats": options.repeats}
    found = json.loads(STORE.read_text()) if STORE.exists() else {**settings, "found": {}, "seconds": {}}
    before = {name: found[name] for name in settings}
    if before != settings:
        raise SystemExit(f"{STORE} is of {before} but must be of {settings}: move it away to begin anew")
    return found


def margin(first, second):
    """The difference in points between two results, and its standard error."""
    apart = 100 * (first["test_accuracy"] - second["test_accuracy"])
    return apart, 100 * math.hypot(first["standard_error"] or 0, second["standard_error"] or 0)


def line(epsilon, name, row, sampled):
    ahead = "{:+.1f} +- {:.1f}".format(*margin(row, sampled)) if sampled and row is not sampled else ""
    rates = ", ".join(f"{rate:g}: {100 * accuracy:.1f}" for rate, accuracy in row["by_learning_rate"])
    mechanism = row["mechanism"] if row["baseline"] == "none" else f"{row['mechanism']}, {name}"
    epsilon = "none" if row["baseline"] == "none" else epsilon
    return (
        f"| {epsilon} | {mechanism} | {100 * row['test_accuracy']:.2f} +-"
        f" {100 * (row['standard_error'] or 0):.2f} | {ahead} | {row['learning_rate']:g} | {rates} |"
        f" {row['rms_loss']:.4f} | {100 * row['share_in_noise']:.1f}% |"
    )


def time_in_all(whole):
    """The time of all comparisons, for those that were trained without interruption."""
    taken = whole.get("seconds", {})
    each = [taken.get(f"{name} at {epsilon}") for epsilon, found in whole["found"].items() for name in found]
    if each and all(each):
        yield from [
            "",
            (
                f"All of it took {sum(each) / 60:.0f} minutes: planning, every training and its checkpoints,"
                " and the reports."
            ),
        ]


def by_epsilon(found):
    return sorted(found.items(), key=lambda item: float(item[0]))


def dp_sgd(of_epsilon):
    """The row of DP-SGD with sampled batches, once it is trained."""
    return next(
        (row for row in of_epsilon.get("sampled", []) if row["baseline"] == "independent-amplified"), None
    )


def unsampled(found):
    """Whether the best mechanism of cyclic batches is ahead of DP-SGD, by epsilon."""
    for epsilon, of_epsilon in by_epsilon(found):
        sampled = dp_sgd(of_epsilon)
        if sampled and "cyclic" in of_epsilon:
            best = max(of_epsilon["cyclic"], key=lambda row: row["test_accuracy"])
            ahead, error = margin(best, sampled)
            word = (
                "ahead of"
                if ahead > 2 * error
                else "behind"
                if ahead < -2 * error
                else "no different, within two standard errors, from"
            )
            yield (
                f"- Epsilon {epsilon}: without sampling the best, {best['mechanism']}, is {word} DP-SGD with"
                f" sampling ({ahead:+.1f} +- {error:.1f})."
            )


def page(whole):
    lines = [
        "# Fashion-MNIST: accuracy against epsilon",
        "",
        "<!-- written by scripts/train/epsilons.py -->",
        "",
        (
            f"A CNN, batches of {BATCH}, {whole['epochs']} epochs, clip norm 1, momentum 0.9, delta 1e-5;"
            f" means and standard errors of {whole['repeats']} runs at the best learning rate, searched until"
            ' it is not on an edge. Rates that are far behind after one run are not repeated. "Ahead" is'
            " in points, of DP-SGD with sampled batches at the same epsilon. Noise is on the grid; its share"
            " of the time is that of a machine that had other work too (without: docs/training.md). Epsilon"
            " is that of one training: it does not pay for the choice of the best rate."
        ),
        "",
        (
            "| epsilon | mechanism, batches | test accuracy | ahead | learning rate | mean at each rate | RMS"
            " loss | noise's share of the time |"
        ),
        "|---|---|---|---|---|---|---|---|",
    ]
    for epsilon, of_epsilon in by_epsilon(whole["found"]):
        rows = [(name, row) for name in SETTINGS for row in of_epsilon.get(name, [])]
        sampled = dp_sgd(of_epsilon)
        lines += [line(epsilon, name, row, sampled) for name, row in rows]
    lines += ["", *unsampled(whole["found"]), *time_in_all(whole)]
    wanted = [(epsilon, name) for epsilon in ("1", "2", "4", "8") for name in SETTINGS]
    absent = [
        f"{name} at {epsilon}" for epsilon, name in wanted if name not in whole["found"].get(epsilon, {})
    ]
    if absent:
        lines += ["", f"Not trained yet: {', '.join(absent)}."]
    PAGE.write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=ROOT / "target" / "fashion-mnist")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--epsilon", default="1,2,4,8")
    options = parser.parse_args()
    whole = store(options)
    options.folder.mkdir(parents=True, exist_ok=True)
    for epsilon in options.epsilon.split(","):
        for name in SETTINGS:
            of_epsilon = whole["found"].setdefault(epsilon, {})
            if name in of_epsilon:
                continue
            references = (
                row
                for found in whole["found"].values()
                for rows in found.values()
                for row in rows
                if row["baseline"] == "none"
            )
            with_reference = next(references, None) is None
            folder, begun = options.folder / f"{name}-{epsilon}", time.monotonic()
            in_one_go = not folder.exists()
            of_epsilon[name] = compared(folder, name, epsilon, options, with_reference)
            if in_one_go:
                whole.setdefault("seconds", {})[f"{name} at {epsilon}"] = round(time.monotonic() - begun)
            STORE.write_text(json.dumps(whole, indent=1) + "\n")
            page(whole)
    page(whole)


if __name__ == "__main__":
    main()
