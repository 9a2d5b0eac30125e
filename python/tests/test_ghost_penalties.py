"""Gradients from elsewhere than the output: penalties that modules keep, and recomputed calls."""

from contextlib import suppress

import pytest

torch = pytest.importorskip("torch")
from ghost_models import CLASSES, clipped, looped, loss, made, taken
from torch import nn
from torch.utils.checkpoint import checkpoint

from antinoise.torch import clipped_sum_


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
    model, x, y = Energy().double(), torch.randn(13, 6, dtype=torch.float64), torch.arange(13) % CLASSES
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
