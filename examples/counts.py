"""Visits to four branches, counted after every day under one epsilon for everything a person did."""

import csv
import tempfile
from pathlib import Path

import antinoise as an

visits = Path(__file__).resolve().parents[1] / "docs" / "visits.csv"
branches = ["north", "south", "east", "west"]
with tempfile.TemporaryDirectory() as place:
    folder = Path(place) / "visits"
    an.RunningCounts.create(folder, branches, periods=60, epsilon=2, delta=1e-6, max_periods=7).close()
    for day in range(1, 61):
        # In practice each day has a process of its own, which opens the folder.
        with an.RunningCounts.open(folder) as counts, visits.open(newline="") as events:
            counts.freeze(day, csv.DictReader(events), time="day", user="person", key="branch")
            published = counts.publish().to_dict()
    with an.RunningCounts.open(folder) as counts:
        print(counts.status()["statement"].split("\n\n")[0])
for branch, value, lower, upper in zip(
    *(published[name] for name in ("key", "value", "lower", "upper")), strict=True
):
    print(
        f"{branch or 'persons at their bounds'}: {value} in 60 days, from {lower} to {upper} with 95% confidence"
    )
