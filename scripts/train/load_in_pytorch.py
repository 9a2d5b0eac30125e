#!/usr/bin/env python3
"""Loads models of `antinoise train` into PyTorch with the code of their model cards, and compares
predictions.

    cargo build --release && python3 scripts/train/load_in_pytorch.py [--program target/release/antinoise]

It needs torch, numpy and safetensors (pip install torch numpy safetensors). A logistic regression, a
perceptron and a convolutional network are trained on the embedded digits; probabilities of the 357 test
images must agree to 1e-5. An LSTM is trained on lines of this program's text, by the person who says them:
the mean cross entropy of all characters must agree to 1e-5.
"""

import argparse
import csv
import gzip
import json
import os
import re
import subprocess
import tempfile
from pathlib import Path

import torch
from speeches import CHARACTERS

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES, TRAIN = 1797, 1440


def test_images():
    """The last 357 digits: examples x channels x height x width, from 0 to 1."""
    raw = gzip.decompress((ROOT / "crates/train/data/digits.bin.gz").read_bytes())
    ink = torch.frombuffer(bytearray(raw[: EXAMPLES * 64]), dtype=torch.uint8)
    return ink.reshape(EXAMPLES, 1, 8, 8)[TRAIN:].float() / 16


def run(program, *arguments):
    command = [program, *map(str, arguments), "--json"]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def text_loss_error(program, folder):
    """Error of the mean cross entropy of a character, computed by the code of the model card."""
    lines = [line.strip() for line in Path(__file__).read_text().splitlines() if line.strip()]
    texts = [lines[person::30] for person in range(30)]
    table, out = folder / "lines.csv", folder / "lstm"
    with table.open("w", newline="") as file:
        rows = ((person, line) for person, text in enumerate(texts) for line in text)
        csv.writer(file).writerows([("person", "line"), *rows])
    setting = ["--setting", "federated", "--min-sep", 2, "--batch-size", 10, "--steps", 8]
    columns = ["--data", f"csv:{table}", "--user", "person", "--characters", "line"]
    run(program, "train", *columns, *setting, "--learning-rate", 0.5, "--out", out)
    expected = run(program, "evaluate", out / "model", "--data", f"csv:{table}")["loss"]
    loss, count = 0.0, 0
    for text in texts:
        numbers = [1, *(1 + CHARACTERS.find(c) for line in text for c in f"{line}\n")]
        for start in range(0, len(numbers) - 1, 40):
            stretch = torch.tensor(numbers[start : start + 41])
            given = probabilities(out / "model", stretch[None, :-1])[0]
            loss -= given[torch.arange(len(stretch) - 1), stretch[1:]].log().sum().item()
            count += len(stretch) - 1
    return abs(loss / count - expected)


def probabilities(folder, x):
    """Probabilities for x, computed by the code of the model card."""
    code = re.search(r"```python\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL).group(1)
    names, before = {"x": x}, Path.cwd()
    os.chdir(folder)
    try:
        exec(code, names)
    finally:
        os.chdir(before)
    return names["probabilities"].detach()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--program", type=Path, default=ROOT / "target/release/antinoise")
    program, x = parser.parse_args().program.resolve(), test_images()
    with tempfile.TemporaryDirectory() as folder:
        for model in ("logistic", "mlp", "cnn"):
            out = Path(folder) / model
            common = ["--setting", "cyclic", "--mechanism", "identity", "--epochs", 1, "--repeats", 1]
            run(program, "train", "--model", model, *common, "--learning-rate", 0.1, "--out", out)
            predicted = run(program, "predict", out / "model", "--data", "digits")["predictions"]
            expected = torch.tensor([row["probabilities"] for row in predicted])
            difference = (probabilities(out / "model", x) - expected).abs().max().item()
            print(f"{model}: largest difference of a probability {difference:.1e}")
            if not difference < 1e-5:
                raise SystemExit(f"{model} in PyTorch is another model")
        difference = text_loss_error(program, Path(folder))
        print(f"lstm: difference of the mean cross entropy {difference:.1e}")
        if not difference < 1e-5:
            raise SystemExit("lstm in PyTorch is another model")


if __name__ == "__main__":
    main()
