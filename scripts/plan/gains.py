#!/usr/bin/env python3
"""The gains of plans over DP-SGD, and the time of planning: a table with one row for each of 60 settings.

    cargo build --release && python3 scripts/plan/gains.py

The figure is the RMS loss of the chosen mechanism divided by that of DP-SGD (independent noise with
amplification by Poisson sampling), at delta 0.1 / N; below 1 is a gain. The column `before` has the figures
of an earlier planner, which tried only banded Toeplitz matrices and BLTs.
"""

import json
import subprocess
import time
from pathlib import Path

PROGRAM = Path(__file__).resolve().parents[2] / "target" / "release" / "antinoise"

# (N, B, epochs): the earlier planner's figures for epsilon 1, 4 and 8, for sampled and for cyclic batches.
BEFORE = {
    (60_000, 500, 1): ((0.76, 1.35), (0.58, 0.58), (0.41, 0.41)),
    (60_000, 500, 4): ((0.86, 1.44), (0.56, 0.66), (0.46, 0.46)),
    (60_000, 500, 16): ((0.95, 1.34), (0.67, 0.81), (0.52, 0.56)),
    (1_000_000, 2_000, 1): ((0.52, 1.02), (0.38, 0.40), (0.27, 0.27)),
    (1_000_000, 2_000, 4): ((0.62, 1.17), (0.37, 0.46), (0.31, 0.31)),
    (1_000_000, 2_000, 16): ((0.83, 1.28), (0.45, 0.58), (0.34, 0.38)),
    (50_000_000, 10_000, 1): ((0.25, 0.55), (0.18, 0.20), (0.16, 0.13)),
    (50_000_000, 10_000, 4): ((0.29, 0.64), (0.16, 0.23), (0.14, 0.15)),
    (50_000_000, 10_000, 16): ((0.45, 0.81), (0.20, 0.29), (0.15, 0.19)),
}
# Users, batch size, steps, minimum separation: plans of a federated run at epsilon 2 and 8, compared with
# independent noise.
FEDERATED = [(342_477, 1_000, 2_052, 342), (1_000_000, 1_000, 2_048, 128), (10_000_000, 5_000, 1_500, 1_000)]


def planned(arguments):
    begun = time.perf_counter()
    run = subprocess.run(
        [PROGRAM, "plan", *map(str, arguments), "--json"], capture_output=True, text=True, check=True
    )
    found = json.loads(run.stdout)
    return found["candidates"], found["candidates"][found["chosen"]], time.perf_counter() - begun


def row(examples, batch_size, epochs, epsilon, setting, before):
    candidates, chosen, seconds = planned(
        ["--examples", examples, "--batch-size", batch_size, "--epochs", epochs, "--epsilon", epsilon]
        + ["--delta", 0.1 / examples, "--setting", setting]
    )
    dp_sgd = next(c for c in candidates if c["strategy"] == "identity" and c["amplified"])
    ratio = chosen["rms_loss"] / dp_sgd["rms_loss"]
    told(
        f"{examples:,}, {batch_size:,}",
        f"{epochs} epochs, {setting}",
        epsilon,
        chosen,
        ratio,
        before,
        seconds,
    )
    return seconds, round(ratio, 2) <= before


def told(data, schema, epsilon, chosen, ratio, before, seconds):
    print(
        f"| {data} | {schema} | {epsilon} | {chosen['name']} | {ratio:.3f} | {before} | {seconds:.1f} |",
        flush=True,
    )


def main():
    print("| N, B | schema | epsilon | chosen | over DP-SGD | before | seconds |")
    print("|---|---|---|---|---|---|---|")
    rows = []
    for (examples, batch_size, epochs), figures in BEFORE.items():
        for epsilon, (sampled, turns) in zip((1, 4, 8), figures):
            rows.append(row(examples, batch_size, epochs, epsilon, "poisson", sampled))
            rows.append(row(examples, batch_size, epochs, epsilon, "cyclic", turns))
    for examples, batch_size, steps, apart in FEDERATED:
        for epsilon in (2, 8):
            candidates, chosen, seconds = planned(
                [
                    "--examples",
                    examples,
                    "--batch-size",
                    batch_size,
                    "--steps",
                    steps,
                    "--min-sep",
                    apart,
                    "--epsilon",
                    epsilon,
                ]
                + ["--delta", 0.1 / examples, "--setting", "federated"]
            )
            ratio = chosen["rms_loss"] / candidates[0]["rms_loss"]
            told(
                f"{examples:,}, {batch_size:,}",
                f"{steps} steps, {apart} apart",
                epsilon,
                chosen,
                ratio,
                "-",
                seconds,
            )
            rows.append((seconds, True))
    slowest = max(seconds for seconds, _ in rows)
    worse = sum(not held for _, held in rows)
    print(f"\n{len(rows)} settings, the slowest in {slowest:.1f} s; {worse} lost against the figures before.")


if __name__ == "__main__":
    main()
