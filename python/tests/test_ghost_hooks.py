"""Ghost norms: gradients are taken where the layer takes them, after all hooks; threads do not disturb each
other.
"""

import threading

import pytest

torch = pytest.importorskip("torch")
from ghost_models import CLASSES, Rms, clipped, looped, loss, made, taken
from torch import nn
from torch.nn import functional
from torch.nn.modules.module import register_module_forward_hook, register_module_full_backward_hook

from antinoise.torch import clipped_sum_
from antinoise.torch.held_sums import held_sum


class Hooked(nn.Module):
    """Hooks of tensors change the gradient of a layer's output, after the layer was called."""

    def __init__(self, way, width=6):
        super().__init__()
        self.way, self.first, self.last = way, nn.Linear(6, width), nn.Linear(width, CLASSES)

    def forward(self, x):
        hidden = self.first(x)
        if self.way == "of a tensor":
            hidden.register_hook(lambda g: g * torch.linspace(-1, 3, g.shape[-1]))
        elif self.way == "of a node":
            hidden.grad_fn.register_prehook(lambda g: (3 * g[0],))
        elif self.way == "before a change in place":
            hidden.register_hook(lambda g: 3 * g)
            hidden.add_(x)
        elif self.way == "after a change in place":
            hidden.tanh_().register_hook(lambda g: 3 * g)
        return self.last(torch.tanh(hidden))


@pytest.mark.parametrize("shape", [(13, 6), (13, 4, 6)])
@pytest.mark.parametrize(
    "way", ["of a tensor", "of a node", "before a change in place", "after a change in place"]
)
def test_hooks_of_a_layers_output_are_seen(way, shape):
    torch.manual_seed(1)
    model, x, y = Hooked(way).double(), torch.randn(shape).double(), torch.randint(0, CLASSES, (13,))
    # Where no gradient precedes the layer, and where one does.
    for whole in (model, nn.Sequential(nn.Linear(6, 6).double(), model)):
        with_mean = whole if len(shape) == 2 else nn.Sequential(whole, Mean())
        gradients = looped(with_mean, loss, x, y)
        clip = float(gradients.norm(dim=1).median())
        clipped_sum_(with_mean, loss, x, y, clip, norms="ghost")
        assert torch.allclose(taken(with_mean), clipped(gradients, clip), rtol=1e-9, atol=1e-12)


class Mean(nn.Module):
    def forward(self, x):
        return x.mean(1)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.MultiheadAttention(6, 2, batch_first=True)

    def forward(self, x):
        return self.inner(x, x, x)[0]


class Changed(nn.Module):
    """Hooks of the output of any layer, before and after a change in place."""

    def __init__(self, layer, first):
        super().__init__()
        self.first, self.layer, self.last = (
            nn.Linear(6, 6) if first else nn.Identity(),
            layer,
            nn.Linear(6, 3),
        )

    def forward(self, x):
        hidden = self.layer(self.first(x))
        hidden.register_hook(lambda g: 3 * g)
        hidden.grad_fn.register_prehook(lambda g: (g[0] * torch.linspace(-1, 2, 6), *g[1:]))
        hidden.add_(x)
        hidden.register_hook(lambda g: g.square())
        return self.last(torch.tanh(hidden)).mean(1)


def conv1d_of_transformers():
    return pytest.importorskip("transformers.pytorch_utils").Conv1D(6, 6)


# Outputs of some are views, and PyTorch leaves out the hooks that a view had before a change in place. Linear
# gives views in some versions of PyTorch.
LAYERS = {
    "linear": lambda: nn.Linear(6, 6),
    "linear without a bias": lambda: nn.Linear(6, 6, bias=False),
    "Conv1D": conv1d_of_transformers,
    "convolution": lambda: nn.Conv1d(4, 4, 3, padding=1),
    "layer norm": lambda: nn.LayerNorm(6),
    "group norm": lambda: nn.GroupNorm(2, 4),
    "rms": lambda: Rms(6),
    "attention": Attention,
}


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("kind", LAYERS)
def test_hooks_of_any_layers_output_are_those_of_pytorch(kind, first):
    torch.manual_seed(1)
    model = Changed(LAYERS[kind](), first).double()
    x, y = torch.randn(13, 4, 6).double(), torch.randint(0, CLASSES, (13,))
    gradients = looped(model, loss, x, y)
    clip = float(gradients.norm(dim=1).median())
    clipped_sum_(model, loss, x, y, clip, norms="ghost")
    assert torch.allclose(taken(model), clipped(gradients, clip), rtol=1e-9, atol=1e-12)


def test_hooks_of_all_modules_are_refused_or_seen():
    model, x, y = made("linear")
    forward = register_module_forward_hook(lambda module, args, output: output * 2)
    try:
        gradients = looped(model, loss, x, y)
        with pytest.raises(ValueError, match="register_module_forward_hook is used but must not be"):
            clipped_sum_(model, loss, x, y, 0.3, norms="ghost")
        with pytest.warns(UserWarning, match="register_module_forward_hook is used"):
            clipped_sum_(model, loss, x, y, 0.3)
        assert torch.allclose(taken(model), clipped(gradients, 0.3), rtol=1e-9, atol=1e-12)
    finally:
        forward.remove()
    clipped_sum_(model, loss, x, y, 0.3, norms="ghost")
    plain = taken(model)

    def mixes(module, given, output):
        return tuple(None if g is None else g + g.mean(0, keepdim=True) for g in given)

    # It comes after the first step.
    backward = register_module_full_backward_hook(mixes)
    try:
        with pytest.raises(ValueError, match="whose examples change each other's gradient"):
            clipped_sum_(model, loss, x, y, 0.3, norms="ghost")
    finally:
        backward.remove()
    clipped_sum_(model, loss, x, y, 0.3, norms="ghost")
    assert torch.equal(taken(model), plain)


class Repeated(nn.Module):
    """One look-up of positions, which the model repeats for each example, or otherwise uses by its shape."""

    def __init__(self, use, table=nn.Embedding):
        super().__init__()
        self.use, self.tokens, self.places = use, nn.Embedding(7, 6), table(8, 6)
        self.out = nn.Linear(6, CLASSES)

    def forward(self, x):
        found = self.places(torch.arange(x.shape[1])[None])
        return self.out(torch.tanh(self.tokens(x) + self.use(found, len(x)))).mean(1)


class Shifted(nn.Embedding):
    """Looks up other rows than its input."""

    def forward(self, x):
        return super().forward((x + 1) % self.num_embeddings)


SUPPORTED = {
    "added": lambda found, examples: found,
    "expanded": lambda found, examples: found.expand(examples, -1, -1),
    "squeezed": lambda found, examples: found.squeeze(0),
}
FALLS_BACK = {
    "repeated": lambda found, examples: found.repeat(examples, 1, 1),
    "taken": lambda found, examples: found[0],
    "summed": lambda found, examples: found.sum(0),
    "the mean": lambda found, examples: found.mean(0, keepdim=True),
}


@pytest.mark.parametrize("table", [nn.Embedding, Shifted])
@pytest.mark.parametrize("use", [*SUPPORTED, *FALLS_BACK])
def test_a_look_up_for_all_examples_is_exact_or_falls_back(use, table):
    torch.manual_seed(1)
    model = Repeated((SUPPORTED | FALLS_BACK)[use], table).double()
    x, y = torch.randint(0, 7, (13, 8)), torch.randint(0, CLASSES, (13,))
    gradients = looped(model, loss, x, y)
    clip = float(gradients.norm(dim=1).median())
    if use in FALLS_BACK:
        with pytest.raises(ValueError, match="whose examples change|places is a .* but must be looked up"):
            clipped_sum_(model, loss, x, y, clip, norms="ghost")
        with pytest.warns(UserWarning, match='norms="auto" makes the gradients one by one'):
            clipped_sum_(model, loss, x, y, clip)
    else:
        clipped_sum_(model, loss, x, y, clip, norms="ghost")
    assert torch.allclose(taken(model), clipped(gradients, clip), rtol=1e-9, atol=1e-12)


class Sized(Rms):
    """A normalisation by the size of its weight: no scale where a weight is below 0."""

    def forward(self, x):
        return self.weight.abs() * x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.variance_epsilon)


class Bounded(Rms):
    """A normalisation whose weight is bounded: no scale where a weight is above the bound."""

    def forward(self, x):
        return self.weight.clamp(max=5) * functional.normalize(x, dim=-1)


@pytest.mark.parametrize("kind", [Sized, Bounded])
def test_a_weight_that_is_a_scale_in_part_is_refused(kind):
    torch.manual_seed(1)
    norm = kind(6)
    with torch.no_grad():
        norm.weight.copy_(torch.tensor([-2.0, -1, 0.5, 1, 2, 7]))
    model = nn.Sequential(nn.Linear(6, 6), norm, nn.Linear(6, CLASSES)).double()
    x, y = torch.randn(13, 6).double(), torch.randint(0, CLASSES, (13,))
    with pytest.raises(ValueError, match=f"1 is a {kind.__name__} but must be one of Linear"):
        clipped_sum_(model, loss, x, y, 0.3, norms="ghost")
    with pytest.warns(UserWarning, match=f"1 is a {kind.__name__}"):
        clipped_sum_(model, loss, x, y, 0.3)
    assert torch.allclose(taken(model), clipped(looped(model, loss, x, y), 0.3), rtol=1e-9, atol=1e-12)


def test_threads_that_clip_different_models_leave_pytorch_as_it_was():
    """The first thread's layer begins first and ends first, within that of the second."""
    linear, embedding = functional.linear, functional.embedding
    (one, x, y), (other, *_) = made("subclasses"), made("subclasses")
    clipped_sum_(one, loss, x, y, 0.3, norms="ghost", microbatch_size=13)
    wanted = taken(one)
    begun, ended, failures = threading.Event(), threading.Event(), []

    def first(module, args):
        if not begun.is_set():
            begun.wait(60)

    def second(module, args):
        if not begun.is_set():
            begun.set()
            ended.wait(60)

    def run(model, last):
        try:
            clipped_sum_(model, loss, x, y, 0.3, norms="ghost", microbatch_size=13)
        except BaseException as error:
            failures.append(error)
        finally:
            begun.set()
            if last is None:
                ended.set()

    # The product of the layer is where a thread waits: `functional.linear` is followed then.
    for model, wait in ((one, first), (other, second)):
        plain = type(model[1]).forward
        model[1].forward = lambda x, model=model, wait=wait, plain=plain: (
            wait(model, x),
            plain(model[1], x),
        )[1]
    threads = [threading.Thread(target=run, args=pair) for pair in ((one, None), (other, True))]
    for thread in threads:
        thread.start()
    # A call in a thread that follows nothing is plain.
    assert torch.equal(functional.linear(x, one[0].weight), x @ one[0].weight.T)
    for thread in threads:
        thread.join()
    assert not failures and functional.linear is linear and functional.embedding is embedding
    assert torch.equal(taken(one), wanted) and torch.equal(taken(other), wanted)
    # After an error in the middle of a layer too.
    one[1].forward = lambda x: 1 / 0
    with pytest.raises(ZeroDivisionError):
        clipped_sum_(one, loss, x, y, 0.3, norms="ghost")
    assert functional.linear is linear and not any(held_sum(p) for p in one.parameters())
