#!/usr/bin/env python3
"""Fine-tunes a small GPT-2 privately with LoRA, by the Trainer of Hugging Face.

    python scripts/python/finetune_lora.py TEXT [--capitals] [--epsilon 8] [--steps 64] [--batch 64] [--seeds 3]
    python scripts/python/finetune_lora.py --smoke

Run it with a Python that has antinoise, transformers and peft; nothing is downloaded. The first half of TEXT
is public: on it the model is trained without privacy, all of it. Of the second half (with --capitals: put in
capitals, so that it is unlike the public text) steps x batch examples of 65 characters are private: on them
LoRA's adapters are trained in one epoch, once with correlated noise without amplification and once with
independent noise amplified by Poisson sampling, at the same epsilon. For each, rates are tried on seed 0,
doubled and halved until neither neighbour is better, or five are tried, by text that is held out for that;
losses are of other text that is held out. Rates are chosen by looking at private text, which the statement
does not cover.
"""

import argparse
import copy
import os
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}

import torch
from finetune import ALPHABET, WAYS, best_rate, drawn, noise_of, parts, plan_of, text_of, with_error
from peft import LoraConfig, get_peft_model
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel, PrinterCallback, TrainingArguments, logging

import antinoise as an
from antinoise.hf import PrivateTrainer

FIRST_RATE = 0.5


@dataclass(frozen=True)
class Sizes:
    width: int
    layers: int
    length: int
    pretraining: int
    batch: int
    steps: int
    held_out: int
    seeds: int


def pretrained(sizes: Sizes, text: Tensor) -> GPT2LMHeadModel:
    """A model trained on public text, without privacy."""
    torch.manual_seed(0)
    shape = dict(
        vocab_size=ALPHABET, n_positions=sizes.length + 1, n_embd=sizes.width, n_layer=sizes.layers, n_head=4
    )
    model = GPT2LMHeadModel(
        GPT2Config(bos_token_id=0, eos_token_id=0, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, **shape)
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    rates = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=sizes.pretraining)
    for _ in range(sizes.pretraining):
        rows = drawn(text, sizes.length, 16)
        optimizer.zero_grad()
        model(rows, labels=rows).loss.backward()
        optimizer.step()
        rates.step()
    return model


def adapted(model: GPT2LMHeadModel, seed: int) -> Any:
    """A copy of the model with LoRA's adapters, which are the only trained parameters."""
    torch.manual_seed(seed)
    how = LoraConfig(
        r=8,
        lora_alpha=16,
        target_modules=["c_attn", "c_fc", "c_proj"],
        task_type="CAUSAL_LM",
        fan_in_fan_out=True,
    )
    return get_peft_model(copy.deepcopy(model), how)


@torch.no_grad()
def loss_of(model: Any, rows: Tensor) -> float:
    """The mean loss per predicted character. The Trainer's `eval_loss` also counts the first character of
    each row, which is not predicted.
    """
    model.eval()
    return float(torch.stack([model(input_ids=some, labels=some).loss for some in rows.split(64)]).mean())


def examples_of(rows: Tensor) -> list[dict[str, Tensor]]:
    return [{"input_ids": row, "labels": row} for row in rows]


def trainer_of(
    model: Any, plan: an.Plan, rate: float, seed: int, sizes: Sizes, private: Tensor, folder: str
) -> PrivateTrainer:
    args = TrainingArguments(
        output_dir=folder,
        per_device_train_batch_size=sizes.batch,
        max_steps=sizes.steps,
        learning_rate=rate,
        lr_scheduler_type="constant",
        optim="sgd",
        max_grad_norm=0.0,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        seed=seed,
    )
    # A key from a seed makes the table reproducible. Real runs take theirs from the operating system:
    # an.Key.from_os().
    key = an.Key.from_seed_insecure(seed)
    run = f"{plan.strategy} {rate}"
    trainer = PrivateTrainer(
        model=model,
        args=args,
        train_dataset=examples_of(private),
        plan=plan,
        key=key,
        run=run,
        microbatch_size=16,
    )
    trainer.remove_callback(PrinterCallback)
    return trainer


def compare(sizes: Sizes, epsilon: float, text: str, capitals: bool, folder: str) -> None:
    public, private, choose, test = parts(
        text, sizes.length, sizes.steps * sizes.batch, sizes.held_out, capitals
    )
    start = time.perf_counter()
    base = pretrained(sizes, public)
    dim = sum(p.numel() for p in adapted(base, 0).parameters() if p.requires_grad)
    whole = sum(p.numel() for p in base.parameters())
    print(
        f"{dim} parameters are trained beside {whole}; pre-trained in {time.perf_counter() - start:.0f} s",
        flush=True,
    )
    rows = [f"| before fine-tuning | | | {loss_of(base, test):.4f} |"]
    for way in WAYS:
        plan = plan_of(way, len(private), sizes.batch, sizes.steps, epsilon, dim)
        tested: dict[tuple[float, int], float] = {}
        spent = []

        def losses(
            rate: float, seed: int = 0, plan: an.Plan = plan, tested: Any = tested, spent: list[float] = spent
        ) -> float:
            model, begun = adapted(base, seed), time.perf_counter()
            trainer = trainer_of(model, plan, rate, seed, sizes, private, folder)
            trainer.train()
            assert trainer.noise.step == plan.steps
            spent.append((time.perf_counter() - begun) / plan.steps)
            tested[rate, seed] = loss_of(model, test)
            return loss_of(model, choose)

        rate, found = best_rate(losses, FIRST_RATE)
        print(
            f"{way}, seed 0, losses by rate: "
            + ", ".join(f"{r:g}: {v:.3f}" for r, v in sorted(found.items()))
        )
        for seed in range(1, sizes.seeds):
            losses(rate, seed)
        rows.append(
            f"| {way} | {noise_of(plan):.4f} | {rate:g} |"
            f" {with_error([tested[rate, seed] for seed in range(sizes.seeds)])} |"
        )
        print(
            f"  {sum(spent) / len(spent):.2f} s a step; {time.perf_counter() - start:.0f} s since the start",
            flush=True,
        )
    print(plan.statement.split("\n\n")[0])
    print("\n| | noise, by the plan | rate | loss |\n|---|---|---|---|\n" + "\n".join(rows))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("text", nargs="?", type=Path)
    parser.add_argument("--epsilon", type=float, default=8.0)
    parser.add_argument("--steps", type=int, default=64)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument(
        "--capitals", action="store_true", help="the private text is in capitals, unlike the public"
    )
    parser.add_argument("--smoke", action="store_true", help="a tiny model and text that is made up: seconds")
    given = parser.parse_args()
    if given.text is None and not given.smoke:
        parser.error("TEXT or --smoke must be given")
    warnings.simplefilter("ignore")
    logging.set_verbosity_error()
    torch.set_num_threads(1)
    sizes = Sizes(
        128, 2, 64, pretraining=1500, batch=given.batch, steps=given.steps, held_out=512, seeds=given.seeds
    )
    if given.smoke:
        sizes = Sizes(16, 1, 16, pretraining=20, batch=16, steps=6, held_out=32, seeds=2)
    with tempfile.TemporaryDirectory() as folder:
        compare(sizes, given.epsilon, text_of(given.text), given.capitals, folder)


if __name__ == "__main__":
    main()
