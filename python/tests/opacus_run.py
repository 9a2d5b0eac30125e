"""A small training with Opacus, for its tests."""

import copy

import numpy as np
import opacus.optimizers.optimizer
import opacus.optimizers.optimizer_fast_gradient_clipping
import pytest
import torch
from conftest import small_plan
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import antinoise as an
from antinoise.opacus import PrivacyEngine

CLIP = 0.7
WAYS = [
    ("hooks", True),
    ("functorch", True),
    ("ew", True),
    ("ghost", True),
    ("hooks", False),
    ("functorch", False),
    ("ghost", False),
]


@pytest.fixture(autouse=True)
def no_noise_of_opacus(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("Opacus made noise")

    for module in (opacus.optimizers.optimizer, opacus.optimizers.optimizer_fast_gradient_clipping):
        monkeypatch.setattr(module, "_generate_noise", refuse)


@pytest.fixture(scope="module")
def plan():
    return small_plan(dim=100, clip_norm=CLIP)


def key(seed=5):
    return an.Key.from_seed_insecure(seed)


def data(count=240):
    generator = torch.Generator().manual_seed(2)
    return TensorDataset(
        torch.randn(count, 6, generator=generator), torch.randint(0, 3, (count,), generator=generator)
    )


def small_model():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(6, 9), nn.Tanh(), nn.Linear(9, 3))


class Run:
    """A model made private by an engine, and the gradients that its inner optimizer saw."""

    def __init__(self, plan, mode="hooks", wrap=True, model=None, optimizer=None, loader=None, seed=5, **how):
        self.model = model or small_model()
        self.inner = optimizer or torch.optim.SGD(self.model.parameters(), lr=0.5, momentum=0.9)
        self.engine = PrivacyEngine(plan, key(seed))
        made = self.engine.make_private(
            module=self.model,
            optimizer=self.inner,
            data_loader=loader if loader is not None else DataLoader(data(), batch_size=plan.batch_size),
            grad_sample_mode=mode,
            wrap_model=wrap,
            **how,
        )
        self.module, self.optimizer, self.loader = made[0], made[1], made[-1]
        self.called = self.module if wrap else self.model
        self.criterion = (
            made[2] if "ghost" in mode else nn.CrossEntropyLoss(reduction=how.get("loss_reduction", "mean"))
        )
        self.seen = []
        self.inner.register_step_pre_hook(
            lambda *_: self.seen.append(flat(p.grad for p in self.model.parameters()))
        )

    def backward(self, x, y):
        self.criterion(self.called(x), y).backward()

    def step(self, x, y):
        self.backward(x, y)
        self.optimizer.step()
        self.optimizer.zero_grad()


def flat(tensors):
    return torch.cat([getattr(t, "full_tensor", lambda t=t: t)().detach().reshape(-1) for t in tensors])


def clipped_sum(model):
    """The sum of clipped gradients, example by example, of Opacus's per-example gradients."""
    samples = [p.grad_sample for p in model.parameters()]
    total = np.zeros(sum(p.numel() for p in model.parameters()))
    for i in range(len(samples[0])):
        gradient = np.concatenate([s[i].numpy().reshape(-1) for s in samples]).astype(np.float64)
        total += gradient * min(1.0, (1 - 2.0**-20) * CLIP / np.linalg.norm(gradient))
    return total


def sum_of(run, mode):
    return (
        flat(p.grad for p in run.model.parameters()).double().numpy()
        if mode == "ghost"
        else clipped_sum(run.model)
    )


def mean_of(stream, total, plan):
    row = np.empty(len(total), np.float32)
    stream.add_to_sum(total, row)
    return torch.from_numpy((row.astype(np.float64) / plan.expected_batch_size).astype(np.float32))


def refused(run, message, step, kind=ValueError):
    before = copy.deepcopy(run.model.state_dict())
    made = run.engine.noise.step
    with pytest.raises(kind, match=message):
        step()
    assert run.engine.noise.step == made and all(
        torch.equal(before[n], now) for n, now in run.model.state_dict().items()
    )


def trained(plan, steps, mode, path=None, load=None):
    run = Run(plan, mode)
    if load:
        assert run.engine.load_checkpoint(path=load, module=run.module, optimizer=run.optimizer) == {
            "mine": 3
        }
    while run.engine.noise.step < steps:
        for x, y in run.loader:
            if run.engine.noise.step == steps:
                break
            run.step(x, y)
    if path:
        run.engine.save_checkpoint(
            path=path, module=run.module, optimizer=run.optimizer, checkpoint_dict={"mine": 3}
        )
    return run
