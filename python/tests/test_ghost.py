"""Ghost norms give the sums of a loop over examples, for every supported layer; other layers are refused by
name.
"""

import copy
import math
import warnings
from contextlib import suppress

import pytest

torch = pytest.importorskip("torch")
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from antinoise.torch import clipped_sum_
from antinoise.torch.ghost import parts
from antinoise.torch.ghost.made import Materialized
from antinoise.torch.ghost.matrices import Factors, GramPairs, MadeTwice, OuterProducts
from antinoise.torch.ghost.parts import TableAndMatrix, part_of
from antinoise.torch.ghost.room import KEPT, Room
from antinoise.torch.ghost.tables import Lookups
from antinoise.torch.held_sums import drop_sums, held_sum
from antinoise.torch.norms import factors_for

loss = functional.cross_entropy
CLASSES = 3


class Mean(nn.Module):
    """The mean over places."""

    def forward(self, x):
        return x.flatten(2).mean(2) if x.dim() > 2 else x


class Places(nn.Module):
    """Swaps features and places: (examples, features, places) to (examples, places, features)."""

    def forward(self, x):
        return x.flatten(2).mT


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.out = nn.Linear(6, 6), nn.Linear(6, CLASSES)

    def forward(self, x):
        # The layer changes its output in place: the gradient is that of the output before the change.
        return self.out(torch.tanh(self.inner(x).add_(x)))


class Text(nn.Module):
    """Tokens and their positions; one row of the table is for padding."""

    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(7, 5, padding_idx=0), nn.Embedding(9, 5)
        self.norm, self.mix = nn.LayerNorm(5), nn.Linear(5, CLASSES)

    def forward(self, x):
        places = torch.arange(x.shape[1]).expand(x.shape)
        return self.mix(self.norm(self.tokens(x) + self.places(places))).mean(1)


class Rms(nn.Module):
    """The mean square normalisation of a transformer, whose weights begin at 0."""

    def __init__(self, width):
        super().__init__()
        self.weight, self.variance_epsilon = nn.Parameter(torch.linspace(-0.2, 0.2, width)), 1e-6

    def forward(self, x):
        return (1 + self.weight) * x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.variance_epsilon)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(6, 6), nn.Linear(6, 6)
        self.last.weight = self.first.weight

    def forward(self, x):
        return self.last(torch.tanh(self.first(x)))


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(6, 6)

    def forward(self, x):
        return self.inner(torch.tanh(self.inner(x)))


class LanguageModel(nn.Module):
    """Its head is its table of tokens, twice looked up; one look-up of positions serves all examples."""

    def __init__(self, places=6, norm=nn.Identity):
        super().__init__()
        self.tokens, self.places = nn.Embedding(7, 5, padding_idx=0), nn.Embedding(places, 5)
        self.norm, self.inner = norm(5), nn.Linear(5, 5)
        self.head = nn.Linear(5, 7, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, x):
        x = self.tokens(x) + self.places(torch.arange(x.shape[1])[None]) + self.tokens(x.flip(1)) / 2
        return self.head(self.norm(torch.tanh(self.inner(x)))).mean(1)[:, :CLASSES]


class SharedNorm(nn.Module):
    """One normalisation at two places, whose bias is that of a linear layer too."""

    def __init__(self):
        super().__init__()
        self.norm, self.inner, self.out = nn.LayerNorm(6), nn.Linear(6, 6), nn.Linear(6, CLASSES)
        self.inner.bias = self.norm.bias

    def forward(self, x):
        return self.out(self.norm(torch.tanh(self.inner(self.norm(x)))))


class Doubled(nn.Linear):
    def forward(self, x):
        return 2 * super().forward(x)


class Same(nn.Linear):
    """A subclass that computes what Linear does."""


class Scaled(nn.Embedding):
    """Looks up other rows than its input, and scales them."""

    def forward(self, x):
        return super().forward((x + 1) % self.num_embeddings) * 3


class Attention(nn.Module):
    """Attention between the places of an example, some of them masked."""

    def __init__(self, batch_first=True, **how):
        super().__init__()
        self.attention, self.batch_first = (
            nn.MultiheadAttention(6, 2, batch_first=batch_first, **how),
            batch_first,
        )
        self.out = nn.Linear(6, CLASSES)

    def forward(self, x):
        x = x if self.batch_first else x.transpose(0, 1)
        mask = torch.ones(4, 4, dtype=torch.bool).triu(1)
        found, _ = self.attention(x, x, x, attn_mask=mask, need_weights=not self.batch_first)
        found = found + x
        return self.out(found if self.batch_first else found.transpose(0, 1)).mean(1)


def convolutions(kind, *shape, **how):
    out = kind(4, 6, 3, **how)
    return nn.Sequential(out, nn.Tanh(), nn.GroupNorm(2, 6), Mean(), nn.Linear(6, CLASSES)), (4, *shape)


def frozen(model, *names):
    for name, p in model.named_parameters():
        p.requires_grad_(name not in names)
    return model


def images(*layers):
    return nn.Sequential(*layers), (4, 6, 6)


# Supported models, and an example's shape (integers below 7 where marked).
MODELS = {
    "linear": lambda: (nn.Sequential(nn.Linear(6, 9), nn.Tanh(), nn.Linear(9, CLASSES)), (6,)),
    "without biases": lambda: (
        nn.Sequential(nn.Linear(6, 9, bias=False), nn.Tanh(), nn.Linear(9, CLASSES, bias=False)),
        (6,),
    ),
    "biases alone": lambda: (
        frozen(nn.Sequential(nn.Linear(6, 9), nn.Tanh(), nn.Linear(9, CLASSES)), "0.weight", "2.weight"),
        (6,),
    ),
    "a frozen layer": lambda: (
        frozen(nn.Sequential(nn.Linear(6, 9), nn.Tanh(), nn.Linear(9, CLASSES)), "2.weight", "2.bias"),
        (6,),
    ),
    "places": lambda: (
        nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, CLASSES), Places(), Mean()),
        (4, 6),
    ),
    "in place": lambda: (
        nn.Sequential(nn.Linear(6, 9), nn.ReLU(inplace=True), nn.Linear(9, CLASSES), nn.Softplus()),
        (6,),
    ),
    "a residual": lambda: (Residual(), (6,)),
    "conv1d": lambda: convolutions(nn.Conv1d, 9, stride=2, padding=1),
    "conv2d": lambda: convolutions(nn.Conv2d, 6, 7, padding=(1, 0), dilation=2),
    "conv3d": lambda: convolutions(nn.Conv3d, 4, 5, 3, padding=1, groups=2, bias=False),
    "of one place": lambda: convolutions(nn.Conv2d, 3, 3, groups=2),
    "same": lambda: images(nn.Conv2d(4, 4, (2, 3), padding="same"), nn.Tanh(), Mean(), nn.Linear(4, CLASSES)),
    "reflect": lambda: images(
        nn.Conv2d(4, 4, 3, padding=(2, 1), padding_mode="reflect"), nn.Tanh(), Mean(), nn.Linear(4, CLASSES)
    ),
    "circular": lambda: images(
        nn.Conv2d(4, 4, 3, padding="same", padding_mode="circular"), nn.Tanh(), Mean(), nn.Linear(4, CLASSES)
    ),
    "by channel": lambda: images(
        nn.Conv2d(4, 8, 3, groups=4, stride=(2, 1)), nn.Tanh(), Mean(), nn.Linear(8, CLASSES)
    ),
    "norms": lambda: images(
        nn.GroupNorm(4, 4),
        nn.LayerNorm((6, 6)),
        nn.GroupNorm(1, 4, affine=False),
        Mean(),
        nn.Linear(4, CLASSES),
    ),
    "a norm of vectors": lambda: (
        nn.Sequential(nn.Linear(6, 4), nn.LayerNorm(4, bias=False), nn.GroupNorm(2, 4), nn.Linear(4, 3)),
        (6,),
    ),
    "scales": lambda: (
        nn.Sequential(nn.Linear(6, 5), nn.RMSNorm(5), nn.Linear(5, CLASSES), Rms(3), Places(), Mean()),
        (4, 6),
    ),
    "a scale of vectors": lambda: (nn.Sequential(Rms(6), nn.Linear(6, CLASSES)), (6,)),
    "text": lambda: (Text(), (9,)),
    "tied": lambda: (nn.Sequential(Tied(), nn.Linear(6, CLASSES)), (6,)),
    "twice": lambda: (nn.Sequential(Twice(), nn.Linear(6, CLASSES)), (6,)),
    "twice at places": lambda: (nn.Sequential(Twice(), Places(), Mean(), nn.Linear(6, CLASSES)), (4, 6)),
    "convolutions twice": lambda: images(
        *[nn.Conv2d(4, 4, 3, groups=2, padding=1)] * 2, nn.Tanh(), Mean(), nn.Linear(4, CLASSES)
    ),
    "subclasses": lambda: (nn.Sequential(Same(6, 6), Doubled(6, 6), nn.Linear(6, CLASSES)), (6,)),
    "scaled tokens": lambda: (
        nn.Sequential(Scaled(7, 6, padding_idx=3), Doubled(6, CLASSES), Places(), Mean()),
        (5,),
    ),
    "attention": lambda: (Attention(), (4, 6)),
    "attention with places first": lambda: (Attention(False, bias=False), (4, 6)),
    "attention with frozen products": lambda: (frozen(Attention(), "attention.in_proj_weight"), (4, 6)),
    "an encoder": lambda: (
        nn.Sequential(
            nn.TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 8, dropout=0, batch_first=True), 2),
            nn.Linear(6, CLASSES),
            Places(),
            Mean(),
        ),
        (4, 6),
    ),
    "a shared norm": lambda: (SharedNorm(), (6,)),
    "a language model": lambda: (LanguageModel(), (6,)),
    "a language model of one place": lambda: (LanguageModel(), (1,)),
    "a language model with norms": lambda: (LanguageModel(9, nn.LayerNorm), (9,)),
}
TOKENS = {name for name in MODELS if name in ("text", "scaled tokens") or name.startswith("a language model")}


def made(name, dtype=torch.float64, examples=13):
    torch.manual_seed(1)
    model, shape = MODELS[name]()
    x = (
        torch.randint(0, 7, (examples, *shape))
        if name in TOKENS
        else torch.randn(examples, *shape, dtype=dtype)
    )
    return model.to(dtype), x, torch.randint(0, CLASSES, (examples,))


def looped(model, loss, x, y):
    """Per-example gradients, by one backward pass for each example."""
    found = []
    trained = [p for p in model.parameters() if p.requires_grad]
    for a, b in zip(x, y):
        gradients = torch.autograd.grad(loss(model(a[None]), b[None]), trained, materialize_grads=True)
        found.append(torch.cat([g.reshape(-1) for g in gradients]).double())
    return torch.stack(found)


def clipped(gradients, clip):
    lengths = gradients.norm(dim=1, keepdim=True)
    return (gradients * torch.clamp((1 - 2**-20) * clip / lengths, max=1)).sum(0)


def median(gradients):
    """A clip norm that half of the gradients exceed."""
    return float(gradients.norm(dim=1).median())


def taken(model, trained=None):
    """The sum that clipping left, removed from the parameters."""
    trained = trained or [p for p in model.parameters() if p.requires_grad]
    found = torch.cat([held_sum(p).total.reshape(-1) for p in trained])
    drop_sums(trained)
    return found


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
    "places, width, kind",
    [
        (1, 64, OuterProducts),
        (8, 64, GramPairs),
        (30, 64, Materialized),
        (60, 1500, GramPairs),
        (400, 1500, Materialized),
    ],
)
def test_gradients_are_made_where_that_costs_less(places, width, kind):
    factors = Factors(torch.ones(2, 1, width, places), torch.ones(2, 1, width, places), width)
    part = parts.matrix("weight", factors, Room(KEPT))
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


class Outside(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(6, 6)

    def forward(self, x):
        return self.inner(x) + x @ self.inner.weight


class Changed(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(6, 6)

    def forward(self, x):
        x = x.clone()
        out = self.inner(x)
        x.mul_(2)
        return out + x


class Unused(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.other = nn.Linear(6, 6), nn.Linear(6, 6)

    def forward(self, x):
        self.other(x)
        return self.inner(x)


class Turned(nn.Module):
    """Places come first: if there are as many places as examples in a portion, shapes cannot show it."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(6, CLASSES)

    def forward(self, x):
        return self.inner(x.transpose(0, 1)).mean(0)


class Positions(nn.Module):
    """One embedding of positions for all examples."""

    def __init__(self):
        super().__init__()
        self.places, self.inner = nn.Embedding(8, 6), nn.Linear(6, CLASSES)

    def forward(self, x):
        return self.inner(x + self.places(torch.arange(8))).mean(1)


class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(6))

    def forward(self, x):
        return x * self.scale


class Curved(Rms):
    """Like a normalisation, but its weight is no scale."""

    def forward(self, x):
        return torch.tanh(super().forward(x))


class Crossed(nn.Module):
    """Attention of two inputs: their products are with parts of one matrix."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(6, 2, batch_first=True)

    def forward(self, x):
        return self.attention(x, torch.tanh(x), x)[0].mean(1)[:, :CLASSES]


class Computed(nn.Module):
    """A weight that is computed from a parameter, with a trained bias."""

    def __init__(self):
        super().__init__()
        self.v, self.bias = nn.Parameter(torch.randn(6, 6)), nn.Parameter(torch.zeros(6))

    def forward(self, x):
        return functional.linear(x, torch.tanh(self.v), self.bias)


class Gated(nn.RMSNorm):
    """A normalisation with a second input."""

    def forward(self, x, gate=None):
        return super().forward(x) * (1 if gate is None else torch.sigmoid(gate))


class WithGate(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.inner = Gated(6), nn.Linear(6, CLASSES)

    def forward(self, x):
        return self.inner(self.norm(x, x))


class Swapped(nn.Module):
    """A layer that is called with other parameters."""

    def __init__(self):
        super().__init__()
        self.inner, self.scale = nn.Linear(6, CLASSES), nn.Parameter(torch.ones(()))

    def forward(self, x):
        return torch.func.functional_call(self.inner, {"weight": self.inner.weight * self.scale}, x)


VECTORS, PLACES = (13, 6), (13, 8, 6)
REFUSED = {
    "computed": (Computed, VECTORS, "model is a Computed but must be one of Linear, Conv1d"),
    "gated": (WithGate, VECTORS, "norm is a Gated but must be called with one input"),
    "swapped": (Swapped, VECTORS, "inner is a Linear but must be called with its own parameters"),
    "crossed": (
        Crossed,
        PLACES,
        "attention is a MultiheadAttention but must be one of Linear, Conv1d",
    ),
    "outside": (Outside, VECTORS, "inner.weight is used outside of its module but must be used only within"),
    "changed": (
        Changed,
        VECTORS,
        "inner is a Linear but must be given an input that is not changed in place",
    ),
    "unused": (Unused, VECTORS, "other is a Linear but must be one whose output the loss depends on"),
    "turned": (
        Turned,
        PLACES,
        "inner is a Linear but must be called with the examples in the first dimension",
    ),
    "positions": (
        Positions,
        PLACES,
        "places is a Embedding but must be called with the examples in the first dimension",
    ),
    "own": (
        lambda: nn.Sequential(nn.Linear(6, 6), Own()),
        VECTORS,
        "1 is a Own but must be one of Linear, Conv1d",
    ),
    "no scale": (
        lambda: nn.Sequential(nn.Linear(6, 6), Curved(6), nn.Linear(6, 3)),
        VECTORS,
        "1 is a Curved but must be one of Linear, Conv1d",
    ),
    "a slope": (
        lambda: nn.Sequential(nn.Linear(6, 6), nn.PReLU()),
        VECTORS,
        "1 is a PReLU but must be one of Linear, Conv1d",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_ghost_norms_do_not_know_is_refused_by_name_and_made_one_by_one(name):
    kind, shape, message = REFUSED[name]
    torch.manual_seed(1)
    model, x, y = kind().double(), torch.randn(shape, dtype=torch.float64), torch.randint(0, CLASSES, (13,))
    for microbatch_size in (8, 13):
        with pytest.raises(ValueError, match=message):
            clipped_sum_(model, loss, x, y, 0.3, microbatch_size=microbatch_size, norms="ghost")
    assert not any(held_sum(p) for p in model.parameters())
    if name == "changed":
        return  # PyTorch has no gradient for it either.
    trained = [p for n, p in model.named_parameters() if not n.startswith("other")]
    wanted = []
    for a, b in zip(x, y):
        gradients = torch.autograd.grad(loss(model(a[None]), b[None]), trained, materialize_grads=True)
        wanted.append(torch.cat([g.reshape(-1) for g in gradients]))
    with pytest.warns(
        UserWarning, match=f'norms="auto" makes the gradients.* one by one, which is slower: .*{message}'
    ) as warned:
        clipped_sum_(model, loss, x, y, 0.3, microbatch_size=8)
    assert [warning.filename for warning in warned] == [__file__]
    found = taken(model, trained)
    assert torch.allclose(found, clipped(torch.stack(wanted), 0.3), rtol=1e-9, atol=1e-12)
    with warnings.catch_warnings():
        # The warning comes once per model, and not if norms="per_example" was asked for.
        warnings.simplefilter("error")
        clipped_sum_(model, loss, x, y, 0.3, microbatch_size=8)
        assert torch.equal(found, taken(model, trained))
        clipped_sum_(kind().double(), loss, x, y, 0.3, microbatch_size=8, norms="per_example")
    with pytest.warns(UserWarning, match=message):
        clipped_sum_(kind().double(), loss, x, y, 0.3, microbatch_size=8)


class Energy(nn.Module):
    """A gradient with respect to the input, which the loss depends on."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(6, CLASSES)

    def forward(self, x):
        x = x.detach().requires_grad_()
        energy = torch.tanh(self.inner(x)).sum()
        return torch.autograd.grad(energy, x, create_graph=True)[0][:, :CLASSES]


def test_a_model_that_takes_gradients_itself_is_refused():
    model, x, y = Energy().double(), torch.randn(VECTORS, dtype=torch.float64), torch.arange(13) % CLASSES
    with pytest.raises(
        ValueError, match="inner is a Linear but must be one whose gradient is not taken within"
    ):
        clipped_sum_(model, loss, x, y, 0.3, norms="ghost")
    gradients = looped(model, loss, x, y)
    clipped_sum_(model, loss, x, y, 0.3, norms="per_example", microbatch_size=1)
    assert torch.allclose(taken(model), clipped(gradients, 0.3), rtol=1e-9, atol=1e-12)


def test_a_module_with_a_forward_of_its_own_is_followed_by_its_calls():
    model, x, y = made("linear")
    plain = model[0].forward
    model[0].forward = lambda x: 3 * plain(x) if x.dim() else x
    gradients = looped(model, loss, x, y)
    clipped_sum_(model, loss, x, y, 0.3, norms="ghost")
    assert torch.allclose(taken(model), clipped(gradients, 0.3), rtol=1e-9, atol=1e-12)


def test_a_call_that_is_recomputed_leaves_the_parameters():
    """The recomputation ends within the layer, without its hooks."""
    model, x, y = made("linear")
    inner, parameters = model[2], dict(model.named_parameters())

    class Recomputed(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = model[0], inner

        def forward(self, x):
            return checkpoint(self.last, torch.tanh(self.first(x)), use_reentrant=False)

    recomputed = Recomputed()
    for _ in range(2):
        with suppress(ValueError, RuntimeError):
            clipped_sum_(recomputed, loss, x, y, 0.3, norms="ghost")
            taken(recomputed)
    assert all(parameters[name] is p for name, p in model.named_parameters())
    assert len(list(recomputed.parameters())) == 4


class Kept(nn.Module):
    """A layer of bare parameters that keeps a value for later."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(6, CLASSES))

    def forward(self, x):
        self.penalty = self.weight.square().sum()
        return x @ self.weight


class Penalized(nn.Module):
    """Logits that what the layer kept makes larger, by the first feature of the example."""

    def __init__(self, kept):
        super().__init__()
        self.kept = kept

    def forward(self, x):
        logits = self.kept(x)
        return logits * (1 + self.kept.penalty * x[:, :1].square())


@pytest.mark.filterwarnings("ignore:norms=")
@pytest.mark.parametrize("kind", [lambda: Kept(), lambda: KeptElsewhere()])
def test_a_penalty_that_a_module_keeps_reaches_its_own_example_alone(kind):
    """Modules of bare parameters run once for each example; the last one's penalty would be that of all."""
    torch.manual_seed(3)
    model, x, y = Penalized(kind()), torch.randn(13, 6), torch.arange(13) % CLASSES
    gradients = looped(model, loss, x, y)
    clipped_sum_(model, loss, x, y, 0.3)
    assert torch.allclose(taken(model), clipped(gradients, 0.3), rtol=1e-6, atol=1e-7)
    with pytest.raises(ValueError, match="keeps nothing with a gradient|but must be"):
        clipped_sum_(model, loss, x, y, 0.3, norms="ghost")


somewhere = [None]


class KeptElsewhere(Kept):
    """As `Kept`, but the value is kept outside of the module."""

    def forward(self, x):
        somewhere[0] = self.weight.square().sum()
        return x @ self.weight

    @property
    def penalty(self):
        return somewhere[0]


class Annealed(Kept):
    """As `Kept`, with a layer of its own, and a penalty whose weight changes."""

    def __init__(self):
        super().__init__()
        self.inner, self.share = nn.Linear(6, 6), 0.0

    def forward(self, x):
        self.penalty = self.share * self.weight.square().sum()
        return self.inner(x) @ self.weight


@pytest.mark.filterwarnings("ignore:norms=")
def test_a_penalty_that_begins_later_is_not_lost():
    torch.manual_seed(3)
    kept = Annealed()
    model, x, y = Penalized(kept), torch.randn(13, 6), torch.arange(13) % CLASSES
    for kept.share in (0.0, 1.0):
        gradients = looped(model, loss, x, y)
        clipped_sum_(model, loss, x, y, 0.3)
        assert torch.allclose(taken(model), clipped(gradients, 0.3), rtol=1e-6, atol=1e-7)


class Checkpointed(nn.Module):
    """Two layers that are recomputed in the backward pass."""

    def __init__(self, reentrant):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, CLASSES))
        self.reentrant = reentrant

    def forward(self, x):
        return checkpoint(self.layers, x.detach().requires_grad_(), use_reentrant=self.reentrant)


@pytest.mark.filterwarnings("ignore:norms=", "ignore:examples are taken")
@pytest.mark.parametrize("norms", ["auto", "per_example"])
def test_reentrant_checkpointing_is_refused_and_the_other_is_taken(norms):
    torch.manual_seed(3)
    x, y = torch.randn(13, 6), torch.arange(13) % CLASSES
    with pytest.raises(ValueError, match="use_reentrant=False"):
        clipped_sum_(Checkpointed(True), loss, x, y, 0.3, norms=norms)
    model = Checkpointed(False)
    gradients = looped(model, loss, x, y)
    clipped_sum_(model, loss, x, y, 0.3, norms=norms)
    assert torch.allclose(taken(model), clipped(gradients, 0.3), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("norms", ["ghost", "per_example"])
@pytest.mark.parametrize("what", ["parameter", "frozen", "data"])
def test_what_a_forward_pass_writes_into_the_model_is_refused(what, norms):
    class Writing(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.kept = nn.Linear(6, CLASSES), nn.Parameter(torch.ones(6), what == "parameter")
            self.register_buffer("mean", torch.zeros(6))
            self.inner.weight.requires_grad_(what != "parameter")

        def forward(self, x):
            with torch.no_grad():
                if what == "data":
                    self.mean.data.mul_(0.9).add_(x.detach().mean(0))
                else:
                    self.kept.add_(x.detach().mean())
            return self.inner(x)

    x, y = torch.randn(13, 6), torch.arange(13) % CLASSES
    name = "buffer mean" if what == "data" else "parameter kept"
    # A trained parameter that is written cannot be differentiated either.
    with pytest.raises(ValueError, match=f"{name} is changed by the forward pass|kept is"):
        clipped_sum_(Writing(), loss, x, y, 0.3, norms=norms, microbatch_size=1)


def test_examples_are_tested_with_one_that_differs():
    """The first and the last example are equal, or only their labels differ."""
    for equal_labels in (True, False):
        model, (x, y) = Mixed(), (torch.randn(VECTORS), torch.arange(13) % CLASSES)
        x[-1] = x[0]
        if equal_labels:
            y[-1] = y[0]
        with pytest.raises(ValueError, match="whose examples change each other's"):
            clipped_sum_(model, loss, x, y, 0.3, norms="ghost")
    # A hook that mixes examples, added after the first step.
    model, x, y = made("linear", torch.float32)
    clipped_sum_(model, loss, x, y, 0.3, norms="ghost")
    model[0].register_forward_hook(lambda module, args, output: output - output.mean(0, keepdim=True))
    with pytest.raises(ValueError, match="whose examples change each other's"):
        clipped_sum_(model, loss, x, y, 0.3, norms="ghost")


class Mixed(nn.Module):
    """One example's output depends on the others; with a single example the dependence does not show."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(6, CLASSES)

    def forward(self, x):
        return self.inner(x - x.mean(0, keepdim=True).detach() / 2)


def test_a_model_that_mixes_examples_is_refused():
    torch.manual_seed(1)
    model, x, y = Mixed(), torch.randn(13, 6), torch.randint(0, CLASSES, (13,))
    with pytest.raises(ValueError, match="model is a Mixed whose examples change each other's output"):
        clipped_sum_(model, loss, x, y, 0.3, norms="ghost")
    # The model does not count as treating examples independently because the test showed no dependence, or
    # because a part of it passed.
    fresh = Mixed()
    clipped_sum_(fresh, loss, x[:1].expand(13, 6), y, 0.3, norms="ghost")
    changed = nn.Sequential(nn.Linear(6, 6), nn.Linear(6, 6))
    clipped_sum_(changed, loss, x, y, 0.3, norms="ghost")
    changed[1] = Mixed()
    for mixed in (fresh, changed):
        with pytest.raises(ValueError, match="whose examples change each other's output"):
            clipped_sum_(mixed, loss, x, y, 0.3, norms="ghost")
    # Examples taken one by one cannot mix.
    with pytest.warns(UserWarning, match="model is a Mixed whose examples change each other's output"):
        clipped_sum_(model, loss, x, y, 0.3)
    found = taken(model)
    clipped_sum_(model, loss, x, y, 0.3, norms="per_example")
    assert torch.equal(found, taken(model))
    clipped_sum_(model, loss, x, y, 0.3, microbatch_size=1, norms="ghost")
    assert torch.allclose(found, taken(model), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("norms", ["ghost", "per_example"])
def test_no_examples_and_one(norms):
    model, x, y = made("conv2d")
    clipped_sum_(model, loss, x[:0], y[:0], 0.3, norms=norms)
    assert taken(model).abs().max() == 0
    clipped_sum_(model, loss, x[:1], y[:1], 0.3, norms=norms)
    assert torch.allclose(
        taken(model), clipped(looped(model, loss, x[:1], y[:1]), 0.3), rtol=1e-9, atol=1e-12
    )


def test_what_is_wrong_is_named():
    (model, x, y), (text, tokens, _) = made("linear"), made("text")
    limited, scaled = copy.deepcopy(text), copy.deepcopy(text)
    limited.tokens.max_norm, scaled.places.scale_grad_by_freq = 1.0, True
    turned = nn.Sequential(nn.Linear(6, CLASSES), nn.Flatten(0))
    over_examples = nn.Sequential(nn.Linear(6, 6), nn.LayerNorm((8, 6)))
    for wrong, message in (
        (
            lambda: clipped_sum_(model, loss, x, y, 1.0, norms="gram"),
            "norms is 'gram' but must be 'auto', 'ghost' or 'per_example'",
        ),
        (
            lambda: clipped_sum_(limited, loss, tokens, y, 1.0, norms="ghost"),
            "tokens is a Embedding with max_norm but must be without: it shortens the rows",
        ),
        (
            lambda: clipped_sum_(scaled, loss, tokens, y, 1.0, norms="ghost"),
            "places is a Embedding but must be one without max_norm",
        ),
        (
            lambda: clipped_sum_(turned.double(), loss, x, y, 1.0, norms="ghost"),
            "output of model is one without the examples in the first",
        ),
        (
            lambda: clipped_sum_(over_examples.double(), loss, x, y, 1.0, microbatch_size=8, norms="ghost"),
            "Given normalized_shape",
        ),
        (
            lambda: clipped_sum_(model, lambda a, b: a - 1, x, y, 1.0, norms="ghost"),
            r"loss is of shape \(1, 3\) but must be one number",
        ),
    ):
        with pytest.raises((ValueError, RuntimeError), match=message):
            wrong()
