"""Opacus: what its optimizer sees is the noisy mean of the plan's batch, bit by bit, in each of its modes, and none of its own noise."""

import copy
import os
import stat
import warnings

import numpy as np
import pytest
from conftest import STEPS, small_plan

torch = pytest.importorskip("torch")
pytest.importorskip("opacus")
import opacus.optimizers.optimizer  # noqa: E402
import opacus.optimizers.optimizer_fast_gradient_clipping  # noqa: E402
from opacus.distributed import DifferentiallyPrivateDistributedDataParallel  # noqa: E402
from opacus.schedulers import ExponentialGradClip, ExponentialNoise  # noqa: E402
from opacus.utils.batch_memory_manager import BatchMemoryManager  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, IterableDataset, TensorDataset, WeightedRandomSampler  # noqa: E402

import antinoise as an  # noqa: E402
from antinoise.opacus import PrivacyEngine  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:Full backward hook:UserWarning", "ignore:ghost clipping:UserWarning")
CLIP = 0.7
WAYS = [("hooks", True), ("functorch", True), ("ew", True), ("ghost", True), ("hooks", False), ("functorch", False), ("ghost", False)]


@pytest.fixture(autouse=True)
def no_noise_of_opacus(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("Opacus made noise")

    for module in (opacus.optimizers.optimizer, opacus.optimizers.optimizer_fast_gradient_clipping):
        monkeypatch.setattr(module, "_generate_noise", refuse)


@pytest.fixture(scope="module")
def plan():
    return small_plan(dim=100, clip_norm=CLIP)


def key(seed=5):
    return an.Key.from_seed_insecure(seed)


def data(count=240):
    generator = torch.Generator().manual_seed(2)
    return TensorDataset(torch.randn(count, 6, generator=generator), torch.randint(0, 3, (count,), generator=generator))


class Endless(IterableDataset):
    def __iter__(self):
        return iter(())


def weighted():
    return DataLoader(data(), batch_size=20, sampler=WeightedRandomSampler([1.0] * 240, 240))


def small_model():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(6, 9), nn.Tanh(), nn.Linear(9, 3))


class Run:
    """A model that an engine made private, and what its inner optimizer saw."""

    def __init__(self, plan, mode="hooks", wrap=True, model=None, optimizer=None, loader=None, seed=5, **how):
        self.model = model or small_model()
        self.inner = optimizer or torch.optim.SGD(self.model.parameters(), lr=0.5, momentum=0.9)
        self.engine = PrivacyEngine(plan, key(seed))
        made = self.engine.make_private(
            module=self.model,
            optimizer=self.inner,
            data_loader=loader if loader is not None else DataLoader(data(), batch_size=plan.batch_size),
            grad_sample_mode=mode,
            wrap_model=wrap,
            **how,
        )
        self.module, self.optimizer, self.loader = made[0], made[1], made[-1]
        self.called = self.module if wrap else self.model
        self.criterion = made[2] if mode == "ghost" else nn.CrossEntropyLoss(reduction=how.get("loss_reduction", "mean"))
        self.seen = []
        self.inner.register_step_pre_hook(lambda *_: self.seen.append(flat(p.grad for p in self.model.parameters())))

    def backward(self, x, y):
        self.criterion(self.called(x), y).backward()

    def step(self, x, y):
        self.backward(x, y)
        self.optimizer.step()
        self.optimizer.zero_grad()


def flat(tensors):
    return torch.cat([t.detach().reshape(-1) for t in tensors])


def clipped_sum(model):
    """Of what Opacus left of each example, one by one."""
    samples = [p.grad_sample for p in model.parameters()]
    total = np.zeros(sum(p.numel() for p in model.parameters()))
    for i in range(len(samples[0])):
        gradient = np.concatenate([s[i].numpy().reshape(-1) for s in samples]).astype(np.float64)
        total += gradient * min(1.0, (1 - 2.0**-20) * CLIP / np.linalg.norm(gradient))
    return total


def sum_of(run, mode):
    return flat(p.grad for p in run.model.parameters()).double().numpy() if mode == "ghost" else clipped_sum(run.model)


def mean_of(stream, total, plan):
    row = np.empty(len(total), np.float32)
    stream.release(total, row)
    return torch.from_numpy((row.astype(np.float64) / plan.expected_batch_size).astype(np.float32))


@pytest.mark.parametrize("mode, wrap", WAYS)
def test_a_step_sees_sum_and_noise_over_the_batch_size(mode, wrap, plan):
    run, stream = Run(plan, mode, wrap), an.NoiseStream(plan, 93, key())
    batches = [batch.tolist() for batch in an.Batches(plan, key())]
    wanted = []
    for _ in range(2):
        for x, y in run.loader:
            assert torch.equal(x, data()[batches[len(wanted)]][0])
            run.backward(x, y)
            wanted.append(mean_of(stream, sum_of(run, mode), plan))
            run.optimizer.step()
            run.optimizer.zero_grad()
    assert len(run.seen) == len(wanted) == STEPS == len(run.engine.accountant)
    assert all(torch.equal(a, b) for a, b in zip(run.seen, wanted, strict=True))
    with pytest.raises(ValueError, match="step is 24 but must be below 24: all steps of the plan have been made"):
        next(iter(run.loader))
    before = copy.deepcopy(run.model.state_dict())
    run.backward(x, y)
    with pytest.raises(RuntimeError, match="all 24 steps of this stream have been made"):
        run.optimizer.step()
    assert all(torch.equal(before[name], now) for name, now in run.model.state_dict().items())


@pytest.mark.parametrize("mode, wrap", WAYS)
def test_the_sum_is_that_of_a_loop(mode, wrap, plan):
    run = Run(plan, mode, wrap)
    total = np.zeros(93)
    x, y = next(iter(run.loader))
    for a, b in zip(x, y, strict=True):
        model = small_model()
        nn.functional.cross_entropy(model(a[None]), b[None]).backward()
        gradient = flat(p.grad for p in model.parameters()).double().numpy()
        total += gradient * min(1.0, CLIP / np.linalg.norm(gradient))
    run.backward(x, y)
    run.optimizer.pre_step()
    held = flat(p._antinoise_sum.total for p in run.model.parameters())
    assert held.abs().max() > 0.1 and np.allclose(held, total, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("mode, wrap", WAYS)
def test_virtual_steps_make_noise_once(mode, wrap, plan):
    run, stream = Run(plan, mode, wrap), an.NoiseStream(plan, 93, key())
    wanted, total = [], np.zeros(93)
    with BatchMemoryManager(data_loader=run.loader, max_physical_batch_size=7, optimizer=run.optimizer) as portions:
        for number, (x, y) in enumerate(portions):
            assert len(x) <= 7
            run.backward(x, y)
            total += sum_of(run, mode)
            if number % 3 == 2:
                wanted.append(mean_of(stream, total, plan))
                total[:] = 0
            run.optimizer.step()
            run.optimizer.zero_grad()
    assert len(run.seen) == len(wanted) == run.engine.noise.step == 12
    assert all(torch.equal(a, b) for a, b in zip(run.seen, wanted, strict=True))


def test_a_pass_that_is_broken_off_leaves_nothing_behind(plan):
    whole, broken = Run(plan), Run(plan)
    for run in (broken, whole):
        with BatchMemoryManager(data_loader=run.loader, max_physical_batch_size=10, optimizer=run.optimizer) as portions:
            for number, (x, y) in enumerate(portions):
                if run is broken and number == 3:
                    run.backward(x, y)
                    break
                run.step(x, y)
    # Flags that were signalled ahead, as a loader with workers does, are of that pass too.
    broken.optimizer.signal_skip_step(False)
    broken.optimizer.signal_skip_step(True)
    with BatchMemoryManager(data_loader=broken.loader, max_physical_batch_size=10, optimizer=broken.optimizer) as portions:
        for x, y in portions:
            broken.step(x, y)
    assert len(broken.seen) == len(whole.seen) == 12
    assert all(torch.equal(a, b) for a, b in zip(broken.seen, whole.seen, strict=True))


def test_a_sum_instead_of_a_mean(plan):
    mean, total = Run(plan), Run(plan, loss_reduction="sum")
    for run in (mean, total):
        run.step(*next(iter(run.loader)))
    assert total.seen[0].abs().min() > 0 and torch.allclose(total.seen[0], 20 * mean.seen[0], rtol=1e-4, atol=1e-4)


def test_an_example_that_is_not_finite(plan):
    inputs, labels = data().tensors
    batch = an.Batches(plan, key()).at(0)
    inputs[batch[3]] = float("nan")
    loader = DataLoader(TensorDataset(inputs, labels), batch_size=20)
    run = Run(plan, loader=loader)
    run.backward(*next(iter(run.loader)))
    run.optimizer.pre_step()
    held = flat(p._antinoise_sum.total for p in run.model.parameters())
    assert held.isfinite().all() and held.abs().max() > 0.1
    run = Run(plan, "ghost", loader=loader)
    run.backward(*next(iter(run.loader)))
    with pytest.raises(ValueError, match="sum of the batch is not finite but must be"):
        run.optimizer.step()
    assert run.engine.noise.step == 0


@pytest.mark.parametrize("mode", ["hooks", "functorch", "ghost"])
def test_sampled_batches_may_be_empty(mode):
    plan = small_plan(setting="poisson", mechanism="identity", batch_size=3, epochs=None, steps=160, dim=100, clip_norm=CLIP)
    sizes = [len(batch) for batch in an.Batches(plan, key())]
    assert 0 in sizes
    run = Run(plan, mode)
    for _ in range(2):
        for x, y in run.loader:
            assert len(x) == len(y) == sizes[run.engine.noise.step]
            run.step(x, y)
    assert run.engine.noise.step == 160 and all(p.isfinite().all() for p in run.model.parameters())
    run = Run(plan, mode)
    x, y = data()[: sizes[0] + 1]
    refused(run, f"batch of step 0 is of {len(x)} examples but must be the plan's, of {sizes[0]}", lambda: run.step(x, y))


def test_it_says_what_holds(plan):
    run = Run(plan)
    assert run.engine.get_epsilon(1e-5) == run.engine.get_epsilon(1e-3) == run.engine.accountant.get_epsilon(1e-5) == plan.epsilon
    for delta in (9e-6, 0, 1, float("nan")):
        with pytest.raises(ValueError, match=f"delta is {delta} but must be from 1e-05, the plan's, to below 1"):
            run.engine.get_epsilon(delta)
    with pytest.raises(ValueError, match="a step of the accountant is asked for"):
        run.engine.accountant.step(noise_multiplier=1.0, sample_rate=0.1)
    said = run.engine.statement
    assert said.startswith(plan.statement) and "the loss is the mean of the rows' losses" in said and "WITHOUT A PROOF" not in said
    with pytest.warns(UserWarning, match="no bound is proved"):
        warnings.simplefilter("always")
        said = Run(plan, "ghost").engine.statement
    assert said.startswith(plan.statement) and "WITHOUT A PROOF" in said and f"clip norm {CLIP}" in said
    with pytest.raises(ValueError, match="engine is one without a model but must have made one private"):
        PrivacyEngine(plan, key()).statement  # noqa: B018


def trained(plan, steps, mode, path=None, load=None):
    run = Run(plan, mode)
    if load:
        assert run.engine.load_checkpoint(path=load, module=run.module, optimizer=run.optimizer) == {"mine": 3}
    while run.engine.noise.step < steps:
        for x, y in run.loader:
            if run.engine.noise.step == steps:
                break
            run.step(x, y)
    if path:
        run.engine.save_checkpoint(path=path, module=run.module, optimizer=run.optimizer, checkpoint_dict={"mine": 3})
    return run


@pytest.mark.parametrize("mode", ["hooks", "ghost"])
def test_a_run_that_is_resumed_has_the_same_bits(mode, plan, tmp_path):
    path = tmp_path / "state"
    path.write_bytes(b"readable by all")
    path.chmod(0o644)
    trained(plan, 7, mode, path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and os.listdir(tmp_path) == ["state"]
    resumed, whole = trained(plan, STEPS, mode, load=path), trained(plan, STEPS, mode)
    assert len(resumed.seen) == STEPS - 7
    assert all(torch.equal(a, b) for a, b in zip(resumed.seen, whole.seen[7:], strict=True))
    assert torch.equal(flat(resumed.model.parameters()), flat(whole.model.parameters()))


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
    # When all is done, nothing secret is left, and nothing to go on with.
    trained(plan, STEPS, "hooks", path)
    assert torch.load(path, weights_only=True)["noise_state_dict"] == {"finished": True}
    fresh = Run(plan)
    with pytest.raises(ValueError, match="state is of a run whose steps have all been made"):
        fresh.engine.load_checkpoint(path=path, module=fresh.module, optimizer=fresh.optimizer)


def refused(run, message, step):
    before = copy.deepcopy(run.model.state_dict())
    made = run.engine.noise.step
    with pytest.raises(ValueError, match=message):
        step()
    assert run.engine.noise.step == made and all(torch.equal(before[n], now) for n, now in run.model.state_dict().items())


@pytest.mark.parametrize("mode", ["hooks", "ghost"])
def test_what_would_void_the_claim_is_refused_at_a_step(mode, plan):
    run = Run(plan, mode)
    x, y = next(iter(run.loader))
    refused(run, "batch of step 0 is of 19 examples but must be the plan's, of 20", lambda: run.step(x[:19], y[:19]))
    run.step(x, y)
    for scheduler in (ExponentialNoise, ExponentialGradClip):
        run = Run(plan, mode)
        made = scheduler(run.optimizer, gamma=0.9)
        made.step()
        name = "noise_multiplier" if scheduler is ExponentialNoise else "max_grad_norm"
        refused(run, f"{name} of the optimizer is .* but must be the plan's", lambda run=run: run.step(x, y))
    run = Run(plan, mode)
    run.backward(x, y)
    absent = "gradient of 0.weight is in .grad but must be the sum" if mode == "hooks" else "gradient of 0.weight is in .grad"
    refused(run, absent, run.inner.step)
    run.optimizer.zero_grad()
    gone = "Per sample gradient is not initialized" if mode == "hooks" else "gradient is absent but must be"
    run.backward(x, y)
    run.optimizer.step()
    # Without zero_grad().
    refused(run, gone, run.optimizer.step)


def test_batches_do_not_mix(plan):
    run = Run(plan, "hooks")
    x, y = next(iter(run.loader))
    run.backward(x, y)
    refused(run, "batch of step 0 is of 40 examples but must be the plan's, of 20", lambda: run.step(x, y))
    run = Run(plan, "ew")
    run.backward(x, y)
    refused(run, "grad_sample is there but must be None before a forward pass", lambda: run.step(x, y))
    run = Run(plan, "ghost")
    run.module.max_grad_norm = 2.0
    refused(run, "max_grad_norm of the module is 2.0 but must be the plan's, 0.7", lambda: run.step(x, y))
    run = Run(plan, "no_op")
    for i, p in enumerate(run.model.parameters()):
        p.grad_sample = torch.zeros(20 - i, *p.shape)
    refused(run, r"gradients of the parameters are of \[17, 18, 19, 20\] examples but must be of one batch", run.optimizer.step)


@pytest.mark.parametrize(
    "how, message",
    [
        (dict(noise_multiplier=1.0), "noise_multiplier is 1.0 but must be left out, or 1.08"),
        (dict(max_grad_norm=1.0), "max_grad_norm is 1.0 but must be left out, or 0.7 as the plan says"),
        (dict(poisson_sampling=True), "poisson_sampling is True but must be left out, or False as the plan says"),
        (dict(clipping="per_layer"), "clipping is per_layer but must be flat"),
        (dict(noise_generator=torch.Generator()), "noise_generator is given but must be left out"),
        (dict(mode="ghost_fsdp"), "grad_sample_mode is ghost_fsdp but must be one of hooks, functorch, ew, no_op, ghost"),
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
    with pytest.raises(ValueError, match="module is a second one but must be the only one"):
        run.engine.make_private(module=small_model(), optimizer=run.inner, data_loader=run.loader)
    with pytest.raises(ValueError, match="target_epsilon is given but must be left to the plan"):
        run.engine.make_private_with_epsilon(module=model, target_epsilon=3.0)


def test_what_the_plan_says_may_be_said_again(plan):
    how = dict(noise_multiplier=plan.noise_multiplier, max_grad_norm=CLIP, poisson_sampling=False)
    loader = DataLoader(data(), batch_size=20, shuffle=True, num_workers=1, collate_fn=lambda rows: tuple(map(torch.stack, zip(*rows))))
    run = Run(plan, loader=loader, **how)
    assert run.loader.num_workers == 1 and run.loader.collate_fn is loader.collate_fn and run.loader.dataset is loader.dataset
    for x, y in run.loader:
        run.step(x, y)
    assert run.engine.noise.step == 12


def test_lightning_drives_it(plan):
    lightning = pytest.importorskip("lightning")

    class Module(lightning.LightningModule):
        def __init__(self, run):
            super().__init__()
            self.net, self.run = run.module, run

        def training_step(self, batch, _):
            return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

        def configure_optimizers(self):
            return self.run.optimizer

    by_hand, run = Run(plan), Run(plan)
    for _ in range(2):
        for x, y in by_hand.loader:
            by_hand.step(x, y)
    quiet = dict(logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    lightning.Trainer(max_epochs=2, accelerator="cpu", **quiet).fit(Module(run), run.loader)
    assert len(run.seen) == STEPS and all(torch.equal(a, b) for a, b in zip(run.seen, by_hand.seen, strict=True))


def process(rank, folder):
    """One of two processes, each with its part of every batch; keeps its own sums and what its optimizer saw."""
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    plan = small_plan(dim=100, clip_norm=CLIP)
    with pytest.raises(ValueError, match="module is a Sequential in 2 processes but must be DifferentiallyPrivate"):
        Run(plan)
    with pytest.raises(ValueError, match="plan or key of a process is another but must be the same in all"):
        Run(plan, model=DifferentiallyPrivateDistributedDataParallel(small_model()), seed=5 + rank)
    for mode in ("hooks", "functorch", "ew", "ghost"):
        run, sums = Run(plan, mode, model=DifferentiallyPrivateDistributedDataParallel(small_model())), []
        for x, y in run.loader:
            assert torch.equal(x, data()[an.Batches(plan, key()).at(run.engine.noise.step)[rank::2]][0])
            run.backward(x, y)
            sums.append(sum_of(run, mode))
            run.optimizer.step()
            run.optimizer.zero_grad()
        torch.save({"sums": torch.from_numpy(np.stack(sums)), "seen": torch.stack(run.seen)}, f"{folder}/{mode}-{rank}")
    torch.distributed.destroy_process_group()


def test_processes_join_their_sums_before_the_noise(plan, tmp_path):
    torch.multiprocessing.spawn(process, (tmp_path,), nprocs=2)
    for mode in ("hooks", "functorch", "ew", "ghost"):
        first, second = (torch.load(tmp_path / f"{mode}-{rank}") for rank in (0, 1))
        stream = an.NoiseStream(plan, 93, key())
        sums = first["sums"].numpy() + second["sums"].numpy()
        wanted = torch.stack([mean_of(stream, total, plan) for total in sums])
        assert len(wanted) == 12 and torch.equal(first["seen"], wanted) and torch.equal(second["seen"], wanted)
