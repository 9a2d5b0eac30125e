#!/usr/bin/env python3
"""Writes docs/visits.csv, the small generated example of a stream: visits of people to four branches on 60
days.

    python3 scripts/release/visits.py

Columns: day (a number from 1), person, branch, minutes. The same file every time. Python's standard library
suffices.
"""

import random
from pathlib import Path

BRANCHES = {"north": 1.0, "south": 0.7, "east": 0.35, "west": 0.15}
DAYS, PEOPLE, A_DAY = 60, 900, 60

rng = random.Random(20260301)
home = [rng.choices(list(BRANCHES), BRANCHES.values())[0] for _ in range(PEOPLE)]
rows = []
for day in range(1, DAYS + 1):
    # Fewer on two days of seven; the south opens late.
    count = int(A_DAY * (0.4 if day % 7 in (6, 0) else 1.0) * (0.8 + 0.4 * day / DAYS))
    for person in rng.sample(range(PEOPLE), count):
        branch = home[person] if rng.random() < 0.9 else rng.choice(list(BRANCHES))
        if branch == "south" and day <= 20:
            branch = "north"
        rows.append(f"{day},p{person},{branch},{max(1, round(rng.gammavariate(3, 8)))}")
out = Path(__file__).resolve().parents[2] / "docs" / "visits.csv"
out.write_text("day,person,branch,minutes\n" + "\n".join(rows) + "\n")
print(f"{out}: {len(rows)} rows")
