"""States of the noise in PyTorch: what is resumed, what is refused, and what nothing is written of."""

import copy
import gc
import io
import pickle

import numpy as np
import pytest
from conftest import STEPS, small_plan

torch = pytest.importorskip("torch")
import torch.distributed.checkpoint as dcp  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402
from torch_run import CLIP, data, dim, key, loss, made, plan, small_model, sums_of  # noqa: E402, F401

from antinoise.torch import CorrelatedNoise, clipped_sum_, sums  # noqa: E402
from antinoise.torch.sums import held_sum  # noqa: E402


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


def test_noise_is_not_copied(plan):
    noise = made(plan)[2]
    for copied in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="a CorrelatedNoise cannot be pickled or copied"):
            copied(noise)


def written(model, optimizer, folder):
    """Every byte that is written of a model where somebody saves it, or a copy of it."""
    for what in (model, model.state_dict(), copy.deepcopy(model), copy.copy(model), list(model.parameters()), optimizer.state_dict()):
        torch.save(what, file := io.BytesIO())
        yield file.getvalue()
        yield pickle.dumps(what)
    dcp.save({"model": model.state_dict()}, checkpoint_id=folder, no_dist=True)
    yield from (file.read_bytes() for file in folder.iterdir())


def traces(total, spacing):
    """A sum's numbers, in either precision and in whole points, but for small ones, which may be anything's."""
    points = np.rint(total / spacing).astype(np.int64)
    found = [*total, *total.astype(np.float32), *points[np.abs(points) > 2**12]]
    assert len(found) > 200
    return {number.tobytes() for number in found}


@pytest.mark.filterwarnings("ignore:torch.distributed is")
@pytest.mark.parametrize("exact", [False, True])
def test_a_model_that_is_saved_between_clipping_and_step_holds_no_sum(plan, exact, tmp_path):
    (x, y), (model, optimizer, _) = data(), made(plan)
    how = dict(exact=True, grid_spacing=plan.grid_spacing) if exact else {}
    clipped_sum_(model, loss, x[:20], y[:20], CLIP, **how)
    total = sums_of(model).numpy() * how.get("grid_spacing", 1.0)
    saved = list(written(model, optimizer, tmp_path / "checkpoint"))
    assert len(saved) >= 14 and model[0].weight.detach().numpy()[0].tobytes() in saved[0]
    assert not [number for number in traces(total, plan.grid_spacing) for content in saved if number in content]
    # It would be seen on a parameter, and a copy has none.
    model[0].weight.kept = held_sum(model[0].weight).total
    assert held_sum(model[0].weight).total.numpy()[0].tobytes() in next(written(model, optimizer, tmp_path / "again"))
    assert not any(held_sum(p) for p in copy.deepcopy(model).parameters())
    optimizer.step()
    assert not any(held_sum(p) for p in model.parameters())


@pytest.mark.filterwarnings("ignore:torch.distributed is")
def test_what_is_in_grad_is_not_saved_with_the_model(plan, tmp_path):
    model, optimizer, _ = made(plan, small_model(torch.float64), sums_in_grad=True)
    for p in model.parameters():
        p.grad = torch.randn(p.shape, dtype=torch.float64)
    total = torch.cat([p.grad.reshape(-1) for p in model.parameters()]).numpy()
    saved = list(written(model, optimizer, tmp_path / "checkpoint"))
    assert not [number for number in traces(total, plan.grid_spacing) for content in saved if number in content]


def test_sums_go_with_their_parameters():
    model, (x, y) = small_model(), data()
    before = len(sums._held)
    clipped_sum_(model, loss, x[:20], y[:20], CLIP)
    assert len(sums._held) == before + 4
    del model
    gc.collect()
    assert len(sums._held) == before
