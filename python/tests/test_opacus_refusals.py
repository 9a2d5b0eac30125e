"""Opacus: actions that would void the privacy statement are refused and change nothing."""

import copy
import io

import pytest
from conftest import STEPS, small_plan
from corruption import refuses_all

torch = pytest.importorskip("torch")
pytest.importorskip("opacus")
from opacus.schedulers import ExponentialGradClip, ExponentialNoise
from opacus_run import (
    CLIP,
    Run,
    data,
    key,
    no_noise_of_opacus,
    plan,
    refused,
    small_model,
    trained,
)
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, WeightedRandomSampler

import antinoise as an
from antinoise.opacus import PrivacyEngine
from antinoise.torch.held_sums import held_sum

pytestmark = pytest.mark.filterwarnings(
    "ignore:Full backward hook:UserWarning", "ignore:ghost clipping:UserWarning"
)


class Endless(IterableDataset):
    def __iter__(self):
        return iter(())


def weighted():
    return DataLoader(data(), batch_size=20, sampler=WeightedRandomSampler([1.0] * 240, 240))


@pytest.mark.parametrize("mode", ["hooks", "ghost"])
def test_what_would_void_the_claim_is_refused_at_a_step(mode, plan):
    run = Run(plan, mode)
    x, y = next(iter(run.loader))
    refused(
        run,
        "batch of step 0 is of 19 examples but must be the plan's, of 20",
        lambda: run.step(x[:19], y[:19]),
    )
    run.step(x, y)
    for scheduler in (ExponentialNoise, ExponentialGradClip):
        run = Run(plan, mode)
        made = scheduler(run.optimizer, gamma=0.9)
        made.step()
        name = "noise_multiplier" if scheduler is ExponentialNoise else "max_grad_norm"
        refused(run, f"{name} of the optimizer is .* but must be the plan's", lambda run=run: run.step(x, y))
    run = Run(plan, mode)
    x, y = next(iter(run.loader))
    run.backward(x, y)
    absent = "The gradient of 0.weight is in .grad, where nothing has clipped it"
    refused(run, absent, run.inner.step, RuntimeError)
    run.optimizer.zero_grad()
    gone = "Per sample gradient is not initialized", ValueError
    if mode != "hooks":
        gone = "There is no clipped sum of this batch: call backward", RuntimeError
    run.backward(x, y)
    run.optimizer.step()
    # Without zero_grad().
    refused(run, gone[0], run.optimizer.step, gone[1])


def test_batches_do_not_mix(plan):
    run = Run(plan, "hooks")
    x, y = next(iter(run.loader))
    run.backward(x, y)
    refused(run, "batch of step 0 is of 40 examples but must be the plan's, of 20", lambda: run.step(x, y))
    run = Run(plan, "ew")
    run.backward(x, y)
    refused(run, "follows a backward pass without a step between", lambda: run.step(x, y), RuntimeError)
    run = Run(plan, "ghost")
    run.module.max_grad_norm = 2.0
    refused(run, "max_grad_norm of the module is 2.0 but must be the plan's, 0.7", lambda: run.step(x, y))
    run = Run(plan, "no_op")
    for i, p in enumerate(run.model.parameters()):
        p.grad_sample = torch.zeros(20 - i, *p.shape)
    refused(
        run,
        r"gradients of the parameters are of \[17, 18, 19, 20\] examples but must be of one batch",
        run.optimizer.step,
    )


@pytest.mark.parametrize(
    "how, message",
    [
        (dict(noise_multiplier=1.0), "noise_multiplier is 1.0 but must be left out, or 1.08"),
        (dict(max_grad_norm=1.0), "max_grad_norm is 1.0 but must be left out, or 0.7 as the plan says"),
        (dict(poisson_sampling=True), "poisson_sampling is True but must be left out, or False as the plan says"),
        (dict(clipping="adaptive"), "clipping is adaptive but must be flat or per_layer"),
        (dict(clipping="per_layer", mode="ghost"), "clipping is per_layer but must be flat where grad_sample_mode is ghost"),
        (dict(noise_generator=torch.Generator()), "noise_generator is given but must be left out"),
        (dict(mode="ghost_tp"), "grad_sample_mode is ghost_tp but must be one of hooks, functorch, ew, no_op, ghost, ghost_fsdp"),
        (dict(mode="ghost_fsdp"), "module is a Sequential but must be one of FSDP2 .fully_shard. where grad_sample_mode is ghost_fsdp"),
        (dict(loader=DataLoader(data(), batch_size=8)), "batch_size of the loader is 8 but must be the plan's, 20"),
        (dict(loader=DataLoader(data(239), batch_size=20)), "data set of the loader is of 239 examples but must be of the plan's 240"),
        (dict(loader=weighted()), "sampler of the loader is WeightedRandomSampler but must be left out"),
        (dict(loader=DataLoader(Endless(), batch_size=20)), "data set of the loader is a Endless but must be"),
        (dict(optimizer=torch.optim.SGD(small_model().parameters(), lr=1.0)), "Module parameters are different than optimizer"),
    ],
)  # fmt: skip
def test_what_is_not_the_plans_is_refused(how, message, plan):
    with pytest.raises(ValueError, match=message):
        Run(plan, **how)


def test_a_refusal_leaves_the_model_as_it_was(plan):
    model = small_model()
    with pytest.raises(ValueError, match="dim is 93 but must be from 1 to the plan's dim = 50"):
        Run(small_plan(dim=50), model=model)
    with pytest.raises(ValueError, match="parameters of the optimizer are others"):
        Run(plan, model=model, optimizer=torch.optim.SGD(model[0].parameters(), lr=1.0))
    assert not any(hasattr(p, "grad_sample") for p in model.parameters())
    run = Run(plan, model=model)
    run.step(*next(iter(run.loader)))
    with pytest.raises(RuntimeError, match="This engine has made a model private already"):
        run.engine.make_private(module=small_model(), optimizer=run.inner, data_loader=run.loader)
    asked = dict(target_epsilon=4.0, target_delta=1e-5, epochs=2, max_grad_norm=CLIP)
    with pytest.raises(RuntimeError, match="this engine has a plan, which states epsilon"):
        run.engine.make_private_with_epsilon(
            module=model, optimizer=run.inner, data_loader=run.loader, **asked
        )


def test_an_engine_without_a_plan_makes_one():
    engine, model = PrivacyEngine(key=key()), small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    how = dict(module=model, optimizer=optimizer, data_loader=DataLoader(data(), batch_size=20))
    with pytest.raises(RuntimeError, match="this engine has no plan: call make_private_with_epsilon"):
        engine.make_private(**how)
    asked = dict(target_epsilon=4.0, target_delta=1e-5, epochs=2, max_grad_norm=CLIP, poisson_sampling=False)
    for wrong, message in (
        (DataLoader(data(), batch_size=None), "batch_size of the loader is None but must be given"),
        (DataLoader(data(), batch_sampler=[[1, 2]]), "sampler of the loader is list but must be left out"),
    ):
        with pytest.raises(ValueError, match=message):
            engine.make_private_with_epsilon(**(how | dict(data_loader=wrong)), **asked)
    with pytest.raises(ValueError, match="clipping is adaptive but must be flat or per_layer"):
        engine.make_private_with_epsilon(**how, **asked, clipping="adaptive")
    module, private, loader = engine.make_private_with_epsilon(**how, **asked)
    how_planned = dict(epochs=2, epsilon=4, delta=1e-5, clip_norm=CLIP, dim=93, workload="last-iterate")
    assert engine.plan == an.plan(240, 20, **how_planned)
    for x, y in loader:
        nn.functional.cross_entropy(module(x), y).backward()
        private.step()
        private.zero_grad()
    assert engine.noise.step == 12 and engine.get_epsilon(1e-5) == engine.plan.epsilon <= 4
    sampled = PrivacyEngine()
    optimizer = torch.optim.SGD((other := small_model()).parameters(), lr=0.5)
    how |= dict(module=other, optimizer=optimizer)
    sampled.make_private_with_epsilon(**how, **(asked | dict(poisson_sampling=True)))
    asked_of_plan = how_planned | dict(setting="poisson")
    assert sampled.plan == an.plan(240, 20, **asked_of_plan)


def test_a_checkpoint_that_is_another_is_refused(plan, tmp_path):
    path = tmp_path / "state"
    trained(plan, 2, "hooks", path)
    other = Run(small_plan(dim=100, clip_norm=CLIP, epsilon=3))
    before = copy.deepcopy(other.model.state_dict())
    with pytest.raises(ValueError, match="plan of the state is another"):
        other.engine.load_checkpoint(path=path, module=other.module, optimizer=other.optimizer)
    with pytest.raises(ValueError, match="optimizer is absent but must be as when the state was saved"):
        other.engine.load_checkpoint(path=path, module=other.module)
    assert all(torch.equal(before[name], now) for name, now in other.model.state_dict().items())
    # After the plan's last step the checkpoint holds no secret, and nothing to resume from.
    trained(plan, STEPS, "hooks", path)
    assert torch.load(path, weights_only=True)["noise_state_dict"] == {"finished": True}
    fresh = Run(plan)
    with pytest.raises(RuntimeError, match="This state is of a run whose steps have all been made"):
        fresh.engine.load_checkpoint(path=path, module=fresh.module, optimizer=fresh.optimizer)


@pytest.mark.parametrize("dropped", [0, 5, 12])
def test_a_batch_that_is_dropped_is_no_other_steps(dropped, plan):
    run = Run(plan)
    steps = 0
    with pytest.raises(
        RuntimeError, match=f"asked for where step {dropped} comes next, so that a batch would be dropped"
    ):
        for _ in range(2):
            for x, y in run.loader:
                if steps == dropped:
                    steps += 1
                    continue
                run.backward(x, y)
                run.optimizer.step()
                run.optimizer.zero_grad()
                steps += 1
    assert len(run.seen) == dropped == run.engine.noise.step


def test_a_model_that_is_saved_before_the_step_holds_no_sum(plan):
    """Apart from what Opacus itself keeps on the parameters, which the documentation states."""
    for mode, wrap in (("hooks", False), ("ghost", False)):
        run = Run(plan, mode, wrap)
        run.backward(*next(iter(run.loader)))
        example = run.model[0].weight.grad_sample[0, 0] if mode == "hooks" else None
        torch.save(list(run.model.parameters()), file := io.BytesIO())
        assert mode == "ghost" or example.numpy().tobytes() in file.getvalue()
        torch.save(run.model.state_dict(), file := io.BytesIO())
        assert mode == "ghost" or example.numpy().tobytes() not in file.getvalue()
        run.optimizer.pre_step()
        total = held_sum(run.model[0].weight).total.numpy()
        torch.save(list(run.model.parameters()), file := io.BytesIO())
        rows = [row.astype(kind).tobytes() for row in total for kind in (float, "f4")]
        assert len(rows) == 18 and not [row for row in rows if row in file.getvalue()]


def test_a_checkpoint_that_was_damaged_is_refused(plan, tmp_path):
    path, *others = [tmp_path / name for name in "abc"]
    for each, steps, seed in ((path, 2, 5), (others[0], 3, 5), (others[1], 2, 6)):
        run = Run(plan, seed=seed)
        for _, (x, y) in zip(range(steps), run.loader):
            run.step(x, y)
        run.engine.save_checkpoint(path=each, module=run.module, optimizer=run.optimizer)
    other = Run(plan, seed=7)
    refuses_all(
        path,
        others,
        lambda: other.engine.load_checkpoint(path=path, module=other.module, optimizer=other.optimizer),
    )
    assert other.engine.noise.step == 2
