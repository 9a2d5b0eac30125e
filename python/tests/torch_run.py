"""A small training in plain PyTorch, for its tests."""

import pytest
import torch
from conftest import small_plan
from torch import nn

import antinoise as an
from antinoise.torch import CorrelatedNoise
from antinoise.torch.held_sums import held_sum

CLIP = 0.7
loss = nn.functional.cross_entropy


def small_model(dtype=torch.float32):
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(6, 9), nn.Tanh(), nn.Linear(9, 3)).to(dtype)


def data(dtype=torch.float32):
    generator = torch.Generator().manual_seed(2)
    return torch.randn(240, 6, generator=generator).to(dtype), torch.randint(
        0, 3, (240,), generator=generator
    )


def dim(model):
    return sum(p.numel() for p in model.parameters())


@pytest.fixture(scope="module")
def plan():
    return small_plan(dim=100, clip_norm=CLIP)


def key():
    return an.Key.from_seed_insecure(5)


def made(plan, model=None, **how):
    model = model or small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    how = dict(external_batches=True) | how
    return model, optimizer, CorrelatedNoise(model, plan, key(), **how).attach(optimizer)


def sums_of(model):
    return torch.cat([held_sum(p).total.reshape(-1) for p in model.parameters()])
