"""The program whose figures are measured, the folder where they are kept, and the head of a table."""

import functools
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STORE = ROOT / "docs" / "results"


@functools.cache
def binary():
    """The path of the program, which is built first."""
    subprocess.run(["cargo", "build", "--release", "--quiet"], cwd=ROOT, check=True)
    metadata = subprocess.run(
        ["cargo", "metadata", "--format-version", "1", "--no-deps"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return Path(json.loads(metadata)["target_directory"]) / "release" / "antinoise"


def antinoise(arguments):
    """The JSON that `antinoise ARGUMENTS` prints."""
    print("antinoise", arguments, file=sys.stderr)
    done = subprocess.run([str(binary()), *arguments.split(), "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"antinoise {arguments}: {done.stderr}")
    return json.loads(done.stdout)


def loss(arguments):
    """The figures of `antinoise loss ARGUMENTS` that are kept."""
    found = antinoise("loss " + arguments)
    return {key: found[key] for key in ("max_loss", "rms_loss", "total_loss", "gap", "status", "seconds")}


def head(*cells):
    """The first two lines of a Markdown table with these cells in its head."""
    return ["| " + " | ".join(cells) + " |", "|" + "---|" * len(cells)]
