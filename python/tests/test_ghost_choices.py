"""Ghost norms of models that treat rows of several examples together: refused for good, by what they do."""

import warnings

import pytest

torch = pytest.importorskip("torch")
from ghost_models import CLASSES, clipped, looped, loss, median, taken
from torch import nn

from antinoise.torch import clipped_sum_, clipping


class Experts(nn.Module):
    """Two experts, each called with the rows that are routed to it."""

    def __init__(self):
        super().__init__()
        self.first, self.gate = nn.Linear(6, 6), nn.Linear(6, 2, bias=False)
        self.experts, self.last = nn.ModuleList(nn.Linear(6, 6) for _ in range(2)), nn.Linear(6, CLASSES)

    def forward(self, x):
        hidden = self.first(x).flatten(0, 1)
        most, which = self.gate(hidden.view(x.shape)).flatten(0, 1).softmax(-1).max(-1)
        out = torch.zeros_like(hidden)
        for number, expert in enumerate(self.experts):
            rows = (which == number).nonzero()[:, 0]
            if len(rows):
                out = out.index_add(0, rows, expert(hidden[rows]) * most[rows, None])
        return self.last((hidden + out).view(x.shape).mean(1))


class Masked(nn.Module):
    """A table of its own mixes places under a mask of shape (places, places)."""

    def __init__(self, places):
        super().__init__()
        self.first, self.scale = nn.Linear(6, 6), nn.Parameter(torch.rand(6) + 0.5)
        self.mix, self.last = Mix(self.scale), nn.Linear(6, CLASSES)
        self.mask = torch.full((places, places), float("-inf")).triu(1).double()
        del self.scale

    def forward(self, x):
        return self.last(self.mix(self.first(x), self.mask)[:, -3:].sum(1))


class Mix(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, x, mask):
        return ((x * self.scale) @ x.mT + mask).softmax(-1) @ x


class Squared(nn.Module):
    """By its names a normalisation, whose weight is squared."""

    def __init__(self):
        super().__init__()
        self.eps, self.weight = 1e-6, nn.Parameter(torch.rand(6) + 0.5)

    def forward(self, x):
        return x * self.weight**2


class OfSquared(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale, self.last = Squared(), nn.Linear(6, CLASSES)

    def forward(self, x):
        return self.last(self.scale(x)).mean(1)


def sums_agree(model, x, y):
    gradients = looped(model, loss, x, y)
    clip = median(gradients)
    clipped_sum_(model, loss, x, y, clip)
    wanted = clipped(gradients, clip)
    return bool((taken(model) - wanted).norm() <= 1e-9 * wanted.norm())


def data(seed, examples=8, places=2):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(examples, places, 6, generator=generator).double()
    return 3 * x, torch.randint(0, CLASSES, (examples,), generator=generator)


def test_rows_chosen_by_their_content_have_unknown_examples():
    """Half of the rows at each expert look like one row of each example."""
    found = 0
    for seed in range(30):
        torch.manual_seed(seed)
        model = Experts().double()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert all(sums_agree(model, *data(10 * seed + step)) for step in range(4))
        said = [str(w.message) for w in caught if "norms" in str(w.message)]
        assert len(said) == 1, said
        found += "chooses rows by their content (aten.nonzero" in said[0]
        with pytest.raises(ValueError, match="chooses rows by their content|first dimension"):
            clipped_sum_(model, loss, *data(seed), 1.0, norms="ghost")
    assert found >= 10, found


def test_a_refused_model_is_refused_for_good(monkeypatch):
    """A later batch might hide the reason."""
    used, plain = [], clipping.per_example_sums
    monkeypatch.setattr(clipping, "per_example_sums", lambda *how: used.append(1) or plain(*how))
    model = nn.Sequential(nn.Linear(6, 6), Centred(), nn.Linear(6, CLASSES)).double()
    x, y = data(3)
    for step, batch in enumerate([x, x[:, :1].expand(8, 1, 6), x[:1].expand(8, 2, 6)]):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            clipped_sum_(model, lambda out, y: loss(out.mean(1), y), batch, y, 1.0)
        taken(model)
        assert len(used) == step + 1 and len(caught) == (step == 0)


class Centred(nn.Module):
    """Subtracts the mean over the examples, which is no difference for equal examples."""

    def forward(self, x):
        return x - x.mean(0, keepdim=True)


@pytest.mark.filterwarnings("ignore")
def test_tensors_of_all_examples_may_have_as_many_rows_as_there_are_examples():
    torch.manual_seed(1)
    model = Masked(8).double()
    for examples in (7, 8):
        assert sums_agree(model, *data(examples, examples, 8))


@pytest.mark.filterwarnings("ignore")
def test_a_check_that_values_without_meaning_passed_is_made_again():
    torch.manual_seed(1)
    x, y = data(5)
    model, infinite = OfSquared().double(), x.clone()
    infinite[0, 0, 0] = torch.inf
    clipped_sum_(model, loss, infinite, y, 1.0)
    taken(model)
    assert sums_agree(model, x, y)
