#!/usr/bin/env python3
"""Adam under privacy: where its second moments come from, compared with SGD with momentum.

    cargo build --release
    python3 scripts/train/adaptive.py [--data digits] [--epsilon 1,4] [--repeats 5]

The same plan for each optimizer: batches that come round, the dense mechanism, clip norm 1, delta 1e-5.
Learning rates are doubled and halved until the best is not on an edge. Each result is kept in
docs/results/adaptive.json and not repeated. A quarter of an hour for the digits on two idle cores; noise is
made from seeds, on public data. Writes docs/results/adaptive.md.
"""
import argparse
import json
import math
import statistics
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "target" / "release" / "antinoise"
STORE = ROOT / "docs" / "results" / "adaptive.json"
PAGE = ROOT / "docs" / "results" / "adaptive.md"
PLANNED = ["--setting", "cyclic", "--mechanism", "dense"]
ADAM = ["--optimizer", "adam", "--second-moment"]
# What is compared: the options, and the learning rates that a search begins with.
OPTIMIZERS = {
    "sgd, momentum 0.9": ([], [0.025, 0.05, 0.1]),
    "adam, released": ([*ADAM, "released"], [0.008, 0.016, 0.032]),
    "adam, scaled, damping 0.1": ([*ADAM, "scaled", "--damping", "0.1"], [0.008, 0.016, 0.032]),
    "adam, scaled, damping 1": ([*ADAM, "scaled", "--damping", "1"], [0.016, 0.032, 0.064]),
    "adam, joint, damping 1": ([*ADAM, "joint", "--damping", "1"], [0.008, 0.016, 0.032]),
    "adam, joint, damping 4": ([*ADAM, "joint", "--damping", "4"], [0.032, 0.064, 0.128]),
}


def accuracies(options, optimizer, rate):
    """Test accuracies of the runs at one learning rate."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = ["--data", options.data, *PLANNED, *optimizer, "--epsilon", options.at, "--learning-rate", rate]
        arguments += ["--repeats", options.repeats, "--seed", options.seed, "--out", Path(folder) / "run", "--json"]
        run = subprocess.run([str(part) for part in [PROGRAM, "train", *arguments]], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    if run.returncode:
        raise SystemExit(f"{run.returncode} of {arguments}")
    return json.loads(run.stdout)["runs"][0]["test_accuracies"]


def further(found):
    """The learning rate that is to be tried next: beyond the best one, if that is the least or the
    largest."""
    rates = sorted(found, key=float)
    best = max(rates, key=lambda rate: statistics.mean(found[rate]))
    if best == rates[0]:
        return float(best) / 2
    return float(best) * 2 if best == rates[-1] else None


def search(options, name, found, keep):
    """Fills `found`, accuracies by learning rate, until the best is not on an edge."""
    optimizer, first = OPTIMIZERS[name]
    rates = list(first)
    while rates:
        for rate in rates:
            if f"{rate:g}" not in found:
                found[f"{rate:g}"] = accuracies(options, optimizer, rate)
                keep()
        rate = further(found)
        rates = [] if rate is None else [rate]


def mean_and_error(values):
    error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return 100 * statistics.mean(values), 100 * error


def page(whole):
    lines = [
        "# Adam under privacy",
        "",
        "<!-- written by scripts/train/adaptive.py -->",
        "",
        "Where Adam's second moments come from (`antinoise train --optimizer adam --second-moment`), beside SGD, on the same plan: batches that come "
        f"round, the dense mechanism, clip norm 1, delta 1e-5, zero-out. Means and standard errors of {whole['repeats']} runs at the best learning rate, "
        "searched until it is not on an edge; no standard error has that choice in it. \"Ahead\" is in points, of adam with released second moments.",
        "",
        "| data | epsilon | optimizer | test accuracy | ahead | learning rate | mean at each rate |",
        "|---|---|---|---|---|---|---|",
    ]
    for data, of_data in whole["found"].items():
        for epsilon, of_epsilon in sorted(of_data.items(), key=lambda item: float(item[0])):
            done = {name: found for name, found in of_epsilon.items() if len(found) >= 3 and further(found) is None}
            best = {name: max(found.items(), key=lambda item: statistics.mean(item[1])) for name, found in done.items()}
            plain = best.get("adam, released")
            for name, (rate, values) in best.items():
                mean, error = mean_and_error(values)
                ahead = ""
                if plain and name != "adam, released":
                    of_plain, plain_error = mean_and_error(plain[1])
                    ahead = f"{mean - of_plain:+.1f} +- {math.hypot(error, plain_error):.1f}"
                rates = ", ".join(f"{rate}: {100 * statistics.mean(done[name][rate]):.1f}" for rate in sorted(done[name], key=float))
                lines.append(f"| {data} | {epsilon} | {name} | {mean:.1f} +- {error:.1f} | {ahead} | {rate} | {rates} |")
    notes = PAGE.read_text().split("\n## ", 1)[1:] if PAGE.exists() else []
    PAGE.write_text("\n".join(lines) + "\n" + "".join("\n## " + note for note in notes))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="digits")
    parser.add_argument("--epsilon", default="1,4")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    whole = json.loads(STORE.read_text()) if STORE.exists() else {"repeats": options.repeats, "seed": options.seed, "found": {}}
    if (whole["repeats"], whole["seed"]) != (options.repeats, options.seed):
        raise SystemExit(f"{STORE} is of {whole['repeats']} repeats from seed {whole['seed']}: move it away to begin anew")

    def keep():
        STORE.write_text(json.dumps(whole, indent=1) + "\n")

    for options.at in options.epsilon.split(","):
        for name in OPTIMIZERS:
            search(options, name, whole["found"].setdefault(options.data, {}).setdefault(options.at, {}).setdefault(name, {}), keep)
            page(whole)
    page(whole)


if __name__ == "__main__":
    main()
