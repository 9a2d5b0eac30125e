"""Fine-tunes a small language model on private lines of code in a plain loop: all of it, and by LoRA.

The rates are of other text; a search on private lines is a choice that no statement covers.
"""

import copy

import torch
from texts import PACKAGES, loss_on, losses, pretrained, texts
from torch import nn
from torch.utils.data import TensorDataset

from antinoise.torch import make_private


class Adapted(nn.Module):
    """A frozen linear layer and LoRA's two thin matrices, which alone are trained."""

    def __init__(self, layer, rank=8):
        super().__init__()
        self.layer = layer
        self.down, self.up = (
            nn.Linear(layer.in_features, rank, bias=False),
            nn.Linear(rank, layer.out_features, bias=False),
        )
        nn.init.zeros_(self.up.weight)

    def forward(self, x):
        return self.layer(x) + 2 * self.up(self.down(x))


def adapted(model):
    model.requires_grad_(False)
    for block in model.blocks:
        for name in ("to_heads", "from_heads", "up", "down"):
            setattr(block, name, Adapted(getattr(block, name)))
    model.head = Adapted(model.head)
    return model


public, (train, _), (test, _) = texts()
base = pretrained(public)
print(f"{len(train)} private lines of {', '.join(PACKAGES)}; loss before {loss_on(base, test):.3f}")
for name, model, rate in (("whole", copy.deepcopy(base), 0.5), ("LoRA", adapted(copy.deepcopy(base)), 2.0)):
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(trained, lr=rate)
    how = dict(epsilon=8, delta=1e-5, batch_size=256, epochs=2, setting="cyclic")
    run = make_private(model, optimizer, TensorDataset(train), **how)
    for (rows,) in (batch for _ in run.epochs for batch in run.loader):
        run.backward(lambda rows, model=model: losses(model(rows[:, :-1]), rows[:, 1:]), rows)
        optimizer.step()
        optimizer.zero_grad()
    count = sum(p.numel() for p in trained)
    print(f"{name}, {count:,} parameters: {run.noise.step} steps, loss {loss_on(model, test):.3f}")
print(run.statement.split("\n\n")[0])
