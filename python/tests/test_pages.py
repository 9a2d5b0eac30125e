"""The scripts in the documentation run as printed."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted((ROOT / "docs").glob("python*.md")), ROOT / "python" / "README.md"]
SCRIPTS = [
    (page, text)
    for page in PAGES
    for text in re.findall(r"^```python\n(.*?)^```$", page.read_text(), flags=re.M | re.S)
]
# Packages of a script that may not be installed here.
NEEDED = re.compile(
    r"^(?:import|from)"
    r" (torch|opacus|lightning|transformers|peft|jax|optax|flwr|pandas|polars|pyarrow|duckdb)\b",
    flags=re.M,
)


def test_there_are_scripts():
    assert len(PAGES) >= 3 and {page for page, _ in SCRIPTS} == set(PAGES)
    assert all(len(text.splitlines()) <= 60 for _, text in SCRIPTS)


@pytest.mark.parametrize(
    "page, text", SCRIPTS, ids=[f"{page.name}-{i}" for i, (page, _) in enumerate(SCRIPTS)]
)
def test_a_script_runs(page, text, tmp_path):
    for package in set(NEEDED.findall(text)):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    (tmp_path / "script.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
