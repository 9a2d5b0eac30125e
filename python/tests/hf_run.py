"""A small training with the Trainer of Hugging Face, offline, for its tests."""

import os

import pytest
from conftest import small_plan

os.environ["HF_HUB_OFFLINE"] = "1"
pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("peft")

import peft
import torch
import transformers

import antinoise as an
from antinoise.hf import PrivateTrainer

CLIP = 0.3
STEPS = 12


def plan_of_data():
    return small_plan(examples=48, batch_size=8, dim=200, clip_norm=CLIP)


@pytest.fixture(scope="module")
def plan():
    return plan_of_data()


def key():
    return an.Key.from_seed_insecure(5)


def data(count=48):
    """Sentences of several lengths, which the collator pads and masks."""
    generator = torch.Generator().manual_seed(2)
    rows = []
    for i in range(count):
        ids = torch.randint(1, 30, (6 + i % 5,), generator=generator)
        rows.append(
            {"input_ids": torch.cat([ids, torch.zeros(10 - len(ids), dtype=torch.long)]), "length": len(ids)}
        )
        rows[-1]["attention_mask"] = (torch.arange(10) < len(ids)).long()
        rows[-1]["labels"] = torch.where(rows[-1]["attention_mask"] == 1, rows[-1]["input_ids"], -100)
    return rows


def gpt2(attention="sdpa"):
    torch.manual_seed(1)
    sizes = dict(vocab_size=30, n_positions=16, n_embd=8, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0)
    config = transformers.GPT2Config(
        **sizes, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, attn_implementation=attention
    )
    lora = peft.LoraConfig(
        r=2, target_modules=["c_attn"], task_type="CAUSAL_LM", fan_in_fan_out=True, init_lora_weights=False
    )
    return peft.get_peft_model(transformers.GPT2LMHeadModel(config), lora)


def model_of(kind, **how):
    torch.manual_seed(1)
    sizes = dict(
        vocab_size=30, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8
    )
    sizes |= dict(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, max_position_embeddings=16)
    if kind == "GPT2":
        sizes = dict(
            vocab_size=30, n_positions=16, n_embd=8, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0
        )
        sizes |= dict(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    if kind == "T5":
        sizes = dict(vocab_size=30, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2, dropout_rate=0.0)
        sizes |= dict(decoder_start_token_id=0)
    task = how.pop("task")
    config = getattr(transformers, f"{kind}Config")(**sizes, pad_token_id=0, **how)
    return getattr(transformers, f"{kind}{task}")(config)


def flat(tensors):
    return torch.cat([t.detach().reshape(-1) for t in tensors])


def trained(model):
    return [p for p in model.parameters() if p.requires_grad]


def trainer(plan, folder, model=None, rows=None, how=None, **arguments):
    model = model or gpt2()
    optimizer = torch.optim.SGD(trained(model), lr=0.5, momentum=0.9)
    quiet = dict(
        disable_tqdm=True,
        use_cpu=True,
        report_to=[],
        save_strategy="no",
        max_grad_norm=0.0,
        per_device_train_batch_size=8,
    )
    args = transformers.TrainingArguments(
        output_dir=str(folder), **(quiet | dict(num_train_epochs=2, logging_steps=1) | arguments)
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)
    given = dict(
        model=model,
        args=args,
        train_dataset=rows or data(),
        plan=plan,
        key=key(),
        optimizers=(optimizer, schedule),
    ) | (how or {})
    made = PrivateTrainer(**given)
    made.seen = []
    optimizer.register_step_post_hook(lambda *_: made.seen.append(flat(p.grad for p in trained(model))))
    return made
