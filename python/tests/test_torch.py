"""Plain PyTorch: what the optimizer sees is the noisy mean of the plan's batch, bit by bit, and nothing else."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest
from conftest import STEPS, small_plan

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

import antinoise as an  # noqa: E402
from antinoise.torch import BatchSampler, CollateEmpty, CorrelatedNoise, clipped_sum_, leave_sum  # noqa: E402

CLIP = 0.7
loss = nn.functional.cross_entropy


def small_model(dtype=torch.float32):
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(6, 9), nn.Tanh(), nn.Linear(9, 3)).to(dtype)


def data(dtype=torch.float32):
    generator = torch.Generator().manual_seed(2)
    return torch.randn(240, 6, generator=generator).to(dtype), torch.randint(0, 3, (240,), generator=generator)


def dim(model):
    return sum(p.numel() for p in model.parameters())


@pytest.fixture(scope="module")
def plan():
    return small_plan(dim=100, clip_norm=CLIP)


def key():
    return an.Key.from_seed_insecure(5)


def made(plan, model=None, **how):
    model = model or small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    how = dict(batches_from_elsewhere=True) | how
    return model, optimizer, CorrelatedNoise(model, plan, key(), **how).attach(optimizer)


def sums_of(model):
    return torch.cat([p._antinoise_sum.total.reshape(-1) for p in model.parameters()])


def gradient_of(model, x, y):
    model.zero_grad()
    loss(model(x[None]), y[None]).backward()
    found = torch.cat([p.grad.reshape(-1) for p in model.parameters()]).double()
    model.zero_grad()
    return found


@pytest.mark.parametrize("micro_batch", [1, 7, 64])
def test_a_clipped_sum_is_that_of_a_loop(micro_batch):
    model, (x, y) = small_model(), data()
    each = [gradient_of(model, a, b) for a, b in zip(x[:20], y[:20])]
    clip = float(torch.stack([g.norm() for g in each]).median())  # half of them are longer
    clipped_sum_(model, loss, x[:20], y[:20], clip, micro_batch=micro_batch)
    wanted = sum(g * min(1, (1 - 2**-20) * clip / g.norm()) for g in each)
    assert torch.allclose(sums_of(model), wanted, rtol=1e-5, atol=1e-6)


def test_one_example_moves_the_sum_by_the_clip_norm_at_most():
    (x, y), model = data(), small_model()
    x *= 30
    clipped_sum_(model, loss, x, y, CLIP, micro_batch=1)
    whole = sums_of(model)
    for left_out in range(0, 240, 40):
        fewer = small_model()
        kept = [i for i in range(240) if i != left_out]
        clipped_sum_(fewer, loss, x[kept], y[kept], CLIP, micro_batch=1)
        assert (whole - sums_of(fewer)).norm() <= CLIP * (1 + 2**-20)


@pytest.mark.parametrize("micro_batch, tolerance", [(1, 1e-13), (64, 1e-6)])
def test_an_example_that_is_not_finite_adds_nothing(micro_batch, tolerance):
    (x, y), model, fewer = data(), small_model(), small_model()
    x[3], x[5, 0] = float("nan"), float("inf")
    clipped_sum_(model, loss, x[:8], y[:8], CLIP, micro_batch=micro_batch)
    kept = [0, 1, 2, 4, 6, 7]
    clipped_sum_(fewer, loss, x[kept], y[kept], CLIP, micro_batch=micro_batch)
    # In portions of one, gradients are the same to the last bit, and added in double precision.
    assert torch.allclose(sums_of(model), sums_of(fewer), rtol=tolerance, atol=tolerance)


def test_portions_of_a_batch_add_up(plan):
    (x, y), whole, parts = data(), small_model(), small_model()
    clipped_sum_(whole, loss, x[:20], y[:20], CLIP)
    for part in (slice(0, 8), slice(8, 8), slice(8, 20)):
        clipped_sum_(parts, loss, x[part], y[part], CLIP)
    assert torch.allclose(sums_of(whole), sums_of(parts), rtol=1e-12)
    assert next(parts.parameters())._antinoise_sum.examples == 20


@pytest.mark.parametrize("kind", ["grid", "plain"])
def test_a_step_sees_sum_and_noise_over_the_batch_size(kind):
    plan, (x, y) = small_plan(dim=100, clip_norm=CLIP, release=kind), data()
    model, optimizer, noise = made(plan)
    by_hand = an.NoiseStream(plan, dim(model), key())
    for _ in range(3):
        clipped_sum_(model, loss, x[:20], y[:20], CLIP)
        sums, before = sums_of(model).numpy(), [p.detach().clone() for p in model.parameters()]
        released = np.empty(dim(model), np.float32)
        by_hand.release(sums, released)
        optimizer.step()
        mean = torch.cat([p.grad.reshape(-1) for p in model.parameters()])
        assert torch.equal(mean, torch.from_numpy((released.astype(np.float64) / plan.expected_batch_size).astype(np.float32)))
        assert not any(hasattr(p, "_antinoise_sum") for p in model.parameters())
        assert all((p != old).any() for p, old in zip(model.parameters(), before))
        optimizer.zero_grad()
    assert noise.step == 3


def test_a_missing_gradient_is_zero_and_its_noise_is_not(plan):
    model, optimizer, _ = made(plan)
    optimizer.step()
    expected = np.empty(dim(model), np.float32)
    an.NoiseStream(plan, dim(model), key()).release(np.zeros(dim(model)), expected)
    mean = torch.cat([p.grad.reshape(-1) for p in model.parameters()])
    assert mean.abs().min() > 0
    assert torch.equal(mean, torch.from_numpy((expected.astype(np.float64) / 20).astype(np.float32)))


def test_sums_may_lie_in_grad_where_that_is_said(plan):
    model, optimizer, _ = made(plan, small_model(torch.float64), sums_in_grad=True)
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    optimizer.step()
    released = np.empty(dim(model), np.float32)
    an.NoiseStream(plan, dim(model), key()).release(np.ones(dim(model)), released)
    assert torch.equal(torch.cat([p.grad.reshape(-1) for p in model.parameters()]), torch.from_numpy(released.astype(np.float64) / 20))


def run(plan, steps, state=None, **how):
    """A run with the key of the tests, or one that is resumed, whose key is in its state."""
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    noise = CorrelatedNoise(model, plan, None if state else key(), **how).attach(optimizer)
    loader = DataLoader(TensorDataset(*data()), batch_sampler=noise.batch_sampler())
    if state:
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        noise.load_state_dict(state["noise"])
    for a, b in loader:
        if noise.step == steps:
            break
        clipped_sum_(model, loss, a, b, plan.clip_norm)
        optimizer.step()
        optimizer.zero_grad()
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "noise": noise.state_dict()}


def test_a_run_that_is_resumed_has_the_same_bits(plan, tmp_path):
    torch.save(run(plan, 7), tmp_path / "state")
    resumed, whole = run(plan, STEPS, torch.load(tmp_path / "state", weights_only=True)), run(plan, STEPS)
    for name, parameter in whole["model"].items():
        assert torch.equal(parameter, resumed["model"][name]), name
    assert not torch.equal(whole["model"]["0.weight"], run(plan, 7)["model"]["0.weight"])
    other = small_plan(dim=100, clip_norm=CLIP, epsilon=3)
    with pytest.raises(ValueError, match="plan of the state is another"):
        made(other)[2].load_state_dict(whole["noise"])
    with pytest.raises(ValueError, match="layout of the state is another model's"):
        made(plan, nn.Linear(6, 3))[2].load_state_dict(whole["noise"])


@pytest.mark.parametrize("kind", ["grid", "plain"])
def test_noise_that_is_made_ahead_has_the_same_bits(kind):
    plan = small_plan(dim=100, clip_norm=CLIP, release=kind)
    whole, ahead = run(plan, STEPS), run(plan, STEPS, ahead=True)
    assert all(torch.equal(p, ahead["model"][name]) for name, p in whole["model"].items())
    # A row that waits is a part of the state, whoever goes on.
    for first, then in ((True, True), (True, False), (False, True)):
        state = run(plan, 7, ahead=first)
        assert state["noise"]["steps"][2] == first and state["noise"]["steps"][0] == 7 + first
        resumed = run(plan, STEPS, state, ahead=then)
        assert all(torch.equal(p, resumed["model"][name]) for name, p in whole["model"].items()), (first, then)
    model, optimizer, noise = made(plan, ahead=True)
    for _ in range(STEPS):
        optimizer.step()
        optimizer.zero_grad()
    assert noise.step == STEPS
    with pytest.raises(RuntimeError, match="all 24 steps of this stream have been made"):
        optimizer.step()


@pytest.mark.parametrize("wild", [float("nan"), float("inf"), -float("inf")])
def test_sums_that_are_not_finite_are_refused(plan, wild):
    model, optimizer, noise = made(plan, small_model(torch.float64), sums_in_grad=True)
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    model[2].bias.grad[1] = wild
    with pytest.raises(ValueError, match="sum of 2.bias is not finite but must be one of clipped gradients"):
        optimizer.step()
    assert noise.step == 0


@pytest.mark.parametrize("wild", [1e300, -1e300, 2.0**60, 1e9])
def test_wild_sums_are_released_alike(plan, wild):
    at_once, ahead = (made(plan, small_model(torch.float64), sums_in_grad=True, ahead=ahead) for ahead in (False, True))
    for model, optimizer, _ in (at_once, ahead):
        for p in model.parameters():
            p.grad = torch.full_like(p, wild)
        optimizer.step()
    for p, q in zip(at_once[0].parameters(), ahead[0].parameters()):
        assert torch.equal(p.grad, q.grad) and p.grad.isfinite().all()


def test_batches_are_the_plans(plan):
    batches, sampled = BatchSampler(plan, key()), an.Batches(plan, key())
    assert len(batches) == STEPS and list(batches) == [batch.tolist() for batch in sampled]
    assert list(BatchSampler(plan, key(), start=20)) == list(batches)[20:]
    with pytest.raises(ValueError, match="start is 25 but must be from 0 to 24"):
        BatchSampler(plan, key(), start=25)


def test_batches_belong_to_the_noise(plan):
    (x, y), (model, optimizer, noise) = data(), made(plan, batches_from_elsewhere=False)

    def step():
        clipped_sum_(model, loss, x[:20], y[:20], CLIP)
        optimizer.step()

    with pytest.raises(ValueError, match="batch of step 0 is from elsewhere but must be drawn from batch_sampler"):
        step()
    drawn = noise.batch_sampler()
    with pytest.raises(ValueError, match="batch of step 0 is from elsewhere"):
        step()
    assert drawn.token == an.Batches(plan, key()).token == noise.token
    for at, batch in enumerate(drawn):
        assert batch == an.Batches(plan, key()).at(at).tolist()
        if at == 2:
            break
        step()
    state = noise.state_dict()
    # Each pass begins where the noise stands, and goes on with the run that is resumed.
    assert next(iter(drawn)) == batch and len(drawn) == STEPS - 2
    other = CorrelatedNoise(small_model(), plan)
    followed = other.batch_sampler()
    assert next(iter(followed)) != an.Batches(plan, key()).at(0).tolist()
    other.load_state_dict(state)
    assert followed.token == drawn.token and next(iter(followed)) == batch
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    noise.detach()
    with pytest.raises(ValueError, match="batches are of another run or key but must be those of the noise"):
        noise.attach(optimizer, BatchSampler(plan, an.Key.from_seed_insecure(6)))
    noise.attach(optimizer, BatchSampler(plan, key(), start=2))
    with pytest.raises(ValueError, match="batches are of another run or key"):
        noise.load_state_dict(CorrelatedNoise(small_model(), plan).state_dict())
    assert noise.step == 2


def test_a_state_that_was_altered_is_refused(plan):
    noise = made(plan)[2]
    noise.add_()
    state = noise.state_dict()
    for name, wrong in (("run_key", torch.arange(32, dtype=torch.uint8)), ("steps", torch.tensor([2, 2, 0])), ("commitment", state["plan"])):
        with pytest.raises(ValueError, match="commitment is .* but must be that of this key"):
            noise.load_state_dict(state | {name: wrong})
    with pytest.raises(ValueError, match="step of the state is 25 but must be from 0 to steps = 24"):
        noise.load_state_dict(state | {"steps": torch.tensor([25, 25, 0])})
    with pytest.raises(ValueError, match="run_key is one byte over and over"):
        noise.load_state_dict(state | {"run_key": torch.zeros(32, dtype=torch.uint8)})
    assert noise.step == 1


def test_an_empty_batch_is_a_batch(plan):
    collate, model = CollateEmpty(TensorDataset(*data())), small_model()
    x, y = collate([])
    assert (x.shape, y.shape) == ((0, 6), (0,)) and collate([(x, y)] * 2)[0].shape == (2, 0, 6)
    clipped_sum_(model, loss, x, y, CLIP)
    assert not sums_of(model).any() and next(model.parameters())._antinoise_sum.examples == 0


def test_what_would_void_the_claim_is_refused(plan):
    (x, y), (model, optimizer, noise) = data(), made(plan)
    before = copy.deepcopy(model.state_dict())

    def refused(message, step=optimizer.step):
        with pytest.raises(ValueError, match=message):
            step()
        assert noise.step == 0 and all(torch.equal(before[name], now) for name, now in model.state_dict().items())

    def closure():
        raise AssertionError("it was called")

    refused("closure is given but must be left out", lambda: optimizer.step(closure))
    refused("closure is given but must be left out", lambda: optimizer.step(closure=closure))
    optimizer.grad_scale = torch.tensor(1024.0)
    refused("grad_scale of the optimizer is set but must not be")
    optimizer.grad_scale = None
    clipped_sum_(model, loss, x[:19], y[:19], CLIP)
    refused("batch of step 0 is of 19 examples but must be the plan's, of 20")
    # What was refused is gone: it is not a part of the next batch.
    clipped_sum_(model, loss, x[:20], y[:20], CLIP)
    model[0].weight._antinoise_sum = dataclasses.replace(model[0].weight._antinoise_sum, examples=3)
    refused("sums of the parameters are of \\[3, 20\\] examples but must be of one batch")
    clipped_sum_(model, loss, x[:20], y[:20], 2 * CLIP)
    refused("clip_norm of the sum is 1.4 but must be the plan's, 0.7")
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    refused("gradient of 0.weight is in .grad but must be the sum that clipped_sum_ leaves")
    model.zero_grad()
    refused("optimizer is a second one", lambda: noise.attach(torch.optim.SGD(model.parameters(), lr=1.0)))
    optimizer.add_param_group({"params": [nn.Parameter(torch.zeros(2))]})
    refused("parameters of the optimizer are others")
    noise.detach()
    refused("parameters of the optimizer are others", lambda: noise.attach(torch.optim.SGD(model[0].parameters(), lr=1.0)))
    model[0].weight.data = torch.zeros(9, 5)
    with pytest.raises(ValueError, match="layout of the model is another"):
        noise.add_()


@pytest.mark.parametrize("kind", ["grid", "plain"])
def test_sums_in_single_precision_are_taken_from_who_answers_for_them(kind):
    plan = small_plan(dim=100, clip_norm=CLIP, release=kind)
    model, optimizer, noise = made(plan, sums_in_grad=True)
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    with pytest.raises(ValueError, match="gradient of 0.weight is of dtype torch.float32 but must be float64: .* trust_float32_sums=True"):
        optimizer.step()
    assert (noise.step, noise.statement) == (0, plan.statement)
    model, optimizer, noise = made(plan, sums_in_grad=True, trust_float32_sums=True)
    assert noise.statement.startswith(plan.statement) and "Assumed, not proved: that one example moves the sums" in noise.statement
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
        (lambda: clipped_sum_(model, loss, x, y, 0.0), "clip_norm is 0.0 but must be a finite number above 0"),
        (lambda: clipped_sum_(model, loss, x, y[1:], CLIP), "y is of 239 examples but must be of 240"),
        (lambda: clipped_sum_(model, loss, x, y, CLIP, micro_batch=0), "micro_batch is 0 but must be at least 1"),
        (lambda: clipped_sum_(nn.Sequential(nn.BatchNorm1d(6)), loss, x, y, CLIP), "0 is a BatchNorm1d but must treat examples apart"),
        (lambda: CorrelatedNoise(model, small_plan(setting="federated", min_sep=6), key()), "unit of the plan is user but must be example"),
        (lambda: CorrelatedNoise(nn.Tanh(), plan, key()), "model is one without trainable parameters"),
        (lambda: CorrelatedNoise(nn.Linear(20, 20), plan, key()), "dim is 420 but must be from 1 to the plan's dim = 100"),
    ):
        with pytest.raises(ValueError, match=message):
            wrong()


def test_noise_is_not_copied(plan):
    noise = made(plan)[2]
    for copied in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="a CorrelatedNoise cannot be pickled or copied"):
            copied(noise)


def test_frozen_parameters_are_left_alone(plan):
    model, (x, y) = small_model(), data()
    model[0].requires_grad_(False)
    frozen = copy.deepcopy(model[0].state_dict())
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad])
    CorrelatedNoise(model, plan, key(), batches_from_elsewhere=True).attach(optimizer)
    clipped_sum_(model, loss, x[:20], y[:20], CLIP)
    optimizer.step()
    assert all(torch.equal(frozen[name], now) for name, now in model[0].state_dict().items())
    assert model[0].weight.grad is None and model[2].weight.grad.abs().min() > 0


def test_a_tensor_is_written_in_place(plan):
    noise, row, again = an.NoiseStream(plan, 100, key()), torch.zeros(10, 10), np.empty(100, np.float32)
    noise.next_into(row)
    an.NoiseStream(plan, 100, key()).next_into(again)
    assert torch.equal(row.reshape(-1), torch.from_numpy(again))
    for wrong, message in (
        (row.T, "out is an array of shape"),
        (row.double(), "out is of dtype float64"),
        (torch.zeros(100, device="meta"), "out is .* but must be a NumPy array, a tensor in the host's memory"),
    ):
        with pytest.raises(ValueError, match=message):
            noise.next_into(wrong)


def used(indices):
    """The least distance of two steps of an example."""
    last, least = {}, STEPS
    for step, batch in enumerate(indices):
        for example in batch:
            least, last[example] = min(least, step - last.get(example, -STEPS)), step
    return least


class Numbered(torch.utils.data.Dataset):
    def __len__(self):
        return 240

    def __getitem__(self, i):
        return data()[0][i], data()[1][i], i


@pytest.mark.parametrize("workers", [0, 2])
def test_a_batch_that_is_dropped_moves_no_other(plan, workers):
    def train(drop, again):
        model, optimizer, noise = made(plan, batches_from_elsewhere=False)
        loader = DataLoader(Numbered(), batch_sampler=noise.batch_sampler(), num_workers=workers)
        batches, found = iter(loader), []
        while noise.step < STEPS:
            x, y, numbers = next(batches)
            if drop is not None and noise.step == drop:
                drop, batches = None, iter(loader) if again else batches
                continue
            clipped_sum_(model, loss, x, y, CLIP)
            optimizer.step()
            found.append(numbers.tolist())
        return found

    whole = train(None, again=False)
    assert used(whole) == 12 and sorted(sum(whole[:12], [])) == list(range(240))
    # What was dropped is drawn again by another pass.
    assert train(15, again=True) == whole
    with pytest.raises(ValueError, match="batches before step 15 are drawn and dropped but must be used each in its step"):
        train(15, again=False)


def test_one_pass_over_batches_is_the_last(plan):
    model, optimizer, noise = made(plan, batches_from_elsewhere=False)
    loader = DataLoader(TensorDataset(*data()), batch_sampler=noise.batch_sampler(), num_workers=2)

    def step(batches):
        x, y = next(batches)
        clipped_sum_(model, loss, x, y, CLIP)
        optimizer.step()

    first, second = iter(loader), iter(loader)
    with pytest.raises(ValueError, match="pass is an earlier one, or of another run, but must be the last that was begun"):
        step(first)
    step(second)
    # Batches of another key wait in this loader.
    third, other = iter(loader), CorrelatedNoise(small_model(), plan, batches_from_elsewhere=True)
    other.add_()
    noise.load_state_dict(other.state_dict())
    assert noise.step == 1
    with pytest.raises(ValueError, match="pass is an earlier one, or of another run"):
        step(third)
    batches = BatchSampler(plan, key())
    model, optimizer, noise = made(plan, batches_from_elsewhere=False)
    noise.detach()
    noise.attach(optimizer, batches)
    loader = DataLoader(TensorDataset(*data()), batch_sampler=batches, num_workers=2)
    step(iter(loader))
    with pytest.raises(ValueError, match="batch of step 1 is that of 0 in its pass but must be its own"):
        step(iter(loader))


def test_a_run_does_not_go_back(plan):
    model, _, noise = made(plan)
    noise.add_()
    state = noise.state_dict()
    noise.load_state_dict(state)
    model.zero_grad()
    noise.add_()
    with pytest.raises(ValueError, match="step of the state is 1 but must be at least 2: noise after it is in releases"):
        noise.load_state_dict(state)
    other = CorrelatedNoise(small_model(), plan, batches_from_elsewhere=True)
    other.load_state_dict(state)
    assert (noise.step, other.step) == (2, 1)


def test_examples_are_no_users():
    plan, (x, y) = small_plan(dim=100, setting="federated", min_sep=6), data()
    model, optimizer, noise = made(plan, sums_in_grad=True)
    clipped_sum_(model, loss, x[:20], y[:20], plan.clip_norm)
    with pytest.raises(ValueError, match="unit of the sum is example but must be the plan's, user"):
        optimizer.step()
    assert noise.step == 0
    for p in model.parameters():
        leave_sum(p, torch.ones(p.shape, dtype=torch.float64), 20, plan.clip_norm, unit="user")
    with pytest.raises(ValueError, match="unit is example but must be user, that of the sum so far"):
        clipped_sum_(model, loss, x[:20], y[:20], plan.clip_norm)
    optimizer.step()
    released = np.empty(dim(model), np.float32)
    an.NoiseStream(plan, dim(model), key()).release(np.ones(dim(model)), released)
    mean = torch.cat([p.grad.reshape(-1) for p in model.parameters()])
    assert torch.equal(mean, torch.from_numpy((released.astype(np.float64) / plan.expected_batch_size).astype(np.float32)))


class Counting(nn.Module):
    """Keeps what it saw."""

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
    with pytest.raises(ValueError, match="buffer seen is changed by the forward pass but must be left as it was"):
        clipped_sum_(kept, loss, x[:20], y[:20], CLIP, norms=norms)
    assert kept.linear.weight.grad is None and not hasattr(kept.linear.weight, "_antinoise_sum")
    clipped_sum_(kept.eval(), loss, x[:20], y[:20], CLIP, norms=norms)
    norm = nn.Sequential(nn.Unflatten(1, (2, 3)), nn.InstanceNorm1d(2, track_running_stats=True), nn.Flatten(), nn.Linear(6, 3))
    with pytest.raises(ValueError, match="1 is a InstanceNorm1d with track_running_stats but must be without"):
        clipped_sum_(norm, loss, x[:20], y[:20], CLIP, norms=norms)
    assert not norm[1].running_mean.any()
