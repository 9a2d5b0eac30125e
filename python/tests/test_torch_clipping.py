"""One clipping per step: sums of parameters that were clipped separately are refused, and groups have norms
whose squares add up.
"""

import math
import random
from fractions import Fraction

import pytest
from conftest import small_plan

torch = pytest.importorskip("torch")
from torch import nn
from torch_run import CLIP, data, key, loss, made, plan, small_model, sums_of

from antinoise._groups import Groups
from antinoise.torch import CorrelatedNoise, add_clipped_sums, clipped_sum_
from antinoise.torch.held_sums import drop_sums, held_sum


class Deep(nn.Sequential):
    """A model of nine layers, or of `layers` layers."""

    def __init__(self, layers=9):
        torch.manual_seed(1)
        super().__init__(*(nn.Linear(6, 6) for _ in range(layers)))
        for layer in self:
            # No layer's gradient vanishes.
            nn.init.eye_(layer.weight)


def of_batch(model, batch):
    return loss(model(batch[0]), batch[1])


def by_submodule(model, x, y):
    """One call per layer: the whole model's loss, with only that layer's parameters in the clipped module."""
    for layer in model:
        clipped_sum_(layer, lambda _, batch: of_batch(model, batch), (x, y), CLIP)


def switched(model, x, y):
    """One call per layer, with the other layers frozen."""
    for layer in model:
        for other in model:
            other.requires_grad_(other is layer)
        clipped_sum_(model, loss, x, y, CLIP)
    model.requires_grad_(True)


@pytest.mark.parametrize("ways", [by_submodule, switched])
@pytest.mark.parametrize("layers", [2, 9])
def test_sums_that_were_clipped_apart_are_refused(ways, layers):
    """One example moves such sums by the root of the number of calls, in clip norms: 1.41 for two calls,
    3.0 for nine.
    """
    (x, _), model = data(), Deep(layers)
    y = x.argmin(1)
    ways(model, 100 * x[:1], y[:1])
    moved = float(sums_of(model).norm()) / CLIP
    assert moved == pytest.approx(math.sqrt(layers), rel=1e-4)
    drop_sums(model.parameters())
    model, optimizer, noise = made(small_plan(dim=1000, clip_norm=CLIP), Deep(layers))
    before = [p.detach().clone() for p in model.parameters()]
    ways(model, 100 * x[:20], y[:20])
    with pytest.raises(
        RuntimeError,
        match="a call of this step clipped 0.bias, 0.weight apart from 1.bias, .*Clip all trained",
    ):
        optimizer.step()
    assert noise.step == 0 and all(
        torch.equal(p, old) for p, old in zip(model.parameters(), before, strict=True)
    )
    # Refused sums are dropped; a step whose examples are clipped once succeeds.
    clipped_sum_(model, loss, x[:20], y[:20], CLIP)
    optimizer.step()
    assert noise.step == 1


def test_a_call_after_a_parameter_was_frozen_or_unfrozen_is_refused(plan):
    (x, y), (model, optimizer, noise) = data(), made(plan)
    for last, message in (
        (False, "parameter 0.bias was frozen after the noise was made"),
        (True, "a call of this step clipped 0.weight, 2.bias, 2.weight apart from 0.bias"),
    ):
        clipped_sum_(model, loss, x[:10], y[:10], CLIP)
        model[0].bias.requires_grad_(False)
        clipped_sum_(model, loss, x[10:20], y[10:20], CLIP)
        model[0].bias.requires_grad_(last)
        with pytest.raises(RuntimeError, match=message):
            optimizer.step()
        model[0].bias.requires_grad_(True)
    # The parameter is frozen between clipping and step.
    clipped_sum_(model, loss, x[:20], y[:20], CLIP)
    model[2].weight.requires_grad_(False)
    with pytest.raises(RuntimeError, match="parameter 2.weight was frozen after the noise was made"):
        optimizer.step()
    assert noise.step == 0
    model = small_model()
    model[0].requires_grad_(False)
    optimizer = torch.optim.SGD(model[2].parameters(), lr=0.5)
    noise = CorrelatedNoise(model, plan, key(), external_batches=True).attach(optimizer)
    clipped_sum_(model, loss, x[:20], y[:20], CLIP)
    model[0].requires_grad_(True)
    with pytest.raises(RuntimeError, match="parameter 0.weight was unfrozen after the noise was made"):
        optimizer.step()
    assert noise.step == 0


def test_more_than_the_noise_was_made_for_is_refused(plan):
    """Clipping covers a module that has no noise, so that no step would take its sums."""
    (x, y), whole = data(), nn.Sequential(small_model(), nn.Linear(3, 3))
    model, optimizer, _ = made(plan, whole[0])
    clipped_sum_(whole, loss, x[:20], y[:20], CLIP)
    with pytest.raises(
        RuntimeError, match="a call of this step clipped 2 parameters more than the noise was made for"
    ):
        optimizer.step()


def test_parameters_without_a_gradient_belong_to_the_call(plan):
    class Unused(nn.Sequential):
        def forward(self, x):
            return self[2](self[0](x).tanh()) + 0 * x.sum()

    (x, y), model = data(), Unused(nn.Linear(6, 3), nn.Linear(2, 2), nn.Linear(3, 3))
    model, optimizer, noise = made(plan, model)
    for some in (slice(0, 8), slice(8, 20)):
        clipped_sum_(model, loss, x[some], y[some], CLIP, norms="per_example")
    assert not held_sum(model[1].weight).total.any() and held_sum(model[1].weight).examples == 20
    optimizer.step()
    assert noise.step == 1 and model[1].weight.grad.abs().min() > 0


def test_sums_of_one_who_clips_are_for_all_parameters():
    model = small_model()
    totals = {name: torch.zeros(p.shape, dtype=torch.float64) for name, p in model.named_parameters()}
    for wrong, message in (
        (
            {n: t for n, t in totals.items() if n != "2.bias"},
            "sum of 2.bias is absent but must be there for each trained parameter",
        ),
        (
            totals | {"3.bias": totals["2.bias"]},
            (
                "sum of 3.bias is given but must be there for each trained parameter of the model, and for no"
                " other"
            ),
        ),
        (
            totals | {"0.bias": totals["2.bias"]},
            (
                r"sum of 0.bias is of dtype torch.float64 and shape \(3,\) but must be of torch.float64 and"
                r" \(9,\)"
            ),
        ),
    ):
        with pytest.raises(ValueError, match=message):
            add_clipped_sums(model, wrong, 20, CLIP)
    assert held_sum(model[0].weight) is None


def grouped(rng, names, clip):
    """Random groups of these names, in each of the accepted notations."""
    kind = rng.choice(["layer", "names", "norms", "modules"])
    if kind == "layer":
        return "layer"
    if kind == "modules":
        return {
            name: clip * rng.uniform(0.1, 1) / math.sqrt(3)
            for name in dict.fromkeys(name.split(".")[0] for name in names)
        }
    cuts = [rng.randrange(3) for _ in names]
    groups = [
        tuple(name for name, cut in zip(names, cuts, strict=True) if cut == g) for g in sorted(set(cuts))
    ]
    if kind == "names":
        return groups
    weights = [rng.uniform(0.01, 1) for _ in groups]
    return {group: clip * w / math.hypot(*weights) for group, w in zip(groups, weights, strict=True)}


WAYS = {
    "ghost": dict(norms="ghost", microbatch_size=4),
    "each": dict(norms="per_example", microbatch_size=4),
    "exact": dict(grid_spacing=2.0**-20, microbatch_size=1),
}


@pytest.mark.parametrize("way", WAYS)
def test_one_example_moves_groups_by_the_clip_norm_in_all(way):
    """Random models, groups and gradients of up to 1e15 clip norms: replacing an example by one that adds
    nothing moves the sum by at most clip_norm, and each group's sum by at most its own norm.
    """
    rng, tested, long = random.Random(7), 0, 0
    for case in range(60):
        torch.manual_seed(case)
        widths = [6, *(rng.randrange(2, 8) for _ in range(rng.randrange(2))), 3]
        model = nn.Sequential(
            *(
                layer
                for a, b in zip(widths, widths[1:])
                for layer in (nn.Linear(a, b, bias=rng.random() < 0.7), nn.Softsign())
            )
        )
        names = [name for name, _ in model.named_parameters()]
        x, y = 10.0 ** rng.uniform(-3, 15) * torch.randn(7, 6), torch.randint(0, 3, (7,))
        clip = 10.0 ** rng.uniform(-3, 3)
        how = WAYS[way] | dict(groups=grouped(rng, names, clip) if len(names) > 1 else "layer")
        groups = Groups.made(how["groups"], names, clip)

        def sums(x):
            clipped_sum_(model, lambda o, y: 1e3 * o[0, y].sum(), x, y, clip, **how)
            found = {name: held_sum(p).total.double() for name, p in model.named_parameters()}
            drop_sums(model.parameters())
            return found

        whole, without = sums(x), x.clone()
        without[(absent := rng.randrange(7))] = float("nan")
        assert torch.isfinite(x[absent]).all()
        moved = {name: whole[name] - other for name, other in sums(without).items()}
        spacing = how.get("grid_spacing", 1.0)
        coordinates = sum(part.numel() for part in moved.values())
        slack = spacing / 2 * math.sqrt(coordinates) if way == "exact" else 0.0
        total = spacing * math.sqrt(sum(float(part.square().sum()) for part in moved.values()))
        assert total <= clip * (1 + 2**-20) + slack, (case, groups)
        for number, norm in enumerate(groups.norms):
            own = spacing * math.sqrt(
                sum(float(part.square().sum()) for name, part in moved.items() if groups.of[name] == number)
            )
            assert own <= norm * (1 + 2**-20) + slack, (case, groups)
        tested, long = tested + 1, long + (total > 0.5 * clip)
    assert tested == 60 and long > 20


@pytest.mark.parametrize("groups", ["layer", ["0", ("2.weight", "2.bias")], {"0": 0.4, "2": 0.5}])
@pytest.mark.parametrize("way", WAYS)
def test_groups_are_clipped_as_a_loop_clips_them(way, groups):
    (x, y), model = data(), small_model()
    x = x[:20] * torch.logspace(-2, 2, 20).unsqueeze(1)
    made = Groups.made(groups, dict(model.named_parameters()), CLIP)
    wanted = {name: torch.zeros(p.shape, dtype=torch.float64) for name, p in model.named_parameters()}
    clipped = 0
    for a, b in zip(x, y):
        gradients = torch.autograd.grad(loss(model(a[None]), b[None]), list(model.parameters()))
        for number, norm in enumerate(made.norms):
            own = {name: g.double() for name, g in zip(wanted, gradients) if made.of[name] == number}
            length = math.sqrt(sum(float(g.square().sum()) for g in own.values()))
            clipped += length > norm
            for name, g in own.items():
                wanted[name] += g * min(1.0, norm / length)
    clipped_sum_(model, loss, x, y[:20], CLIP, groups=groups, **WAYS[way])
    assert 10 < clipped < 40
    spacing = WAYS[way].get("grid_spacing", 1.0)
    for name, p in model.named_parameters():
        assert torch.allclose(spacing * held_sum(p).total.double(), wanted[name], rtol=2e-5, atol=4e-5), name
    drop_sums(model.parameters())
    clipped_sum_(model, of_batch, (x, y[:20]), CLIP, groups=groups, microbatch_size=3)
    assert all(
        torch.allclose(held_sum(p).total, wanted[name], rtol=1e-5, atol=1e-6)
        for name, p in model.named_parameters()
    )


def test_an_example_that_is_not_finite_in_one_group_adds_to_none():
    (x, y), model = data(), small_model()

    class Wild(torch.autograd.Function):
        """Its gradient is infinite, so that only what comes before it is."""

        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, gradient):
            return gradient * float("inf")

    def wild(model, batch):
        return loss(model[2](Wild.apply(torch.tanh(model[0](batch[0])))), batch[1])

    clipped_sum_(model, wild, (x[:3], y[:3]), CLIP, groups="layer")
    assert held_sum(model[0].weight).examples == 3 and not sums_of(model).any()


def test_norms_of_groups_add_up_in_exact_arithmetic():
    rng = random.Random(3)
    for _ in range(2_000):
        clip, count = 10.0 ** rng.uniform(-150, 150), rng.randrange(1, 40)
        names = [f"{i}.weight" for i in range(count)]
        weights = [rng.uniform(0.01, 1) for _ in names]
        given = {name: clip * w / math.hypot(*weights) for name, w in zip(names, weights, strict=True)}
        for groups in (Groups.made("layer", names, clip), Groups.made(given, names, clip)):
            total = sum(Fraction(norm) ** 2 for norm in groups.norms)
            assert Fraction(clip) ** 2 * (1 - Fraction(1, 2**48)) < total <= Fraction(clip) ** 2
    assert Groups.made({"a": 0.6, "b": 0.8}, ["a", "b"], 1.0).norms == pytest.approx((0.6, 0.8))


@pytest.mark.parametrize(
    "groups, message",
    [
        (
            "layers",
            "groups is 'layers' but must be 'layer', groups of names, or clip norms of groups of names",
        ),
        (["0"], "2.weight is in 0 groups but must be in one"),
        (["0", "2", "2.bias"], "2.bias is in 2 groups but must be in one"),
        (["0", "2", "1"], "group 1 is without trained parameters but must have some"),
        (
            {"0": 0.5, "2": 0.4901},
            "root of the sum of the groups' squared clip norms is 0.70.* but must be at most clip_norm, 0.7",
        ),
        ({"0": 0.5, "2": 0.0}, "clip norm of a group is 0.0 but must be a finite number above 0"),
        ({"0": 0.5, "2": float("nan")}, "clip norm of a group is nan but must be a finite number above 0"),
    ],
)
def test_groups_that_are_wrong_are_refused(groups, message):
    (x, y), model = data(), small_model()
    for call in (
        lambda: clipped_sum_(model, loss, x, y, CLIP, groups=groups),
        lambda: clipped_sum_(model, of_batch, (x, y), CLIP, groups=groups),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    assert held_sum(model[0].weight) is None
