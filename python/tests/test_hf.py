"""The Trainer of Hugging Face: its optimizer sees the noisy mean of the plan's batch, for a transformer
with LoRA, offline.
"""

import copy
import json
import stat

import numpy as np
import pytest
from conftest import small_plan
from corruption import refuses_all

# Before transformers: the module sets the variable that keeps it offline.
from hf_run import CLIP, STEPS, data, flat, gpt2, key, model_of, plan, torch, trained, trainer, transformers
from torch import nn
from transformers.trainer_utils import HubStrategy

import antinoise as an
from antinoise.hf import NOISE_NAME, PrivateTrainer
from antinoise.torch.held_sums import held_sum

pytestmark = pytest.mark.filterwarnings("ignore")


class Rows(torch.utils.data.IterableDataset):
    """Examples without numbers."""

    def __iter__(self):
        return iter(data())


def by_hand(plan):
    """The same training without the library: gradients one by one, clipped, summed, and a stream's noise."""
    model, stream, rows, seen = gpt2(), an.NoiseStream(plan, 64, key()), data(), []
    model.train()
    parameters, optimizer = trained(model), torch.optim.SGD(trained(model), lr=0.5, momentum=0.9)
    for batch in an.Batches(plan, key()):
        total, row = np.zeros(64), np.empty(64, np.float32)
        for i in batch:
            example = {name: rows[i][name][None] for name in ("input_ids", "attention_mask", "labels")}
            gradient = flat(torch.autograd.grad(model(**example).loss, parameters)).double().numpy()
            assert np.linalg.norm(gradient) > CLIP / 10
            total += gradient * min(1.0, (1 - 2.0**-20) * CLIP / np.linalg.norm(gradient))
        stream.add_to_sum(total, row)
        mean = torch.from_numpy((row.astype(np.float64) / 8).astype(np.float32))
        for p, part in zip(parameters, mean.split([p.numel() for p in parameters]), strict=True):
            p.grad = part.view(p.shape)
        optimizer.step()
        seen.append(mean)
    return model, seen


# Gradients one by one have the bits of those by hand. Ghost norms round single precision in another order,
# which may move a value to another point of the grid.
@pytest.mark.parametrize(("norms", "points"), [("per_example", 0), ("auto", 4)])
def test_a_step_sees_sum_and_noise_over_the_batch_size(norms, points, plan, tmp_path):
    point = plan.grid_spacing / 8
    before, made = gpt2(), trainer(plan, tmp_path, how=dict(norms=norms))
    result = made.train()
    model, seen = by_hand(plan)
    assert result.global_step == made.noise.step == len(made.seen) == len(seen) == STEPS
    near = lambda a, b, points: torch.allclose(a, b, rtol=0, atol=points * point)  # noqa: E731
    assert all(near(a, b, points) for a, b in zip(made.seen, seen, strict=True))
    adapters = {name for name, p in model.named_parameters() if p.requires_grad}
    for (name, p), (_, q), (_, old) in zip(
        made.model.named_parameters(), model.named_parameters(), before.named_parameters(), strict=True
    ):
        # The momentum adds up what all steps moved.
        assert near(p, q, STEPS * points) and torch.equal(p, old) == (name not in adapters), name
    # Nothing without noise is reported.
    assert result.training_loss == 0 and len(made.state.log_history) == STEPS + 1
    assert not {"loss", "train_loss", "grad_norm"} & {
        name for logged in made.state.log_history for name in logged
    }
    with pytest.raises(RuntimeError, match="All 12 steps of the plan have been made"):
        made.train()


def test_portions_by_vmap_are_near(plan, tmp_path):
    rows = [{"input_ids": row["input_ids"], "labels": row["input_ids"]} for row in data()]
    one, some = (
        trainer(plan, tmp_path, rows=rows),
        trainer(plan, tmp_path, gpt2("eager"), rows, dict(microbatch_size=3)),
    )
    for made in (one, some):
        made.train()
    # Rounded sums differ by at most one point of the grid.
    assert torch.allclose(one.seen[0], some.seen[0], atol=2e-5) and not torch.equal(one.seen[0], one.seen[1])


@pytest.mark.parametrize("made", ["GPT2", "Bert"])
def test_an_example_has_the_same_bits_whether_others_are_padded(made, plan, tmp_path):
    """Without padding in the whole batch transformers would compute attention without the mask."""
    task = "LMHeadModel" if made == "GPT2" else "ForMaskedLM"
    model = model_of(made, task=task).train()
    trains = trainer(plan, tmp_path, model)
    ids = torch.randint(1, 30, (2, 10), generator=torch.Generator().manual_seed(3))
    full = dict(input_ids=ids, labels=ids, attention_mask=torch.ones_like(ids))
    padded = full | dict(attention_mask=full["attention_mask"].clone())
    padded["attention_mask"][1, 6:] = 0
    assert trains._losses.known(model, full, False)
    one, other = (trains._losses.together(model, batch) for batch in (full, padded))
    assert torch.equal(one[0], other[0]) and not torch.equal(one[1], other[1])
    # Outside of the trainer nothing changes.
    skips = transformers.masking_utils._ignore_bidirectional_mask_sdpa
    assert skips(padding_mask=full["attention_mask"].bool(), kv_length=10)
    model.config._attn_implementation = "flash_attention_2"
    other = trainer(plan, tmp_path, model)
    with pytest.warns(
        UserWarning,
        match="attention of model is of an implementation that may depend on what attention_mask holds",
    ):
        assert not other._losses.known(model, full, False)


def test_losses_are_reported_where_that_is_said(plan, tmp_path):
    made = trainer(plan, tmp_path, how=dict(log_private_losses=True), max_steps=2)
    result = made.train()
    assert 2 < result.training_loss < 5 and made.state.log_history[0]["loss"] > 2 and made.noise.step == 2


def test_a_run_that_is_resumed_has_the_same_bits(plan, tmp_path):
    whole = trainer(plan, tmp_path, save_strategy="steps", save_steps=4)
    whole.train()
    path = tmp_path / "checkpoint-4" / "noise.pt"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    resumed = trainer(plan, tmp_path / "other")
    resumed.train(resume_from_checkpoint=str(path.parent))
    assert resumed.noise.step == STEPS and len(resumed.seen) == STEPS - 4
    assert all(torch.equal(a, b) for a, b in zip(resumed.seen, whole.seen[4:], strict=True))
    assert torch.equal(flat(trained(whole.model)), flat(trained(resumed.model)))
    assert "loss" not in json.loads((path.parent / "trainer_state.json").read_text())["log_history"][0]
    with pytest.raises(RuntimeError, match="This trainer is at step 12 and serves one run"):
        resumed.train(resume_from_checkpoint=str(path.parent))
    # After the plan's last step the checkpoint holds no secret, and nothing to resume from.
    last = tmp_path / "checkpoint-12"
    assert torch.load(last / "noise.pt", weights_only=True) == {"finished": True}
    with pytest.raises(RuntimeError, match="This state is of a run whose steps have all been made"):
        trainer(plan, tmp_path).train(resume_from_checkpoint=str(last))
    other = small_plan(examples=48, batch_size=8, dim=200, clip_norm=CLIP, epsilon=3)
    with pytest.raises(ValueError, match="plan of the state is another"):
        trainer(other, tmp_path).train(resume_from_checkpoint=str(path.parent))
    path.unlink()
    with pytest.raises(
        ValueError, match="checkpoint is one without noise.pt but must be one that a PrivateTrainer saved"
    ):
        trainer(plan, tmp_path).train(resume_from_checkpoint=str(path.parent))


def test_a_resumption_that_bypasses_the_hook_is_refused(plan, tmp_path, monkeypatch):
    """If a release of transformers restored the optimizer elsewhere, the noise would stay at step 0 and be
    added to other gradients a second time.
    """
    whole = trainer(plan, tmp_path, save_strategy="steps", save_steps=4)
    whole.train()
    resumed = trainer(plan, tmp_path / "other")
    monkeypatch.setattr(PrivateTrainer, "_load_optimizer_and_scheduler", lambda self, checkpoint: None)
    before = flat(trained(resumed.model)).clone()
    with pytest.raises(
        RuntimeError,
        match=(
            "the trainer is at step 4 and the noise at step 0: the noise was not restored with the checkpoint"
        ),
    ):
        resumed.train(resume_from_checkpoint=str(tmp_path / "checkpoint-4"))
    assert resumed.noise.step == 0 and not resumed.seen
    # The parameters are the checkpoint's, and no step was made.
    assert not torch.equal(before, flat(trained(resumed.model)))
    monkeypatch.delattr(transformers.Trainer, "_load_optimizer_and_scheduler")
    with pytest.raises(
        RuntimeError,
        match=f"transformers {transformers.__version__} has no Trainer._load_optimizer_and_scheduler",
    ):
        trainer(plan, tmp_path)


def test_layers_are_clipped_apart_where_that_is_said(tmp_path):
    clip = CLIP / 10
    plan = small_plan(examples=48, batch_size=8, dim=200, clip_norm=clip)
    made = trainer(plan, tmp_path, how=dict(groups="layer"), max_steps=1)
    made.noise_sums = []
    made.optimizer.register_step_pre_hook(
        lambda *_: made.noise_sums.extend(held_sum(p).total.clone() for p in trained(made.model))
    )
    made.train()
    # The two matrices of LoRA are a layer each.
    model, rows, wanted, longer = gpt2().train(), data(), [0, 0], 0
    for i in next(iter(an.Batches(plan, key()))):
        example = {name: rows[i][name][None] for name in ("input_ids", "attention_mask", "labels")}
        for layer, gradient in enumerate(torch.autograd.grad(model(**example).loss, trained(model))):
            longer += bool(gradient.norm() > clip / 2**0.5)
            wanted[layer] += gradient.double() * min(1.0, clip / 2**0.5 / float(gradient.double().norm()))
    assert longer > 0 and len(made.noise_sums) == 2
    assert all(
        torch.allclose(held, total, rtol=1e-4, atol=1e-6)
        for held, total in zip(made.noise_sums, wanted, strict=True)
    )


def resumed_otherwise(plan, folder, message, how=None, change=None, **arguments):
    """Four steps, then a run with other arguments that resumes their checkpoint: it is refused before a
    release."""
    trainer(plan, folder, save_strategy="steps", save_steps=4, max_steps=4).train()
    checkpoint = folder / "checkpoint-4"
    if change:
        change(checkpoint)
    made = trainer(plan, folder, how=how, **arguments)
    with pytest.raises(RuntimeError, match=message):
        made.train(resume_from_checkpoint=str(checkpoint))
    assert not made.seen and made.noise.step in (0, 4)
    trainer(plan, folder, how=(how or {}) | dict(reuse_noise_unprotected=True), **arguments).train(
        resume_from_checkpoint=str(checkpoint)
    )


def test_a_checkpoint_is_not_gone_on_with_at_another_learning_rate(plan, tmp_path):
    resumed_otherwise(
        plan,
        tmp_path,
        "learning_rate is 0.01 and was 5e-05 when the checkpoint was saved",
        learning_rate=0.01,
    )


def test_a_checkpoint_is_not_gone_on_with_on_other_data(plan, tmp_path):
    rows = data()
    rows[17]["input_ids"][0] = 1 + rows[17]["input_ids"][0] % 28
    resumed_otherwise(
        plan, tmp_path, "data set are not as when the state of step 4 was saved", how=dict(train_dataset=rows)
    )


def test_a_checkpoint_is_not_gone_on_with_from_other_weights(plan, tmp_path):
    from safetensors.torch import load_file, save_file

    def change(checkpoint):
        path = checkpoint / "adapter_model.safetensors"
        weights = load_file(path)
        save_file({name: weight + 0.01 for name, weight in weights.items()}, path)

    resumed_otherwise(plan, tmp_path, "weights are not as when the state of step 4 was saved", change=change)


REFUSALS = [
    (dict(max_grad_norm=1.0), {}, "max_grad_norm is 1.0 but must be 0: the plan clips"),
    (
        dict(accelerator_config=dict(gradient_accumulation_kwargs=dict(num_steps=2))),
        {},
        "gradient_accumulation_steps is 2 but must be 1 in accelerator_config",
    ),
    (dict(gradient_accumulation_steps=2), {}, "batch_size of the loader is 16 but must be the plan's, 8"),
    (dict(auto_find_batch_size=True), {}, "auto_find_batch_size is True but must be False"),
    (
        {},
        dict(model=None, optimizers=(None, None), model_init=gpt2),
        "model_init is given but must be left out",
    ),
    ({}, dict(microbatch_size=0), "microbatch_size is 0 but must be at least 1"),
    ({}, dict(norms="each"), "norms is 'each' but must be 'auto', 'ghost' or 'per_example'"),
    ({}, dict(norms="ghost", exact=True), "norms is 'ghost' but must be 'per_example' or 'auto' where grid"),
    (dict(num_train_epochs=3), {}, "number of steps is 18 but must be at most the plan's, 12"),
    (dict(per_device_train_batch_size=4), {}, "batch_size of the loader is 4 but must be the plan's, 8"),
    (
        {},
        dict(train_dataset=data(40)),
        "data set of the loader is of 40 examples but must be of the plan's 48",
    ),
    (
        dict(train_sampling_strategy="group_by_length"),
        {},
        "sampler of the loader is a?.*LengthGroupedSampler but must be left out",
    ),
    (
        {},
        dict(optimizers=(torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0), None)),
        "parameters of the optimizer are others",
    ),
]


@pytest.mark.parametrize("arguments, how, message", REFUSALS, ids=[message[:24] for *_, message in REFUSALS])
def test_what_would_void_the_claim_is_refused(arguments, how, message, plan, tmp_path):
    model = gpt2()
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(ValueError, match=message):
        trainer(plan, tmp_path, model, how=how, **arguments).train()
    assert all(torch.equal(before[name], now) for name, now in model.state_dict().items())


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(fp16=True), "fp16 is True but must be False: gradients would be scaled"),
        (dict(_n_gpu=2), "number of devices is 2 but must be 1"),
        (
            dict(push_to_hub=True, hub_strategy=HubStrategy.CHECKPOINT),
            "hub_strategy is .*CHECKPOINT but must be end or every_save",
        ),
    ],
)
def test_what_this_machine_cannot_do_is_refused(arguments, message, plan, tmp_path):
    made = trainer(plan, tmp_path)
    for name, value in arguments.items():
        setattr(made.args, name, value)
    with pytest.raises(ValueError, match=message):
        made._refuse()


def test_processes_that_are_no_replicas_are_refused(plan, tmp_path, monkeypatch):
    made = trainer(plan, tmp_path)
    monkeypatch.setattr(type(made.args), "world_size", 2)
    with pytest.raises(
        ValueError, match="parallel_mode is .*NOT_PARALLEL but must be replicas, or one process"
    ):
        made._refuse()
    monkeypatch.undo()
    for name in ("is_fsdp_enabled", "is_deepspeed_enabled"):
        made = trainer(plan, tmp_path)
        setattr(made, name, True)
        with pytest.raises(ValueError, match="deepspeed or fsdp is on but must be off"):
            made._refuse()


def test_mixed_precision_and_evaluation(plan, tmp_path):
    whole, made = (
        trainer(plan, tmp_path, max_steps=1),
        trainer(plan, tmp_path, how=dict(eval_dataset=data(8)), bf16=True, max_steps=1),
    )
    whole.train(), made.train()
    assert made.seen[0].dtype == torch.float32 and not torch.equal(made.seen[0], whole.seen[0])
    assert torch.allclose(made.seen[0], whole.seen[0], atol=1e-2) and 2 < made.evaluate()["eval_loss"] < 6


@pytest.mark.parametrize("workers", [0, 2])
def test_each_step_has_its_own_batch(workers, plan, tmp_path):
    """Accelerate prefetches one batch, and workers more; each step still takes its own batch."""
    whole, made = trainer(plan, tmp_path), trainer(plan, tmp_path, dataloader_num_workers=workers)
    whole.train(), made.train()
    assert len(made.seen) == STEPS and all(
        torch.equal(a, b) for a, b in zip(made.seen, whole.seen, strict=True)
    )
    kept, made = [], trainer(plan, tmp_path, dataloader_num_workers=workers)
    own = made.training_step

    def again(model, inputs, *args):
        kept.append(inputs)
        return own(model, kept[min(len(kept) - 1, 2)], *args)

    made.training_step = again
    with pytest.raises(
        RuntimeError, match="sums of step 3 are of the batch of step 2, which would be used twice"
    ):
        made.train()
    made = trainer(plan, tmp_path, dataloader_num_workers=workers)
    made.create_optimizer()
    with pytest.raises(
        RuntimeError,
        match="batch of step 1 is asked for where step 0 comes next, so that a batch would be dropped",
    ):
        list(made.get_train_dataloader())
    assert made.noise.step == 0
    # A batch that is looked at in its own pass is handed out again.
    next(iter(made.get_train_dataloader()))
    made.train()
    assert all(torch.equal(a, b) for a, b in zip(made.seen, whole.seen, strict=True))


@pytest.mark.parametrize("length", [dict(num_train_epochs=2), dict(max_steps=12)])
def test_a_trainer_plans_by_itself(length, tmp_path):
    how = dict(plan=None, epsilon=4, delta=1e-5, clip_norm=CLIP)
    made = trainer(None, tmp_path, how=how, **length)
    assert made.plan == an.plan(48, 8, steps=12, epsilon=4, delta=1e-5, clip_norm=CLIP, dim=64)
    made.train()
    assert made.noise.step == made.plan.steps == 12
    for wrong, message in (
        (dict(plan=made.plan), "epsilon, delta or clip_norm is given but must be left out where plan is"),
        (dict(epsilon=None), "epsilon is absent but must be given, unless a plan is"),
        (dict(train_dataset=None), "train_dataset is absent but must be given, for a plan to be made"),
        (dict(train_dataset=Rows()), "data set of the loader is a Rows but must be one with a length"),
    ):
        with pytest.raises(ValueError, match=message):
            trainer(None, tmp_path, how=how | wrong, max_steps=12)
    with pytest.raises(ValueError, match="num_train_epochs is 1.5 but must be a whole number"):
        trainer(None, tmp_path, how=how, num_train_epochs=1.5)


@pytest.mark.parametrize("norms", ["ghost", "per_example"])
def test_what_would_be_accumulated_are_portions_of_a_batch(norms, tmp_path):
    passes = []
    for parts in (1, 4):
        how = dict(plan=None, epsilon=4, delta=1e-5, clip_norm=CLIP, norms=norms, model=gpt2())
        sizes = dict(per_device_train_batch_size=8 // parts, gradient_accumulation_steps=parts)
        made = trainer(None, tmp_path, how["model"], how=how, num_train_epochs=2, **sizes)
        counts = []
        made.model.register_forward_pre_hook(
            lambda module, args, kwargs: counts.append(len(kwargs["input_ids"])), with_kwargs=True
        )
        made.train()
        assert made.plan.batch_size == 8 and made.noise.step == made.state.global_step == STEPS
        assert made.args.gradient_accumulation_steps == 1 and made.args.train_batch_size == 8
        passes.append((made.seen, set(counts)))
    (whole, _), (portions, counts) = passes
    # Two and three examples are those of the checks of losses and of independence.
    assert counts == ({1, 2, 3} if norms == "ghost" else {1})
    near = dict(rtol=0, atol=1e-6)
    assert all(torch.allclose(a, b, **near) for a, b in zip(whole, portions, strict=True))


def test_a_batch_that_is_not_the_plans_is_refused(plan, tmp_path):
    made = trainer(plan, tmp_path)
    with pytest.raises(RuntimeError, match="There is no noise yet"):
        made.noise
    made.create_optimizer()
    rows = made.data_collator(data()[:7])
    rows.pop("length")
    made.training_step(made.model, rows)
    with pytest.raises(RuntimeError, match="Step 0 has no batch of its own"):
        made.optimizer.step()
    next(iter(made._sampler))
    made.training_step(made.model, rows)
    with pytest.raises(ValueError, match="batch of step 0 is of 7 examples but must be the plan's, of 8"):
        made.optimizer.step()
    assert not any(held_sum(p) for p in made.model.parameters())
    rows["labels"] = rows["labels"][:6]
    with pytest.raises(
        ValueError, match=r"batch is one of tensors of \[6, 7\] examples but must be made of tensors"
    ):
        made.training_step(made.model, rows)
    rows["labels"] = "labels"
    with pytest.raises(ValueError, match="batch is one with a str but must be made of tensors"):
        made.training_step(made.model, rows)


def test_noise_of_a_checkpoint_that_was_damaged_is_refused(plan, tmp_path):
    trainer(plan, tmp_path / "a", save_strategy="steps", save_steps=2, max_steps=4).train()
    trainer(
        plan,
        tmp_path / "b",
        how=dict(key=an.Key.from_seed_insecure(6)),
        save_strategy="steps",
        save_steps=4,
        max_steps=4,
    ).train()
    path, *others = [
        tmp_path / name / NOISE_NAME for name in ("a/checkpoint-4", "a/checkpoint-2", "b/checkpoint-4")
    ]
    made = trainer(plan, tmp_path / "c")
    made.create_optimizer()
    refuses_all(path, others, lambda: made._state_in(str(path.parent)))
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + bytes(256) + whole[4352:])
    with pytest.raises(
        RuntimeError,
        match="noise.pt is not the file that was saved: it was cut, altered or written by another program",
    ):
        made.train(resume_from_checkpoint=str(path.parent))
    assert made.noise.step == 0
