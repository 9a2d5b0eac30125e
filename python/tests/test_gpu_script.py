"""scripts/gpu: the measurements run on the CPU with tiny models, and without a GPU nothing is written."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "scripts" / "gpu"))
import measure


def test_a_dry_run_measures_every_variant(tmp_path):
    out = tmp_path / "gpu.md"
    given = ["--device", "cpu", "--parameters", "1e3", "--out", str(out)]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", measure.__file__, *given], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    page = out.read_text()
    assert "Device: CPU: no GPU was had" in page and "(assumed, not measured)" in page
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| 1e+03")]
    assert [row[1] for row in rows] == list(measure.VARIANTS)
    assert all(float(row[2]) > 0 for row in rows if row[2] != "not installed")
    assert "coordinates of noisy means have the bits of the host's stream" in page


def test_other_bits_are_no_page(monkeypatch):
    add = measure.an.NoiseStream.add_to_sum

    class Other:
        """A stream whose noisy sums are of the step after."""

        def __init__(self, *given):
            self._of = add.__objclass__(*given)
            self._of.seek(1)

        def add_to_sum(self, *given):
            self._of.add_to_sum(*given)

    assert measure.bits(torch.device("cpu")) > 4_000
    monkeypatch.setattr(measure.an, "NoiseStream", Other)
    with pytest.raises(SystemExit, match="noisy means on cpu differ from the host's, prefetch=False"):
        measure.bits(torch.device("cpu"))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_nothing_is_run():
    page = ROOT / "docs" / "results" / "gpu.md"
    before = page.read_text() if page.exists() else None
    done = subprocess.run(["bash", str(ROOT / "scripts" / "gpu" / "all.sh")], capture_output=True, text=True)
    assert done.returncode == 3 and "no GPU here: nvidia-smi names none" in done.stderr
    assert (page.read_text() if page.exists() else None) == before
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    given = [sys.executable, measure.__file__, "--device", "cuda", "--out", "unused"]
    done = subprocess.run(given, capture_output=True, text=True, env=environment)
    assert done.returncode == 2 and "device is cuda but must be cpu here" in done.stderr
