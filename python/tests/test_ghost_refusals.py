"""Ghost norms refuse layers that they do not know by name, models that mix examples, and what is wrong."""

import copy
import warnings

import pytest

torch = pytest.importorskip("torch")
from ghost_models import CLASSES, Attention, Places, Rms, clipped, frozen, looped, loss, made, taken
from torch import nn
from torch.nn import functional

from antinoise.torch import clipped_sum_
from antinoise.torch.ghost import parts
from antinoise.torch.held_sums import held_sum


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


class Keeping(nn.Module):
    """A normalisation that keeps a value with its weight, and a model whose loss depends on the value."""

    def __init__(self):
        super().__init__()
        self.norm, self.inner = Kept(6), nn.Linear(6, CLASSES)

    def forward(self, x):
        out = self.inner(self.norm(x))
        return out + self.norm.penalty * torch.arange(CLASSES)


class Kept(Rms):
    def forward(self, x):
        self.penalty = self.weight.square().sum()
        return super().forward(x)


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
    "keeping": (Keeping, VECTORS, "norm is a Kept but must be one that keeps nothing with a gradient"),
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
