"""A private PyTorch loop in its short form: `make_private` plans the run and attaches the noise."""

import torch
from flights import TRAINED, report, table
from torch import nn
from torch.utils.data import TensorDataset

from antinoise.torch import make_private

torch.manual_seed(0)
features, late = table()
x, y = torch.from_numpy(features), torch.from_numpy(late)
model = nn.Sequential(nn.Linear(x.shape[1], 16), nn.Tanh(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
data = TensorDataset(x[:TRAINED], y[:TRAINED])
run = make_private(model, optimizer, data, epsilon=1, delta=1e-5, batch_size=200, epochs=10, setting="cyclic")
print(run.statement.split("\n\n")[0])


def losses(a, b):
    """The loss of each example."""
    return nn.functional.cross_entropy(model(a), b, reduction="none")


for a, b in (batch for _ in run.epochs for batch in run.loader):
    run.backward(losses, a, b)
    optimizer.step()
    optimizer.zero_grad()
report(model(x[TRAINED:]).argmax(1).numpy(), late[TRAINED:])
