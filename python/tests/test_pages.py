"""The scripts of the pages run as they are printed."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "docs" / "python.md", ROOT / "python" / "README.md"]
SCRIPTS = [(page, text) for page in PAGES for text in re.findall(r"^```python\n(.*?)^```$", page.read_text(), flags=re.M | re.S)]


def test_there_are_scripts():
    assert len(SCRIPTS) == 3 and all(len(text.splitlines()) <= 60 for _, text in SCRIPTS)


@pytest.mark.parametrize("page, text", SCRIPTS, ids=[f"{page.name}-{i}" for i, (page, _) in enumerate(SCRIPTS)])
def test_a_script_runs(page, text, tmp_path):
    if "import torch" in text and importlib.util.find_spec("torch") is None:
        pytest.skip("PyTorch is not installed")
    (tmp_path / "script.py").write_text(text)
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
