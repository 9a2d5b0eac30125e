"""Ghost norms give the sums of a loop over examples, for every supported layer."""

import copy
import math

import pytest

torch = pytest.importorskip("torch")
from ghost_models import MODELS, clipped, looped, loss, made, median, taken
from torch import nn
from torch.nn import functional

from antinoise.torch import clipped_sum_
from antinoise.torch.ghost import parts
from antinoise.torch.ghost.made import Materialized
from antinoise.torch.ghost.matrices import Factors, GramPairs, MadeTwice, OuterProducts
from antinoise.torch.ghost.parts import TableAndMatrix, part_of
from antinoise.torch.ghost.room import KEPT, Room
from antinoise.torch.ghost.tables import Lookups
from antinoise.torch.norms import factors_for


@pytest.fixture(params=["what costs less", "made", "made twice", "pairs"])
def form(request, monkeypatch):
    """Forces one representation where both are possible, and counts its uses."""
    used = []

    def forced(name, factors, room, table=None):
        if factors.places == 1 or request.param == "what costs less":
            part = matrix(name, factors, room, table)
        elif request.param == "made":
            gradients = factors.made()
            if table is not None:
                table.add_into(gradients[:, 0], slice(0, factors.examples))
            part = Materialized(name, gradients)
        else:
            part = (
                MadeTwice(name, factors, table) if request.param == "made twice" else GramPairs(name, factors)
            )
        used.append(type(part))
        return part

    matrix = parts.matrix
    monkeypatch.setattr("antinoise.torch.ghost.parts.matrix", forced)
    return used


@pytest.mark.filterwarnings("ignore:Using padding=.same. with even kernel lengths")
@pytest.mark.parametrize("name", MODELS)
def test_sums_are_those_of_a_loop(name, form):
    model, x, y = made(name)
    gradients = looped(model, loss, x, y)
    clip = median(gradients)
    assert clip > 0.01
    for microbatch_size in (1, 4, 64):
        value = clipped_sum_(model, loss, x, y, clip, microbatch_size=microbatch_size, norms="ghost")
        assert torch.allclose(taken(model), clipped(gradients, clip), rtol=1e-9, atol=1e-12)
        assert torch.allclose(value, loss(model(x), y).double(), rtol=1e-9)
    assert form or name in ("biases alone",)


@pytest.mark.parametrize(
    "places, width, kept, kind",
    [
        (1, 64, KEPT, OuterProducts),
        (8, 64, KEPT, GramPairs),
        (30, 64, KEPT, Materialized),
        (60, 1500, KEPT, GramPairs),
        (60, 1500, KEPT + 2 * 4 * 1500**2, Materialized),
        (400, 1500, KEPT, Materialized),
        (400, 1500, 0, MadeTwice),
    ],
)
def test_gradients_are_made_where_that_costs_less(places, width, kept, kind):
    factors = Factors(torch.ones(2, 1, width, places), torch.ones(2, 1, width, places), width)
    part = parts.matrix("weight", factors, Room(kept))
    assert type(part) is kind
    assert torch.allclose(part.squares, torch.full((2,), float(width * places) ** 2, dtype=torch.float64))


@pytest.mark.parametrize("name", ["linear", "conv2d", "places", "text"])
def test_single_and_half_precision(name):
    for dtype, tolerance in ((torch.float32, 1e-5), (torch.bfloat16, 0.1)):
        model, x, y = made(name, dtype)
        gradients = looped(model, loss, x, y)
        clip = median(gradients)
        clipped_sum_(model, loss, x, y, clip, norms="ghost")
        found = taken(model)
        assert found.dtype == torch.float64
        assert (found - clipped(gradients, clip)).norm() <= tolerance * clip * len(x)
    model, x, y = made(name, torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        clipped_sum_(model, loss, x, y, clip, norms="ghost")
    assert (taken(model) - clipped(looped(model, loss, x, y), clip)).norm() <= 0.1 * clip * len(x)


@pytest.mark.parametrize("name", ["linear", "conv2d", "places", "text"])
def test_auto_is_ghost_and_each_is_close(name):
    model, x, y = made(name, torch.float32)
    sums = []
    for norms in ("auto", "ghost", "per_example"):
        clipped_sum_(model, loss, x, y, 0.3, norms=norms)
        sums.append(taken(model))
    assert torch.equal(sums[0], sums[1]) and not torch.equal(sums[0], sums[2])
    assert torch.allclose(sums[0], sums[2], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["linear", "conv2d", "norms", "places", "tied", "twice"])
def test_an_example_moves_the_sum_by_the_clip_norm_at_most(name, form):
    model, x, y = made(name, torch.float32, 20)
    x = 10 * x
    clipped_sum_(model, loss, x, y, 0.1, microbatch_size=8, norms="ghost")
    whole, gradients = taken(model), looped(model, loss, x, y)
    for absent in range(0, 20, 3):
        # The example is replaced by one that adds nothing; the others keep their positions.
        fewer = x.clone()
        fewer[absent] = float("nan")
        clipped_sum_(model, loss, fewer, y, 0.1, microbatch_size=8, norms="ghost")
        moved = whole - taken(model)
        assert moved.norm() <= 0.1 * (1 + 2**-20)
        wanted = clipped(gradients[absent : absent + 1], 0.1)
        assert wanted.norm() > 0 and torch.allclose(moved, wanted, rtol=1e-3, atol=1e-6)


def test_what_cancels_out_in_pairs_is_still_clipped():
    """Four places whose gradients sum to 2^-46 of their size: double precision loses that sum, which is a
    hundred clip norms long.
    """
    torch.manual_seed(3)
    a, g = torch.randn(1, 1, 40), torch.randn(1, 1, 30)
    above_a, above_g = (torch.nextafter(v, torch.full_like(v, 99)) for v in (a, g))
    activations = torch.stack([a, above_a, a, above_a], 3) * 2.0**28
    gradients = torch.stack([g, -g, -above_g, above_g], 3) * 2.0**28
    part = GramPairs("weight", Factors(activations, gradients, 40))
    # The differences are exact: integer multiples of a small power of two.
    exact = torch.outer((above_g - g)[0, 0].double(), (above_a - a)[0, 0].double()) * 2.0**56
    assert exact.norm() > 100
    factors = factors_for(part.squares.sqrt(), 1.0)
    assert float(factors) * exact.norm() <= 1
    sums = {"weight": torch.zeros(30, 40, dtype=torch.float64)}
    part.add_to(sums, factors, None)
    assert sums["weight"].norm() <= 1
    # A gradient that double precision loses entirely counts with the bound on the rounding of lengths and
    # terms.
    for inputs, places in ((2, 4096), (4096, 2)):
        a, g = torch.ones(1, 1, inputs, places), torch.ones(1, 1, 1, places)
        g[..., ::2] = -1
        part = GramPairs("weight", Factors(a, g, inputs))
        lengths, terms = (inputs + 1 + 2 * places + 1) * 2.0**-53, (places + 3) * 2.0**-53
        assert float(part.squares) >= inputs * places**2 * max(lengths, (terms * 2**22) ** 2)
    # Without cancellation the bound costs almost nothing.
    part = GramPairs("weight", Factors(torch.rand(5, 1, 40, 200), torch.rand(5, 1, 30, 200), 40))
    plain = (part.factors.gradients.double() @ part.factors.activations.double().mT).flatten(1).norm(dim=1)
    assert (part.squares.sqrt() >= plain).all() and (part.squares.sqrt() <= plain * (1 + 1e-9)).all()


def test_pairs_are_made_in_single_precision_where_they_are_as_long_as_their_pairs_say(monkeypatch):
    torch.manual_seed(4)
    factors = Factors(torch.randn(3, 1, 40, 9), torch.randn(3, 1, 30, 9), 40)
    exact = (factors.gradients.double() @ factors.activations.double().mT).squeeze(1)

    def added(scale):
        sums = {"weight": torch.zeros(30, 40, dtype=torch.float64)}
        GramPairs("weight", factors).add_to(sums, scale, None)
        return sums["weight"]

    scale = torch.tensor([0.5, 0.0, 0.25], dtype=torch.float64)
    in_single = (scale.view(-1, 1, 1) * factors.made().squeeze(1)).sum(0)
    wanted = (scale.view(-1, 1, 1) * exact).sum(0)
    assert torch.equal(added(scale), in_single) and not torch.equal(in_single, wanted)
    # The last example's gradient comes out longer, or not finite: it is computed once more in double
    # precision.
    plain = Factors.made_some
    for longer in (1 + 2.0**-22, math.inf):

        def made_longer(self, longer=longer):
            for some, gradients in plain(self):
                gradients[-1] *= longer
                yield some, gradients

        monkeypatch.setattr(Factors, "made_some", made_longer)
        found = added(scale)
        assert torch.allclose(found - 0.5 * factors.made()[0, 0], 0.25 * exact[2], rtol=0, atol=1e-12)


def test_a_sum_of_pairs_is_no_longer_than_the_clip_norm():
    """Random, cancelling and constant places of all sizes, and numbers outside the normal range."""
    torch.manual_seed(5)

    def one_of(values):
        return values[int(torch.randint(len(values), ()))]

    longest = 0.0
    for kind in ["random", "cancelling", "nearly", "of many sizes", "constant"] * 200:
        places, inputs, outputs = one_of([2, 3, 7, 64]), one_of([1, 5, 100]), one_of([1, 3, 80])
        a, g = (torch.randn(1, 1, n, places) * 2.0 ** one_of([-140, -60, 0, 60]) for n in (inputs, outputs))
        half = places // 2
        if kind in ("cancelling", "nearly"):
            a[..., half : 2 * half], g[..., half : 2 * half] = a[..., :half], -g[..., :half]
        if kind == "nearly":
            a[..., half:] = torch.nextafter(a[..., half:], torch.tensor(math.inf))
        if kind == "of many sizes":
            a, g = (v * 2.0 ** torch.randint(-20, 20, v.shape) for v in (a, g))
        if kind == "constant":
            a, g = torch.full_like(a, a.max()), torch.full_like(g, g.max())
        part = GramPairs("weight", Factors(a, g, inputs))
        clip = float(part.squares.sqrt()) * one_of([1e-6, 0.5, 1, 2])
        if 0 < clip < math.inf:
            sums = {"weight": torch.zeros(outputs, inputs, dtype=torch.float64)}
            part.add_to(sums, factors_for(part.squares.sqrt(), clip), None)
            longest = max(longest, float(sums["weight"].norm()) / clip)
    assert 1 - 2.0**-19 < longest < 1 - 2.0**-21


def test_a_table_that_cancels_its_matrix_is_still_clipped():
    """The gradient of the head is the opposite of the embedding's, up to the last bits of single
    precision."""
    torch.manual_seed(3)
    row, entries = torch.tensor([[1, 3, 1]]), torch.randn(1, 3, 40) * 2.0**28
    above = torch.nextafter(entries, torch.full_like(entries, 2.0**40))
    # One place for each look-up: minus one where the table has the row.
    gradients = -nn.functional.one_hot(row, 5).to(torch.float32).mT.unsqueeze(1)
    factors = Factors(above.mT.unsqueeze(1).contiguous(), gradients, 40)
    exact = torch.zeros(5, 40, dtype=torch.float64)
    exact.index_add_(0, row[0], entries[0].double() - above[0].double())
    for kind in (GramPairs, Materialized):
        part = part_of("weight", [factors, Lookups(row, entries, 5)], Room(0))
        if kind is Materialized:
            part = part_of("weight", [factors.made().flatten(1), Lookups(row, entries, 5)], Room(0))
        assert isinstance(part, (kind, TableAndMatrix))
        scale = factors_for(part.squares.sqrt(), 1.0)
        sums = {"weight": torch.zeros(5, 40, dtype=torch.float64)}
        part.add_to(sums, scale, None)
        assert exact.norm() > 100 and sums["weight"].norm() <= 1
    # Without cancellation the bound costs almost nothing, and the length is that of the sum.
    factors = Factors(torch.rand(6, 1, 40, 6), torch.rand(6, 1, 5, 6), 40)
    lookups = Lookups(torch.randint(0, 5, (6, 4)), torch.rand(6, 4, 40), 5)
    part = part_of("weight", [factors, lookups], Room(0))
    assert isinstance(part, TableAndMatrix)
    plain = (factors.gradients.double() @ factors.activations.double().mT).squeeze(1)
    for i, j in [(i, j) for i in range(6) for j in range(4)]:
        plain[i, lookups.row[i, j]] += lookups.gradients[i, j].double()
    lengths = plain.flatten(1).norm(dim=1)
    assert (part.squares.sqrt() >= lengths).all() and (part.squares.sqrt() <= lengths * (1 + 1e-9)).all()
    sums, weights = {"weight": torch.zeros(5, 40, dtype=torch.float64)}, torch.rand(6, dtype=torch.float64)
    kept = torch.tensor([True, False, True, True, False, True])
    part.add_to(sums, torch.where(kept, weights, 0), kept)
    assert torch.allclose(sums["weight"], torch.einsum("i,ijk->jk", weights * kept, plain), rtol=1e-12)


def test_what_is_not_finite_adds_nothing(form):
    for name in ("linear", "conv2d", "places", "norms"):
        model, x, y = made(name)
        gradients = looped(model, loss, x, y)
        x[3, 0], x[0, -1] = float("nan"), float("inf")
        clipped_sum_(model, loss, x, y, 0.3, microbatch_size=5, norms="ghost")
        kept = [i for i in range(13) if i not in (0, 3)]
        assert torch.allclose(taken(model), clipped(gradients[kept], 0.3), rtol=1e-9, atol=1e-12), name


def test_nothing_is_left_behind():
    model, x, y = made("conv2d")
    before = copy.deepcopy(model.state_dict())
    parameters, state = dict(model.named_parameters()), torch.get_rng_state()
    next(iter(parameters.values())).grad = marked = torch.ones_like(next(iter(parameters.values())))

    def checked():
        assert {n: id(p) for n, p in model.named_parameters()} == {n: id(p) for n, p in parameters.items()}
        assert all(not m._forward_hooks and not m._forward_pre_hooks for m in model.modules())
        assert all(torch.equal(before[n], p) for n, p in model.state_dict().items()) and torch.equal(
            state, torch.get_rng_state()
        )
        assert torch.equal(marked, torch.ones_like(marked)) and all(
            p.grad is None for p in list(parameters.values())[1:]
        )

    clipped_sum_(model, loss, x, y, 1.0, norms="ghost")
    checked()
    with torch.no_grad():
        clipped_sum_(model, loss, x, y, 1.0, norms="ghost")
    checked()
    with pytest.raises(ZeroDivisionError):
        clipped_sum_(model, lambda a, b: 1 / 0, x, y, 1.0, norms="ghost")
    checked()
    # In the middle of a layer.
    with pytest.raises(RuntimeError):
        clipped_sum_(model, loss, x[..., :1, :1], y, 1.0, norms="ghost")
    checked()


def test_hooks_of_the_user_are_seen_and_dropout_is_drawn():
    model, x, y = made("linear")
    model[0].register_forward_pre_hook(lambda module, args: (2 * args[0],))
    model[0].register_forward_hook(lambda module, args, output: output * 3)
    gradients = looped(model, loss, x, y)
    clipped_sum_(model, loss, x, y, 0.3, norms="ghost")
    assert torch.allclose(taken(model), clipped(gradients, 0.3), rtol=1e-9, atol=1e-12)
    model.insert(1, nn.Dropout(0.5))
    sums = []
    for _ in range(2):
        clipped_sum_(model, loss, x, y, 0.3, norms="ghost")
        sums.append(taken(model))
    assert not torch.allclose(*sums, rtol=0.01)
