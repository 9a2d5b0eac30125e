"""A private PyTorch loop in its parts, which is stopped after half of its steps and resumed from a file."""

import tempfile
from pathlib import Path

import torch
from flights import TRAINED, report, table
from torch import nn
from torch.utils.data import TensorDataset

import antinoise as an
from antinoise.torch import CorrelatedNoise, clipped_sum_
from antinoise.torch.checkpoint import save_private

features, late = table()
x, y = torch.from_numpy(features), torch.from_numpy(late)
data = TensorDataset(x[:TRAINED], y[:TRAINED])
dim = 2 * (x.shape[1] + 1)
plan = an.plan(examples=TRAINED, batch_size=200, epochs=10, epsilon=1, delta=1e-5, dim=dim)
print(plan.statement.split("\n\n")[0])


def train(key, until, checkpoint):
    """Trains up to a step, from the checkpoint if there is one, and writes it."""
    torch.manual_seed(0)
    model = nn.Linear(x.shape[1], 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.5)
    noise = CorrelatedNoise(model, plan, key).attach(optimizer)
    parts = {"model": model, "optimizer": optimizer, "noise": noise}
    if checkpoint.exists():
        for name, state in torch.load(checkpoint).items():
            parts[name].load_state_dict(state)
    for a, b in noise.loader(data):
        clipped_sum_(model, nn.functional.cross_entropy, a, b, plan.clip_norm)
        optimizer.step()
        optimizer.zero_grad()
        if noise.step == until:
            break
    # As secret as the key: it holds the noise of the next steps.
    save_private({name: part.state_dict() for name, part in parts.items()}, checkpoint)
    print(f"{noise.step} of {plan.steps} steps")
    return model


with tempfile.TemporaryDirectory() as folder:
    train(an.Key.from_os(), plan.steps // 2, Path(folder) / "state")
    model = train(an.Key.from_os(), plan.steps, Path(folder) / "state")
report(model(x[TRAINED:]).argmax(1).numpy(), late[TRAINED:])
