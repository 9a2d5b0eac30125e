"""Plain PyTorch: actions that would void the privacy statement are refused and change nothing."""

import copy

import numpy as np
import pytest
from conftest import STEPS, small_plan

torch = pytest.importorskip("torch")
from torch import nn
from torch_run import CLIP, data, dim, key, loss, made, plan, small_model

import antinoise as an
from antinoise.torch import CorrelatedNoise, add_clipped_sums, clipped_sum_
from antinoise.torch.held_sums import held_sum


@pytest.mark.parametrize("wild", [float("nan"), float("inf"), -float("inf")])
def test_sums_that_are_not_finite_are_refused(plan, wild):
    model, optimizer, noise = made(plan, small_model(torch.float64), sums_in_grad=True)
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    model[2].bias.grad[1] = wild
    with pytest.raises(ValueError, match="sum of 2.bias is not finite but must be one of clipped gradients"):
        optimizer.step()
    assert noise.step == 0


def test_what_would_void_the_claim_is_refused(plan):
    (x, y), (model, optimizer, noise) = data(), made(plan)
    before = copy.deepcopy(model.state_dict())

    def refused(message, step=optimizer.step, kind=ValueError):
        with pytest.raises(kind, match=message):
            step()
        assert noise.step == 0 and all(
            torch.equal(before[name], now) for name, now in model.state_dict().items()
        )

    def closure():
        raise AssertionError("it was called")

    refused("closure is given but must be left out", lambda: optimizer.step(closure))
    refused("closure is given but must be left out", lambda: optimizer.step(closure=closure))
    optimizer.grad_scale = torch.tensor(1024.0)
    refused("grad_scale of the optimizer is set but must not be")
    optimizer.grad_scale = None
    clipped_sum_(model, loss, x[:19], y[:19], CLIP)
    refused("batch of step 0 is of 19 examples but must be the plan's, of 20")
    # Refused sums are dropped: they do not enter the next batch.
    clipped_sum_(model, loss, x[:20], y[:20], CLIP)
    add_clipped_sums(
        model,
        {name: torch.zeros(p.shape, dtype=torch.float64) for name, p in model.named_parameters()},
        3,
        CLIP,
    )
    refused("batch of step 0 is of 23 examples but must be the plan's, of 20")
    clipped_sum_(model, loss, x[:20], y[:20], 2 * CLIP)
    refused("clip_norm of the sum is 1.4 but must be the plan's, 0.7")
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    refused("The gradient of 0.weight is in .grad, where nothing has clipped it", kind=RuntimeError)
    model.zero_grad()
    with pytest.raises(RuntimeError, match="this noise is attached to an optimizer already"):
        noise.attach(torch.optim.SGD(model.parameters(), lr=1.0))
    optimizer.add_param_group({"params": [nn.Parameter(torch.zeros(2))]})
    refused("parameters of the optimizer are others")
    noise.detach()
    refused(
        "parameters of the optimizer are others",
        lambda: noise.attach(torch.optim.SGD(model[0].parameters(), lr=1.0)),
    )
    model[0].weight.data = torch.zeros(9, 5)
    with pytest.raises(RuntimeError, match="Shapes, dtypes or devices of the model's parameters changed"):
        noise.apply_()


@pytest.mark.parametrize("kind", ["grid", "plain"])
def test_sums_in_single_precision_are_taken_from_who_answers_for_them(kind):
    plan = small_plan(dim=100, clip_norm=CLIP, arithmetic=kind)
    model, optimizer, noise = made(plan, sums_in_grad=True)
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    with pytest.raises(
        ValueError,
        match=(
            "gradient of 0.weight is of dtype torch.float32 but must be float64: .* trust_float32_sums=True"
        ),
    ):
        optimizer.step()
    assert (noise.step, noise.statement) == (0, plan.statement)
    model, optimizer, noise = made(plan, sums_in_grad=True, trust_float32_sums=True)
    assert (
        noise.statement.startswith(plan.statement)
        and "Assumed, not proved: that one example moves the sums" in noise.statement
    )
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    optimizer.step()
    assert noise.step == 1


def test_no_step_after_the_last(plan):
    model, optimizer, noise = made(plan)
    for _ in range(STEPS):
        optimizer.step()
        optimizer.zero_grad()
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(RuntimeError, match="all 24 steps of this stream have been made"):
        optimizer.step()
    assert all(torch.equal(before[name], now) for name, now in model.state_dict().items())


def test_what_is_wrong_is_named(plan):
    (x, y), model = data(), small_model()
    for wrong, message in (
        (
            lambda: clipped_sum_(model, loss, x, y, 0.0),
            "clip_norm is 0.0 but must be a finite number above 0",
        ),
        (lambda: clipped_sum_(model, loss, x, y[1:], CLIP), "y is of 239 examples but must be of 240"),
        (
            lambda: clipped_sum_(model, loss, x, y, CLIP, microbatch_size=0),
            "microbatch_size is 0 but must be at least 1",
        ),
        (
            lambda: clipped_sum_(nn.Sequential(nn.BatchNorm1d(6)), loss, x, y, CLIP),
            "0 is a BatchNorm1d but must treat examples apart",
        ),
        (
            lambda: CorrelatedNoise(model, small_plan(setting="federated", min_sep=6), key()),
            "unit of the plan is user but must be example",
        ),
        (lambda: CorrelatedNoise(nn.Tanh(), plan, key()), "model is one without trainable parameters"),
        (
            lambda: CorrelatedNoise(nn.Linear(20, 20), plan, key()),
            "dim is 420 but must be from 1 to the plan's dim = 100",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            wrong()


def test_examples_are_no_users():
    plan, (x, y) = small_plan(dim=100, setting="federated", min_sep=6), data()
    model, optimizer, noise = made(plan, sums_in_grad=True)
    clipped_sum_(model, loss, x[:20], y[:20], plan.clip_norm)
    with pytest.raises(ValueError, match="unit of the sum is example but must be the plan's, user"):
        optimizer.step()
    assert noise.step == 0
    ones = {name: torch.ones(p.shape, dtype=torch.float64) for name, p in model.named_parameters()}
    add_clipped_sums(model, ones, 20, plan.clip_norm, unit="user")
    with pytest.raises(ValueError, match="unit is example but must be user, that of the sum so far"):
        clipped_sum_(model, loss, x[:20], y[:20], plan.clip_norm)
    optimizer.step()
    noisy_sum = np.empty(dim(model), np.float32)
    an.NoiseStream(plan, dim(model), key()).add_to_sum(np.ones(dim(model)), noisy_sum)
    mean = torch.cat([p.grad.reshape(-1) for p in model.parameters()])
    assert torch.equal(
        mean, torch.from_numpy((noisy_sum.astype(np.float64) / plan.expected_batch_size).astype(np.float32))
    )


class Counting(nn.Module):
    """A module that keeps a statistic of its inputs."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 3)
        self.register_buffer("seen", torch.zeros(6))

    def forward(self, x):
        if self.training:
            self.seen.add_(x.detach().sum(0))
        return self.linear(x)


@pytest.mark.parametrize("norms", ["auto", "ghost"])
def test_a_model_that_keeps_what_it_saw_is_refused(norms):
    (x, y), kept = data(), Counting()
    with pytest.raises(
        ValueError, match="buffer seen is changed by the forward pass but must be left as it was"
    ):
        clipped_sum_(kept, loss, x[:20], y[:20], CLIP, norms=norms)
    assert kept.linear.weight.grad is None and held_sum(kept.linear.weight) is None
    clipped_sum_(kept.eval(), loss, x[:20], y[:20], CLIP, norms=norms)
    norm = nn.Sequential(
        nn.Unflatten(1, (2, 3)), nn.InstanceNorm1d(2, track_running_stats=True), nn.Flatten(), nn.Linear(6, 3)
    )
    with pytest.raises(
        ValueError, match="1 is a InstanceNorm1d with track_running_stats but must be without"
    ):
        clipped_sum_(norm, loss, x[:20], y[:20], CLIP, norms=norms)
    assert not norm[1].running_mean.any()


def test_a_parameter_that_was_replaced_is_refused(plan):
    (x, y), (model, optimizer, noise) = data(), made(plan)
    own = model[2].bias
    model[2].bias = nn.Parameter(own.detach().clone())
    clipped_sum_(model, loss, x[:20], y[:20], CLIP)
    with pytest.raises(
        RuntimeError,
        match="Parameter 2.bias of the model was replaced after the noise was made",
    ):
        optimizer.step()
    assert noise.step == 0
    model[2].bias = own
    clipped_sum_(model, loss, x[:20], y[:20], CLIP)
    optimizer.step()
    assert noise.step == 1


def test_a_model_with_noise_can_still_be_converted(plan):
    model, _, noise = made(plan)
    before = torch.__future__.get_swap_module_params_on_conversion()
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        model.double()
    finally:
        torch.__future__.set_swap_module_params_on_conversion(before)
    assert model[0].weight.dtype == torch.float64 and noise.step == 0


def test_shards_of_an_old_pytorch_are_refused(monkeypatch):
    from antinoise.torch.distributed.layout import is_sharded

    class Shard:
        placements = device_mesh = ()

    def pretend(version):
        monkeypatch.setattr(torch, "__version__", torch.torch_version.TorchVersion(version))

    pretend("2.10.0+cpu")
    assert is_sharded(Shard()) and not is_sharded(torch.zeros(1))
    pretend("2.9.1+cpu")
    assert not is_sharded(torch.zeros(1))
    with pytest.raises(RuntimeError, match=r"need PyTorch 2\.10 or later, and this is 2\.9\.1"):
        is_sharded(Shard())
