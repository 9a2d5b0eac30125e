#!/usr/bin/env python3
"""Recipes on the descriptions of Debian's packages, with correlated noise and with DP-SGD at its best: a
small language model fine-tuned whole and by LoRA, a classifier on frozen features, and private text to train
on.

    python scripts/train/recipes.py [--part lm,features,text] [--seeds 3] [--smoke] [--out docs/results/recipes]

Run it with a Python that has antinoise and PyTorch, on a machine with package lists (`apt-get update`).
Writes OUT.json, from which `--page` alone writes OUT.md again.

Packages come in the order of their names' SHA-256. The public ones are of all sections but four: from them
are the vocabulary, the features, and the language model before fine-tuning. Those of the four sections are
private: 8,192 to train, 1,000 to choose learning rates, the rest to test. A package's description, of one
line, is an example. Models begin alike in each seed, which determines noise, batches and what LoRA begins
with. Rates are doubled and halved from a common start until neither neighbour is better, for each noise and
each model apart, on seed 0; epsilon does not cover that choice. Keys are made from seeds: a real run takes
an.Key.from_os().
"""

import argparse
import copy
import hashlib
import json
import math
import os
import re
import statistics
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import TensorDataset

import antinoise as an
from antinoise.torch import make_private

ROOT = Path(__file__).resolve().parents[2]
SECTIONS = ["games", "haskell", "perl", "python"]
EXAMPLES, CHOOSE, BATCH, EPOCHS, DELTA = 8_192, 1_000, 256, 4, 1e-5
LENGTH, WIDTH, WORDS, FEATURES = 10, 48, 1_000, 64
WAYS = {"correlated": {}, "DP-SGD": {"mechanism": "identity"}}
PAD, UNKNOWN, END, FIRST_WORD = 0, 1, 2, 3 + len(SECTIONS)  # numbers 3 to 6 are the sections
EPSILONS = {"lm": [8.0], "features": [1.0, 4.0, 8.0]}


def packages():
    """Section and words of each package's description, in the order of a digest of its name."""
    dump = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True, check=True).stdout
    found = []
    for entry in dump.split("\n\n"):
        fields = dict(
            line.split(": ", 1) for line in entry.splitlines() if ": " in line and not line.startswith(" ")
        )
        if "Section" in fields and "Description" in fields:
            words = re.findall(r"[a-z0-9+#]+", fields["Description"].lower())
            digest = hashlib.sha256(fields["Package"].encode()).digest()
            found.append((digest, fields["Section"].rpartition("/")[2], words))
    if not found:
        raise SystemExit("no package lists here: apt-get update")
    return [(section, words) for _, section, words in sorted(found, key=lambda row: row[0])]


class Data:
    """The texts as numbers; of private ones sequences that begin with their section, and its number."""

    def __init__(self, examples: int) -> None:
        found = packages()
        public = [words for section, words in found if section not in SECTIONS]
        counts = Counter(word for words in public for word in words)
        self.words = [word for word, _ in counts.most_common(WORDS)]
        self.number = {word: FIRST_WORD + i for i, word in enumerate(self.words)}
        self.public = torch.stack([self.row(UNKNOWN, words) for words in public])
        private = [(SECTIONS.index(section), words) for section, words in found if section in SECTIONS]
        rows = torch.stack([self.row(3 + section, words) for section, words in private])
        labels = torch.tensor([section for section, _ in private])
        cut = [examples, CHOOSE, len(rows) - examples - CHOOSE]
        self.train, self.choose, self.test = zip(rows.split(cut), labels.split(cut), strict=True)

    def row(self, begin: int, words: list[str]) -> Tensor:
        known = [self.number.get(word, UNKNOWN) for word in words[: LENGTH - 1]]
        row = [begin, *known, END][: LENGTH + 1]
        return torch.tensor(row + [PAD] * (LENGTH + 1 - len(row)))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.last_norm = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.to_heads, self.from_heads = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.to_heads(self.norm(x)).unflatten(2, (3, 4, -1)).permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.from_heads(seen.transpose(1, 2).flatten(2))
        return x + self.down(functional.gelu(self.up(self.last_norm(x))))


class LanguageModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.word = nn.Embedding(FIRST_WORD + WORDS, WIDTH)
        self.place = nn.Parameter(0.02 * torch.randn(LENGTH, WIDTH), requires_grad=False)
        self.blocks = nn.Sequential(Block(), Block())
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, FIRST_WORD + WORDS)

    def forward(self, words: Tensor) -> Tensor:
        return self.head(self.norm(self.blocks(self.word(words) + self.place[: words.shape[1]])))


class Adapted(nn.Module):
    """A frozen linear layer and LoRA's two thin matrices."""

    def __init__(self, layer: nn.Linear, rank: int = 8) -> None:
        super().__init__()
        self.layer = layer.requires_grad_(False)
        self.down = nn.Linear(layer.in_features, rank, bias=False)
        self.up = nn.Linear(rank, layer.out_features, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x) + 2 * self.up(self.down(x))


def trained_part(base: LanguageModel, part: str, seed: int) -> LanguageModel:
    """A copy of the model with what is trained: all of it, or LoRA's matrices next to every linear layer."""
    torch.manual_seed(seed)
    model = copy.deepcopy(base)
    if part == "LoRA":
        model.requires_grad_(False)
        for block in model.blocks:
            for name in ("to_heads", "from_heads", "up", "down"):
                setattr(block, name, Adapted(getattr(block, name)))
        model.head = Adapted(model.head)
    return model


def losses_of(model: nn.Module):
    def losses(rows: Tensor) -> Tensor:
        """The mean loss of each row's words."""
        logits, wanted = model(rows[:, :-1]), rows[:, 1:]
        each = functional.cross_entropy(logits.transpose(1, 2), wanted, reduction="none") * (wanted != PAD)
        return each.sum(1) / (wanted != PAD).sum(1)

    return losses


@torch.no_grad()
def loss_on(model: nn.Module, rows: Tensor) -> float:
    """The mean loss of a word."""
    total = count = 0.0
    for some in rows.split(500):
        wanted = some[:, 1:]
        total += float(
            functional.cross_entropy(
                model(some[:, :-1]).transpose(1, 2), wanted, ignore_index=PAD, reduction="sum"
            )
        )
        count += int((wanted != PAD).sum())
    return total / count


def pretrained(public: Tensor, steps: int) -> LanguageModel:
    torch.manual_seed(0)
    model = LanguageModel()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad])
    rates = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=steps)
    for _ in range(steps):
        optimizer.zero_grad()
        losses_of(model)(public[torch.randint(len(public), (128,))]).mean().backward()
        optimizer.step()
        rates.step()
    return model


def plan_of(way: str, epsilon: float, examples: int, dim: int, epochs: int) -> an.Plan:
    how = dict(epochs=epochs, epsilon=epsilon, delta=DELTA, clip_norm=1.0, dim=dim)
    return an.plan(examples, BATCH, setting="poisson", **how, **WAYS[way])


def privately(model: nn.Module, losses, data: TensorDataset, plan: an.Plan, rate: float, seed: int) -> None:
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=rate)
    key = an.Key.from_seed_insecure(seed)
    run = make_private(
        model, optimizer, data, plan=plan, key=key, run=f"{plan.digest} {rate}", microbatch_size=64
    )
    for batch in (batch for _ in run.epochs for batch in run.loader):
        run.backward(losses, *batch)
        optimizer.step()
        optimizer.zero_grad()
    assert run.noise.step == plan.steps


def openly(model: nn.Module, losses, data: TensorDataset, steps: int, seed: int, rate: float = 2e-3) -> None:
    """Trains without privacy, as many steps."""
    torch.manual_seed(seed)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=rate)
    for _ in range(steps):
        optimizer.zero_grad()
        losses(*data[torch.randint(len(data), (BATCH,))]).mean().backward()
        optimizer.step()


def searched(train, first: float, most: int = 4):
    """The best rate by `train(rate, seed)["chosen"]`, smallest first, and what all rates gave on seed 0."""
    found = {first: train(first, 0)}
    while len(found) < most:
        best = min(found, key=lambda rate: found[rate]["chosen"])
        left = [rate for rate in (2 * best, best / 2) if rate not in found]
        if not left:
            break
        found[left[0]] = train(left[0], 0)
    return min(found, key=lambda rate: found[rate]["chosen"]), found


def study(train, plan: an.Plan, first: float, seeds: int) -> dict:
    """A noise at its best rate: what was found on each seed."""
    begun = time.process_time()
    rate, tried = searched(train, first)
    runs = [tried[rate], *(train(rate, seed) for seed in range(1, seeds))]
    loss = next(c["rms_loss"] for c in plan.candidates if c["chosen"])
    found = {name: [run[name] for run in runs] for name in runs[0]}
    return found | {
        "rate": rate,
        "tried": {str(r): run["chosen"] for r, run in sorted(tried.items())},
        "strategy": plan.strategy,
        "sampler": plan.sampler["kind"],
        "epsilon": plan.epsilon,
        "rms_loss": loss,
        "seconds": time.process_time() - begun,
    }


def bags(rows: Tensor) -> Tensor:
    """The words of each row, without its section: numbers of times, to unit length."""
    counts = torch.zeros(len(rows), FIRST_WORD + WORDS).scatter_add_(
        1, rows[:, 1:], torch.ones(rows[:, 1:].shape)
    )
    counts[:, :FIRST_WORD] = 0
    return functional.normalize(counts)


def accuracy(model: nn.Module, x: Tensor, y: Tensor) -> float:
    with torch.no_grad():
        return float((model(x).argmax(1) == y).float().mean())


def classifier_on(rows: Tensor, labels: Tensor, seed: int) -> nn.Module:
    """Logistic regression on bags of words, trained without privacy."""
    torch.manual_seed(seed)
    model = nn.Linear(FIRST_WORD + WORDS, len(SECTIONS))
    losses = lambda x, y: functional.cross_entropy(model(x), y, reduction="none")  # noqa: E731
    openly(model, losses, TensorDataset(bags(rows), labels), 300, seed, 2e-2)
    return model


@torch.no_grad()
def sampled(model: nn.Module, count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Texts that the model writes, of as many of each section."""
    torch.manual_seed(seed)
    labels = torch.arange(count) % len(SECTIONS)
    rows = (3 + labels)[:, None]
    for _ in range(LENGTH):
        logits = model(rows)[:, -1]
        logits[:, [PAD, UNKNOWN, *range(3, FIRST_WORD)]] = -math.inf
        ended = (rows == END).any(1)
        word = torch.multinomial(logits.softmax(1), 1)[:, 0]
        rows = torch.cat([rows, torch.where(ended, PAD, word)[:, None]], 1)
    return rows, labels


def language_models(data: Data, seeds: int, pretraining: int, epochs: int, say) -> dict:
    base = pretrained(data.public, pretraining)
    (train, _), (choose, _), (test, test_labels) = data.train, data.choose, data.test
    begin = loss_on(base, test)
    found = {"before": begin, "examples": len(train), "test": len(test), "results": []}
    say(f"language model of {sum(p.numel() for p in base.parameters()):,} parameters, loss {begin:.3f}")

    def judged(model: nn.Module, seed: int) -> dict:
        """The losses, and the accuracy on real text of a classifier that is trained on what it writes."""
        on = classifier_on(*sampled(model, len(train), seed), seed)
        return {
            "chosen": loss_on(model, choose),
            "loss": loss_on(model, test),
            "accuracy": accuracy(on, bags(test), test_labels),
        }

    for part in ("LoRA", "whole"):
        dim = sum(p.numel() for p in trained_part(base, part, 0).parameters() if p.requires_grad)
        for epsilon in EPSILONS["lm"]:
            for way in WAYS:
                plan = plan_of(way, epsilon, len(train), dim, epochs)

                def one(rate: float, seed: int, part=part, plan=plan) -> dict:
                    model = trained_part(base, part, seed)
                    privately(model, losses_of(model), TensorDataset(train), plan, rate, seed)
                    return judged(model, seed)

                result = study(one, plan, 2.0, seeds) | {"part": part, "way": way, "parameters": dim}
                found["results"].append(result)
                say(
                    f"{part} {way} {epsilon:g}: {result['loss']} {result['accuracy']} {result['seconds']:.0f} s"
                )

        def without(seed: int, part=part) -> dict:
            model = trained_part(base, part, seed)
            openly(model, losses_of(model), TensorDataset(train), plan.steps, seed)
            return judged(model, seed)

        runs = [without(seed) for seed in range(seeds)]
        found["results"].append(
            {
                "part": part,
                "way": "no privacy",
                "parameters": dim,
                **{k: [r[k] for r in runs] for k in runs[0]},
            }
        )
        say(f"{part} no privacy: {found['results'][-1]['loss']}")
    real = [accuracy(classifier_on(*data.train, seed), bags(test), test_labels) for seed in range(seeds)]
    public = [
        accuracy(classifier_on(*sampled(base, len(train), s), s), bags(test), test_labels)
        for s in range(seeds)
    ]
    say(f"trained on real text: {real}, on text of the model before: {public}")
    return found | {"real": real, "written before": public}


def frozen_features(data: Data, seeds: int, epochs: int, say) -> dict:
    """Features of public text: the right singular vectors of its bags of words."""
    bag = bags(data.public).double().numpy()
    _, vectors = np.linalg.eigh(bag.T @ bag)
    project = torch.from_numpy(vectors[:, -FEATURES:].copy()).float()
    (train, y), (choose, y_choose), (test, y_test) = data.train, data.choose, data.test
    x, x_choose, x_test = (functional.normalize(bags(rows) @ project) for rows in (train, choose, test))
    dim, found = (FEATURES + 1) * len(SECTIONS), []

    def judged(model: nn.Module) -> dict:
        return {"chosen": -accuracy(model, x_choose, y_choose), "accuracy": accuracy(model, x_test, y_test)}

    def head(seed: int) -> nn.Linear:
        torch.manual_seed(seed)
        return nn.Linear(FEATURES, len(SECTIONS))

    for epsilon in EPSILONS["features"]:
        for way in WAYS:
            plan = plan_of(way, epsilon, len(train), dim, epochs)

            def one(rate: float, seed: int, plan=plan) -> dict:
                model = head(seed)
                losses = lambda a, b: functional.cross_entropy(model(a), b, reduction="none")  # noqa: E731
                privately(model, losses, TensorDataset(x, y), plan, rate, seed)
                return judged(model)

            found.append(study(one, plan, 4.0, seeds) | {"way": way, "parameters": dim})
            say(f"features {way} {epsilon:g}: {found[-1]['accuracy']} {found[-1]['seconds']:.0f} s")
    runs = []
    for seed in range(seeds):
        model = head(seed)
        losses = lambda a, b, model=model: functional.cross_entropy(model(a), b, reduction="none")  # noqa: E731
        openly(model, losses, TensorDataset(x, y), 1_000, seed, 2e-2)
        runs.append(judged(model)["accuracy"])
    return {"examples": len(x), "test": len(x_test), "results": found, "no privacy": runs}


def with_error(values: list[float], percent: bool = False) -> str:
    scale, digits = (100, 1) if percent else (1, 3)
    error = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else math.nan
    return (
        f"{scale * statistics.mean(values):.{digits}f}{'%' if percent else ''} ± {scale * error:.{digits}f}"
    )


def difference(a: list[float], b: list[float], percent: bool = False) -> str:
    """The mean of the differences on the same seeds, and its standard error."""
    return with_error([x - y for x, y in zip(a, b, strict=True)], percent)


def tables(found: dict) -> str:
    lines = []
    if "lm" in found:
        lm = found["lm"]
        lines += [
            f"Loss before fine-tuning: {lm['before']:.3f}. {lm['examples']:,} private examples, {lm['test']:,} to test."
            " *Gain* is the loss of DP-SGD less that of correlated noise, on the same seeds.",
            "",
            "| trained | noise | plan | RMS loss of the plan | rate | loss | gain |",
            "|---|---|---|---|---|---|---|",
        ]
        for row in lm["results"]:
            plan = f"`{row['strategy']}`, {row['sampler']}" if "strategy" in row else ""
            noise, rate = (f"{row['rms_loss']:.4f}", f"{row['rate']:g}") if plan else ("", "")
            other = [r for r in lm["results"] if r["part"] == row["part"] and r["way"] == "DP-SGD"]
            gain = difference(other[0]["loss"], row["loss"]) if row["way"] == "correlated" else ""
            lines.append(
                f"| {row['part']}, {row['parameters']:,} | {row['way']} | {plan} | {noise} | {rate} |"
                f" {with_error(row['loss'])} | {gain} |"
            )
        lines += [
            "",
            "A classifier of sections (bags of words, logistic regression, no noise: it sees only what the private"
            " model wrote) that is trained on as many written texts, and tested on real private ones:",
            "",
            "| trained on | accuracy on real text |",
            "|---|---|",
            f"| real private text, without privacy | {with_error(lm['real'], True)} |",
        ]
        for row in lm["results"]:
            lines.append(
                f"| text of the model fine-tuned {row['part'].replace('LoRA', 'by LoRA')}, {row['way']} |"
                f" {with_error(row['accuracy'], True)} |"
            )
        lines.append(f"| text of the model before fine-tuning | {with_error(lm['written before'], True)} |")
    if "features" in found:
        part = found["features"]
        lines += [
            "",
            f"A classifier on {FEATURES} frozen features, {part['examples']:,} private examples,"
            f" {part['test']:,} to test; without privacy {with_error(part['no privacy'], True)}:",
            "",
            "| epsilon | noise | plan | RMS loss of the plan | rate | accuracy | gain |",
            "|---|---|---|---|---|---|---|",
        ]
        for row in part["results"]:
            other = [r for r in part["results"] if r["epsilon"] == row["epsilon"] and r["way"] == "DP-SGD"]
            other = other or [
                r
                for r in part["results"]
                if abs(r["epsilon"] - row["epsilon"]) < 0.1 and r["way"] == "DP-SGD"
            ]
            gain = (
                difference(row["accuracy"], other[0]["accuracy"], True) if row["way"] == "correlated" else ""
            )
            lines.append(
                f"| {row['epsilon']:.0f} | {row['way']} | `{row['strategy']}`, {row['sampler']} |"
                f" {row['rms_loss']:.4f} | {row['rate']:g} | {with_error(row['accuracy'], True)} | {gain} |"
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", default="features,lm")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--smoke", action="store_true", help="a few steps on few examples: seconds")
    parser.add_argument(
        "--page", action="store_true", help="write the tables of what was found, without running"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "results" / "recipes")
    options = parser.parse_args()
    torch.set_num_threads(1)
    kept = options.out.with_suffix(".json")
    found = json.loads(kept.read_text()) if kept.exists() else {}
    say = lambda line: print(line, file=sys.stderr, flush=True)  # noqa: E731
    if not options.page:
        data = Data(1_024 if options.smoke else EXAMPLES)
        epochs, pretraining, seeds = (1, 20, 2) if options.smoke else (EPOCHS, 1_500, options.seeds)
        if "features" in options.part:
            found["features"] = frozen_features(data, seeds, epochs, say)
        if "lm" in options.part:
            found["lm"] = language_models(data, seeds, pretraining, epochs, say)
        kept.write_text(json.dumps(found, indent=1) + "\n")
    page = options.out.with_suffix(".md")
    begin, end = "<!-- tables: written by scripts/train/recipes.py -->", "<!-- end of tables -->"
    text = page.read_text() if page.exists() else f"# Recipes, measured\n\n{begin}\n{end}\n"
    before, _, rest = text.partition(begin)
    page.write_text(f"{before}{begin}\n\n{tables(found)}\n\n{end}{rest.partition(end)[2]}")


if __name__ == "__main__":
    main()
