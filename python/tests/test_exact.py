"""Exact sums: integer multiples of the plan's grid, with the same bits for any order and distribution of
examples.
"""

import math

import numpy as np
import pytest
from conftest import small_plan

torch = pytest.importorskip("torch")
from torch import nn

import antinoise as an
from antinoise.torch import CorrelatedNoise, clipped_sum_
from antinoise.torch.held_sums import drop_sums, held_sum

CLIP, SPACING = 0.7, 2.0**-20
loss = nn.functional.cross_entropy


def small_model():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(6, 9), nn.Tanh(), nn.Linear(9, 3))


def data(count=40):
    generator = torch.Generator().manual_seed(2)
    return torch.randn(count, 6, generator=generator), torch.randint(0, 3, (count,), generator=generator)


def points_of(model, *batches, clip=CLIP, spacing=SPACING, microbatch_size=1, **how):
    """The sum of all batches in integers of the grid; the sum is removed from the parameters."""
    for x, y in batches:
        clipped_sum_(model, loss, x, y, clip, microbatch_size=microbatch_size, grid_spacing=spacing, **how)
    held = [held_sum(p) for p in model.parameters()]
    assert {h.examples for h in held} == {sum(len(x) for x, _ in batches)} and {h.spacing for h in held} == {
        spacing
    }
    drop_sums(model.parameters())
    found = torch.cat([h.total.reshape(-1) for h in held])
    assert found.dtype == torch.int64
    return found


def points_by_hand(model, x, y, clip=CLIP, spacing=SPACING):
    """Each example's clipped gradient in integers of the grid."""
    found = []
    for a, b in zip(x, y):
        gradient = torch.autograd.grad(loss(model(a[None]), b[None]), list(model.parameters()))
        gradient = torch.cat([g.reshape(-1) for g in gradient]).double()
        found.append(
            torch.round(gradient * torch.clamp((1 - 2**-20) * clip / gradient.norm(), max=1) / spacing).long()
        )
    return torch.stack(found)


@pytest.mark.parametrize("norms", ["auto", "per_example"])
def test_points_are_rounded_example_by_example(norms):
    model, (x, y) = small_model(), data()
    wanted = points_by_hand(model, x, y).sum(0)
    found = points_of(model, (x, y), norms=norms)
    # Single-precision gradients computed in another order differ by a few points of this fine grid.
    assert (found - wanted).abs().max() <= 40 and found.abs().max() > 10_000
    # On a coarse grid they hardly differ.
    coarse = points_of(model, (x, y), norms=norms, spacing=2.0**-8)
    assert (
        coarse - points_by_hand(model, x, y, spacing=2.0**-8).sum(0)
    ).abs().max() <= 1 and coarse.abs().max() > 10
    # Rounding the sum instead of each gradient gives another result.
    assert not torch.equal(coarse, torch.round(found * SPACING * 2**8).long())


def test_every_order_and_every_deal_has_the_same_bits():
    model, (x, y) = small_model(), data()
    whole = points_of(model, (x, y))
    for seed in range(5):
        order = torch.randperm(40, generator=torch.Generator().manual_seed(seed))
        assert torch.equal(whole, points_of(model, (x[order], y[order])))
        assert torch.equal(whole, sum(points_of(model, (x[order[i::3]], y[order[i::3]])) for i in range(3)))
    assert torch.equal(whole, points_of(model, (x[:7], y[:7]), (x[7:7], y[7:7]), (x[7:], y[7:])))
    # Sums in double precision depend on the order.
    clipped_sum_(model, loss, x, y, CLIP, microbatch_size=1, norms="per_example")
    clipped_sum_(
        turned := small_model(), loss, x.flip(0), y.flip(0), CLIP, microbatch_size=1, norms="per_example"
    )
    assert any(
        (held_sum(p).total != held_sum(q).total).any()
        for p, q in zip(model.parameters(), turned.parameters())
    )


def test_an_example_moves_the_points_by_no_more_than_the_plan_allows():
    plan = small_plan(dim=100, clip_norm=CLIP)
    model, (x, y) = small_model(), data()
    x = 30 * x
    # The coarser the grid, the more rounding adds: half a spacing in each coordinate, where the plan allows
    # for a whole one.
    for spacing in (SPACING, 2.0**-3):
        whole, dim = points_of(model, (x, y), spacing=spacing), sum(p.numel() for p in model.parameters())
        most = 0.0
        for absent in range(0, 40, 3):
            kept = [i for i in range(40) if i != absent]
            moved = whole - points_of(model, (x[kept], y[kept]), spacing=spacing)
            assert torch.equal(
                moved, points_of(model, (x[absent : absent + 1], y[absent : absent + 1]), spacing=spacing)
            )
            most = max(most, float((moved * spacing).norm()))
        assert 0.9 * CLIP < most <= CLIP + spacing / 2 * math.sqrt(dim)
    assert plan.widened_clip_norm >= CLIP + spacing_of(plan) * math.sqrt(100)


def spacing_of(plan):
    return float(
        next(line for line in plan.to_toml().splitlines() if line.startswith("spacing")).split("=")[1]
    )


def test_what_is_not_finite_adds_nothing_and_nothing_adds_nothing():
    model, (x, y) = small_model(), data()
    x[3], x[0, 1] = float("nan"), float("inf")
    kept = [i for i in range(40) if i not in (0, 3)]
    assert torch.equal(points_of(model, (x, y)), points_of(model, (x[kept], y[kept])))
    assert points_of(model, (x[:0], y[:0])).abs().max() == 0
    # Padding of a portion is not counted.
    assert torch.equal(
        points_of(model, (x[4:7], y[4:7]), microbatch_size=3),
        points_of(model, (x[4:7], y[4:7]), microbatch_size=64),
    )


def test_noise_is_added_to_the_points():
    plan, (x, y) = small_plan(dim=100, clip_norm=CLIP), data(20)
    assert plan.grid_spacing == spacing_of(plan)
    model = small_model()
    dim = sum(p.numel() for p in model.parameters())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    CorrelatedNoise(model, plan, an.Key.from_seed_insecure(5), external_batches=True).attach(optimizer)
    points = points_of(model, (x, y), spacing=plan.grid_spacing)
    noisy_sum = np.empty(dim, np.float32)
    an.NoiseStream(plan, dim, an.Key.from_seed_insecure(5)).add_to_sum(
        points.numpy() * plan.grid_spacing, noisy_sum
    )
    clipped_sum_(model, loss, x, y, CLIP, microbatch_size=1, grid_spacing=plan.grid_spacing)
    optimizer.step()
    mean = torch.cat([p.grad.reshape(-1) for p in model.parameters()])
    assert torch.equal(
        mean, torch.from_numpy((noisy_sum.astype(np.float64) / plan.expected_batch_size).astype(np.float32))
    )
    clipped_sum_(model, loss, x, y, CLIP, microbatch_size=1, grid_spacing=2 * plan.grid_spacing)
    with pytest.raises(ValueError, match="grid_spacing of the sum"):
        optimizer.step()


def test_what_is_wrong_is_named():
    model, (x, y) = small_model(), data()
    for how, message in (
        (dict(grid_spacing=0.3), "grid_spacing is 0.3 but must be a power of two"),
        (dict(grid_spacing=-0.5), "grid_spacing is -0.5 but must be a power of two"),
        (dict(grid_spacing=float("inf")), "grid_spacing is inf but must be a power of two"),
        (
            dict(grid_spacing=2.0**-40),
            "grid_spacing is 9.09.*e-13 but must be at least 2\\^-34 of clip_norm, 0.7",
        ),
        (
            dict(grid_spacing=0.5, norms="ghost"),
            "norms is 'ghost' but must be 'per_example' or 'auto' where grid_spacing is given",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            clipped_sum_(model, loss, x, y, CLIP, **how)
    assert not any(held_sum(p) for p in model.parameters())


@pytest.mark.parametrize("first, second", [(None, SPACING), (SPACING, None), (SPACING, 2 * SPACING)])
def test_sums_of_two_kinds_are_not_added(first, second):
    model, (x, y) = small_model(), data()
    clipped_sum_(model, loss, x, y, CLIP, grid_spacing=first)
    held = [held_sum(p) for p in model.parameters()]
    with pytest.raises(ValueError, match=f"grid_spacing is {second} but must be {first}"):
        clipped_sum_(model, loss, x, y, CLIP, grid_spacing=second)
    assert all(held_sum(p) is h for p, h in zip(model.parameters(), held))
