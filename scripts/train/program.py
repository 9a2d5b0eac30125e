"""The program as developers build it, for the studies in this folder."""

import json
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "target" / "release" / "antinoise"


def run(*words):
    """What a command with --json prints."""
    done = subprocess.run([str(word) for word in [PROGRAM, *words]], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)
