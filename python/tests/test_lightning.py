"""Lightning: its optimizer sees the noisy mean of the plan's batch, bit by bit, although steps run in a
closure.
"""

import copy
import os
import stat

import numpy as np
import pytest
from conftest import STEPS, small_plan
from corruption import refuses_all

torch = pytest.importorskip("torch")
lightning = pytest.importorskip("lightning")
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.plugins.io import AsyncCheckpointIO, TorchCheckpointIO
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import antinoise as an
from antinoise._sealed import seal
from antinoise.lightning import PrivateTraining, SecretCheckpoints
from antinoise.torch import clipped_sum_
from antinoise.torch.held_sums import held_sum

pytestmark = pytest.mark.filterwarnings("ignore")
CLIP = 0.7
loss = nn.functional.cross_entropy


@pytest.fixture(scope="module")
def plan():
    return small_plan(dim=100, clip_norm=CLIP)


def key():
    return an.Key.from_seed_insecure(5)


def data(count=240):
    generator = torch.Generator().manual_seed(2)
    return TensorDataset(
        torch.randn(count, 6, generator=generator), torch.randint(0, 3, (count,), generator=generator)
    )


class Classifier(lightning.LightningModule):
    """A module that records the gradients its optimizer saw."""

    def __init__(self, manual=False, share=1.0, make=lambda p: torch.optim.SGD(p, lr=0.5, momentum=0.9)):
        super().__init__()
        torch.manual_seed(1)
        self.net = nn.Sequential(nn.Linear(6, 9), nn.Tanh(), nn.Linear(9, 3))
        self.automatic_optimization, self.share, self.make, self.seen = not manual, share, make, []

    def training_step(self, batch, _):
        x, y = (part[: round(self.share * len(part))] for part in batch)
        value = clipped_sum_(self.net, loss, x, y, CLIP)
        if self.automatic_optimization:
            return value
        optimizer = self.optimizers()
        optimizer.zero_grad()
        optimizer.step()
        return None

    def configure_optimizers(self):
        optimizer = self.make(self.net.parameters())
        optimizer.register_step_post_hook(
            lambda *_: self.seen.append(flat(p.grad for p in self.parameters()))
        )
        return optimizer


def flat(tensors):
    return torch.cat([getattr(t, "full_tensor", lambda t=t: t)().detach().reshape(-1) for t in tensors])


def fit(plan, module=None, private=None, epochs=2, path=None, loader=None, callbacks=(), **how):
    module, private = module or Classifier(), private or PrivateTraining(plan, key())
    quiet = dict(
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        accelerator="cpu",
    )
    trainer = lightning.Trainer(max_epochs=epochs, callbacks=[private, *callbacks], **(quiet | how))
    trainer.fit(module, private.loader(data()) if loader is None else loader, ckpt_path=path)
    return module, private


def by_hand(plan, steps=STEPS):
    """The same training without the library: gradients one by one, clipped, summed, and a stream's noise."""
    net, stream, seen = Classifier().net, an.NoiseStream(plan, 93, key()), []
    optimizer, batches = torch.optim.SGD(net.parameters(), lr=0.5, momentum=0.9), an.Batches(plan, key())
    for step in range(steps):
        x, y = data()[batches.at(step)]
        model, row = copy.deepcopy(net), np.empty(93, np.float32)
        clipped_sum_(model, loss, x, y, CLIP)
        total = flat(held_sum(p).total for p in model.parameters()).numpy()
        each = np.zeros(93)
        for a, b in zip(x, y, strict=True):
            gradient = (
                flat(torch.autograd.grad(loss(net(a[None]), b[None]), list(net.parameters())))
                .double()
                .numpy()
            )
            each += gradient * min(1.0, CLIP / np.linalg.norm(gradient))
        assert np.allclose(total, each, rtol=1e-4, atol=1e-5) and np.abs(total).max() > 0.1
        stream.add_to_sum(total, row)
        mean = torch.from_numpy((row.astype(np.float64) / 20).astype(np.float32))
        for p, part in zip(net.parameters(), mean.split([p.numel() for p in net.parameters()]), strict=True):
            p.grad = part.view(p.shape)
        optimizer.step()
        seen.append(mean)
    return net, seen


@pytest.mark.parametrize("manual", [False, True])
def test_a_step_sees_sum_and_noise_over_the_batch_size(manual, plan):
    module, private = fit(plan, Classifier(manual))
    net, seen = by_hand(plan)
    assert private.step == len(module.seen) == len(seen) == STEPS
    assert all(torch.equal(a, b) for a, b in zip(module.seen, seen, strict=True))
    assert torch.equal(flat(module.parameters()), flat(net.parameters()))
    assert "backward" not in vars(module)


def test_a_step_past_the_last_is_refused(plan):
    module, private = fit(plan)
    before = copy.deepcopy(module.state_dict())
    with pytest.raises(RuntimeError, match="All 24 steps of the plan have been made"):
        fit(plan, module, private, epochs=1)
    assert all(torch.equal(before[name], now) for name, now in module.state_dict().items())


def test_a_second_fit_goes_on(plan):
    module, private = fit(plan, epochs=1)
    assert private.step == 12
    fit(plan, module, private, epochs=1)
    assert private.step == STEPS and len(module.seen) == STEPS
    fresh = PrivateTraining(plan, key())
    fit(plan, private=fresh, epochs=1)
    with pytest.raises(ValueError, match="module is another but must be the one that the noise was made for"):
        fit(plan, private=fresh, epochs=1)


def checkpoints(folder):
    return ModelCheckpoint(folder, every_n_train_steps=1, save_top_k=-1, filename="{step}")


def test_a_run_that_is_resumed_has_the_same_bits(plan, tmp_path):
    folder, path = tmp_path / "states", tmp_path / "states" / "step=7.ckpt"
    whole, _ = fit(plan, callbacks=[checkpoints(folder)], enable_checkpointing=True)
    assert len(os.listdir(folder)) == STEPS and stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in folder.iterdir())
    resumed, private = fit(plan, path=path)
    assert private.step == STEPS and len(resumed.seen) == STEPS - 7
    assert all(torch.equal(a, b) for a, b in zip(resumed.seen, whole.seen[7:], strict=True))
    assert torch.equal(flat(whole.parameters()), flat(resumed.parameters()))
    with pytest.raises(
        ValueError, match="checkpoint is given but must be left out: a callback serves one run"
    ):
        fit(plan, resumed, private, path=path)
    with pytest.raises(ValueError, match="plan of the state is another"):
        fit(plan, private=PrivateTraining(small_plan(dim=100, clip_norm=CLIP, epsilon=3), key()), path=path)
    # After the plan's last step the checkpoint holds no secret, and nothing to resume from.
    last = folder / "step=24.ckpt"
    assert torch.load(last, weights_only=True)["callbacks"]["PrivateTraining"] == {"finished": True}
    with pytest.raises(RuntimeError, match="This state is of a run whose steps have all been made"):
        fit(plan, path=last)
    bare = torch.load(path, weights_only=True)
    del bare["callbacks"]
    torch.save(bare, path)
    with pytest.raises(
        RuntimeError,
        match="step=7.ckpt is not the file that was saved: it was cut, altered or written by another program",
    ):
        fit(plan, path=path)
    with open(path, "r+b") as file:
        seal(file)
    with pytest.raises(ValueError, match="checkpoint is one without noise but must be a whole one"):
        fit(plan, path=path)


class Plain(Classifier):
    def training_step(self, batch, _):
        return loss(self.net(batch[0]), batch[1])


class Nothing(Classifier):
    def training_step(self, batch, _):
        return torch.zeros(())


class Two(Classifier):
    def configure_optimizers(self):
        return [
            torch.optim.SGD(self.net[0].parameters(), lr=1.0),
            torch.optim.SGD(self.net[2].parameters(), lr=1.0),
        ]

    def training_step(self, batch, _):
        return None


class Closures(Classifier):
    """Manual optimization with steps that Lightning does not see."""

    def training_step(self, batch, _):
        clipped_sum_(self.net, loss, *batch, CLIP)
        raw = self.optimizers(use_pl_optimizer=False)
        raw.step() if len(self.seen) % 2 else raw.step(lambda: None)


def test_steps_that_lightning_does_not_see_are_noisy_too(plan):
    module, private = fit(plan, Closures(manual=True))
    assert private.step == STEPS and all(
        torch.equal(a, b) for a, b in zip(module.seen, by_hand(plan)[1], strict=True)
    )


REFUSALS = [
    (lambda plan: fit(plan, gradient_clip_val=1.0), "gradient_clip_val of the trainer is 1.0 but must be None: it would clip the noise"),
    (lambda plan: fit(plan, accumulate_grad_batches=2), "accumulate_grad_batches of the trainer is 2 but must be 1"),
    (lambda plan: fit(plan, loader=DataLoader(data(), batch_size=20)), "batch sampler of the loader is BatchSampler but must be"),
    (lambda plan: fit(plan, loader=PrivateTraining(plan, key()).loader(data())), "batch sampler of the loader is EpochSampler but must be"),
    (lambda plan: PrivateTraining(plan, key()).loader(data(), batch_size=10), "batch_size of the loader is 10 but must be the plan's, 20"),
    (lambda plan: PrivateTraining(plan, key()).loader(data(200)), "data set of the loader is of 200 examples but must be"),
    (lambda plan: fit(plan, Classifier(share=0.5)), "batch of step 0 is of 10 examples but must be the plan's, of 20"),
    (lambda plan: fit(plan, Plain()), "The loss of the training step has gradients"),
    (lambda plan: fit(plan, Nothing()), "batch of step 0 is of 0 examples but must be the plan's, of 20"),
    (lambda plan: fit(plan, Two(manual=True)), "number of optimizers is 2 but must be 1"),
    (lambda plan: fit(plan, Classifier(make=lambda p: torch.optim.SGD(list(p)[:2], lr=1.0))), "parameters of the optimizer are others"),
    (lambda plan: fit(plan, Classifier(make=lambda p: torch.optim.LBFGS(p))), "The optimizer calls its closure again"),
    (lambda plan: fit(plan, plugins=[AsyncCheckpointIO()]), "plugin AsyncCheckpointIO is given but must be left out"),
    (lambda plan: PrivateTraining(plan, key()).noise, "There is no noise yet"),
]  # fmt: skip


@pytest.mark.parametrize("wrong, message", REFUSALS, ids=[message[:30] for _, message in REFUSALS])
def test_what_would_void_the_claim_is_refused(wrong, message, plan):
    # A sentence is of a wrong state, "but must be" of a wrong value.
    with pytest.raises(RuntimeError if message.startswith("The") else ValueError, match=message):
        wrong(plan)


class Skipping(Classifier):
    """Skips its fourth batch."""

    def training_step(self, batch, index):
        return None if index == 3 else super().training_step(batch, index)


class Keeping(Classifier):
    """Clips its first batch in every step."""

    def training_step(self, batch, index):
        self.first = batch if index == 0 else self.first
        return super().training_step(self.first, index)


class Looking(Classifier):
    """Looks at a batch in the middle of a pass."""

    def on_train_batch_start(self, batch, index):
        next(iter(self.trainer.train_dataloader))


@pytest.mark.parametrize("workers", [0, 2])
def test_each_step_has_its_own_batch(workers, plan):
    whole = by_hand(plan)[1]
    private = PrivateTraining(plan, key())
    module, _ = fit(plan, private=private, loader=private.loader(data(), num_workers=workers))
    assert all(torch.equal(a, b) for a, b in zip(module.seen, whole, strict=True))
    dropped = "batch of step 4 is asked for where step 3 comes next, so that a batch would be dropped"
    for wrong, steps, message in (
        (Skipping(manual=True), 3, dropped),
        (Keeping(), 1, "sums of step 1 are of the batch of step 0, which would be used twice"),
        (Looking(), 1, "This pass over the batches is over: another one was begun"),
    ):
        private = PrivateTraining(plan, key())
        with pytest.raises(RuntimeError, match=message):
            fit(plan, wrong, private, loader=private.loader(data(), num_workers=workers))
        assert private.step == steps == len(wrong.seen)


def test_a_refusal_leaves_the_model_as_it_was(plan):
    for module in (Classifier(share=0.5), Nothing(), Plain()):
        before, private = copy.deepcopy(module.state_dict()), PrivateTraining(plan, key())
        with pytest.raises((ValueError, RuntimeError), match="The loss of|batch of step 0 is of"):
            fit(plan, module, private)
        assert private.step == 0 and all(
            torch.equal(before[name], now) for name, now in module.state_dict().items()
        )


def test_scaled_gradients_are_refused(plan):
    private = PrivateTraining(plan, key())
    trainer = lightning.Trainer(
        accelerator="cpu", logger=False, enable_checkpointing=False, precision="bf16-mixed"
    )
    trainer.precision_plugin.scaler = object()
    trainer.strategy._optimizers = [None]
    with pytest.raises(
        ValueError,
        match="precision of the trainer is bf16-mixed but must be one that does not scale gradients",
    ):
        private.on_fit_start(trainer, Classifier())


def test_mixed_precision_without_scaling(plan):
    module, private = fit(plan, epochs=1, precision="bf16-mixed")
    assert private.step == 12 and module.seen[0].dtype == torch.float32
    assert torch.allclose(module.seen[0], by_hand(plan, 1)[1][0], atol=1e-2)


def test_a_checkpoint_goes_on_with_the_options_of_its_optimizer_alone(plan, tmp_path):
    """Lightning would silently use the checkpoint's options instead."""
    fit(plan, callbacks=[checkpoints(tmp_path)], enable_checkpointing=True, max_steps=3)
    path, refused = tmp_path / "step=3.ckpt", 0
    for message, how in (
        ("lr of parameter group 0 is 0.25 and was 0.5", dict(lr=0.25, momentum=0.9)),
        ("momentum of parameter group 0 is 0.8 and was 0.9", dict(lr=0.5, momentum=0.8)),
    ):
        modules = [Classifier(make=lambda p: torch.optim.SGD(p, **how)) for _ in range(2)]
        with pytest.raises(
            RuntimeError, match=f"^{message} when the checkpoint was saved: another model would be trained"
        ):
            fit(plan, modules[0], path=path)
        refused += not modules[0].seen
        fit(
            plan,
            modules[1],
            PrivateTraining(plan, key(), reuse_noise_unprotected=True),
            path=path,
            max_steps=4,
        )
        assert len(modules[1].seen) == 1
    assert refused == 2


def test_a_checkpoint_that_was_damaged_is_refused(plan, tmp_path):
    fit(plan, callbacks=[checkpoints(tmp_path / "a")], enable_checkpointing=True, max_steps=3)
    other = PrivateTraining(plan, an.Key.from_seed_insecure(6))
    fit(plan, private=other, callbacks=[checkpoints(tmp_path / "b")], enable_checkpointing=True, max_steps=3)
    path, *others = [tmp_path / name for name in ("a/step=3.ckpt", "a/step=2.ckpt", "b/step=3.ckpt")]
    files = SecretCheckpoints(TorchCheckpointIO())
    refuses_all(path, others, lambda: files.load_checkpoint(path))
    with pytest.raises(
        ValueError, match="path of the checkpoint is s3://bucket/file but must be that of a local file"
    ):
        files.save_checkpoint({}, "s3://bucket/file")
    (tmp_path / "a" / "folder").mkdir()
    with pytest.raises(OSError):
        files.save_checkpoint({}, tmp_path / "a" / "folder")
    (tmp_path / "a" / "folder").rmdir()
    assert sorted(os.listdir(tmp_path / "a")) == [f"step={step}.ckpt" for step in (1, 2, 3)]


class OfEach(Classifier):
    """Losses of each example, clipped by the callback."""

    def __init__(self, how=None):
        super().__init__()
        self.private, self.how = None, how or {}

    def training_step(self, batch, _):
        return self.private.backward(lambda x, y: loss(self.net(x), y, reduction="none"), *batch, **self.how)


ASKED = dict(epsilon=4, delta=1e-5, batch_size=20, epochs=2, clip_norm=CLIP)


def test_a_callback_that_plans_has_the_bits_of_the_longer_way():
    longer, run = fit(an.plan(240, dim=93, **ASKED))
    module = OfEach()
    private = PrivateTraining.with_epsilon(module, data(), key=key(), **ASKED)
    assert private.plan == an.plan(240, dim=93, **ASKED)
    module.private = private
    fit(None, module, private)
    assert private.step == run.step == STEPS
    assert all(torch.equal(a, b) for a, b in zip(module.seen, longer.seen, strict=True))


@pytest.mark.parametrize(
    "how", [dict(norms="per_example"), dict(exact=True), dict(microbatch_size=7), dict(groups="layer")]
)
def test_a_callback_clips_as_it_is_asked(how, plan):
    module, private = OfEach(how), PrivateTraining(plan, key())
    module.private = private
    fit(plan, module, private, epochs=1)
    assert private.step == STEPS // 2
    longer, _ = fit(plan, epochs=1)
    same = all(torch.allclose(a, b, atol=1e-4) for a, b in zip(module.seen, longer.seen, strict=True))
    assert same == ("groups" not in how)


def test_what_cannot_be_planned_is_refused(plan):
    module, rows = OfEach(), (row for row in [1])
    with pytest.raises(
        ValueError, match="data set of the loader is a generator but must be one with a length"
    ):
        PrivateTraining.with_epsilon(module, rows, **ASKED)
    with pytest.raises(ValueError, match="model is one without trainable parameters but must have some"):
        PrivateTraining.with_epsilon(OfEach().requires_grad_(False), data(), **ASKED)
    with pytest.raises(ValueError, match="batch_size is 241 but must be from 1 to examples = 240"):
        PrivateTraining.with_epsilon(module, data(), **(ASKED | dict(batch_size=241)))
    module.private = PrivateTraining(plan, key())
    with pytest.raises(
        RuntimeError, match=r"There is no noise yet: backward\(\) is called in the training step"
    ):
        module.training_step(data()[:20], 0)
    fit(plan, module, module.private, epochs=1)
    with pytest.raises(TypeError, match="losses is a Tensor but must be a function"):
        module.private.backward(torch.zeros(20))
