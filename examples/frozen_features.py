"""Trains a classifier privately on the features of a model that is frozen: which package a line of code is
of.

Features are made once, since the model does not change. The model knows public lines alone.
"""

import torch
from texts import PACKAGES, PAD, WIDTH, pretrained, texts
from torch import nn
from torch.nn import functional
from torch.utils.data import TensorDataset

from antinoise.torch import make_private

public, (train, labels), (test, test_labels) = texts()
model = pretrained(public)


def features(rows):
    """The mean over a line's words of what the model's last layer sees, to unit length."""
    words = torch.cat([torch.ones_like(rows[:, :1]), rows[:, 1:-1]], 1)  # without the package
    with torch.no_grad():
        hidden = model.hidden(words) * (words != PAD)[:, :, None]
    return functional.normalize(hidden.sum(1))


torch.manual_seed(0)
head = nn.Linear(WIDTH, len(PACKAGES))
optimizer = torch.optim.SGD(head.parameters(), lr=4.0)
how = dict(epsilon=1, delta=1e-5, batch_size=256, epochs=8)
run = make_private(head, optimizer, TensorDataset(features(train), labels), **how)
for x, y in (batch for _ in run.epochs for batch in run.loader):
    run.backward(lambda x, y: functional.cross_entropy(head(x), y, reduction="none"), x, y)
    optimizer.step()
    optimizer.zero_grad()
right = (head(features(test)).argmax(1) == test_labels).float().mean().item()
most = test_labels.bincount().max().item() / len(test_labels)
print(run.statement.split("\n\n")[0])
print(f"{right:.1%} of {len(test)} other lines are right; {most:.1%} are of the largest package")
