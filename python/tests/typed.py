"""Code that type checkers must accept: mypy reads it, and it is not run."""

import numpy as np

import antinoise as an

plan: an.Plan = an.plan(
    1000, 10, epochs=2, epsilon=1.0, delta=1e-6, workload=[1.0, 0.5], mechanism=["blt:2", "identity"]
)
chosen: list[str] = [row["strategy"] for row in plan.candidates if row["chosen"]]
key: an.Key = an.Key.from_os()
noise = an.NoiseStream(plan, 10, key, shard=[(0, 5), (5, 10)])
row = np.empty(10, np.float32)
noise.next_into(row)
noise.next_into([row[:4], bytearray(4 * 6)])
noise.add_to_sum(np.zeros(10), row)
noise.seek(7, progress=lambda at, of: print(at, of))
total: int = sum(len(batch) for batch in an.Batches(plan, key))
worst: float = an.loss("blt", 100, order=2)["sensitivity"]["value"] + an.compare(["blt"], [8])[0]["rms_loss"]
told: float = an.account(1.0, 1e-5)["epsilon"] + an.calibrate(1.0, 1e-5, 0.01, 100)
column = an.Strategy.design("toeplitz", 10).first_column.tolist()
counts = an.RunningCounts.create(
    "counts", ["a"], periods=3, epsilon=1, delta=1e-6, max_periods=2, queries=["counts", "window:2"]
)
tally: int = counts.freeze(
    "2026-03-01", [{"t": "2026-03-01", "u": "x", "k": "a"}], time="t", user="u", key="k"
)["counted"]
tally += counts.freeze(7, {"t": np.array([7]), "k": ["a"]}, time="t", key="k", late="next")["late"]
with an.RunningCounts.open("counts") as reopened:
    figures: dict[str, list[object]] = reopened.publish().to_dict()
    told = (
        reopened.freeze(8, reopened.query("SELECT 1 AS t, 'a' AS k"), time="t", key="k")["later"]
        / counts.status()["epsilon"]
    )
    told += sum(query["largest_standard_deviation"] for query in reopened.status()["queries"])
    reopened.freeze_counts(np.datetime64("2026-03-02"), {"a": 1})
