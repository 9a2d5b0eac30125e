"""Ghost norms of routed experts, as transformers holds them: their own gradients, and those of other layers
next to frozen ones.
"""

import os
import warnings

import pytest

torch = pytest.importorskip("torch")
os.environ["HF_HUB_OFFLINE"] = "1"
moe = pytest.importorskip("transformers.integrations.moe")
from types import SimpleNamespace

from ghost_models import CLASSES, clipped, looped, loss, median, taken
from torch import nn
from torch.nn import functional

from antinoise.torch import clipped_sum_
from antinoise.torch.ghost import experts, parts, stacks

EXAMPLES, PLACES, WIDTH, INNER = 9, 5, 32, 24


class Plain(nn.Module):
    def __init__(self, config):
        super().__init__()
        number, inner = config.number, config.inner
        self.act_fn = nn.SiLU()
        up = torch.randn(number, (1 + config.has_gate) * inner, WIDTH) / WIDTH**0.5
        setattr(self, "gate_up_proj" if config.has_gate else "up_proj", nn.Parameter(up))
        self.down_proj = nn.Parameter(torch.randn(number, WIDTH, inner) / inner**0.5)

    def _apply_gate(self, x):
        gate, up = x.chunk(2, dim=-1)
        return self.act_fn(gate) * up

    def forward(self, hidden_states, top_k_index, top_k_weights):
        out = torch.zeros_like(hidden_states)
        up = self.gate_up_proj if self.has_gate else self.up_proj
        for number in range(len(up)):
            token, choice = (top_k_index == number).nonzero(as_tuple=True)
            x = functional.linear(hidden_states[token], up[number])
            x = functional.linear(
                self._apply_gate(x) if self.has_gate else self.act_fn(x), self.down_proj[number]
            )
            out = out.index_add(0, token, x * top_k_weights[token, choice, None])
        return out


def of_transformers(forward):
    """Makes a forward pass one of a class of transformers."""
    forward.__module__ = "transformers.models.plain"
    return forward


of_transformers(Plain.forward)


@moe.use_experts_implementation
class Experts(Plain):
    pass


@moe.use_experts_implementation(has_gate=False)
class Ungated(Plain):
    pass


class Mixture(nn.Module):
    def __init__(self, kind=Experts, number=4, calls=1, inner=INNER):
        super().__init__()
        has_gate = kind is not Ungated
        config = SimpleNamespace(
            _experts_implementation="eager", number=number, inner=inner, has_gate=has_gate
        )
        self.first, self.router = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, number, bias=False)
        self.experts, self.last, self.calls = kind(config), nn.Linear(WIDTH, CLASSES), calls

    def forward(self, x):
        rows = self.first(x).flatten(0, 1)
        for _ in range(self.calls):
            weights, which = self.router(rows.view(x.shape)).flatten(0, 1).softmax(-1).topk(2, dim=-1)
            rows = rows + self.experts(rows, which, weights)
        return self.last(rows.view(x.shape).mean(1))


def batch(dtype=torch.float64):
    torch.manual_seed(2)
    return torch.randn(EXAMPLES, PLACES, WIDTH, dtype=dtype), torch.randint(0, CLASSES, (EXAMPLES,))


def made(*args, **how):
    torch.manual_seed(1)
    return Mixture(*args, **how).double()


def part_frozen(name):
    model = made()
    getattr(model.experts, name).requires_grad_(False)
    return model


def all_frozen():
    model = made()
    model.experts.requires_grad_(False)
    return model


MODELS = {
    "gated": made,
    "without a gate": lambda: made(Ungated),
    # Most experts have no rows of most examples.
    "many": lambda: made(number=23),
    "called twice": lambda: made(calls=2),
    "up frozen": lambda: part_frozen("gate_up_proj"),
    "down frozen": lambda: part_frozen("down_proj"),
    "frozen": all_frozen,
}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("kept_bytes", [0, 20_000, 2**28])
def test_sums_of_routed_experts_are_those_of_one_example_at_a_time(make, kept_bytes):
    model, (x, y) = make(), batch()
    gradients = looped(model, loss, x, y)
    clip = median(gradients)
    for microbatch_size in (4, EXAMPLES):
        # Refuses parameters that would need gradients of each example.
        clipped_sum_(
            model, loss, x, y, clip, microbatch_size=microbatch_size, norms="ghost", kept_bytes=kept_bytes
        )
        found, wanted = taken(model), clipped(gradients, clip)
        assert (found - wanted).norm() <= 1e-12 * wanted.norm()


@pytest.mark.parametrize("inner", [5, 24, 257])
@pytest.mark.parametrize("kept_bytes", [0, 40_000, 2**28])
def test_no_bit_of_an_example_depends_on_the_rows_of_others(inner, kept_bytes, monkeypatch):
    """In single precision, where operations on the rows of all examples have other bits for other numbers of
    rows.
    """
    model, (x, y) = made(number=3, inner=inner).float(), batch(torch.float32)
    seen, stack_of = [], parts.stack_of
    monkeypatch.setattr(parts, "stack_of", lambda *given: seen.append(stack_of(*given)) or seen[-1])
    monkeypatch.setattr(stacks.Stack, "add_to", keep_factors)

    def of_the_first(others):
        seen.clear()
        how = dict(norms="ghost", microbatch_size=5, kept_bytes=kept_bytes)
        clipped_sum_(model, loss, x[[0, *others]], y[[0, *others]], 1e-3, **how)
        # The last pass is that of the batch; the earlier ones test independence.
        values = [v for stack in seen[-2:] for v in (*stack.first(), stack.squares[:1], stack.factors[:1])]
        return values, [len([at for at in stack.parts if at[1] > 0]) for stack in seen[-2:]]

    (some, others), (again, other_others) = of_the_first([1, 2, 3, 4]), of_the_first([5, 6, 7, 8])
    assert others != other_others and len(some) == len(again) > 8
    assert all(map(torch.equal, some, again))


def keep_factors(stack, sums, factors, kept):
    stack.factors = factors


def test_experts_that_compute_otherwise_are_refused():
    @moe.use_experts_implementation
    class Otherwise(Plain):
        @of_transformers
        def forward(self, hidden_states, top_k_index, top_k_weights):
            return super().forward(hidden_states, top_k_index, top_k_weights.square())

    model, (x, y) = made(Otherwise), batch()
    assert experts.are_experts(model.experts)
    with pytest.raises(ValueError, match="experts is a Otherwise but must be one that multiplies each token"):
        clipped_sum_(model, loss, x, y, 1.0, norms="ghost")
    check_by_each_example(model, x, y)


def check_by_each_example(model, x, y):
    """The gradients of each example are made instead."""
    gradients = looped(model, loss, x, y)
    clip = median(gradients)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clipped_sum_(model, loss, x, y, clip)
    assert any("one by one" in str(warning.message) for warning in caught)
    found, wanted = taken(model), clipped(gradients, clip)
    assert (found - wanted).norm() <= 1e-12 * wanted.norm()


class Adapted(Experts):
    """The experts and an adapter, which begins at 0."""

    def __init__(self, config):
        super().__init__(config)
        self.into, self.out = nn.Linear(WIDTH, 2, bias=False), nn.Linear(2, WIDTH, bias=False)
        nn.init.zeros_(self.out.weight)

    def forward(self, hidden_states, top_k_index, top_k_weights):
        found = super().forward(hidden_states, top_k_index, top_k_weights)
        return found + self.out(self.into(hidden_states))


class Loaded(Experts):
    """Experts that keep the mean of their rows."""

    def forward(self, hidden_states, top_k_index, top_k_weights):
        self.load = hidden_states.detach().mean(0)
        return super().forward(hidden_states, top_k_index, top_k_weights)


@moe.use_experts_implementation
class OfOnesOwn(Plain):
    """A decorated class that is not of transformers, and keeps the mean of its rows."""

    def forward(self, hidden_states, top_k_index, top_k_weights):
        self.load = hidden_states.detach().mean(0)
        return super().forward(hidden_states, top_k_index, top_k_weights)


class LayerInside(Experts):
    def __init__(self, config):
        super().__init__(config)
        self.act_fn = nn.Sequential(nn.SiLU(), nn.Linear(INNER, INNER))


@pytest.mark.parametrize("kind", [Adapted, Loaded, OfOnesOwn, LayerInside])
def test_experts_that_do_more_are_not_taken_for_those_of_transformers(kind):
    model, (x, y) = made(kind), batch()
    assert not experts.are_experts(model.experts)
    check_by_each_example(model, x, y)


def test_a_stack_that_a_module_alone_uses_too():
    class Scaled(nn.Module):
        def __init__(self, stack):
            super().__init__()
            self.stack = stack

        def forward(self, x):
            return x * self.stack[0, :, 0]

    model, (x, y) = made(), batch()
    model.last = nn.Sequential(Scaled(model.experts.down_proj), model.last).double()
    check_by_each_example(model, x, y)


def test_frozen_experts_within_a_module_that_runs_for_each_example():
    class Scaled(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner, self.scale = inner, nn.Parameter(torch.linspace(0.5, 1.5, CLASSES))

        def forward(self, x):
            return self.inner(x) * self.scale

    inner = all_frozen()
    for layer in (inner.first, inner.router, inner.last):
        layer.requires_grad_(False)
    x, y = batch()
    check_by_each_example(Scaled(inner).double(), x, y)


@pytest.mark.parametrize("index", [-1, 4])
def test_numbers_of_no_expert_are_refused(index):
    class Wrong(Mixture):
        def forward(self, x):
            rows = self.first(x).flatten(0, 1)
            which = torch.full((len(rows), 1), index)
            return self.last(self.experts(rows, which, which.to(x.dtype)).view(x.shape).mean(1))

    model, (x, y) = Wrong().double(), batch()
    with pytest.raises(ValueError, match="called with the numbers of its experts"):
        clipped_sum_(model, loss, x, y, 1.0, norms="ghost")


def test_rows_of_experts_that_are_not_ordered_by_example_are_refused():
    class Mixed(Mixture):
        def forward(self, x):
            rows = self.first(x).transpose(0, 1).flatten(0, 1)
            weights, which = self.router(rows).softmax(-1).topk(2, dim=-1)
            rows = self.experts(rows, which, weights)
            return self.last(rows.view(x.shape[1], x.shape[0], -1).mean(0))

    torch.manual_seed(1)
    model, (x, y) = Mixed().double(), batch()
    with pytest.raises(ValueError, match="examples change each other's"):
        clipped_sum_(model, loss, x, y, 1.0, norms="ghost")


def test_the_module_gets_its_forward_pass_back():
    model, (x, y) = made(), batch()
    clipped_sum_(model, loss, x, y, 1.0)
    assert "forward" not in vars(model.experts)
    monkey = model.last.forward
    model.last.forward = lambda _: 1 / 0
    with pytest.raises(ZeroDivisionError):
        clipped_sum_(model, loss, x, y, 1.0)
    assert "forward" not in vars(model.experts)
    model.last.forward = monkey
    taken(model)


def test_an_implementation_of_ones_own_is_not_replaced():
    def implementation(module, hidden_states, top_k_index, top_k_weights):
        return Plain.forward(module, hidden_states, top_k_index, top_k_weights)

    model = made()
    moe.ALL_EXPERTS_FUNCTIONS.register("of_ones_own", implementation)
    try:
        model.experts.config._experts_implementation = "of_ones_own"
        assert not experts.are_experts(model.experts)
        model.experts.config._experts_implementation = "grouped_mm"
        assert experts.are_experts(model.experts)
    finally:
        type(moe.ALL_EXPERTS_FUNCTIONS)._global_mapping.pop("of_ones_own")


def test_what_transformers_holds_otherwise_falls_back():
    for name in ("has_bias", "is_transposed", "has_post_expert_norm", "_is_expert_parallel"):
        model = made()
        assert experts.are_experts(model.experts)
        setattr(model.experts, name, True)
        assert not experts.are_experts(model.experts)
