"""Lightning on several processes: the bits of one process, in exact mode."""

import os
import stat
from types import SimpleNamespace

import pytest
from conftest import small_plan

torch = pytest.importorskip("torch")
lightning = pytest.importorskip("lightning")
from lightning.pytorch.strategies import ModelParallelStrategy
from ranks import on_ranks, preload, refused
from test_lightning import CLIP, Classifier, checkpoints, data, fit, flat, key, loss
from torch.distributed.fsdp import fully_shard
from torch.utils.data import DataLoader

import antinoise as an
from antinoise.lightning import PrivateTraining
from antinoise.torch import clipped_sum_

preload("lightning.pytorch")
pytestmark = pytest.mark.filterwarnings("ignore")


def plan_of():
    """A plan whose batches two processes do not share evenly."""
    return small_plan(dim=100, clip_norm=CLIP, batch_size=21, epochs=None, steps=22)


class Exact(Classifier):
    def training_step(self, batch, _):
        how = dict(microbatch_size=1, grid_spacing=plan_of().grid_spacing)
        value = clipped_sum_(self.net, loss, *batch, CLIP, **how)
        if self.automatic_optimization:
            return value
        self.optimizers().step()
        return None


class Sharded(Exact):
    """A strategy that shards over all processes, in sizes that do not divide evenly."""

    def configure_model(self):
        fully_shard(self.net, mesh=self.device_mesh["data_parallel"])


def distributed(**how):
    """The environment that a launcher gives each process."""
    rank = torch.distributed.get_rank()
    os.environ.update(TORCHELASTIC_RUN_ID="tests", LOCAL_WORLD_SIZE="2", GROUP_RANK="0")
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2")
    return dict(strategy="ddp", devices=2, use_distributed_sampler=False) | how


def trained(folder):
    sharded = distributed(strategy=ModelParallelStrategy(2, 1))
    for name, module, how in (
        ("ddp", Exact(), distributed()),
        ("manual", Exact(manual=True), distributed()),
        ("fsdp", Sharded(), sharded),
    ):
        _, private = fit(plan_of(), module, PrivateTraining(plan_of(), key()), **how)
        assert private.step == len(module.seen) == 22
        torch.save(
            (module.seen, flat(module.parameters())), f"{folder}/{name}-{torch.distributed.get_rank()}"
        )


def test_processes_have_the_bits_of_one(tmp_path):
    on_ranks(2, trained, tmp_path)
    one, private = fit(plan_of(), Exact())
    assert private.step == len(one.seen) == 22 and not torch.equal(
        flat(one.parameters()), flat(Exact().parameters())
    )
    for name in ("ddp", "manual", "fsdp"):
        for rank in range(2):
            seen, parameters = torch.load(tmp_path / f"{name}-{rank}")
            assert all(torch.equal(a, b) for a, b in zip(seen, one.seen, strict=True))
            assert torch.equal(parameters, flat(one.parameters()))


def saved(folder):
    """A checkpoint of a run with a key that rank 0 draws."""
    how = dict(callbacks=[checkpoints(folder)], **distributed(enable_checkpointing=True))
    module, private = fit(plan_of(), Exact(), PrivateTraining(plan_of()), **how)
    torch.save((module.seen, flat(module.parameters())), folder.parent / f"{torch.distributed.get_rank()}")


def resumed(path, folder):
    module, private = fit(plan_of(), Exact(), path=path, **distributed())
    torch.save((module.seen, flat(module.parameters())), folder / f"{torch.distributed.get_rank()}")


def test_any_number_of_processes_goes_on(tmp_path):
    path = tmp_path / "states" / "step=8.ckpt"
    on_ranks(2, saved, path.parent)
    assert len(list(path.parent.iterdir())) == 22 and stat.S_IMODE(path.stat().st_mode) == 0o600
    wanted, parameters = torch.load(tmp_path / "0")
    assert len(wanted) == 22
    one, _ = fit(plan_of(), Exact(), path=path)
    assert all(torch.equal(a, b) for a, b in zip(one.seen, wanted[8:], strict=True)) and torch.equal(
        flat(one.parameters()), parameters
    )
    on_ranks(2, resumed, path, tmp_path)
    for rank in range(2):
        seen, found = torch.load(tmp_path / str(rank))
        assert all(torch.equal(a, b) for a, b in zip(seen, wanted[8:], strict=True)) and torch.equal(
            found, parameters
        )


class Short(Exact):
    """One process clips fewer examples than it should."""

    def training_step(self, batch, _):
        return super().training_step([part[torch.distributed.get_rank() :] for part in batch], _)


class Failing(Exact):
    """The forward pass fails in one process."""

    def __init__(self):
        super().__init__()
        self.net.register_forward_pre_hook(self._fail)

    def _fail(self, net, args):
        if torch.distributed.get_rank() == 1:
            raise ValueError("out of memory")


def refusals():
    rank, plan = torch.distributed.get_rank(), plan_of()
    refused(
        "use_distributed_sampler of the trainer is True but must be False where processes train together",
        lambda: fit(plan, Exact(), **distributed(use_distributed_sampler=True)),
    )
    other = small_plan(dim=100, clip_norm=CLIP, epsilon=3)
    refused(
        "plan is .* on rank 1 but must be .*, as on rank 0",
        lambda: fit(other if rank else plan, Exact(), **distributed()),
    )
    own = PrivateTraining(plan, an.Key.from_seed_insecure(rank))
    refused(
        "key is .* on rank 1 but must be .*, as on rank 0", lambda: fit(plan, Exact(), own, **distributed())
    )
    few = small_plan(dim=100, clip_norm=CLIP, batch_size=1, epochs=None, steps=240)
    refused(
        "batch_size of the plan is 1 but must be at least the number of processes",
        lambda: fit(few, Exact(), **distributed()),
    )
    loader = DataLoader(data(), batch_size=21) if rank else None
    refused(
        "batch sampler of the loader is BatchSampler but must be",
        lambda: fit(plan, Exact(), loader=loader, **distributed()),
    )
    again = Exact(make=lambda p: torch.optim.SGD(list(p)[: 4 - rank], lr=1.0))
    refused(
        "parameters of the optimizer are others than the model's trainable ones",
        lambda: fit(plan, again, **distributed()),
    )
    short, private = Short(), PrivateTraining(plan, key())
    refused(
        "batch of step 0 is of 20 examples but must be the plan's, of 21",
        lambda: fit(plan, short, private, **distributed()),
    )
    assert (
        private.step == 0
        and not short.seen
        and torch.equal(flat(short.parameters()), flat(Exact().parameters()))
    )
    failing = Failing()
    refused(
        "out of memory" if rank else r"ValueError: out of memory \(rank 1\)",
        lambda: fit(plan, failing, **distributed()),
    )
    assert not failing.seen and torch.equal(flat(failing.parameters()), flat(Exact().parameters()))
    refused(
        "enable_checkpointing of the trainer is True but must be False, or weights alone:"
        " torch.distributed.checkpoint",
        lambda: fit(
            plan, Sharded(), **distributed(strategy=ModelParallelStrategy(2, 1), enable_checkpointing=True)
        ),
    )


def test_other_strategies_are_refused():
    trainer = lightning.Trainer(accelerator="cpu", logger=False, enable_checkpointing=False)
    several = SimpleNamespace(
        strategy=object(),
        world_size=2,
        precision_plugin=trainer.precision_plugin,
        **{
            name: getattr(trainer, name)
            for name in ("gradient_clip_val", "accumulate_grad_batches", "precision", "checkpoint_callbacks")
        },
    )
    several.optimizers, several.ckpt_path = [None], None
    with pytest.raises(
        ValueError,
        match="strategy of the trainer is object but must be DDPStrategy or ModelParallelStrategy, or one",
    ):
        PrivateTraining(plan_of(), key()).on_fit_start(several, Exact())


def test_what_would_void_the_claim_is_refused_on_all_ranks():
    on_ranks(2, refusals)
