"""Writes text that stands for private text: fine-tunes privately, samples, and trains a classifier on
samples.

The classifier sees no private text, so that it costs no privacy; its accuracy on real lines says what the
samples are worth, next to one that is trained on the real lines. Of so few lines of code it is little: most
of the difference between packages is lost. docs/results/recipes.md has text on which it is more.
"""

import math

import torch
from texts import END, FIRST_WORD, LENGTH, PACKAGES, PAD, UNKNOWN, bags, losses, pretrained, texts
from torch import nn
from torch.nn import functional
from torch.utils.data import TensorDataset

from antinoise.torch import make_private

public, (train, labels), (test, test_labels) = texts()
model = pretrained(public)
optimizer = torch.optim.SGD(model.parameters(), lr=2.0)
how = dict(epsilon=8, delta=1e-5, batch_size=256, epochs=4)
run = make_private(model, optimizer, TensorDataset(train), **how)
for (rows,) in (batch for _ in run.epochs for batch in run.loader):
    run.backward(lambda rows: losses(model(rows[:, :-1]), rows[:, 1:]), rows)
    optimizer.step()
    optimizer.zero_grad()


@torch.no_grad()
def sampled(count):
    """Lines that the model writes, as many of each package, which is the first number of a row."""
    of = torch.arange(count) % len(PACKAGES)
    rows = (3 + of)[:, None]
    for _ in range(LENGTH):
        scores = model(rows)[:, -1]
        scores[:, [PAD, UNKNOWN, *range(3, FIRST_WORD)]] = -math.inf
        ended = (rows == END).any(1)
        word = torch.multinomial(scores.softmax(1), 1)[:, 0]
        rows = torch.cat([rows, torch.where(ended, PAD, word)[:, None]], 1)
    return rows, of


def accuracy(rows, of):
    """The accuracy, on real lines, of a classifier that is trained without privacy on these."""
    torch.manual_seed(0)
    x, classifier = bags(rows), nn.Linear(bags(rows[:1]).shape[1], len(PACKAGES))
    optimizer = torch.optim.AdamW(classifier.parameters(), lr=0.02)
    for _ in range(300):
        chosen = torch.randint(len(x), (256,))
        optimizer.zero_grad()
        functional.cross_entropy(classifier(x[chosen]), of[chosen]).backward()
        optimizer.step()
    return (classifier(bags(test)).argmax(1) == test_labels).float().mean().item()


print(run.statement.split("\n\n")[0])
print(f"trained on {len(train)} sampled lines: {accuracy(*sampled(len(train))):.1%} of real lines are right")
print(f"trained on as many real ones: {accuracy(train, labels):.1%}")
