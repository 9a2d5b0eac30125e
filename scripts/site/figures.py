#!/usr/bin/env python3
"""Draws docs/figures/*.svg, of the README and the pages on concepts, from what `antinoise` computes.

    cargo build --release && python3 scripts/site/figures.py [--program target/release/antinoise]

Keys are fixed, so that a figure changes only with the program. The figure of floating point is computed here,
in a toy format of three bits.
"""

import argparse
import ast
import itertools
import json
import math
import random
import struct
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FIGURES = ROOT / "docs" / "figures"
BLUE, ORANGE, INK, LINE = "#0072B2", "#D55E00", "#4B5563", "#DFE3E8"


class Program:
    """antinoise in a folder of its own, with a fixed key."""

    def __init__(self, path, folder):
        self.path, self.folder = path.resolve(), Path(folder)
        (self.folder / "key").write_bytes(bytes(range(32)))
        (self.folder / "key").chmod(0o600)

    def run(self, *arguments):
        done = subprocess.run([self.path, *arguments], cwd=self.folder, check=True, capture_output=True)
        return done.stdout.decode()

    def noise(self, strategy, steps):
        """One coordinate of a strategy's noise, at noise multiplier 1."""
        how = ["--strategy", strategy, "--steps", str(steps)]
        self.run("noise", *how, "--dim", "1", "--key-file", "key", "--out", "noise.npy", "--force")
        found = json.loads(self.run("loss", *how, "--json"))
        return [found["sensitivity"]["value"] * value for value in floats(self.folder / "noise.npy")], found

    def batches(self, *request):
        """Examples of each step of a small plan."""
        data = [
            "--examples",
            "12",
            "--batch-size",
            "3",
            "--epochs",
            "4",
            "--epsilon",
            "8",
            "--delta",
            "1e-3",
            "--out",
            "p.toml",
            "--force",
        ]
        self.run("plan", *data, *request)
        return json.loads(self.run("batches", "--plan", "p.toml", "--key-file", "key", "--json"))["batches"]


def floats(path):
    """The numbers of a NumPy file of float32."""
    data = path.read_bytes()
    (length,) = struct.unpack("<H", data[8:10])
    shape = ast.literal_eval(data[10 : 10 + length].decode())["shape"]
    return struct.unpack(f"<{math.prod(shape)}f", data[10 + length :])


def svg(width, height, label, parts):
    head = f'<svg role="img" aria-label="{label}" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    style = 'font-family="system-ui, sans-serif" font-size="13"'
    ground = '<rect width="100%" height="100%" fill="#FFFFFF"/>'
    return "\n".join([f'{head} {style} xmlns="http://www.w3.org/2000/svg">', ground, *parts, "</svg>\n"])


def text(x, y, words, anchor="start", color=INK, weight="normal"):
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="{color}" font-weight="{weight}">{words}</text>'


def line(points, color, width=2.0):
    places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline fill="none" stroke="{color}" stroke-width="{width:g}" points="{places}"/>'


def dot(x, y, color, radius=5.0):
    return f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" fill="{color}"/>'


def accumulated(program):
    """Sums of one draw of noise: independent, and correlated with the same key."""
    steps, width, height = 200, 720, 330
    drawn = [("independent noise", ORANGE, "identity"), ("correlated noise (blt:4)", BLUE, "blt:4")]
    sums = [list(itertools.accumulate(program.noise(name, steps)[0])) for _, _, name in drawn]
    low, high = min(map(min, sums)), max(map(max, sums))

    def place(t, value):
        return 50 + t * (width - 70) / steps, 40 + (high - value) * (height - 90) / (high - low)

    parts = []
    for value in range(math.ceil(low / 5) * 5, math.floor(high) + 1, 5):
        parts += [
            line([place(0, value), place(steps, value)], LINE, 1),
            text(42, place(0, value)[1] + 4, value, "end"),
        ]
    for t in range(0, steps + 1, 50):
        parts.append(text(place(t, 0)[0], height - 28, t, "middle"))
    parts.append(text(width / 2, height - 8, "step", "middle"))
    for i, ((title, color, _), walk) in enumerate(zip(drawn, sums)):
        parts += [line([place(t, value) for t, value in enumerate([0, *walk])], color)]
        parts += [line([(50 + 220 * i, 14), (74 + 220 * i, 14)], color), text(80 + 220 * i, 18, title)]
    return svg(
        width, height, "Sums of one draw of independent and of correlated noise, over 200 steps", parts
    )


def gain():
    """Bars of the noise in the model relative to DP-SGD, of the plans in docs/results/sampled.json."""
    plans = json.loads((ROOT / "docs" / "results" / "sampled.json").read_text())
    left, right, top, row = 250, 640, 34, 50
    bottom = top + row * len(plans)
    parts = [text(right, top - 14, "DP-SGD", "middle", weight="bold")]
    for fifth in range(6):
        x, last = left + (right - left) * fifth / 5, fifth == 5
        parts.append(line([(x, top - 8), (x, bottom)], INK if last else LINE, 2 if last else 1))
        parts.append(text(x, bottom + 18, f"{fifth / 5:g}", "middle"))
    title = "noise in the model (RMS loss), DP-SGD = 1"
    parts.append(text((left + right) / 2, bottom + 38, title, "middle"))
    for i, plan in enumerate(plans):
        words = plan["arguments"].split()
        given = dict(zip(words[::2], words[1::2]))
        examples, batch, epochs = (float(given[name]) for name in ("--examples", "--batch-size", "--epochs"))
        ratio, y = plan["chosen"]["rms_loss"] / plan["independent"]["rms_loss"], top + row * i
        length, steps = ratio * (right - left), f"{examples * epochs / batch:,.0f} steps"
        anchor, color = ("start", INK) if ratio < 0.9 else ("end", "#FFFFFF")
        at = left + length + (8 if ratio < 0.9 else -8)
        parts += [
            text(left - 12, y + 18, f"{examples:,.0f} examples", "end", weight="bold"),
            text(left - 12, y + 34, f"{steps}, epsilon {given['--epsilon']}", "end"),
            f'<rect x="{left}" y="{y + 8}" width="{length:.1f}" height="28" fill="{BLUE}"/>',
            text(at, y + 27, f"{ratio:.2f}", anchor, color, "bold"),
        ]
    label = "Noise in the model of four plans, relative to DP-SGD at the same privacy"
    return svg(720, bottom + 50, label, parts)


def rows(title, batches, x, y, examples=12):
    """Dots for the steps of each example; those of one example stand out."""
    left, top, marked = x + 12, y + 18, min(batches[0])
    right = left + 18 * (len(batches) - 1)
    parts = [
        text(x, y, title, weight="bold"),
        text((left + right) / 2, top + 16 * examples + 4, "step", "middle"),
    ]
    for example in range(examples):
        height, color = top + 16 * example, ORANGE if example == marked else BLUE
        parts.append(line([(left, height), (right, height)], LINE, 1))
        steps = [step for step, batch in enumerate(batches) if example in batch]
        parts += [dot(left + 18 * step, height, color) for step in steps]
    return parts


def panels(label, drawn):
    width = 340
    parts = [
        part
        for i, (title, batches) in enumerate(drawn)
        for part in rows(title, batches, 14 + width * (i % 2), 22 + 250 * (i // 2))
    ]
    return svg(2 * width + 20, 250 * ((len(drawn) + 1) // 2), label, parts)


def federated(steps=16, users=12, cohort=3, apart=4, times=3):
    """Cohorts of users who come again after `apart` steps or more, `times` times at most."""
    chance, last, count, cohorts = random.Random(3), {}, dict.fromkeys(range(users), 0), []
    for step in range(steps):
        free = [u for u in range(users) if count[u] < times and step - last.get(u, -apart) >= apart]
        cohorts.append(sorted(chance.sample(free, min(cohort, len(free), chance.choice([1, 2, 3])))))
        for user in cohorts[-1]:
            last[user], count[user] = step, count[user] + 1
    return cohorts


def participation(program):
    drawn = [
        ("cyclic: every 4th step, 4 times", program.batches("--setting", "cyclic", "--strategy", "identity")),
        ("federated: 4 or more apart, 3 times at most", federated()),
    ]
    return panels("Steps in which 12 examples take part, in cyclic batches and as federated users", drawn)


def sampled(program):
    drawn = [
        ("Poisson sampling, one group", program.batches("--setting", "poisson", "--strategy", "identity")),
        (
            "block-cyclic, 2 bands: groups take turns",
            program.batches("--setting", "poisson", "--strategy", "banded-toeplitz:2"),
        ),
        (
            "balls in bins: secret batches, in cyclic order",
            program.batches("--setting", "poisson", "--strategy", "blt:2"),
        ),
        (
            "b-min-sep, 2 bands: one step of rest",
            program.batches("--setting", "b-min-sep", "--strategy", "banded-toeplitz:2"),
        ),
    ]
    return panels("Steps in which 12 examples take part, under four samplers", drawn)


def toy(value):
    """The nearest number with three bits."""
    if value == 0:
        return 0.0
    unit = 2.0 ** (math.floor(math.log2(abs(value))) - 2)
    return round(value / unit) * unit


def floating_point():
    """Noisy sums that two neighbouring data sets can have, in toy floating point and on a grid."""
    width, scale, left = 720, 160, 360
    numbers = sorted(
        {sign * m * 2.0**e / 4 for m in range(4, 8) for e in range(-3, 1) for sign in (-1, 1)} | {0.0}
    )
    parts = []

    def ticks(y, title, reached, color):
        parts.append(text(14, y - 16, title))
        parts.append(line([(20, y), (width - 20, y)], LINE, 1))
        parts.extend(
            line([(left + scale * v, y - 9), (left + scale * v, y + 9)], color, 2)
            for v in reached
            if abs(v) < 2.1
        )

    for row, (total, color) in enumerate([(0.0, BLUE), (0.375, ORANGE)]):
        ticks(
            40 + 60 * row,
            f"floating point, sum {total:g}: what sum + noise can be",
            sorted({toy(total + z) for z in numbers}),
            color,
        )
        grid = [k / 8 for k in range(-16, 17)]
        ticks(190 + 60 * row, f"grid of 1/8, sum {total:g}: every point, whatever the sum", grid, color)
    return svg(width, 280, "Values that a noisy sum can have, in floating point and on a grid", parts)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--program", type=Path, default=ROOT / "target/release/antinoise")
    options = parser.parse_args()
    FIGURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        program = Program(options.program, folder)
        for draw in (accumulated, participation, sampled):
            (FIGURES / f"{draw.__name__}.svg").write_text(draw(program))
        (FIGURES / "gain.svg").write_text(gain())
        (FIGURES / "floating-point.svg").write_text(floating_point())
        program.run("show", "--strategy", "dense", "--steps", "24", "--out", "dense.svg")
        bands = "--examples 60000 --batch-size 500 --epochs 4 --epsilon 4 --delta 1e-6 --plot bands.svg"
        program.run("bands", *bands.split())
        for name in ("dense.svg", "bands.svg"):
            (FIGURES / name).write_bytes((program.folder / name).read_bytes())


if __name__ == "__main__":
    main()
