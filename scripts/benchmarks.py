#!/usr/bin/env python3
"""Compares antinoise with the libraries that install from the package index, and writes docs/benchmarks.md.

    python3 scripts/benchmarks.py [--wheel FILE] [--rounds 9]   # measures this version, then writes the page
    python3 scripts/benchmarks.py draw                          # writes the page alone

The environment target/python/benchmarks gets the wheel (that of `scripts/python.sh wheel` by default) and,
with `--install`, all other libraries (5 GB); comparisons with one that is not there are left out. A
measurement is kept in docs/results/benchmarks/VERSION.json, and the page has a line for each version.
"""

import argparse
import datetime
import json
import math
import os
import platform
import re
import statistics
import subprocess
import sys
import venv
from html import escape
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "site"))
from figures import FIGURES, INK, LINE, dot, line, svg, text

ROOT = Path(__file__).resolve().parents[1]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
PYTHON = TARGET / "python" / "benchmarks" / "bin" / "python"
STORE, PAGE = ROOT / "docs" / "results" / "benchmarks", ROOT / "docs" / "benchmarks.md"
PEERS = ["numpy", "scipy", "torch", "opacus", "jax>=0.10,<0.11", "optax", "jax-privacy", "dp-accounting"]
SCRIPTS = ["compare_clipping", "compare_torch", "compare_jax_privacy", "compare_answers"]
# Colours of versions, the newest first.
COLORS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7"]


def install(wheel, peers):
    if not PYTHON.exists():
        venv.create(PYTHON.parents[1], with_pip=True)
    pip = [PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--force-reinstall", "--no-deps", wheel], check=True)
    subprocess.run([*pip, *(PEERS if peers else ["numpy"])], check=True)


def machine():
    """Model and number of processors."""
    info = Path("/proc/cpuinfo")
    model = re.search(r"model name\s*: (.*)", info.read_text()) if info.exists() else None
    return f"{model[1] if model else platform.processor()}, {os.cpu_count()} cores, {platform.system()}"


def versions():
    """Versions of the installed libraries."""
    names = [re.split("[<>=]", peer)[0] for peer in PEERS]
    listed = subprocess.run(
        [PYTHON, "-m", "pip", "list", "--format", "json"], capture_output=True, check=True
    )
    found = {
        package["name"].lower().replace("_", "-"): package["version"] for package in json.loads(listed.stdout)
    }
    return {name: found[name] for name in names if name in found}


def measure(rounds):
    """Runs all comparisons; returns what they found, and the version's name."""
    comparisons = []
    for script in SCRIPTS:
        command = [PYTHON, ROOT / "scripts" / "python" / f"{script}.py", "--json", "--rounds", str(rounds)]
        print(script, file=sys.stderr)
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
        missing = re.search(r"No module named '(\w+)'", done.stderr)
        if done.returncode and not missing:
            raise SystemExit(f"{script}: {done.stderr}")
        if missing:
            print(f"left out: {script} needs {missing[1]}", file=sys.stderr)
        for said in done.stdout.splitlines():
            if said.startswith("{"):
                comparisons.append(json.loads(said))
            else:
                print(said, file=sys.stderr)
    if not comparisons:
        raise SystemExit("no library to compare with is installed: --install installs them")
    own = subprocess.run(
        [PYTHON, "-c", "import antinoise; print(antinoise.__version__)"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    return {
        "version": own,
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "machine": machine(),
        "load": round(os.getloadavg()[2], 1),
        "rounds": rounds,
        "python": platform.python_version(),
        "libraries": versions(),
        "comparisons": comparisons,
    }


def others(comparison):
    """The variants of other libraries."""
    names, ours = comparison["seconds"], comparison["ours"]
    return [name for name in names if name != ours and not name.startswith("antinoise")]


def times(comparison, name):
    """Quartiles, over the rounds, of another's processor time divided by ours."""
    ours = comparison["seconds"][comparison["ours"]]
    return statistics.quantiles([a / b for a, b in zip(comparison["seconds"][name], ours, strict=True)])


def answers(comparison, name):
    """Another's answer divided by ours, as quartiles; None if there are no answers."""
    values = comparison.get("values")
    return values and [values[name] / values[comparison["ours"]]] * 3


def rows(stored, read):
    """{title: {variant: {version: what `read` finds}}}, in the order of the newest version."""
    found = {}
    for result in stored:
        for comparison in result["comparisons"]:
            for name in others(comparison):
                if value := read(comparison, name):
                    variants = found.setdefault(comparison["title"], {})
                    variants.setdefault(name, {})[result["version"]] = value
    return found


def figure(stored, read, label, axis, ticks):
    """For every variant a line with quartiles for each version, on an axis of ratios."""
    listed, versions = rows(stored, read), [result["version"] for result in stored]
    all = [value for variants in listed.values() for values in variants.values() for value in values.values()]
    lowest, highest = min(ticks[0], *map(min, all)), max(ticks[-1], *map(max, all))
    width, left, top, step = 720, 260, 34, 12 * len(versions) + 10
    bottom = top + sum(26 + step * len(variants) for variants in listed.values())

    def place(ratio):
        return left + (width - left - 20) * math.log(ratio / lowest) / math.log(highest / lowest)

    parts = []
    for tick in ticks:
        parts += [line([(place(tick), top), (place(tick), bottom)], INK if tick == 1 else LINE, 1)]
        parts += [text(place(tick), bottom + 18, f"{tick:g}", "middle")]
    parts.append(text((left + width - 20) / 2, bottom + 38, axis, "middle"))
    for at, version in enumerate(versions):
        parts += [dot(8 + 140 * at, 12, COLORS[at], 4), text(18 + 140 * at, 16, f"antinoise {version}")]
    y = top
    for title, variants in listed.items():
        parts.append(text(0, y + 18, escape(title), weight="bold"))
        y += 26
        for name, values in variants.items():
            parts.append(text(left - 10, y + step / 2 + 4, escape(name), "end"))
            for at, version in enumerate(versions):
                if version in values:
                    low, middle, high = values[version]
                    height = y + 11 + 12 * at
                    parts += [line([(place(low), height), (place(high), height)], COLORS[at])]
                    parts += [dot(place(middle), height, COLORS[at], 4)]
            y += step
    return svg(width, bottom + 48, label, parts)


def short(seconds):
    """A time with three digits and its unit."""
    unit, name = next(
        pair for pair in [(1, "s"), (1e-3, "ms"), (1e-6, "us")] if seconds >= pair[0] or pair[0] < 1e-5
    )
    return f"{seconds / unit:.3g} {name}"


def ratio(value):
    """A ratio with three digits, or in whole numbers."""
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def table(result):
    """The comparisons of one version."""
    lines = [
        "| what | against | processor time / ours | shortest | ours | answer | ours |",
        "|---|---|---|---|---|---|---|",
    ]
    for comparison in result["comparisons"]:
        seconds, values, ours = comparison["seconds"], comparison.get("values"), comparison["ours"]
        for name in others(comparison):
            low, middle, high = times(comparison, name)
            what = f"{comparison['title']} ({comparison['setting']})"
            answer = (
                [f"{comparison['value']} {values[name]:.5g}", f"{values[ours]:.5g}"] if values else ["", ""]
            )
            cells = [
                what,
                name,
                f"{ratio(middle)} ({ratio(low)} to {ratio(high)})",
                short(min(seconds[name])),
            ]
            lines.append(f"| {' | '.join([*cells, short(min(seconds[ours])), *answer])} |")
    return "\n".join(lines)


def page(stored):
    newest = stored[0]
    libraries = ", ".join(f"{name} {version}" for name, version in newest["libraries"].items())
    measured = "\n".join(
        f"- antinoise {result['version']}: {result['date']}, {result['machine']}, Python {result['python']}, "
        f"{result['rounds']} rounds, load average {result['load']}."
        for result in stored
    )
    return f"""# Benchmarks

<!-- written by scripts/benchmarks.py -->

antinoise next to other libraries, all as they install from the package index, in one run on one machine. What
the libraries offer is on [another page](comparison.md).

```sh
scripts/python.sh wheel && python3 scripts/benchmarks.py --install
```

measures and writes this page; comparisons with a library that is not installed are left out.

## Times

![How many times as much processor time other libraries take]({FIGURES.name}/benchmarks-times.svg)

In every round each variant runs once, in random order or in turn, and its processor time, of all threads, is
divided by that of antinoise in the same round: dots are medians of the rounds, lines go from the lower to the
upper quartile. Right of 1 antinoise is faster. Rounds in which memory is first touched do not count; designs
run three times, and JAX compiles in the first. A private step of the CNN clips, sums, adds noise and takes a
step of SGD with momentum.

## Answers

![How much larger the answers of other libraries are]({FIGURES.name}/benchmarks-answers.svg)

Epsilons and noise multipliers are upper bounds, and designs have a loss: smaller is better, and right of 1
antinoise's answer is the smaller one. Losses of all matrices are computed by `antinoise.loss`.

## Figures of {newest["version"]}

{table(newest)}

Libraries: {libraries}.

## Runs

{measured}

Ratios of one run can be compared with those of another. Times cannot: they depend on the machine and on what
else it does. At a load above the number of cores memory is slow, and noise, which moves most of it, gains less
than on a quiet machine ([RESULTS.md](RESULTS.md#noise)).
"""


def draw():
    """Writes the page and its figures from all measurements, the newest version first."""
    stored = [json.loads(path.read_text()) for path in STORE.glob("*.json")]
    stored.sort(
        key=lambda result: [int(part) for part in re.findall(r"\d+", result["version"])], reverse=True
    )
    stored = stored[: len(COLORS)]
    times_axis, answers_axis = "processor time, antinoise = 1", "answer, antinoise = 1"
    drawn = {
        "times": figure(stored, times, times_axis, times_axis, [0.1, 1, 10, 100, 1000]),
        "answers": figure(stored, answers, answers_axis, answers_axis, [1, 1.1, 1.2]),
    }
    for name, picture in drawn.items():
        (FIGURES / f"benchmarks-{name}.svg").write_text(picture)
    PAGE.write_text(page(stored))
    subprocess.run([sys.executable, ROOT / "scripts" / "words.py", "--wrap", PAGE], check=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="?", choices=["run", "draw"], default="run")
    parser.add_argument("--wheel", type=Path)
    parser.add_argument("--install", action="store_true", help="install the other libraries")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    if options.what == "run":
        wheel = options.wheel or next((TARGET / "wheels").glob("antinoise-*.whl"), None)
        if wheel is None:
            raise SystemExit("no wheel in target/wheels: run scripts/python.sh wheel")
        install(wheel, options.install)
        found = measure(options.rounds)
        STORE.mkdir(exist_ok=True)
        (STORE / f"{found['version']}.json").write_text(json.dumps(found, indent=1) + "\n")
    draw()


if __name__ == "__main__":
    main()
