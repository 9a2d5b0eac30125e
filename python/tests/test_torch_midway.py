"""A run of `make_private` in whose middle something changes that clipping or noise rely on: the next step is
refused and moves nothing, or what it releases is bounded and noisy as before. (A checkpoint whose hook was
renamed: `test_hf.py` and `test_relied.py`.)
"""

import copy

import pytest
from conftest import small_plan

torch = pytest.importorskip("torch")
from torch import nn
from torch.nn import functional
from torch_run import key, sums_of

from antinoise.torch import make_private
from antinoise.torch.held_sums import drop_sums

CLIP, WORDS, PLACES, PADDING = 0.7, 11, 6, 0


class Language(nn.Module):
    """A language model whose head is its table, with a layer that is frozen at first."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.table, self.frozen, self.body = nn.Embedding(WORDS, 6), nn.Linear(6, 6), nn.Linear(6, 6)
        self.head = nn.Linear(6, WORDS, bias=False)
        self.head.weight = self.table.weight
        self.frozen.requires_grad_(False)

    def forward(self, x):
        return self.head(torch.tanh(self.body(self.frozen(self.table(x)))))


def losses(model):
    def of_each(x):
        each = functional.cross_entropy(model(x)[:, :-1].transpose(1, 2), x[:, 1:], reduction="none")
        mask = x[:, 1:] != PADDING
        return (each * mask).sum(1) / mask.sum(1).clamp(min=1)

    return of_each


@pytest.fixture(scope="module")
def plan():
    return small_plan(dim=200, clip_norm=CLIP)


@pytest.fixture
def begun(plan):
    """A run after two of its steps."""
    model = Language()
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1, momentum=0.9)
    torch.manual_seed(2)
    words = torch.randint(1, WORDS, (240, PLACES))
    run = make_private(model, optimizer, words, plan=plan, key=key())
    batches = iter(run.loader)
    for _ in range(2):
        run.backward(losses(model), next(batches))
        optimizer.step()
        optimizer.zero_grad()
    assert run.noise.step == 2
    return model, optimizer, run, next(batches)


def untie(model):
    model.head.weight = nn.Parameter(model.table.weight.detach().clone())


def untie_the_first(model):
    model.table.weight = nn.Parameter(model.head.weight.detach().clone())


CHANGES = {
    "untied": (untie, "parameter head.weight was unfrozen after the noise was made"),
    "untied, the other way": (untie_the_first, "after the noise was made"),
    "thawed": (lambda model: model.frozen.requires_grad_(True), "parameter frozen.weight was unfrozen"),
    "frozen": (lambda model: model.body.requires_grad_(False), "parameter body.weight was frozen"),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("when", ["before clipping", "after clipping"])
def test_other_trained_parameters_are_refused(change, when, begun):
    model, optimizer, run, batch = begun
    alter, message = CHANGES[change]
    if when == "before clipping":
        alter(model)
    run.backward(losses(model), batch)
    if when == "after clipping":
        alter(model)
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(RuntimeError, match=message):
        optimizer.step()
    assert run.noise.step == 2
    assert all(torch.equal(before[name], now) for name, now in model.state_dict().items())


def test_a_second_optimizer_is_refused(begun):
    model, _, run, batch = begun
    trained = [p for p in model.parameters() if p.requires_grad]
    run.backward(losses(model), batch)
    other, before = torch.optim.Adam(trained, lr=0.1), copy.deepcopy(model.state_dict())
    with pytest.raises(RuntimeError, match="steps while clipped sums of its parameters wait for noise"):
        other.step()
    drop_sums(trained)
    losses(model)(batch).sum().backward()
    with pytest.raises(RuntimeError, match="would apply a gradient without noise"):
        other.step()
    assert run.noise.step == 2
    assert all(torch.equal(before[name], now) for name, now in model.state_dict().items())


def moves(model, run, batches):
    """The sum of each batch."""
    found = []
    for batch in batches:
        run.backward(losses(model), batch)
        found.append(sums_of(trained_of(model)))
        drop_sums(model.parameters())
    return found


def trained_of(model):
    """A module of the trained parameters alone."""
    return nn.ParameterList(p for p in model.parameters() if p.requires_grad)


@pytest.mark.parametrize("norms", ["ghost", "per_example"])
def test_batches_that_are_padded_otherwise_are_clipped_as_before(norms, begun):
    model, optimizer, run, batch = begun
    run._how["norms"] = norms
    padded = functional.pad(batch, (0, 5), value=PADDING)
    whole, same, without = moves(model, run, [batch, padded, padded[1:]])
    assert torch.allclose(whole, same, rtol=1e-5, atol=1e-6)
    assert 0 < (same - without).norm() <= CLIP
    run.backward(losses(model), padded)
    optimizer.step()
    assert run.noise.step == 3


@pytest.mark.parametrize("norms", ["ghost", "per_example"])
def test_autocast_that_is_switched_on_leaves_the_bound(norms, begun):
    model, optimizer, run, batch = begun
    run._how["norms"] = norms
    # Gradients longer than the clip norm.
    steep = lambda x: 100 * losses(model)(x)  # noqa: E731
    found = []
    for some in (batch, batch[1:]):
        with torch.autocast("cpu", torch.bfloat16):
            run.backward(steep, some)
        found.append(sums_of(trained_of(model)))
        drop_sums(model.parameters())
    moved = (found[0] - found[1]).norm()
    # The rounding of an example does not depend on the others here.
    assert 0.99 * CLIP <= moved <= CLIP
    with torch.autocast("cpu", torch.bfloat16):
        run.backward(steep, batch)
        optimizer.step()
    grads = [p.grad for p in model.parameters() if p.requires_grad]
    assert run.noise.step == 3 and all(g.dtype == torch.float32 for g in grads)
