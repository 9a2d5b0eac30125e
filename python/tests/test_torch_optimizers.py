"""Plain PyTorch: no other optimizer applies a gradient without noise to parameters that have noise."""

import copy
import io

import pytest

torch = pytest.importorskip("torch")
from torch_run import CLIP, data, key, loss, made, plan, small_model

from antinoise.torch import CorrelatedNoise, clipped_sum_

REFUSED = (
    "would apply a gradient without noise: its parameters have noise that is attached to another optimizer,"
    " or to none"
)


def raw(model):
    """A sum of clipped gradients in .grad, as left by callers who clip themselves."""
    for p in model.parameters():
        p.grad = torch.full_like(p, 0.5)


def unpickled(optimizer):
    """A pickled and loaded optimizer whose parameters are the model's again."""
    file = io.BytesIO()
    torch.save(optimizer, file)
    other = torch.load(io.BytesIO(file.getvalue()), weights_only=False)
    for group, own in zip(other.param_groups, optimizer.param_groups, strict=True):
        group["params"] = own["params"]
    return other


WAYS = {
    "a second one": lambda optimizer: torch.optim.Adam(optimizer.param_groups[0]["params"], lr=0.1),
    "of a part": lambda optimizer: torch.optim.SGD(optimizer.param_groups[0]["params"][:1], lr=0.1),
    "a copy": copy.copy,
    "unpickled": unpickled,
}


@pytest.mark.parametrize("way", WAYS)
def test_another_optimizer_with_sums_in_grad_is_refused(way, plan):
    model, optimizer, noise = made(plan, small_model(torch.float64), sums_in_grad=True)
    other = WAYS[way](optimizer)
    before = copy.deepcopy(model.state_dict())
    raw(model)
    with pytest.raises(RuntimeError, match=REFUSED):
        other.step()
    assert noise.step == 0 and all(torch.equal(before[name], now) for name, now in model.state_dict().items())
    # Any optimizer may apply a .grad that has noise.
    optimizer.step()
    other.step()
    assert noise.step == 1
    # A gradient put in its place later has no noise.
    optimizer.zero_grad(set_to_none=False)
    model(data(torch.float64)[0]).sum().backward()
    with pytest.raises(RuntimeError, match=REFUSED):
        other.step()


def test_an_optimizer_that_lost_its_hook_is_refused(plan):
    model, optimizer, noise = made(plan, small_model(torch.float64), sums_in_grad=True)
    optimizer._optimizer_step_pre_hooks.clear()
    raw(model)
    with pytest.raises(RuntimeError, match=REFUSED):
        optimizer.step()
    noise.detach()
    with pytest.raises(RuntimeError, match=REFUSED):
        optimizer.step()
    assert noise.step == 0


def test_loops_without_a_hook_add_the_noise_themselves(plan):
    (x, y), model = data(), small_model()
    optimizer, noise = (
        torch.optim.SGD(model.parameters(), lr=0.1),
        CorrelatedNoise(model, plan, key(), external_batches=True),
    )
    for _ in range(2):
        clipped_sum_(model, loss, x[:20], y[:20], CLIP)
        noise.apply_(optimizer)
        optimizer.step()
        optimizer.zero_grad()
    assert noise.step == 2
    loss(model(x), y).backward()
    with pytest.raises(RuntimeError, match=REFUSED):
        optimizer.step()


def test_optimizers_of_other_parameters_are_left_alone(plan):
    model, _, noise = made(plan)
    other = small_model()
    optimizer = torch.optim.SGD(other.parameters(), lr=0.1)
    raw(other)
    optimizer.step()
    # And of these, when there is no noise any more.
    del noise, _
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    raw(model)
    optimizer.step()
