"""Plain PyTorch: the optimizer sees the noisy mean of the plan's batch, bit by bit, and nothing else."""

import copy

import numpy as np
import pytest
from conftest import small_plan

torch = pytest.importorskip("torch")
from torch_run import CLIP, data, dim, key, loss, made, plan, small_model, sums_of

import antinoise as an
from antinoise.torch import CorrelatedNoise, clipped_sum_
from antinoise.torch.held_sums import held_sum


def gradient_of(model, x, y):
    model.zero_grad()
    loss(model(x[None]), y[None]).backward()
    found = torch.cat([p.grad.reshape(-1) for p in model.parameters()]).double()
    model.zero_grad()
    return found


@pytest.mark.parametrize("microbatch_size", [1, 7, 64])
def test_a_clipped_sum_is_that_of_a_loop(microbatch_size):
    model, (x, y) = small_model(), data()
    each = [gradient_of(model, a, b) for a, b in zip(x[:20], y[:20])]
    clip = float(torch.stack([g.norm() for g in each]).median())  # half of the gradients are longer
    clipped_sum_(model, loss, x[:20], y[:20], clip, microbatch_size=microbatch_size)
    wanted = sum(g * min(1, (1 - 2**-20) * clip / g.norm()) for g in each)
    assert torch.allclose(sums_of(model), wanted, rtol=1e-5, atol=1e-6)


def test_one_example_moves_the_sum_by_the_clip_norm_at_most():
    (x, y), model = data(), small_model()
    x *= 30
    clipped_sum_(model, loss, x, y, CLIP, microbatch_size=1)
    whole = sums_of(model)
    for left_out in range(0, 240, 40):
        fewer = small_model()
        kept = [i for i in range(240) if i != left_out]
        clipped_sum_(fewer, loss, x[kept], y[kept], CLIP, microbatch_size=1)
        assert (whole - sums_of(fewer)).norm() <= CLIP * (1 + 2**-20)


@pytest.mark.parametrize("microbatch_size, tolerance", [(1, 1e-13), (64, 1e-6)])
def test_an_example_that_is_not_finite_adds_nothing(microbatch_size, tolerance):
    (x, y), model, fewer = data(), small_model(), small_model()
    x[3], x[5, 0] = float("nan"), float("inf")
    clipped_sum_(model, loss, x[:8], y[:8], CLIP, microbatch_size=microbatch_size)
    kept = [0, 1, 2, 4, 6, 7]
    clipped_sum_(fewer, loss, x[kept], y[kept], CLIP, microbatch_size=microbatch_size)
    # In portions of one example gradients have the same bits; they are summed in double precision.
    assert torch.allclose(sums_of(model), sums_of(fewer), rtol=tolerance, atol=tolerance)


def test_portions_of_a_batch_add_up(plan):
    (x, y), whole, parts = data(), small_model(), small_model()
    # On some processors the bits of a gradient depend on the size of what is computed together.
    clipped_sum_(whole, loss, x[:20], y[:20], CLIP, microbatch_size=4)
    for part in (slice(0, 8), slice(8, 8), slice(8, 20)):
        clipped_sum_(parts, loss, x[part], y[part], CLIP, microbatch_size=4)
    assert torch.allclose(sums_of(whole), sums_of(parts), rtol=1e-12)
    assert held_sum(next(parts.parameters())).examples == 20


@pytest.mark.parametrize("kind", ["grid", "plain"])
def test_a_step_sees_sum_and_noise_over_the_batch_size(kind):
    plan, (x, y) = small_plan(dim=100, clip_norm=CLIP, arithmetic=kind), data()
    model, optimizer, noise = made(plan)
    by_hand = an.NoiseStream(plan, dim(model), key())
    for _ in range(3):
        clipped_sum_(model, loss, x[:20], y[:20], CLIP)
        sums, before = sums_of(model).numpy(), [p.detach().clone() for p in model.parameters()]
        noisy_sum = np.empty(dim(model), np.float32)
        by_hand.add_to_sum(sums, noisy_sum)
        optimizer.step()
        mean = torch.cat([p.grad.reshape(-1) for p in model.parameters()])
        assert torch.equal(
            mean,
            torch.from_numpy((noisy_sum.astype(np.float64) / plan.expected_batch_size).astype(np.float32)),
        )
        assert not any(held_sum(p) for p in model.parameters())
        assert all((p != old).any() for p, old in zip(model.parameters(), before))
        optimizer.zero_grad()
    assert noise.step == 3


def test_a_missing_gradient_is_zero_and_its_noise_is_not(plan):
    model, optimizer, _ = made(plan)
    optimizer.step()
    expected = np.empty(dim(model), np.float32)
    an.NoiseStream(plan, dim(model), key()).add_to_sum(np.zeros(dim(model)), expected)
    mean = torch.cat([p.grad.reshape(-1) for p in model.parameters()])
    assert mean.abs().min() > 0
    assert torch.equal(mean, torch.from_numpy((expected.astype(np.float64) / 20).astype(np.float32)))


def test_sums_may_lie_in_grad_where_that_is_said(plan):
    model, optimizer, _ = made(plan, small_model(torch.float64), sums_in_grad=True)
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    optimizer.step()
    noisy_sum = np.empty(dim(model), np.float32)
    an.NoiseStream(plan, dim(model), key()).add_to_sum(np.ones(dim(model)), noisy_sum)
    assert torch.equal(
        torch.cat([p.grad.reshape(-1) for p in model.parameters()]),
        torch.from_numpy(noisy_sum.astype(np.float64) / 20),
    )


@pytest.mark.parametrize("wild", [1e9, -1e9, 2.0**28])
def test_large_sums_get_noise_alike(plan, wild):
    at_once, ahead = (
        made(plan, small_model(torch.float64), sums_in_grad=True, prefetch=ahead) for ahead in (False, True)
    )
    for model, optimizer, _ in (at_once, ahead):
        for p in model.parameters():
            p.grad = torch.full_like(p, wild)
        optimizer.step()
    for p, q in zip(at_once[0].parameters(), ahead[0].parameters()):
        assert torch.equal(p.grad, q.grad) and p.grad.isfinite().all()


def test_frozen_parameters_are_left_alone(plan):
    model, (x, y) = small_model(), data()
    model[0].requires_grad_(False)
    frozen = copy.deepcopy(model[0].state_dict())
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad])
    CorrelatedNoise(model, plan, key(), external_batches=True).attach(optimizer)
    clipped_sum_(model, loss, x[:20], y[:20], CLIP)
    optimizer.step()
    assert all(torch.equal(frozen[name], now) for name, now in model[0].state_dict().items())
    assert model[0].weight.grad is None and model[2].weight.grad.abs().min() > 0


def test_a_tensor_is_written_in_place(plan):
    noise, row, again = an.NoiseStream(plan, 100, key()), torch.zeros(10, 10), np.empty(100, np.float32)
    noise.next_into(row)
    an.NoiseStream(plan, 100, key()).next_into(again)
    assert torch.equal(row.reshape(-1), torch.from_numpy(again))
    for wrong, message in (
        (row.T, "out is an array of shape"),
        (row.double(), "out is of dtype float64"),
        (
            torch.zeros(100, device="meta"),
            "out is .* but must be a NumPy array, a tensor in the host's memory",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            noise.next_into(wrong)
