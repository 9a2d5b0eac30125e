"""States of the noise in PyTorch: what is resumed, what is refused, and what is never written."""

import copy
import gc
import io
import pickle

import corruption
import numpy as np
import pytest
from conftest import STEPS, small_plan
from corruption import survey

torch = pytest.importorskip("torch")
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch_run import CLIP, data, dim, key, loss, made, plan, small_model, sums_of

import antinoise as an
from antinoise.torch import CorrelatedNoise, clipped_sum_, held_sums
from antinoise.torch.held_sums import held_sum


def run(plan, steps, state=None, **how):
    """A run with the tests' key, or a resumed run, whose key is in its state."""
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
    plan = small_plan(dim=100, clip_norm=CLIP, arithmetic=kind)
    whole, ahead = run(plan, STEPS), run(plan, STEPS, prefetch=True)
    assert all(torch.equal(p, ahead["model"][name]) for name, p in whole["model"].items())
    # A row made ahead is part of the state, whichever process resumes.
    for first, then in ((True, True), (True, False), (False, True)):
        state = run(plan, 7, prefetch=first)
        assert state["noise"]["steps"][2] == first and state["noise"]["steps"][0] == 7 + first
        resumed = run(plan, STEPS, state, prefetch=then)
        assert all(torch.equal(p, resumed["model"][name]) for name, p in whole["model"].items()), (
            first,
            then,
        )
    model, optimizer, noise = made(plan, prefetch=True)
    for _ in range(STEPS):
        optimizer.step()
        optimizer.zero_grad()
    assert noise.step == STEPS
    with pytest.raises(RuntimeError, match="all 24 steps of this stream have been made"):
        optimizer.step()


def test_a_state_that_was_altered_is_refused(plan):
    noise = made(plan)[2]
    noise.apply_()
    state = noise.state_dict()
    for name, wrong in (
        ("run_key", torch.arange(32, dtype=torch.uint8)),
        ("steps", torch.tensor([2, 2, 0])),
        ("commitment", state["plan"]),
    ):
        with pytest.raises(RuntimeError, match="the state is not the one that was saved"):
            noise.load_state_dict(state | {name: wrong})
    with pytest.raises(ValueError, match="step of the state is 25 but must be from 0 to steps = 24"):
        noise.load_state_dict(state | {"steps": torch.tensor([25, 25, 0])})
    with pytest.raises(ValueError, match="run_key is one byte over and over"):
        noise.load_state_dict(state | {"run_key": torch.zeros(32, dtype=torch.uint8)})
    assert noise.step == 1


def test_a_run_does_not_go_back(plan):
    model, _, noise = made(plan)
    noise.apply_()
    state = noise.state_dict()
    noise.load_state_dict(state)
    model.zero_grad()
    noise.apply_()
    with pytest.raises(
        ValueError, match="step of the state is 1 but must be at least 2: noise after it is in noisy sums"
    ):
        noise.load_state_dict(state)
    other = CorrelatedNoise(small_model(), plan, external_batches=True)
    other.load_state_dict(state)
    assert (noise.step, other.step) == (2, 1)


@pytest.mark.parametrize("kind", ["grid", "plain"])
@pytest.mark.parametrize("first, then", [(False, False), (True, True), (True, False), (False, True)])
def test_one_state_that_is_resumed_twice_hides_one_sum(kind, first, then):
    plan, (x, y) = small_plan(dim=100, clip_norm=CLIP, arithmetic=kind), data()
    saved = CorrelatedNoise(small_model(), plan, external_batches=True)
    saved.apply_()
    state = saved.state_dict()

    def resumed(ahead, some, **how):
        model = small_model()
        noise = CorrelatedNoise(model, plan, external_batches=True, prefetch=ahead, **how)
        noise.load_state_dict(state)
        clipped_sum_(model, loss, x[some], y[some], CLIP)
        noise.apply_()
        return model[0].weight.grad, noise

    grad, _ = resumed(first, slice(0, 20))
    with pytest.raises(RuntimeError, match="the noise of step 1 is in a noisy sum of this process"):
        resumed(then, slice(20, 40))
    again, noise = resumed(then, slice(0, 20))
    assert torch.equal(grad, again) and noise.step == 2
    other, _ = resumed(then, slice(20, 40), reuse_noise_unprotected=True)
    assert not torch.equal(other, grad)


@pytest.mark.parametrize("wild", [1e300, -1e300, 2.0**60])
@pytest.mark.parametrize("ahead", [False, True])
def test_sums_that_are_too_large_for_whole_points_are_refused_before_their_step_is_used(plan, ahead, wild):
    model, optimizer, noise = made(plan, small_model(torch.float64), sums_in_grad=True, prefetch=ahead)
    calm = made(plan, small_model(torch.float64), sums_in_grad=True, prefetch=ahead)
    for step in range(3):
        for p in model.parameters():
            p.grad = torch.full_like(p, wild)
        with pytest.raises(ValueError, match="sum is not finite, or beyond what a noisy sum can hold"):
            optimizer.step()
        assert noise.step == step
        for own, others in zip(model.parameters(), calm[0].parameters()):
            own.grad, others.grad = torch.ones_like(own), torch.ones_like(own)
        optimizer.step()
        calm[1].step()
        assert all(torch.equal(p, q) for p, q in zip(model.parameters(), calm[0].parameters()))


def test_a_noisy_sum_that_is_made_ahead_has_the_digest_of_any():
    from antinoise.torch.noisy_sum_digest import digest_of_noisy_sum

    plain, compared = small_plan(dim=9000, arithmetic="plain", clip_norm=CLIP), 0
    for sizes in ([5000], [1, 1023, 4000], [1500, 2048, 0, 77], [3, 1021, 1, 4096]):
        by_rust = an.NoiseStream(plain, sum(sizes), an.Key.from_os())
        row = torch.empty(sum(sizes))
        by_rust.add_to_sum(torch.randn(sum(sizes), dtype=torch.float64), row)
        digest = digest_of_noisy_sum(row.split(sizes))
        # The step's noise can be used again for the same sum only.
        by_rust._noisy_sum_made(0, digest)
        with pytest.raises(RuntimeError, match="the noise of step 0 is in a noisy sum"):
            by_rust._noisy_sum_made(0, digest ^ 1)
        compared += 1
    assert compared == 4


def test_noise_is_not_copied(plan):
    noise = made(plan)[2]
    for copied in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="a CorrelatedNoise cannot be pickled or copied"):
            copied(noise)


def written(model, optimizer, folder):
    """All bytes written when a model, or a copy of it, is saved."""
    for what in (
        model,
        model.state_dict(),
        copy.deepcopy(model),
        copy.copy(model),
        list(model.parameters()),
        optimizer.state_dict(),
    ):
        torch.save(what, file := io.BytesIO())
        yield file.getvalue()
        yield pickle.dumps(what)
    dcp.save({"model": model.state_dict()}, checkpoint_id=folder)
    yield from (file.read_bytes() for file in folder.iterdir())


def traces(total, spacing):
    """A sum's byte patterns, in single and double precision and as integers, without small values, which
    occur by chance.
    """
    points = np.rint(total / spacing).astype(np.int64)
    found = [*total, *total.astype(np.float32), *points[np.abs(points) > 2**12]]
    assert len(found) > 200
    return {number.tobytes() for number in found}


@pytest.mark.filterwarnings("ignore:torch.distributed is")
@pytest.mark.parametrize("exact", [False, True])
def test_a_model_that_is_saved_between_clipping_and_step_holds_no_sum(plan, exact, tmp_path):
    (x, y), (model, optimizer, _) = data(), made(plan)
    how = dict(grid_spacing=plan.grid_spacing) if exact else {}
    clipped_sum_(model, loss, x[:20], y[:20], CLIP, **how)
    total = sums_of(model).numpy() * how.get("grid_spacing", 1.0)
    saved = list(written(model, optimizer, tmp_path / "checkpoint"))
    assert len(saved) >= 14 and model[0].weight.detach().numpy()[0].tobytes() in saved[0]
    assert not [
        number for number in traces(total, plan.grid_spacing) for content in saved if number in content
    ]
    # It would be seen on a parameter, and a copy has none.
    model[0].weight.kept = held_sum(model[0].weight).total
    assert held_sum(model[0].weight).total.numpy()[0].tobytes() in next(
        written(model, optimizer, tmp_path / "again")
    )
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
    assert not [
        number for number in traces(total, plan.grid_spacing) for content in saved if number in content
    ]


def test_sums_go_with_their_parameters():
    model, (x, y) = small_model(), data()
    gc.collect()
    before = len(held_sums._held)
    clipped_sum_(model, loss, x[:20], y[:20], CLIP)
    assert len(held_sums._held) == before + 4
    del model
    gc.collect()
    assert len(held_sums._held) == before


def wide_model():
    torch.manual_seed(1)
    return nn.Linear(40, 30)


def wide(plan, steps, key, run=None, prefetch=True):
    """The state of a run at this step, with more coordinates than a file's block has bytes."""
    model = wide_model()
    noise = CorrelatedNoise(model, plan, key, run=run, prefetch=prefetch, external_batches=True)
    for _ in range(steps):
        noise.apply_()
        model.zero_grad()
    return noise.state_dict()


@pytest.fixture(scope="module")
def states():
    """A state with a row made ahead, and states of another step, run and key."""
    plan = small_plan(dim=1230, clip_norm=CLIP)
    others = [(4, key(), None), (3, key(), "other"), (3, an.Key.from_seed_insecure(6), None)]
    return plan, wide(plan, 3, key()), [wide(plan, *how) for how in others]


def rest(plan, state):
    """The next rows of a run that resumes from a state."""
    model = wide_model()
    noise = CorrelatedNoise(model, plan, an.Key.from_seed_insecure(9), external_batches=True)
    noise.load_state_dict(state)
    rows = []
    for _ in range(3):
        noise.apply_()
        rows += [p.grad.numpy().tobytes() for p in model.parameters()]
        model.zero_grad()
    return noise.step, rows


def as_file(state):
    torch.save(state, file := io.BytesIO())
    return file.getvalue()


def test_a_state_in_a_file_that_was_damaged_is_refused_or_the_same(states):
    plan, state, others = states
    refused = survey(
        as_file(state),
        [as_file(other) for other in others],
        lambda content: torch.load(io.BytesIO(content), weights_only=True),
        lambda found: rest(plan, found),
        rest(plan, state),
    )
    # Damage that is not refused is in padding and the like.
    assert (
        refused["cut"] == corruption.CUTS and refused["flip"] > corruption.FLIPS // 2 and refused["zeros"] > 0
    )


@pytest.mark.parametrize("kind", ["*.distcp", ".metadata"])
@pytest.mark.filterwarnings("ignore:torch.distributed is")
def test_a_distributed_checkpoint_that_was_damaged_is_refused_or_the_same(states, tmp_path, kind):
    plan, state, others = states
    for number, each in enumerate([state, *others]):
        dcp.save({"noise": each}, checkpoint_id=tmp_path / str(number))
    (name,) = (file.name for file in (tmp_path / "0").glob(kind))
    template = wide(plan, 0, an.Key.from_seed_insecure(9))

    def load(content):
        (tmp_path / "0" / name).write_bytes(content)
        found = copy.deepcopy(template)
        try:
            dcp.load({"noise": found}, checkpoint_id=tmp_path / "0")
        except dcp.api.CheckpointException as error:  # no Exception
            raise RuntimeError("not read") from error
        return found

    files = [(tmp_path / str(number) / name).read_bytes() for number in range(4)]
    refused = survey(files[0], files[1:], load, lambda found: rest(plan, found), rest(plan, state))
    assert refused["flip"] > corruption.FLIPS // 4 and refused["cut"] > 0


def test_entries_of_other_states_are_refused(states):
    plan, state, others = states
    tried = 0
    for other in others:
        for name in state.keys() - {"plan", "layout"}:
            if name != "past" and torch.equal(state[name], other[name]):
                continue
            with pytest.raises(RuntimeError, match="the state is not the one that was saved"):
                rest(plan, state | {name: other[name]})
            tried += 1
        # A mixed state: `past` of some parameters is from another state.
        for name in state["past"]:
            with pytest.raises(RuntimeError, match="the state is not the one that was saved"):
                rest(plan, state | {"past": state["past"] | {name: other["past"][name]}})
            tried += 1
    assert tried >= corruption.SWAPS


def test_a_past_of_zeros_is_refused(states):
    plan, state, _ = states
    for zeroed in ([0], [1], [-1], slice(None)):
        past = {name: words.clone() for name, words in state["past"].items()}
        for words in past.values():
            words[zeroed] = 0
        with pytest.raises(RuntimeError, match="the state is not the one that was saved"):
            rest(plan, state | {"past": past})


def test_what_is_no_state_is_refused(states):
    plan, state, _ = states
    past = state["past"]
    for damaged in (
        *({name: entry for name, entry in state.items() if name != left_out} for left_out in state),
        state | {"past": {"weight": past["weight"]}},
        state | {"past": past | {"weight": past["weight"][1:]}},
        state | {"past": past | {"weight": past["weight"].float()}},
        state | {"past": past["weight"]},
        state | {"steps": state["steps"][:2]},
        state | {"steps": -state["steps"]},
        state | {"run_key": "key"},
        state | {"commitment": None},
        state | {"more": 7},
        state | {"more": torch.zeros(0)},
        {},
    ):
        with pytest.raises(RuntimeError, match="use another copy of the state|Use another copy of the state"):
            rest(plan, damaged)
