#!/usr/bin/env python3
"""Compares mechanisms for DP-FedAvg of a character model on plays by speaker: measures into
docs/results/shakespeare.json and writes docs/results/shakespeare.md from it.

    python3 scripts/train/shakespeare.py PLAYS --part momentum [--unit speakers] [--seeds 10]
    python3 scripts/train/shakespeare.py PLAYS --part zeroing [--seeds 3]
    python3 scripts/train/shakespeare.py PLAYS --part damping [--unit speakers] [--seeds 5]
    python3 scripts/train/shakespeare.py PLAYS --part command [--seeds 10]
    python3 scripts/train/shakespeare.py --part losses
    python3 scripts/train/shakespeare.py --page

PLAYS is a text in which a line NAME: opens a speech and an empty line ends it: tiny Shakespeare, in the
public domain. The parts:

momentum  the multi-epoch paper's configuration: updates with a large entry replaced by zero, clipping,
          momentum and a cooldown on the server
zeroing   the same with and without replacing updates by zero, where local steps or the server's are large
command   some rows of the first part by `antinoise train --characters`, at the rates found there
losses    the losses of the first part's mechanisms for both workloads, from their designs alone
damping   momentum alone, strategies also designed for weight decay in addition: it is doubled until the mean
          validation loss grows

The server's learning rate is searched by halves and doubles, with the first seeds, until the rate of smallest
validation loss is not at an edge of the rates tried; then all seeds run at that rate. The setting (model,
cohort, rounds, clip norm, local steps) was chosen by training without privacy and with independent noise,
before any correlated noise ran.
"""

import argparse
import json
import math
import statistics
import subprocess
import tempfile
from pathlib import Path

import program
import shakespeare_page
import speeches
import workloads

ROOT = Path(__file__).resolve().parents[2]
STORE = ROOT / "docs/results/shakespeare.json"
PAGE = ROOT / "docs/results/shakespeare.md"
ROUNDS, EPSILON, DELTA = 100, 8, 1e-5
MODEL = f"--embedding 8 --hidden 32 --length 40 --rounds {ROUNDS} --epsilon {EPSILON} --delta {DELTA}"
LOCAL = "--local-batch 8 --local-steps 4"
CLIPPED = "--local-rate 3 --clip-norm 1"
MOMENTUM, COOLDOWN = "--momentum 0.9", "--schedule cooldown:0.25,0.05"
# The paper's bound: 100 clip norms.
ZERO = "--zero-beyond 100"
UNITS = {
    "speakers": "--users speakers --characters 4000 --cohort 46 --min-sep 5",
    "stretches": "--users stretches --characters 1280 --cohort 70 --min-sep 10",
    "twice": "--users stretches --characters 1280 --cohort 15 --min-sep 10 --max-participations 2",
}
# More bands than the separation help if users come less often than it allows.
BANDS = {"speakers": [5], "stretches": [10], "twice": [10, 30]}
UNITS_OF_MOMENTUM = ["speakers", "stretches"]
# Cohort, separation and times of a user in the part on momentum.
SHAPES = {"speakers": (46, 5, 20), "stretches": (70, 10, 10)}
# Seeds that search the server's rate in the part on momentum; one in the part on damping.
SEARCHING = 2
SEEDS = {"momentum": 10, "zeroing": 3, "damping": 5, "command": 10}
# Mechanism, clip norm, rate of the server and rate of local steps: without noise updates are as good as not
# clipped.
CASES_OF_ZEROING = [
    *[("blt:4", 1, server, local) for server in (0.4, 1.6, 6.4) for local in (3, 30, 300, 3000)],
    *[("identity", 1, 1.6, local) for local in (3, 30, 300, 3000)],
    *[("none", 1e9, 0.1, local) for local in (3, 30, 300, 3000)],
]
# Mechanism, and the server's momentum and learning rate.
CASES_OF_COMMAND = [("identity", 0, 1.6), ("blt:4", 0.9, 0.2), ("banded:5", 0.9, 0.4)]
COMMAND = """--user speaker --characters line --sequence-length 40 --max-characters 4000 --embedding 8 --hidden 32
    --setting federated --min-sep 5 --batch-size 46 --steps 100 --epsilon 8 --delta 1e-5 --clip-norm 1
    --local-rate 3 --local-batch-size 8 --local-steps 4 --local-zero-beyond 100
    --schedule cooldown:0.25,0.05 --compare"""
# Weight decays for which strategies are designed: they model that training forgets early noise.
DAMPINGS = [0, 0.1, 0.2, 0.4]


class Fedavg:
    """The example `fedavg` on some plays."""

    def __init__(self, plays):
        example = ["-p", "antinoise-federated", "--example", "fedavg"]
        built = ["cargo", "build", "--release", "--message-format", "json", *example]
        lines = subprocess.run(built, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
        programs = (json.loads(line).get("executable") for line in lines.splitlines())
        self.words = [[program for program in programs if program][-1], "--data", plays]

    def run(self, options, rates, seeds):
        """The results of each rate and seed."""
        words = [*self.words, "--rates", ",".join(map(str, rates)), "--seeds", ",".join(map(str, seeds))]
        for option in options:
            words += option.split()
        done = subprocess.run(words, check=True, capture_output=True, text=True)
        return sorted(map(json.loads, done.stdout.splitlines()), key=lambda result: result["seed"])


def validation_loss(results):
    """The mean validation loss; infinite if a run diverged."""
    losses = [result["validation_loss"] for result in results]
    return math.inf if None in losses else statistics.mean(losses)


def search(run, first, seeds, searching):
    """The rate of smallest validation loss, the losses of all rates that were tried with the first
    `searching` seeds, and the results of all seeds at that rate.
    """
    found = {}
    wanted = [first / 2, first, first * 2]
    while True:
        for result in run([rate for rate in wanted if rate not in found], seeds[:searching]):
            found.setdefault(result["rate"], []).append(result)
        tried = {rate: validation_loss(results) for rate, results in sorted(found.items())}
        best = min(tried, key=tried.get)
        wanted = [best / 2, best, best * 2]
        if all(rate in found for rate in wanted):
            return best, tried, found[best] + run([best], seeds[searching:])


def by_seed(results, *names):
    """These figures of results, each a list in the order of seeds."""
    return {name: [result[name] for result in results] for name in names}


def rows_of_momentum(unit):
    """Mechanism, workload that it is designed for, server's options, and first learning rate of each row."""
    server, designed = f"{MOMENTUM} {COOLDOWN}", ["blt:4"]
    designed += [f"{name}:{bands}" for bands in BANDS[unit] for name in ("banded-toeplitz", "banded")]
    rows = [("none", None, server, 1.6)]
    rows += [(name, workload, server, 0.4) for name in designed for workload in ("map", "design")]
    rows += [("honaker-full", None, server, 0.2), ("identity", None, server, 0.2)]
    rows += [("identity", None, MOMENTUM, 0.2)]
    return rows + [("identity", None, f"--momentum 0 {other}".strip(), 1.6) for other in (COOLDOWN, "")]


def measure_momentum(fedavg, unit, seeds):
    rows = []
    for mechanism, workload, server, first in rows_of_momentum(unit):
        options = [MODEL, LOCAL, CLIPPED, ZERO, UNITS[unit], server, f"--mechanism {mechanism}"]
        options += ["--workload design"] if workload == "design" else []
        run = lambda rates, of, options=options: fedavg.run(options, rates, of)  # noqa: E731
        rate, tried, results = search(run, first, seeds, SEARCHING)
        row = {"mechanism": mechanism, "workload": workload, "server": server, "rate": rate}
        row["rms_loss"] = results[0]["rms_loss"]
        row["tried"] = {f"{rate:g}": loss for rate, loss in tried.items()}
        row |= by_seed(results, "loss", "accuracy", "validation_loss")
        print(unit, row, flush=True)
        rows.append(row)
    return {"users": results[0]["users"], "parameters": results[0]["parameters"], "rows": rows}


def rates_of_cooldown():
    """The server's rates of all rounds with a cooldown, as shares of the full rate."""
    start = ROUNDS - 1 - ROUNDS // 4
    return [1 - 0.95 * max(0, step - start) / (ROUNDS - 1 - start) for step in range(ROUNDS)]


def losses_of_unit(unit, rows, folder):
    """The RMS losses of each row of the server with momentum and cooldown, for its map and its last iterate:
    with the noise of the plan, for a clip norm of 1 and divided by the cohort."""
    path = Path(folder) / "rates.txt"
    path.write_text("".join(f"{rate!r}\n" for rate in rates_of_cooldown()))
    of = {"map": f"schedule:{path},0.9", "design": f"last-iterate:0.9,0.05,{path}"}
    cohort, min_sep, times = SHAPES[unit]
    noise = program.run("calibrate", "--epsilon", EPSILON, "--delta", DELTA, "--json")["noise_multiplier"]
    found = []
    for row in rows:
        mechanism, workload = row["mechanism"], row["workload"]
        if mechanism == "none" or row["server"] != f"{MOMENTUM} {COOLDOWN}":
            continue
        shape = [f"min-sep:{min_sep},{times}", ROUNDS, of.values(), folder]
        losses = workloads.losses(mechanism, of[workload or "map"], *shape)
        both = {name: loss * noise / cohort for name, loss in zip(of, losses)}
        # The training's own plan had the same design and noise.
        assert math.isclose(both[workload or "map"], row["rms_loss"], rel_tol=1e-5), (both, row["rms_loss"])
        found.append({"mechanism": mechanism, "workload": workload, "losses": both})
    return found


def measure_losses():
    """The losses of the part on momentum, by unit."""
    with tempfile.TemporaryDirectory() as folder:
        return {
            unit: losses_of_unit(unit, found["rows"], folder) for unit, found in stored()["momentum"].items()
        }


def zeroed_by_quarter(result):
    """The share of updates that became zero, in each quarter of the rounds."""
    counts = result["zeroed"]
    rounds = len(counts) // 4
    quarters = [counts[first : first + rounds] for first in range(0, 4 * rounds, rounds)]
    return [round(sum(quarter) / rounds / result["came"], 4) for quarter in quarters]


def measure_zeroing(fedavg, seeds):
    rows = []
    for mechanism, clip_norm, server_rate, local_rate in CASES_OF_ZEROING:
        options = [MODEL, LOCAL, UNITS["speakers"], MOMENTUM, COOLDOWN, f"--mechanism {mechanism}"]
        options += [f"--clip-norm {clip_norm}", f"--local-rate {local_rate}"]
        row = {"mechanism": mechanism, "server_rate": server_rate, "local_rate": local_rate}
        for arm, zero in (("with", ZERO), ("without", "")):
            results = fedavg.run([*options, zero], [server_rate], seeds)
            row[arm] = by_seed(results, "loss", "clipped")
            if zero and mechanism != "none":
                row["zeroed"] = [zeroed_by_quarter(result) for result in results]
        print(row, flush=True)
        rows.append(row)
    return rows


def measure_command(plays, seeds):
    """The test accuracies of each case, from one command for all seeds."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        data = speeches.write(plays, folder)
        for number, (mechanism, momentum, rate) in enumerate(CASES_OF_COMMAND):
            server = ["--mechanism", mechanism, "--momentum", momentum, "--learning-rate", rate]
            repeats = ["--repeats", len(seeds), "--seed", seeds[0], "--out", folder / str(number)]
            found = program.run("train", *data, *COMMAND.split(), *server, *repeats, "--json")["runs"]
            (run,) = (run for run in found if run["mechanism"] == mechanism)
            row = {"mechanism": mechanism, "momentum": momentum, "rate": rate}
            row["accuracy"] = run["test_accuracies"]
            print(row, flush=True)
            rows.append(row)
    return rows


def rows_of_damping(unit):
    """Specification and name of each mechanism, and whether it is optimised."""
    banded = [(f"banded-toeplitz:{bands}", f"banded Toeplitz, {bands} bands", True) for bands in BANDS[unit]]
    rows = [("none", "no noise", False), ("blt:4", "BLT, 4 buffers", True), *banded]
    return rows + [("honaker-full", "tree (Honaker, full)", False), ("identity", "independent noise", False)]


def designs(run, rate, seeds, is_designed):
    """For each damping (weight decay of the design), the best rate and the results of all seeds, until more
    damping is worse.
    """
    found, dampings = {}, list(DAMPINGS if is_designed else [0])
    for damping in dampings:
        rate, _, results = search(lambda rates, of: run(damping, rates, of), rate, seeds, 1)
        found[damping] = rate, results
        if is_designed and damping == dampings[-1] == least(found):
            dampings.append(2 * damping)
    return found


def least(found):
    """The damping of smallest validation loss."""
    return min(found, key=lambda damping: validation_loss(found[damping][1]))


def mean_and_error(results, name):
    return shakespeare_page.mean_and_error([result[name] for result in results])


def measure_damping(fedavg, unit, seeds):
    rows, private = [], []
    for mechanism, name, is_designed in rows_of_damping(unit):

        def run(damping, rates, of):
            workload = f"--workload momentum:0.9{f',{damping}' if damping else ''}"
            options = [MODEL, LOCAL, CLIPPED, UNITS[unit], MOMENTUM, workload]
            return fedavg.run([*options, f"--mechanism {mechanism}"], rates, of)

        found = designs(run, 0.8 if mechanism == "none" else 0.2, seeds, is_designed)
        damping = least(found)
        (_, undamped), (rate, results) = found[0], found[damping]
        row = {"name": name, "rms_loss": undamped[0]["rms_loss"], "rate": rate}
        row |= {figure: mean_and_error(results, figure) for figure in ("loss", "accuracy")}
        if is_designed:
            row |= {"undamped": mean_and_error(undamped, "loss"), "damping": damping}
        print(unit, row, flush=True)
        rows.append(row)
        if mechanism != "none":
            private.append((name, results))
    private.sort(key=lambda item: mean_and_error(item[1], "loss")[0])
    (best, first), (second, behind) = private[:2]
    apart = [{"loss": b["loss"] - a["loss"]} for a, b in zip(first, behind)]
    ahead = {"best": best, "next": second, "behind": mean_and_error(apart, "loss")}
    return {"users": results[0]["users"], "seeds": len(seeds), "rows": rows, "ahead": ahead}


def stored():
    return json.loads(STORE.read_text()) if STORE.exists() else {}


def store(found):
    STORE.write_text(json.dumps(found, indent=1) + "\n")


def write_page():
    PAGE.write_text(shakespeare_page.page(stored()))


def measure(options):
    """Measures a part, and stores each unit of it; runs of other parts may store theirs in the meantime."""
    seeds = list(range(1, 1 + (options.seeds or SEEDS[options.part])))
    if options.part == "command":
        rows = measure_command(options.plays, seeds)
        store(stored() | {"command": rows})
        return
    fedavg = Fedavg(options.plays)
    if options.part == "zeroing":
        rows = measure_zeroing(fedavg, seeds)
        store(stored() | {"zeroing": rows})
        return
    of_unit, units = MEASURES[options.part]
    for unit in [options.unit] if options.unit else units:
        measured = of_unit(fedavg, unit, seeds)
        found = stored()
        store(found | {options.part: found.get(options.part, {}) | {unit: measured}})


MEASURES = {"momentum": (measure_momentum, UNITS_OF_MOMENTUM), "damping": (measure_damping, UNITS)}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("plays", nargs="?")
    parser.add_argument("--part", choices=[*SEEDS, "losses"])
    parser.add_argument("--unit", choices=UNITS, help="of the parts momentum and damping; all by default")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--page", action="store_true", help="write the page from the last figures alone")
    options = parser.parse_args()
    if options.part == "losses":
        store(stored() | {"losses": measure_losses()})
    elif not options.page:
        if not (options.plays and options.part):
            parser.error("PLAYS and --part, or --page")
        measure(options)
    write_page()


if __name__ == "__main__":
    main()
