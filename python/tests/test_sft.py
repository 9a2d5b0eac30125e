"""The supervised fine-tuning trainer of trl: its texts and collation, with the plan's batches and noise."""

import json
import os

import pytest
from conftest import small_plan

torch = pytest.importorskip("torch")
os.environ["HF_HUB_OFFLINE"] = "1"
transformers = pytest.importorskip("transformers")
trl = pytest.importorskip("trl")
datasets = pytest.importorskip("datasets")
tokenizers = pytest.importorskip("tokenizers")

import antinoise as an
from antinoise.hf import PrivateTrainer
from antinoise.sft import PrivateSFTTrainer
from antinoise.torch import clipping

pytestmark = pytest.mark.filterwarnings("ignore")
CLIP, WORDS = 0.3, [f"w{i}" for i in range(26)]


@pytest.fixture(scope="module")
def plan():
    return small_plan(examples=48, batch_size=8, epochs=None, steps=6, dim=2000, clip_norm=CLIP)


def tokenizer():
    words = {word: i for i, word in enumerate(["<pad>", "<eos>", "<unk>", *WORDS])}
    model = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="<unk>"))
    model.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=model, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>"
    )


def texts(count):
    """Sentences of several lengths."""
    return datasets.Dataset.from_list(
        [{"text": " ".join(WORDS[(i * 7 + j) % 26] for j in range(4 + i % 5))} for i in range(count)]
    )


def gpt2():
    torch.manual_seed(1)
    sizes = dict(vocab_size=29, n_positions=16, n_embd=8, n_layer=1, n_head=2, bos_token_id=1, eos_token_id=1)
    return transformers.GPT2LMHeadModel(
        transformers.GPT2Config(**sizes, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    )


def arguments(folder, **other):
    quiet = dict(disable_tqdm=True, use_cpu=True, report_to=[], save_strategy="no", max_grad_norm=0.0)
    how = dict(per_device_train_batch_size=8, max_steps=6, logging_steps=1, learning_rate=0.01)
    how |= dict(bf16=False, gradient_checkpointing=False)
    return trl.SFTConfig(output_dir=str(folder), **(quiet | how | other))


def trainer(plan, folder, **other):
    how = dict(model=gpt2(), train_dataset=texts(48), eval_dataset=texts(10), processing_class=tokenizer())
    how |= dict(args=arguments(folder, **other), plan=plan, key=an.Key.from_seed_insecure(5))
    return PrivateSFTTrainer(**how)


def test_it_trains_as_the_trainer_does_on_the_prepared_rows(plan, tmp_path, monkeypatch):
    monkeypatch.setattr(clipping, "_of_each", lambda *_: pytest.fail("not by ghost norms"))
    by_texts = trainer(plan, tmp_path / "a", eval_strategy="steps", eval_steps=3)
    by_texts.train()
    rows = list(by_texts.train_dataset)
    assert len(rows) == 48 and rows[0]["input_ids"] == [3, 10 - 6, 5, 6, 1]
    quiet = arguments(tmp_path / "b").to_dict()
    names = (
        "disable_tqdm",
        "use_cpu",
        "save_strategy",
        "max_grad_norm",
        "per_device_train_batch_size",
        "max_steps",
    )
    args = transformers.TrainingArguments(
        output_dir=str(tmp_path / "b"),
        report_to=[],
        learning_rate=0.01,
        **{name: quiet[name] for name in names},
    )
    by_rows = PrivateTrainer(
        model=gpt2(),
        args=args,
        train_dataset=rows,
        data_collator=by_texts.data_collator,
        plan=plan,
        key=an.Key.from_seed_insecure(5),
    )
    by_rows.train()
    assert by_texts.noise.step == by_rows.noise.step == 6
    pairs = zip(by_texts.model.parameters(), by_rows.model.parameters(), strict=True)
    assert all(torch.allclose(p, q, rtol=1e-4, atol=1e-6) for p, q in pairs)
    assert any(
        not torch.equal(p, q) for p, q in zip(gpt2().parameters(), by_rows.model.parameters(), strict=True)
    )


def test_nothing_of_private_examples_is_logged(plan, tmp_path):
    made = trainer(plan, tmp_path, eval_strategy="steps", eval_steps=2, save_strategy="steps", save_steps=6)
    made.train()
    said = {name for entry in made.state.log_history for name in entry}
    assert {"eval_loss", "eval_entropy", "eval_mean_token_accuracy"} <= said
    own = {name for name in said if not name.startswith("eval_")}
    assert own == {"learning_rate", "epoch", "step"} | (
        own & {"train_runtime", "train_samples_per_second", "train_steps_per_second", "total_flos"}
    )
    with open(tmp_path / "checkpoint-6" / "trainer_state.json") as file:
        assert {name for entry in json.load(file)["log_history"] for name in entry} <= said


@pytest.mark.parametrize(
    "other, message",
    [
        (dict(packing=True, max_length=8), "packing is True but must be False"),
        (dict(padding_free=True, max_length=None), "padding_free is True but must be False"),
        (dict(loss_type="dft"), "loss_type is 'dft' but must be 'nll'"),
        (dict(activation_offloading=True), "activation_offloading is True but must be False"),
        (dict(gradient_checkpointing=True), "gradient_checkpointing is True but must be False, unless"),
        (dict(max_grad_norm=1.0), "max_grad_norm is 1.0 but must be 0"),
    ],
)
def test_what_would_join_examples_or_change_their_loss_is_refused(other, message, plan, tmp_path):
    with pytest.raises(ValueError, match=message):
        trainer(plan, tmp_path, **other)


def test_examples_one_by_one_may_be_checkpointed(plan, tmp_path):
    found = []
    for folder, checkpointing in (("a", True), ("b", False)):
        args = arguments(tmp_path / folder, gradient_checkpointing=checkpointing)
        how = dict(train_dataset=texts(48), processing_class=tokenizer(), norms="per_example")
        made = PrivateSFTTrainer(model=gpt2(), args=args, plan=plan, key=an.Key.from_seed_insecure(5), **how)
        made.train()
        found.append(torch.cat([p.detach().reshape(-1) for p in made.model.parameters()]))
    assert torch.allclose(*found, rtol=1e-5, atol=1e-7)


def test_arguments_of_another_trainer_are_refused(plan):
    with pytest.raises(ValueError, match="args is a NoneType but must be an SFTConfig"):
        PrivateSFTTrainer(model=gpt2(), train_dataset=texts(48), processing_class=tokenizer(), plan=plan)
