#!/usr/bin/env python3
"""Times a private step of the small CNN here and in Opacus (ghost clipping), in one run on the same cores.

    python3 scripts/train/compare_opacus.py [--threads 2] [--rounds 5] [--steps 20]

The model is `Model::cnn` on 28x28 images: 26,010 parameters. torch and opacus are installed from PyPI into
.venv/opacus (git ignores it) on the first run. Rounds take turns; each gives the median of its steps. What
counts is the median of the rounds, with the smallest and the largest.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".venv" / "opacus"
# The batch size of the example step_cost.
BATCH = 500
PEERS = ["torch==2.*", "opacus==1.*"]


def opacus_steps(threads, steps):
    """Prints milliseconds of each step with ghost clipping, then of each step without privacy."""
    import torch
    from opacus import PrivacyEngine
    from torch import nn

    torch.set_num_threads(threads)

    def build():
        return nn.Sequential(
            nn.Conv2d(1, 16, 8, 2, padding=3), nn.MaxPool2d(2, 1), nn.Tanh(),
            nn.Conv2d(16, 32, 4, 2), nn.MaxPool2d(2, 1), nn.Tanh(),
            nn.Flatten(), nn.Linear(512, 32), nn.Tanh(), nn.Linear(32, 10),
        )  # fmt: skip

    images = torch.rand(BATCH, 1, 28, 28)
    labels = torch.arange(BATCH) % 10
    data = torch.utils.data.TensorDataset(images, labels)

    def times(model, optimizer, criterion):
        found = []
        for _ in range(steps + 3):
            start = time.perf_counter()
            optimizer.zero_grad()
            criterion(model(images), labels).backward()
            optimizer.step()
            found.append(1e3 * (time.perf_counter() - start))
        return found[3:]

    model = build()
    assert sum(p.numel() for p in model.parameters()) == 26010
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6, momentum=0.9)
    private = PrivacyEngine().make_private(
        module=model,
        optimizer=optimizer,
        criterion=nn.CrossEntropyLoss(),
        data_loader=torch.utils.data.DataLoader(data, batch_size=BATCH),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        grad_sample_mode="ghost",
        poisson_sampling=False,
    )
    print(*times(*private[:3]))
    model = build()
    print(*times(model, torch.optim.SGD(model.parameters(), lr=1e-6, momentum=0.9), nn.CrossEntropyLoss()))


def opacus_round(options):
    python = FOLDER / "bin" / "python"
    command = [python, __file__, "--opacus", str(options.threads), str(options.steps)]
    environment = {**os.environ, "OMP_NUM_THREADS": str(options.threads), "PYTHONWARNINGS": "ignore"}
    lines = subprocess.run(
        command, env=environment, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    private, plain = ([float(x) for x in line.split()] for line in lines[-2:])
    return statistics.median(private), statistics.median(plain)


def own_round(binary, options):
    environment = {**os.environ, "RAYON_NUM_THREADS": str(options.threads)}
    text = subprocess.run([binary], env=environment, check=True, capture_output=True, text=True).stdout
    found = dict(re.findall(r"(\w+) +step +([\d.]+)", text))
    return float(found["private"]), float(found["plain"])


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args()
    if not FOLDER.exists():
        venv.create(FOLDER, with_pip=True)
    subprocess.run([FOLDER / "bin" / "pip", "install", "--quiet", *PEERS], check=True)
    build = ["cargo", "build", "--release", "-p", "antinoise-train", "--example", "step_cost"]
    subprocess.run(build, cwd=ROOT, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    binary = target / "release" / "examples" / "step_cost"

    rows = {name: [] for name in ["antinoise private", "antinoise plain", "Opacus ghost", "torch plain"]}
    for _ in range(options.rounds):
        for names, found in [
            (("antinoise private", "antinoise plain"), own_round(binary, options)),
            (("Opacus ghost", "torch plain"), opacus_round(options)),
        ]:
            for name, milliseconds in zip(names, found):
                rows[name].append(milliseconds)
    print(f"a step of the CNN, batch {BATCH}, {options.threads} threads, {options.rounds} rounds, in ms")
    print(f"{'':18}  median   least  largest")
    for name, times in rows.items():
        print(f"{name:18}  {statistics.median(times):6.1f}  {min(times):6.1f}  {max(times):7.1f}")
    pairs = [peer / own for peer, own in zip(rows["Opacus ghost"], rows["antinoise private"])]
    print(f"Opacus / antinoise  {statistics.median(pairs):5.1f}  {min(pairs):6.1f}  {max(pairs):7.1f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--opacus"]:
        opacus_steps(*map(int, sys.argv[2:]))
    else:
        main()
