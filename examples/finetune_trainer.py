"""Fine-tunes a small GPT-2 by LoRA on private lines of code, with the Trainer of Hugging Face."""

import os
import tempfile

os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}

import torch
from peft import LoraConfig, get_peft_model
from texts import FIRST_WORD, LENGTH, PAD, WORDS, texts
from transformers import GPT2Config, GPT2LMHeadModel, PrinterCallback, TrainingArguments

from antinoise.hf import PrivateTrainer

torch.set_num_threads(1)
torch.manual_seed(0)
public, (train, _), (test, _) = texts()


def examples(rows):
    """Rows as the Trainer takes them; padding has no loss."""
    return [{"input_ids": row, "labels": row.masked_fill(row == PAD, -100)} for row in rows]


sizes = dict(vocab_size=FIRST_WORD + WORDS, n_positions=LENGTH + 1, n_embd=48, n_layer=2, n_head=4)
quiet = dict(bos_token_id=PAD, eos_token_id=PAD, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
model = GPT2LMHeadModel(GPT2Config(**sizes, **quiet))  # usually GPT2LMHeadModel.from_pretrained(...)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for _ in range(300):  # on public lines, without privacy
    rows = public[torch.randint(len(public), (64,))]
    optimizer.zero_grad()
    model(rows, labels=rows.masked_fill(rows == PAD, -100)).loss.backward()
    optimizer.step()

layers = dict(target_modules=["c_attn", "c_fc", "c_proj"], fan_in_fan_out=True)
model = get_peft_model(model, LoraConfig(r=8, task_type="CAUSAL_LM", **layers))
with tempfile.TemporaryDirectory() as folder:
    args = TrainingArguments(
        output_dir=folder,
        per_device_train_batch_size=256,
        num_train_epochs=2,
        learning_rate=0.02,
        max_grad_norm=0.0,  # antinoise clips each row's gradient
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
    )
    how = dict(train_dataset=examples(train), eval_dataset=examples(test[:1_000]), epsilon=8, delta=1e-5)
    trainer = PrivateTrainer(model=model, args=args, **how)
    trainer.remove_callback(PrinterCallback)
    before = trainer.evaluate()["eval_loss"]
    trainer.train()
    after = trainer.evaluate()["eval_loss"]
print(trainer.plan.statement.split("\n\n")[0])
print(f"{trainer.noise.step} steps, loss on other lines {before:.3f}, now {after:.3f}")
