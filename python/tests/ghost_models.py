"""Models of every layer that ghost norms know, and their sums by a loop over examples."""

import torch
from torch import nn
from torch.nn import functional

from antinoise.torch.held_sums import drop_sums, held_sum

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
