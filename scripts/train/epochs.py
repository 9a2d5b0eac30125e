#!/usr/bin/env python3
"""Epochs and learning rate chosen together on public data, for a training on private data of the same kind.

    cargo build --release && python3 scripts/train/epochs.py [--pairs digits,images,halves,texts] [--epsilon 1,4]

In each pair, `antinoise train --compare --epochs A,B,...` searches the public data for the best number of
epochs, each at the best of its learning rates, and the private data are trained on with what it found, with
the defaults, and with what the same search finds on the private data themselves, which nobody may use. Public
and private data are as many: `digits` are handwritten, with Fashion-MNIST at 8x8 pixels as public data;
`images` are these the other way round; `halves` are halves of the digits; `texts` are descriptions of
Debian's packages in ten sections, with ten other sections as public data. Needs dataset-fashion-mnist and
Debian's package lists. Finished pairs are kept in docs/results/epochs.json; writes docs/results/epochs.md.
"""

import argparse
import gzip
import json
import struct
import tempfile
from pathlib import Path

import texts
import tomllib
from program import ROOT, run

STORE = ROOT / "docs" / "results" / "epochs.json"
PAGE = ROOT / "docs" / "results" / "epochs.md"
FASHION = Path("/usr/share/datasets/fashion-mnist")
DIGITS = ROOT / "crates" / "train" / "data" / "digits.bin.gz"
TRAIN, TEST, SIDE, PIXELS = 1440, 357, 8, 64
HALF = (TRAIN + TEST) // 2
OTHER_SECTIONS = ["golang", "javascript", "java", "science", "admin", "ruby", "gnu-r", "games", "x11", "text"]
ROWS = 15_000
# Batch size and numbers of epochs.
LENGTHS = {"digits": (96, [2, 4, 10, 20, 40]), "images": (96, [2, 4, 10, 20, 40])}
LENGTHS |= {"halves": (48, [2, 4, 10, 20, 40]), "texts": (500, [1, 2, 4, 8, 16])}
REPEATS, FINAL_REPEATS = 4, 12


def idx(folder, images, labels):
    """Writes 8x8 images in the format of MNIST, the last fifth for testing."""
    folder.mkdir()
    test = len(images) * TEST // (TRAIN + TEST)
    parts = [("train", 0, len(images) - test), ("t10k", len(images) - test, len(images))]
    for part, first, last in parts:
        head = struct.pack(">IIII", 0x803, last - first, SIDE, SIDE)
        (folder / f"{part}-images-idx3-ubyte").write_bytes(head + b"".join(images[first:last]))
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(
            struct.pack(">II", 0x801, last - first) + bytes(labels[first:last])
        )
    return ["--data", f"idx:{folder}", "--model", "mlp"]


def digits(folder, first=0, last=TRAIN + TEST):
    """These of the embedded digits, ink 0 to 16 scaled to bytes."""
    raw = gzip.decompress(DIGITS.read_bytes())
    ink, labels = raw[: PIXELS * (TRAIN + TEST)], raw[PIXELS * (TRAIN + TEST) :]
    images = [bytes(min(255, 16 * x) for x in ink[PIXELS * i : PIXELS * (i + 1)]) for i in range(first, last)]
    return idx(folder / f"digits-{first}", images, labels[first:last])


def shrunk(image):
    """28x28 pixels with a frame of 2, in means of 4x4."""
    inside = range(28)
    means = []
    for row in range(SIDE):
        for column in range(SIDE):
            places = [(4 * row + i - 2, 4 * column + j - 2) for i in range(4) for j in range(4)]
            means.append(sum(image[28 * i + j] for i, j in places if i in inside and j in inside) // 16)
    return bytes(means)


def fashion(folder, count=TRAIN + TEST):
    """The first images of Fashion-MNIST, 8x8."""
    images = gzip.decompress((FASHION / "train-images-idx3-ubyte.gz").read_bytes())[16:]
    labels = gzip.decompress((FASHION / "train-labels-idx1-ubyte.gz").read_bytes())[8 : 8 + count]
    return idx(folder / "fashion", [shrunk(images[784 * i : 784 * (i + 1)]) for i in range(count)], labels)


def packages(folder, name, sections):
    """Descriptions of packages in these sections."""
    path = folder / f"{name}.csv"
    texts.write(path, sections, ROWS)
    return [
        *["--data", f"csv:{path}", "--label", "section=" + ",".join(sections)],
        *["--text", "description=1024"],
    ]


def of_pair(name, folder):
    """The options of the public and of the private data."""
    if name == "digits":
        return fashion(folder), digits(folder)
    if name == "images":
        return digits(folder), fashion(folder)
    if name == "halves":
        return digits(folder, 0, HALF), digits(folder, HALF, 2 * HALF)
    other = packages(folder, "other", OTHER_SECTIONS)
    return other, packages(folder, "sections", texts.SECTIONS)


def private(runs):
    return [row for row in runs if row["epsilon"] is not None]


def best(runs):
    return max(private(runs), key=lambda row: row["test_accuracy"])


def searched(words, epochs, out):
    """The best private model at each number of epochs, each at the best of its learning rates."""
    swept = run("train", *words, "--epochs", ",".join(map(str, epochs)), "--seed", 1, "--out", out, "--json")
    found = []
    for at in swept["epochs"]:
        row = best(at["runs"])
        keys = ["mechanism", "test_accuracy", "standard_error", "learning_rate"]
        found.append({"epochs": at["epochs"], **{key: row[key] for key in keys}})
    return found


def trained(words, epochs, rate, out):
    """The accuracy with these epochs and this rate, under other seeds than the search had: of the mechanism
    that is best in the mean."""
    chosen = ["--epochs", epochs, "--learning-rate", rate, "--repeats", FINAL_REPEATS, "--seed", 1000]
    row = best(run("train", *words, *chosen, "--out", out, "--json")["runs"])
    return {"accuracy": row["test_accuracy"], "error": row["standard_error"], "mechanism": row["mechanism"]}


def by_default(words, out):
    """The training of one model with the epochs and the rate of `antinoise train`."""
    once = run("train", *words, "--seed", 1, "--out", out, "--json")
    plan = tomllib.loads((out / "model" / "plan.toml").read_text())
    epochs = round(plan["steps"] * plan["batch_size"] / plan["examples"])
    rate = once["default_learning_rate"]
    final = trained([*words, "--compare"], epochs, rate, f"{out}-repeated")
    return {"epochs": epochs, "learning_rate": rate, **final}


def pair(name, epsilon, found=None):
    """The searches and the final trainings; those of a pair that is `found`, with the defaults of today."""
    batch, epochs = LENGTHS[name]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        public, private_data = of_pair(name, folder)
        common = ["--batch-size", batch, "--epsilon", epsilon, "--delta", "1e-5"]
        default = by_default([*private_data, *common], folder / "default")
        if found:
            return {**found, "finals": {**found["finals"], "default": default}}
        words = {"public": [*public, *common, "--compare"], "private": [*private_data, *common, "--compare"]}
        found = {}
        for kind, options in words.items():
            found[kind] = searched([*options, "--repeats", REPEATS], epochs, folder / f"search-{kind}")
        finals = {"default": default}
        for kind in words:
            row = max(found[kind], key=lambda row: row["test_accuracy"])
            count, rate = row["epochs"], row["learning_rate"]
            final = trained(words["private"], count, rate, folder / f"final-{kind}")
            finals[kind] = {"epochs": count, "learning_rate": rate, **final}
        return {"searches": found, "finals": finals}


HEAD = """# Epochs and learning rate chosen on public data

More epochs cost privacy nothing by themselves (the noise is calibrated to all of them), and give each mechanism
more to cancel; with too many, each step has too much noise. The best number depends on epsilon, data and
learning rate, so that both are chosen together: `antinoise train --compare --epochs A,B,...` trains at each
number of epochs with DP-SGD and with the mechanism of least loss, each at the best of its learning rates, with the
real noise. On public data that costs no privacy. A search with real noise costs one training for each repeat and
rate, and includes everything that a prediction from a loss of the noise would have to know besides: the loss says
how much noise remains ([workloads.md](workloads.md)), not how much training is still to be done.

How well does such a choice do on other data? The private data were trained on with the choice of the public data,
with the defaults of `antinoise train` (without a search, the rate computed from plan and model), and with the
choice that the same search makes on the private data, which nobody may use. Test accuracy in percent, mean and
standard error of 12 trainings under keys of their own, of DP-SGD or the chosen mechanism, whichever is better.

| private data | public data | epsilon | defaults | chosen on public data | chosen on the private data |
|---|---|---|---|---|---|
"""
CONCLUSION = """
Public data of the same kind are a good guide: on texts the choice of other sections is 0.9 +- 0.2 and 1.0 +- 0.2
points better than the defaults, and as good as that of the private data; with half of the digits for the other half it
is 3.8 +- 1.1 points better at epsilon 1, and 0.8 +- 0.8 worse at epsilon 4, where all choices are alike. Data of another
kind are not always one: Fashion-MNIST chose twice as many epochs and twice the rate for digits as digits do, and at
epsilon 1 its choice is 2.7 +- 0.8 points worse than the defaults. Digits chose well for Fashion-MNIST (7.5 +- 0.6 and
2.5 +- 0.5 points better than the defaults, which have 16 epochs), though not as well as Fashion-MNIST itself.
"""
NAMES = {
    "digits": ("digits", "Fashion-MNIST, 8x8"),
    "images": ("Fashion-MNIST, 8x8", "digits"),
    "halves": ("half of the digits", "the other half"),
    "texts": ("texts of ten sections", "texts of ten other sections"),
}


def percent(accuracy, error):
    return f"{100 * accuracy:.2f} +- {100 * error:.2f}"


def write(store):
    page = HEAD
    for key, of_key in store.items():
        name, epsilon = key.split()
        cells = []
        for kind in ["default", "public", "private"]:
            final = of_key["finals"][kind]
            count, rate = final["epochs"], float(f"{final['learning_rate']:.3g}")
            cells.append(f"{percent(final['accuracy'], final['error'])} ({count} epochs, rate {rate:g})")
        page += f"| {' | '.join(NAMES[name])} | {epsilon} | {' | '.join(cells)} |\n"
    page += CONCLUSION
    page += (
        "\n## The searches\n\nAccuracy of the best private model at each number of epochs, over 4 repeats:\n"
    )
    for key, of_key in store.items():
        name, epsilon = key.split()
        page += f"\n{NAMES[name][0]}, epsilon {epsilon}:\n\n"
        counts = [row["epochs"] for row in of_key["searches"]["private"]]
        page += f"| epochs | {' | '.join(map(str, counts))} |\n|---|{'---|' * len(counts)}\n"
        for kind in ["public", "private"]:
            cells = [percent(row["test_accuracy"], row["standard_error"]) for row in of_key["searches"][kind]]
            page += f"| {kind} data | {' | '.join(cells)} |\n"
            cells = [f"{row['mechanism']}, {row['learning_rate']:.3g}" for row in of_key["searches"][kind]]
            page += f"| mechanism and rate | {' | '.join(cells)} |\n"
    page += "\n    python3 scripts/train/epochs.py\n"
    PAGE.write_text(page)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", default=",".join(LENGTHS))
    parser.add_argument("--epsilon", default="1,4")
    parser.add_argument(
        "--defaults", action="store_true", help="train again with the defaults, in pairs kept"
    )
    options = parser.parse_args()
    store = json.loads(STORE.read_text()) if STORE.exists() else {}
    for name in options.pairs.split(","):
        for epsilon in options.epsilon.split(","):
            key = f"{name} {epsilon}"
            if key not in store or options.defaults:
                store[key] = pair(name, epsilon, store.get(key))
                STORE.write_text(json.dumps(store, indent=1) + "\n")
                print(key, flush=True)
    write(store)


if __name__ == "__main__":
    main()
