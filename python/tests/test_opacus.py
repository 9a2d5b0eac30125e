"""Opacus: its optimizer sees the noisy mean of the plan's batch, bit by bit, in each of its modes, and no
noise of Opacus.
"""

import copy
import os
import stat
import warnings

import numpy as np
import pytest
from conftest import STEPS, small_plan

torch = pytest.importorskip("torch")
pytest.importorskip("opacus")
from opacus.utils.batch_memory_manager import BatchMemoryManager
from opacus_run import (
    CLIP,
    WAYS,
    Run,
    data,
    flat,
    key,
    mean_of,
    no_noise_of_opacus,
    plan,
    refused,
    small_model,
    sum_of,
    trained,
)
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import antinoise as an
from antinoise.opacus import PrivacyEngine
from antinoise.torch.held_sums import held_sum

pytestmark = pytest.mark.filterwarnings(
    "ignore:Full backward hook:UserWarning", "ignore:ghost clipping:UserWarning"
)


@pytest.mark.parametrize("mode, wrap", WAYS)
def test_a_step_sees_sum_and_noise_over_the_batch_size(mode, wrap, plan):
    run, stream = Run(plan, mode, wrap), an.NoiseStream(plan, 93, key())
    batches = [batch.tolist() for batch in an.Batches(plan, key())]
    wanted = []
    for _ in range(2):
        for x, y in run.loader:
            assert torch.equal(x, data()[batches[len(wanted)]][0])
            run.backward(x, y)
            wanted.append(mean_of(stream, sum_of(run, mode), plan))
            run.optimizer.step()
            run.optimizer.zero_grad()
    assert len(run.seen) == len(wanted) == STEPS == len(run.engine.accountant)
    assert all(torch.equal(a, b) for a, b in zip(run.seen, wanted, strict=True))
    with pytest.raises(RuntimeError, match="All 24 steps of the plan have been made"):
        next(iter(run.loader))
    before = copy.deepcopy(run.model.state_dict())
    run.backward(x, y)
    with pytest.raises(RuntimeError, match="all 24 steps of this stream have been made"):
        run.optimizer.step()
    assert all(torch.equal(before[name], now) for name, now in run.model.state_dict().items())


@pytest.mark.parametrize("mode, wrap", WAYS)
def test_the_sum_is_that_of_a_loop(mode, wrap, plan):
    run = Run(plan, mode, wrap)
    total = np.zeros(93)
    x, y = next(iter(run.loader))
    for a, b in zip(x, y, strict=True):
        model = small_model()
        nn.functional.cross_entropy(model(a[None]), b[None]).backward()
        gradient = flat(p.grad for p in model.parameters()).double().numpy()
        total += gradient * min(1.0, CLIP / np.linalg.norm(gradient))
    run.backward(x, y)
    run.optimizer.pre_step()
    held = flat(held_sum(p).total for p in run.model.parameters())
    assert held.abs().max() > 0.1 and np.allclose(held, total, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("mode, wrap", [way for way in WAYS if way[0] != "ghost"])
def test_layers_are_clipped_apart(mode, wrap, plan):
    """Each of the two layers is clipped to the plan's clip norm over the root of two; Opacus would clip
    each to the whole clip norm.
    """
    run, wanted = Run(plan, mode, wrap, clipping="per_layer"), np.zeros(93)
    x, y = next(iter(run.loader))
    x *= 3
    for a, b in zip(x, y, strict=True):
        model = small_model()
        nn.functional.cross_entropy(model(a[None]), b[None]).backward()
        layers = [flat(p.grad for p in layer.parameters()).double().numpy() for layer in (model[0], model[2])]
        clipped = [g * min(1.0, CLIP / 2**0.5 / np.linalg.norm(g)) for g in layers]
        wanted += np.concatenate(clipped)
    run.backward(x, y)
    run.optimizer.pre_step()
    held = flat(held_sum(p).total for p in run.model.parameters())
    assert held.abs().max() > 0.1 and np.allclose(held, wanted, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("mode, wrap", WAYS)
def test_virtual_steps_make_noise_once(mode, wrap, plan):
    run, stream = Run(plan, mode, wrap), an.NoiseStream(plan, 93, key())
    wanted, total = [], np.zeros(93)
    with BatchMemoryManager(
        data_loader=run.loader, max_physical_batch_size=7, optimizer=run.optimizer
    ) as portions:
        for number, (x, y) in enumerate(portions):
            assert len(x) <= 7
            run.backward(x, y)
            total += sum_of(run, mode)
            if number % 3 == 2:
                wanted.append(mean_of(stream, total, plan))
                total[:] = 0
            run.optimizer.step()
            run.optimizer.zero_grad()
    assert len(run.seen) == len(wanted) == run.engine.noise.step == 12
    assert all(torch.equal(a, b) for a, b in zip(run.seen, wanted, strict=True))


def test_a_pass_that_is_broken_off_leaves_nothing_behind(plan):
    whole, broken = Run(plan), Run(plan)
    for run in (broken, whole):
        with BatchMemoryManager(
            data_loader=run.loader, max_physical_batch_size=10, optimizer=run.optimizer
        ) as portions:
            for number, (x, y) in enumerate(portions):
                if run is broken and number == 3:
                    run.backward(x, y)
                    break
                run.step(x, y)
    # Skip flags that were signalled ahead, as by a loader with workers, belong to that pass too.
    broken.optimizer.signal_skip_step(False)
    broken.optimizer.signal_skip_step(True)
    with BatchMemoryManager(
        data_loader=broken.loader, max_physical_batch_size=10, optimizer=broken.optimizer
    ) as portions:
        for x, y in portions:
            broken.step(x, y)
    assert len(broken.seen) == len(whole.seen) == 12
    assert all(torch.equal(a, b) for a, b in zip(broken.seen, whole.seen, strict=True))


@pytest.mark.parametrize("workers", [0, 2])
def test_each_step_has_its_own_batch(workers, plan):
    run = Run(plan, loader=DataLoader(data(), batch_size=20, num_workers=workers))
    batches = iter(run.loader)
    first = next(batches)
    with pytest.raises(
        RuntimeError,
        match="batch of step 1 is asked for where step 0 comes next, so that a batch would be dropped",
    ):
        next(batches)
    batches = iter(run.loader)
    assert torch.equal(next(batches)[0], first[0])
    run.step(*first)
    for _ in range(3):
        run.backward(*first)
        with pytest.raises(
            RuntimeError, match="Step 1 has no batch of its own: no batch was handed out since the last step"
        ):
            run.optimizer.step()
        run.optimizer.zero_grad()
    assert run.engine.noise.step == 1
    for _epoch in range(2):
        with BatchMemoryManager(
            data_loader=run.loader, max_physical_batch_size=7, optimizer=run.optimizer
        ) as portions:
            if workers:
                with pytest.raises(
                    RuntimeError,
                    match=r"asked for where step 1 comes next.* For workers, or anything else that draws",
                ):
                    next(iter(portions))
            else:
                for x, y in portions:
                    run.step(x, y)
    assert run.engine.noise.step == (1 if workers else STEPS)


def test_a_sum_instead_of_a_mean(plan):
    mean, total = Run(plan), Run(plan, loss_reduction="sum")
    for run in (mean, total):
        run.step(*next(iter(run.loader)))
    assert total.seen[0].abs().min() > 0 and torch.allclose(
        total.seen[0], 20 * mean.seen[0], rtol=1e-4, atol=1e-4
    )


def test_an_example_that_is_not_finite(plan):
    inputs, labels = data().tensors
    batch = an.Batches(plan, key()).at(0)
    inputs[batch[3]] = float("nan")
    loader = DataLoader(TensorDataset(inputs, labels), batch_size=20)
    run = Run(plan, loader=loader)
    run.backward(*next(iter(run.loader)))
    run.optimizer.pre_step()
    held = flat(held_sum(p).total for p in run.model.parameters())
    assert held.isfinite().all() and held.abs().max() > 0.1
    run = Run(plan, "ghost", loader=loader)
    run.backward(*next(iter(run.loader)))
    with pytest.raises(
        ValueError, match="sum of 0.weight is not finite but must be one of clipped gradients"
    ):
        run.optimizer.step()
    assert run.engine.noise.step == 0


@pytest.mark.parametrize("mode", ["hooks", "functorch", "ghost"])
def test_sampled_batches_may_be_empty(mode):
    plan = small_plan(
        setting="poisson", mechanism="identity", batch_size=3, epochs=None, steps=160, dim=100, clip_norm=CLIP
    )
    sizes = [len(batch) for batch in an.Batches(plan, key())]
    assert 0 in sizes
    run = Run(plan, mode)
    for _ in range(2):
        for x, y in run.loader:
            assert len(x) == len(y) == sizes[run.engine.noise.step]
            run.step(x, y)
    assert run.engine.noise.step == 160 and all(p.isfinite().all() for p in run.model.parameters())
    run = Run(plan, mode)
    x, y = data()[: sizes[0] + 1]
    with pytest.raises(
        RuntimeError, match="Step 0 has no batch of its own: no batch was handed out since the last step"
    ):
        run.step(x, y)
    run.optimizer.zero_grad()
    assert len(next(iter(run.loader))[0]) == sizes[0]
    refused(
        run,
        f"batch of step 0 is of {len(x)} examples but must be the plan's, of {sizes[0]}",
        lambda: run.step(x, y),
    )


def test_it_says_what_holds(plan):
    run = Run(plan)
    assert (
        run.engine.get_epsilon(1e-5)
        == run.engine.get_epsilon(1e-3)
        == run.engine.accountant.get_epsilon(1e-5)
        == plan.epsilon
    )
    for delta in (9e-6, 0, 1, float("nan")):
        with pytest.raises(
            ValueError, match=f"delta is {delta} but must be from 1e-05, the plan's, to below 1"
        ):
            run.engine.get_epsilon(delta)
    with pytest.raises(RuntimeError, match="The accountant counts no steps"):
        run.engine.accountant.step(noise_multiplier=1.0, sample_rate=0.1)
    said = run.engine.statement
    assert (
        said.startswith(plan.statement)
        and "the loss is the mean of the rows' losses" in said
        and "WITHOUT A PROOF" not in said
    )
    with pytest.warns(UserWarning, match="no bound is proved"):
        warnings.simplefilter("always")
        said = Run(plan, "ghost").engine.statement
    assert said.startswith(plan.statement) and "WITHOUT A PROOF" in said and f"clip norm {CLIP}" in said
    with pytest.raises(RuntimeError, match="There is no private model yet: call make_private"):
        PrivacyEngine(plan, key()).statement


@pytest.mark.parametrize("mode", ["hooks", "ghost"])
def test_a_run_that_is_resumed_has_the_same_bits(mode, plan, tmp_path):
    path = tmp_path / "state"
    path.write_bytes(b"readable by all")
    path.chmod(0o644)
    trained(plan, 7, mode, path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and os.listdir(tmp_path) == ["state"]
    resumed, whole = trained(plan, STEPS, mode, load=path), trained(plan, STEPS, mode)
    assert len(resumed.seen) == STEPS - 7
    assert all(torch.equal(a, b) for a, b in zip(resumed.seen, whole.seen[7:], strict=True))
    assert torch.equal(flat(resumed.model.parameters()), flat(whole.model.parameters()))


def test_what_the_plan_says_may_be_said_again(plan):
    how = dict(noise_multiplier=plan.noise_multiplier, max_grad_norm=CLIP, poisson_sampling=False)
    loader = DataLoader(
        data(),
        batch_size=20,
        shuffle=True,
        num_workers=1,
        collate_fn=lambda rows: tuple(map(torch.stack, zip(*rows))),
    )
    run = Run(plan, loader=loader, **how)
    assert (
        run.loader.num_workers == 1
        and run.loader.collate_fn is loader.collate_fn
        and run.loader.dataset is loader.dataset
    )
    for x, y in run.loader:
        run.step(x, y)
    assert run.engine.noise.step == 12


def test_lightning_drives_it(plan):
    lightning = pytest.importorskip("lightning")

    class Module(lightning.LightningModule):
        def __init__(self, run):
            super().__init__()
            self.net, self.run = run.module, run

        def training_step(self, batch, _):
            return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

        def configure_optimizers(self):
            return self.run.optimizer

    by_hand, run = Run(plan), Run(plan)
    for _ in range(2):
        for x, y in by_hand.loader:
            by_hand.step(x, y)
    quiet = dict(
        logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False
    )
    lightning.Trainer(max_epochs=2, accelerator="cpu", **quiet).fit(Module(run), run.loader)
    assert len(run.seen) == STEPS and all(
        torch.equal(a, b) for a, b in zip(run.seen, by_hand.seen, strict=True)
    )
