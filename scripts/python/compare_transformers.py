#!/usr/bin/env python3
"""Times a private step of twelve transformers, and its memory, against plain PyTorch and Opacus.

    python scripts/python/compare_transformers.py --write FILE           # twelve small ones and two large ones
    python scripts/python/compare_transformers.py --small Phi --large "" # one small one

Run it with a Python that has antinoise, transformers and Opacus. Models have random weights, and all of their
parameters are trained. A step is: clip, sum, independent noise, SGD with momentum. Times are processor times:
each model has one process, in which every round runs each variant once, in random order. Memory is the
largest resident memory during two steps minus that before them, in one process per variant. --write FILE
writes the table.
"""

import argparse
import json
import os
import platform
import random
import re
import statistics
import subprocess
import sys
import time
import warnings
from importlib.metadata import version
from pathlib import Path

import torch
import transformers
from torch import nn
from torch.nn import functional

import antinoise as an
from antinoise.torch import CorrelatedNoise, clipped_sum_
from antinoise.torch.held_sums import drop_sums

LARGE = "Llama,GPT-2"
CLIP_NORM, VOCABULARY, CLASSES = 1.0, 2000, 10
# Memory for gradients of examples: the default, none, and enough for all of them.
KEPT = {
    "antinoise": {},
    "antinoise, kept_bytes=0": {"kept_bytes": 0},
    "antinoise, kept_bytes=2^31": {"kept_bytes": 2**31},
}
WAYS = ("plain", *KEPT, "Opacus ghost", "Opacus hooks", "Opacus ew")
SIZES = {  # layers, width, examples, places
    "small": (4, 256, 16, 64),
    "large": (12, 768, 4, 128),
}


class Logits(nn.Module):
    """A model of transformers as a function of one tensor."""

    def __init__(self, model, given):
        super().__init__()
        self.model, self.given = model, given

    def forward(self, x):
        if self.given == "both":
            # The decoder sees the same tokens.
            return self.model(input_ids=x, decoder_input_ids=x, use_cache=False).logits
        how = {} if self.given == "pixel_values" else {"use_cache": False}
        return self.model(**{self.given: x}, **how).logits


def names():
    return list(_kinds(*SIZES["small"]))


def _kinds(layers, width, _, places):
    heads = width // 64
    common = dict(vocab_size=VOCABULARY, hidden_size=width, num_hidden_layers=layers)
    common |= dict(num_attention_heads=heads, max_position_embeddings=2 * places)
    gated = common | dict(
        intermediate_size=width * 8 // 3 // 32 * 32, num_key_value_heads=heads, pad_token_id=0
    )
    dropless = dict(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, intermediate_size=4 * width)
    causal, classes = "ForCausalLM", "ForSequenceClassification"
    gpt2 = dict(n_embd=width, n_layer=layers, n_head=heads, n_positions=2 * places, vocab_size=VOCABULARY)
    gpt2 |= dict(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    opt = common | dict(ffn_dim=4 * width, word_embed_proj_dim=width, dropout=0.0, attention_dropout=0.0)
    t5 = dict(vocab_size=VOCABULARY, d_model=width, d_kv=64, d_ff=4 * width, num_layers=layers // 2)
    t5 |= dict(num_heads=heads, dropout_rate=0.0, decoder_start_token_id=0, pad_token_id=0)
    phi = common | dict(intermediate_size=4 * width, resid_pdrop=0.0, embd_pdrop=0.0, attention_dropout=0.0)
    side = 4 * round(places**0.5)
    vit = dict(hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads, image_size=side)
    experts = gated | dict(intermediate_size=width, num_local_experts=4, num_experts_per_tok=2)
    return {
        "Llama": ("Llama", causal, gated),
        "Mistral": ("Mistral", causal, gated),
        "Qwen2": ("Qwen2", causal, gated),
        "Gemma": ("Gemma", causal, gated | dict(head_dim=64)),
        "Phi": ("Phi", causal, phi | dict(pad_token_id=0)),
        "GPT-2": ("GPT2", "LMHeadModel", gpt2),
        "OPT": ("OPT", causal, opt),
        "BERT": ("Bert", classes, common | dropless),
        "RoBERTa": ("Roberta", classes, common | dropless | dict(max_position_embeddings=2 * places + 2)),
        "T5": ("T5", "ForConditionalGeneration", t5),
        "ViT": ("ViT", "ForImageClassification", vit | dropless | dict(patch_size=4)),
        "Mixtral": ("Mixtral", causal, experts),
    }


def built(name, size):
    """A model, and a batch for it: inputs and targets."""
    layers, width, examples, places = SIZES[size]
    kind, task, how = _kinds(layers, width, examples, places)[name]
    torch.manual_seed(0)
    config = getattr(transformers, f"{kind}Config")(**how)
    if task.startswith(("ForSequence", "ForImage")):
        config.num_labels = CLASSES
    model = getattr(transformers, f"{kind}{task}")(config).train()
    if task == "ForImageClassification":
        side = config.image_size
        x, given = torch.randn(examples, 3, side, side), "pixel_values"
    else:
        x = torch.randint(2, VOCABULARY, (examples, places))
        given = "both" if kind == "T5" else "input_ids"
    y = torch.randint(0, CLASSES, (examples,)) if config.num_labels == CLASSES else x.roll(-1, 1)
    return Logits(model, given), x, y


def loss(logits, y):
    return functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), y.reshape(-1))


def sgd(model):
    return torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=1e-4, momentum=0.9)


def plain(model, x, y):
    optimizer = sgd(model)

    def step():
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step()

    return step


def own(model, x, y, **how):
    optimizer, dim = sgd(model), sum(p.numel() for p in model.parameters())
    plan = an.plan(
        1000 * len(x),
        len(x),
        epochs=1,
        epsilon=4,
        delta=1e-6,
        clip_norm=CLIP_NORM,
        dim=dim,
        mechanism="identity",
    )
    CorrelatedNoise(model, plan, an.Key.from_os(), threads=1, external_batches=True).attach(optimizer)

    def step():
        clipped_sum_(model, loss, x, y, CLIP_NORM, **how)
        optimizer.step()
        optimizer.zero_grad()

    return step


def opacus(mode, model, x, y):
    from opacus import PrivacyEngine

    private, optimizer, *rest = PrivacyEngine().make_private(
        module=model,
        optimizer=sgd(model),
        criterion=nn.CrossEntropyLoss(),
        data_loader=torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=len(x)),
        noise_multiplier=1.0,
        max_grad_norm=CLIP_NORM,
        grad_sample_mode=mode,
        poisson_sampling=False,
    )
    shape = dict(shape=tuple(y.shape)) if mode == "ghost" and y.dim() == 2 else {}
    criterion = rest[0] if mode == "ghost" else nn.CrossEntropyLoss()

    def step():
        optimizer.zero_grad()
        logits = private(x)
        criterion(logits.reshape(-1, logits.shape[-1]), y.reshape(-1), **shape).backward()
        optimizer.step()

    return step


def step_of(way, model, x, y):
    if way == "plain":
        return plain(model, x, y)
    if way in KEPT:
        return own(model, x, y, **KEPT[way])
    return opacus(way.split()[1], model, x, y)


def each_alone(model, x, y):
    """The parameters whose gradients are made for each example, as the warning names them; None if norms
    need no such gradients.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clipped_sum_(model, loss, x[:2], y[:2], CLIP_NORM)
    drop_sums(model.parameters())
    said = [str(w.message) for w in caught if "norms=" in str(w.message) or "one by one" in str(w.message)]
    return said[0] if said else None


def times(name, size, rounds):
    """Seconds of processor time of each variant in each round; for variants that do not run, the reason."""
    steps, refused = {}, {}
    for way in WAYS:
        try:
            steps[way] = step_of(way, *built(name, size))
            steps[way]()
        except Exception as error:
            steps.pop(way, None)
            refused[way] = f"{type(error).__name__}: {str(error).strip().splitlines()[0][:150]}"
    found = {way: [] for way in steps}
    random.seed(0)
    for _ in range(rounds):
        for way in random.sample(list(steps), len(steps)):
            start = time.process_time()
            steps[way]()
            found[way].append(time.process_time() - start)
    model, x, y = built(name, size)
    dim = sum(p.numel() for p in model.parameters())
    return dict(seconds=found, refused=refused, alone=each_alone(model, x, y), dim=dim)


def resident(field):
    line = next(row for row in Path("/proc/self/status").read_text().splitlines() if row.startswith(field))
    return int(line.split()[1]) * 1024


def memory(name, size, way):
    """Bytes that two steps need beyond the model."""
    step = step_of(way, *built(name, size))
    Path("/proc/self/clear_refs").write_text("5")
    before = resident("VmRSS")
    step(), step()
    return dict(bytes=resident("VmHWM") - before)


def child(*arguments):
    """The result of this program with these arguments, in a process of its own; None if it fails."""
    command = [sys.executable, __file__, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else None


def measured(name, size, options):
    common = ["--threads", options.threads, "--rounds", options.rounds]
    found = child("--times", name, size, *common)
    if found is None:
        raise SystemExit(f"{name} failed: run --times {name} {size} to see why")
    found["bytes"] = {
        way: (child("--memory", name, size, way, *common) or {}).get("bytes") for way in found["seconds"]
    }
    return found


def cell(found, way):
    if way not in found["seconds"]:
        return "not run"
    of, base = found["seconds"][way], found["seconds"]["plain"]
    low, middle, high = statistics.quantiles([a / b for a, b in zip(of, base)])
    text = f"{min(of) / min(base):.2f}; {middle:.2f} ({low:.2f} to {high:.2f})"
    bytes = found["bytes"]
    return text + (f"; {bytes[way] / bytes['plain']:.2f}" if bytes.get(way) and bytes.get("plain") else "")


def _short(text):
    return text if len(text) <= 80 else text[:76].rstrip() + " ..."


def table(results, size, options):
    """The measurements of models of one size, a row for each."""
    layers, width, examples, places = SIZES[size]
    rows = [
        f"{layers} layers of {width}, {examples} examples of {places} places.",
        "",
        "| model | parameters | " + " | ".join(WAYS[1:]) + " |",
        "|---|---|" + "---|" * (len(WAYS) - 1),
    ]
    for name, found in results.items():
        cells = " | ".join(cell(found, way) for way in WAYS[1:])
        rows.append(f"| {name} | {found['dim'] / 1e6:.1f}e6 | {cells} |")
    return "\n".join(rows)


def remarks(results):
    """Which parameters need per-example gradients, and what Opacus does not run."""
    rows = ["Parameters that need per-example gradients in antinoise; all others go without:", ""]
    for name, found in results.items():
        if found["alone"]:
            # Layer names that differ only in their number are listed once.
            of = (
                re.sub(r"\.\d+\.", ".*.", found["alone"].split(" one by one")[0])
                .split(" of ")[-1]
                .split(", ")
            )
            rows.append(f"- {name}: " + ", ".join(f"`{each}`" for each in dict.fromkeys(of)))
    rows += ["", "What Opacus does not run, and its error:", ""]
    for name, found in results.items():
        reasons = {}
        for way, why in found["refused"].items():
            reasons.setdefault(why, []).append(way.removeprefix("Opacus "))
        rows += [f"- {name}, {' and '.join(ways)}: `{_short(why)}`" for why, ways in reasons.items()]
    return "\n".join(rows)


def page(results, options):
    versions = ", ".join(f"{of} {version(of)}" for of in ("torch", "transformers", "opacus"))
    load = ", ".join(f"{load:.0f}" for load in os.getloadavg())
    of = (("small", ",".join(names())), ("large", LARGE))
    other = "".join(
        f' --{size} "{getattr(options, size)}"' for size, all in of if getattr(options, size) != all
    )
    tables = "\n\n".join(table(found, size, options) for size, found in results.items() if found)
    return f"""# A private step of transformers

Random weights, all parameters trained; a step is clip, sum, independent noise, SGD with momentum. The page is
written by

```text
python scripts/python/compare_transformers.py --rounds {options.rounds}{other} --write FILE
```

with {versions}, Python {platform.python_version()}, {options.threads} thread and {options.rounds} rounds, on
{os.cpu_count()} cores with load averages of {load} at the end. In each cell: processor time over plain
PyTorch's, of the shortest steps; the median of the rounds (quartiles); the memory of two steps beyond the
model, over plain PyTorch's. `kept_bytes` is 256 MiB by default.

{tables}

{remarks(results["small"] or results["large"])}
"""


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--small", default=",".join(names()), help="models of 4 layers of 256")
    parser.add_argument("--large", default=LARGE, help="models of 12 layers of 768")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--times", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--memory", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.times or options.memory:
        if options.times:
            warnings.simplefilter("ignore")
            print(json.dumps(times(*options.times, options.rounds)))
        else:
            print(json.dumps(memory(*options.memory)))
        return
    results = {size: {} for size in SIZES}
    for size, found in results.items():
        for name in filter(None, getattr(options, size).split(",")):
            found[name] = measured(name, size, options)
            print(table({name: found[name]}, size, options).splitlines()[4], flush=True)
    if options.write:
        options.write.write_text(page(results, options))
    else:
        print(page(results, options))


if __name__ == "__main__":
    main()
