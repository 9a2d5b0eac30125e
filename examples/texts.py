"""Lines of Python's own library as text: public ones of its modules, private ones of four packages.

Lines are rows of numbers of words, which come from the public lines. `LanguageModel` is a small transformer
of such rows.
"""

import os
import re
from collections import Counter
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

PACKAGES = ["asyncio", "email", "multiprocessing", "unittest"]
TRAINED, LENGTH, WIDTH, WORDS = 4_096, 10, 48, 600
PAD, UNKNOWN, END, FIRST_WORD = 0, 1, 2, 3 + len(PACKAGES)  # numbers 3 to 6 begin a line of a package
LIBRARY = Path(os.__file__).parent


def lines_of(paths):
    """The words and signs of each line that has at least three."""
    found = (
        re.findall(r"\w+|[^\w\s]", line) for path in sorted(paths) for line in path.read_text().splitlines()
    )
    return [words for words in found if len(words) >= 3]


def texts():
    """Public rows; private rows of TRAINED lines and the packages they are of; and the same of other
    lines."""
    public = lines_of(LIBRARY.glob("*.py"))
    counts = Counter(word for words in public for word in words)
    numbers = {word: FIRST_WORD + i for i, (word, _) in enumerate(counts.most_common(WORDS))}

    def rows(lines, begin):
        known = [
            [begin, *(numbers.get(word, UNKNOWN) for word in words[: LENGTH - 1]), END] for words in lines
        ]
        return torch.tensor([row + [PAD] * (LENGTH + 1 - len(row)) for row in known])

    by_package = [rows(lines_of((LIBRARY / name).glob("*.py")), 3 + i) for i, name in enumerate(PACKAGES)]
    private = torch.cat(by_package)
    labels = torch.cat([torch.full((len(some),), i) for i, some in enumerate(by_package)])
    order = torch.randperm(len(private), generator=torch.Generator().manual_seed(0))
    train, test = order[:TRAINED], order[TRAINED : 2 * TRAINED]
    return rows(public, UNKNOWN), (private[train], labels[train]), (private[test], labels[test])


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.last_norm = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.to_heads, self.from_heads = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        q, k, v = self.to_heads(self.norm(x)).unflatten(2, (3, 4, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.from_heads(
            functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        )
        return x + self.down(functional.gelu(self.up(self.last_norm(x))))


class LanguageModel(nn.Module):
    """Scores of the word after each word, shape (rows, words, vocabulary)."""

    def __init__(self):
        super().__init__()
        self.word = nn.Embedding(FIRST_WORD + WORDS, WIDTH)
        self.register_buffer("place", 0.1 * torch.randn(LENGTH, WIDTH))
        self.blocks = nn.Sequential(Block(), Block())
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, FIRST_WORD + WORDS)

    def hidden(self, words):
        return self.norm(self.blocks(self.word(words) + self.place[: words.shape[1]]))

    def forward(self, words):
        return self.head(self.hidden(words))


def losses(scores, wanted):
    """The mean loss of a row's words, for each row."""
    each = functional.cross_entropy(scores.transpose(1, 2), wanted, ignore_index=PAD, reduction="none")
    return each.sum(1) / (wanted != PAD).sum(1)


def loss_on(model, rows):
    """The mean loss of rows."""
    with torch.no_grad():
        return losses(model(rows[:, :-1]), rows[:, 1:]).mean().item()


def pretrained(public, steps=300):
    """A model trained on public rows, without privacy."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = LanguageModel()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(steps):
        rows = public[torch.randint(len(public), (64,))]
        optimizer.zero_grad()
        losses(model(rows[:, :-1]), rows[:, 1:]).mean().backward()
        optimizer.step()
    return model


def bags(rows):
    """How often each word is in a row, without the package, to unit length."""
    counts = torch.zeros(len(rows), FIRST_WORD + WORDS).scatter_add_(
        1, rows[:, 1:], torch.ones(rows[:, 1:].shape)
    )
    counts[:, :FIRST_WORD] = 0
    return functional.normalize(counts)
