"""Ghost norms: a model whose backward pass mixes examples is refused, like one whose forward pass does."""

import pytest

torch = pytest.importorskip("torch")
from torch import nn
from torch_run import CLIP, data, loss, small_model, sums_of

from antinoise.torch import clipped_sum_
from antinoise.torch.ghost import sums as ghost
from antinoise.torch.held_sums import drop_sums, held_sum


class Mixing(torch.autograd.Function):
    """The identity forward; backward, each row's gradient plus the mean of all rows."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient + gradient.mean(0, keepdim=True)


class Between(nn.Module):
    def forward(self, x):
        return Mixing.apply(x)


def by_function():
    model = small_model()
    return nn.Sequential(model[0], Between(), model[1], model[2])


def by_module_hook():
    model = small_model()
    model[2].register_full_backward_hook(
        lambda module, given, out: (given[0] + given[0].sum(0, keepdim=True),)
    )
    return model


def by_pre_hook():
    model = small_model()
    model[1].register_full_backward_pre_hook(lambda module, out: (out[0].flip(0),))
    return model


def by_tensor_hook():
    class Hooked(nn.Sequential):
        def forward(self, x):
            hidden = self[1](self[0](x))
            hidden.register_hook(lambda g: g / g.norm())
            return self[2](hidden)

    return Hooked(*small_model())


WAYS = [by_function, by_module_hook, by_pre_hook, by_tensor_hook]


@pytest.mark.filterwarnings("ignore:Full backward hook")
@pytest.mark.parametrize("made", WAYS)
@pytest.mark.parametrize("microbatch_size", [2, 8, 64])
def test_a_model_that_mixes_examples_in_its_backward_pass_is_refused(made, microbatch_size):
    (x, y), model = data(), made()
    for _ in range(2):
        with pytest.raises(
            ValueError,
            match="whose examples change each other's gradient but must be one that treats them apart",
        ):
            clipped_sum_(model, loss, x[:20], y[:20], CLIP, microbatch_size=microbatch_size, norms="ghost")
    assert held_sum(next(model.parameters())) is None and all(p.grad is None for p in model.parameters())
    # With one example at a time there is nothing to mix.
    clipped_sum_(made(), loss, x[:20], y[:20], CLIP, microbatch_size=1, norms="ghost")


def test_what_a_mixing_backward_pass_does_to_the_sum(monkeypatch):
    """Without the check one example moves the sum by several clip norms."""
    monkeypatch.setattr(ghost, "check_examples_independent", lambda *_: None)
    (x, _), model, sums = data(), small_model(), []
    model[2].register_full_backward_pre_hook(lambda module, out: (out[0] + out[0].mean(0, keepdim=True),))
    for own in (100.0, -100.0):
        weights = torch.cat([torch.tensor([own]), torch.ones(19)])
        clipped_sum_(
            model,
            lambda out, weight: (weight * out).sum(),
            x[:20],
            weights,
            CLIP,
            norms="ghost",
            microbatch_size=20,
        )
        sums.append(sums_of(model))
        drop_sums(model.parameters())
    # Replacing an example may move the sum by two clip norms.
    assert (sums[0] - sums[1]).norm() > 3.4 * 2 * CLIP


class Centred(nn.Module):
    """A layer that begins at 0 gets inputs without most of their mean, in memory that each pass uses
    again."""

    def __init__(self):
        super().__init__()
        self.base, self.last = nn.Linear(6, 3).requires_grad_(False), nn.Linear(6, 3, bias=False)
        nn.init.zeros_(self.last.weight)
        self.kept = {}

    def forward(self, x):
        with torch.no_grad():
            centred = self.kept.setdefault(len(x), torch.empty_like(x))
            torch.sub(x, 0.9 * x.mean(0), out=centred)
        return self.base(x) + self.last(centred)


def test_inputs_in_memory_that_is_used_again_are_compared():
    torch.manual_seed(1)
    x, y = torch.randn(8, 6), torch.zeros(8, dtype=torch.int64)
    with pytest.raises(ValueError, match="whose examples change each other's gradient"):
        clipped_sum_(Centred(), loss, x, y, CLIP, norms="ghost")


@pytest.mark.filterwarnings("ignore:Full backward hook")
def test_a_hook_that_comes_later_is_found():
    (x, y), model = data(), small_model()
    clipped_sum_(model, loss, x[:20], y[:20], CLIP, norms="ghost")
    drop_sums(model.parameters())
    model[2].register_full_backward_pre_hook(lambda module, out: (out[0].flip(0),))
    with pytest.raises(ValueError, match="whose examples change each other's gradient"):
        clipped_sum_(model, loss, x[:20], y[:20], CLIP, norms="ghost")


@pytest.mark.filterwarnings("ignore:Full backward hook")
def test_a_hook_that_treats_examples_apart_is_taken():
    (x, y), model, plain = data(), small_model(), small_model()
    model[2].register_full_backward_hook(lambda module, given, out: (2 * given[0],))
    for each in (model, plain):
        clipped_sum_(each, loss, x[:20], y[:20], 1e3, norms="ghost")
    assert torch.allclose(held_sum(model[0].weight).total, 2 * held_sum(plain[0].weight).total)
