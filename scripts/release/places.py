#!/usr/bin/env python3
"""Writes docs/places.csv, a small generated example of points in a stream: where people are picked up in a
town, on 30 days.

    python3 scripts/release/places.py

Columns: day (a number from 1), person, town (one alone), x and y (km from the south-western corner of a
square of 10 km). The same file every time. Python's standard library suffices.
"""

import random
from pathlib import Path

# Where, how far around, how often: a station, a market, a harbour.
PLACES = [((2.0, 3.0), 0.6, 5), ((6.5, 7.5), 0.9, 4), ((8.0, 2.0), 0.5, 3)]
DAYS, PEOPLE, A_DAY = 30, 1200, 140

rng = random.Random(20260302)
usual = [rng.choices(PLACES, [often for _, _, often in PLACES])[0] for _ in range(PEOPLE)]
rows = []
for day in range(1, DAYS + 1):
    for person in rng.sample(range(PEOPLE), A_DAY):
        (x, y), around, _ = usual[person] if rng.random() < 0.7 else rng.choice(PLACES)
        rows.append(f"{day},p{person},vale,{rng.gauss(x, around):.1f},{rng.gauss(y, around):.1f}")
out = Path(__file__).resolve().parents[2] / "docs" / "places.csv"
out.write_text("day,person,town,x,y\n" + "\n".join(rows) + "\n")
print(f"{out}: {len(rows)} rows")
