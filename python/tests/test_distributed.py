"""Processes that train together: each makes a part of the noise; together they make the bits of a single
process.
"""

import gc
import warnings

import numpy as np
import pytest
from conftest import STEPS, small_plan

torch = pytest.importorskip("torch")
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from distributed_run import (
    DIM,
    Small,
    arranged,
    data,
    gathered,
    key_here,
    leave,
    net,
    small_model,
    sums,
    trained,
)
from ranks import on_ranks, refused
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Partial, Shard, distribute_tensor
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

import antinoise as an
from antinoise.torch import CorrelatedNoise, add_clipped_sums, clipped_sum_, make_private
from antinoise.torch.held_sums import held_sum

MECHANISMS = ["blt:2", "banded-toeplitz:4"]
WORLDS = {
    1: ["replicated", "fsdp", "tp"],
    2: ["replicated", "fsdp", "fsdp-columns", "hsdp", "tp", "fsdp+tp"],
    4: ["fsdp", "fsdp-columns", "hsdp", "tp", "fsdp+tp"],
}


def plan_of(mechanism):
    return small_plan(dim=DIM, mechanism=mechanism)


def means(plan, steps):
    """The noisy means of one process with the whole model."""
    stream, found = an.NoiseStream(plan, DIM, an.Key.from_seed_insecure(5)), []
    for step in range(steps):
        row = np.empty(DIM, np.float32)
        stream.add_to_sum(sums(step).numpy(), row)
        found.append(torch.from_numpy(row).double() / plan.expected_batch_size)
    return found


def walk(model, noise, plan, steps):
    """Checks that every rank has the bits of one process at these steps."""
    wanted = means(plan, steps.stop)
    for step in steps:
        leave(model, sums(step))
        noise.apply_()
        assert torch.equal(gathered(model), wanted[step]), step


def noise_of(model, plan, **how):
    # Each process makes the rows of a single process with the same key.
    how = dict(sums_in_grad=True, external_batches=True, key=key_here(), reuse_noise_unprotected=True) | how
    return CorrelatedNoise(model, plan, **how)


def every_layout(kinds):
    world = dist.get_world_size()
    for kind in kinds:
        for mechanism in MECHANISMS:
            model, plan = arranged(kind), plan_of(mechanism)
            noise = noise_of(model, plan)
            made = [None] * world
            dist.all_gather_object(made, noise.coordinates)
            # Each coordinate is made once, and no process makes more than its share, rounded up for each
            # shape.
            assert sum(made) == DIM and max(made) <= DIM / world + 60, (kind, made)
            walk(model, noise, plan, range(3))


@pytest.mark.parametrize("world", WORLDS)
def test_every_layout_makes_the_bits_of_one_process(world):
    on_ranks(world, every_layout, WORLDS[world])


def saved(kind, folder):
    for mechanism in MECHANISMS:
        model, plan = arranged(kind), plan_of(mechanism)
        noise = noise_of(model, plan, prefetch=mechanism == "blt:2")
        walk(model, noise, plan, range(5))
        dcp.save({"noise": noise}, checkpoint_id=f"{folder}/{mechanism}")
        # Saving changes nothing.
        walk(model, noise, plan, range(5, 7))


def resumed(kind, folder):
    for mechanism in MECHANISMS:
        model, plan = arranged(kind), plan_of(mechanism)
        noise = CorrelatedNoise(
            model, plan, sums_in_grad=True, external_batches=True, prefetch=kind == "hsdp"
        )
        dcp.load({"noise": noise}, checkpoint_id=f"{folder}/{mechanism}")
        assert noise.step == 5
        walk(model, noise, plan, range(5, STEPS))


def test_any_number_of_processes_goes_on(tmp_path):
    on_ranks(4, saved, "fsdp+tp", tmp_path / "four")
    for world, kind in ((1, "replicated"), (2, "hsdp"), (3, "fsdp")):
        on_ranks(world, resumed, kind, tmp_path / "four")
    on_ranks(2, saved, "replicated", tmp_path / "two")
    on_ranks(3, resumed, "tp", tmp_path / "two")


def refusals():
    rank, plan, model = dist.get_rank(), plan_of("blt:2"), arranged("fsdp")
    other = small_plan(dim=DIM, mechanism="blt:2", epsilon=3)
    refused(
        "plan is .* on rank 1 but must be .*, as on rank 0",
        lambda: noise_of(model, other if rank == 1 else plan),
    )
    last = nn.Linear(7, 11 + rank).double()
    refused("names and shapes of the trainable parameters is .* on rank 1", lambda: noise_of(last, plan))
    refused(
        "model is one without trainable parameters", lambda: noise_of(nn.Tanh() if rank == 1 else model, plan)
    )
    own = an.Key.from_seed_insecure(5 + rank)
    refused("key is .* on rank 1 but must be", lambda: noise_of(model, plan, key=own))
    refused(
        "key is given on ranks \\[1\\] but must be on all of 2, on rank 0",
        lambda: noise_of(model, plan, key=own if rank == 1 else None),
    )
    noise = noise_of(model, plan)
    for p in trained(model):
        p.grad = DTensor.from_local(
            torch.zeros(p.shape, dtype=p.dtype), p.device_mesh, [Partial()], run_check=False
        )
    refused(
        "gradient of .* is .*Partial.* but must be reduced and laid out as its parameter is", noise.apply_
    )
    leave(model, sums(0))
    if rank == 1:
        add_clipped_sums(
            model.up, {name: p.grad for name, p in model.up.named_parameters()}, 20, plan.clip_norm
        )
    refused("a call of this step clipped up.* apart from ", noise.apply_)
    whole = net()
    noise = noise_of(whole, plan)
    leave(whole, sums(rank))
    refused("gradient of .* differs between ranks but must be reduced", noise.apply_)
    # The same numbers in another order are another gradient.
    leave(whole, sums(0))
    for p in trained(whole) if rank == 1 else []:
        p.grad = p.grad.flip(0)
    refused("gradient of .* differs between ranks but must be reduced", noise.apply_)
    assert noise.step == 0
    # A refused step leaves no sum.
    walk(whole, noise, plan, range(2))
    state = noise.state_dict()
    refused(
        "plan of the state is another",
        lambda: noise.load_state_dict(state | ({"plan": state["layout"]} if rank == 1 else {})),
    )
    walk(whole, noise, plan, range(2, 4))


def test_what_ranks_do_not_agree_on_is_refused_on_all():
    on_ranks(2, refusals)


def train(kind, folder):
    plan, model = small_plan(dim=200, examples=240, batch_size=21, epochs=1), arranged(kind, small_model())
    loss = nn.functional.cross_entropy
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    noise = CorrelatedNoise(model, plan, key_here()).attach(optimizer)
    for x, y in DataLoader(data(), batch_sampler=noise.batch_sampler()):
        clipped_sum_(model, loss, x, y, plan.clip_norm, microbatch_size=4)
        optimizer.step()
        optimizer.zero_grad()
    clipped_sum_(model, loss, *data()[:10], plan.clip_norm)
    with pytest.raises(RuntimeError, match="all 11 steps of this stream have been made"):
        optimizer.step()
    assert noise.step == plan.steps == 11
    whole = [p.full_tensor() if isinstance(p, DTensor) else p for p in model.parameters()]
    found = torch.cat([p.detach().reshape(-1) for p in whole])
    torch.save(found, f"{folder}/{kind}-{dist.get_world_size()}-{dist.get_rank()}")


def train_privately(plan_text, folder):
    """`make_private` plans on rank 0, for all, and each process trains with its share of a batch."""
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    asked = dict(epsilon=4, delta=1e-5, epochs=1, setting="cyclic")
    dealt = DataLoader(data(), 24 // dist.get_world_size(), sampler=DistributedSampler(data()))
    run = make_private(model, optimizer, dealt, key=key_here(), exact=True, microbatch_size=1, **asked)
    assert run.plan.to_toml() == plan_text
    for x, y in run.loader:
        run.backward(lambda x, y: nn.functional.cross_entropy(model(x), y, reduction="none"), x, y)
        optimizer.step()
        optimizer.zero_grad()
    found = torch.cat([p.detach().reshape(-1) for p in model.parameters()])
    torch.save(found, f"{folder}/private-{dist.get_world_size()}-{dist.get_rank()}")


def test_processes_train_privately_as_one_does(tmp_path):
    dim = sum(p.numel() for p in small_model().parameters())
    how = dict(epochs=1, epsilon=4, delta=1e-5, dim=dim, workload="last-iterate:0.9")
    plan = an.plan(240, 24, **how)
    for world in (1, 2):
        on_ranks(world, train_privately, plan.to_toml(), str(tmp_path))
    one = torch.load(tmp_path / "private-1-0")
    assert all(torch.equal(one, torch.load(tmp_path / f"private-2-{rank}")) for rank in range(2))


def test_processes_train_as_one_does(tmp_path):
    several = [(2, "replicated"), (3, "replicated"), (3, "fsdp"), (4, "hsdp")]
    for world, kind in [(1, "replicated"), *several]:
        on_ranks(world, train, kind, tmp_path)
    one = torch.load(tmp_path / "replicated-1-0")
    assert not torch.equal(one, torch.cat([p.detach().reshape(-1) for p in small_model().parameters()]))
    for world, kind in several:
        replicas = [torch.load(tmp_path / f"{kind}-{world}-{rank}") for rank in range(world)]
        assert all(torch.equal(replicas[0], other) for other in replicas)
        # Sums are added in another order, so they may be rounded differently; the noise is the same.
        assert torch.allclose(one, replicas[0], rtol=0, atol=1e-6)


def opacus_hsdp(folder):
    """Two replicas of one shard, made private by Opacus itself."""
    from opacus import PrivacyEngine

    torch.manual_seed(0)
    model, rank = nn.Sequential(nn.Linear(10, 10), nn.ReLU(), nn.Linear(10, 5)), dist.get_rank()
    mesh = init_device_mesh("cpu", (2, 1), mesh_dim_names=("replicas", "shards"))
    for part in (model[0], model[2]):
        fully_shard(part, mesh=mesh)
    fully_shard(model, mesh=mesh)
    generator = torch.Generator().manual_seed(3)
    rows = TensorDataset(
        torch.randn(32, 10, generator=generator), torch.randint(0, 5, (32,), generator=generator)
    )
    how = dict(noise_multiplier=5.0, max_grad_norm=1.0, poisson_sampling=False, grad_sample_mode="ghost_fsdp")
    module, optimizer, criterion, loader = PrivacyEngine(accountant="rdp").make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=1.0),
        criterion=nn.CrossEntropyLoss(),
        data_loader=DataLoader(rows, batch_size=16),
        **how,
    )
    # Each process has its own generator, as on separate machines.
    torch.manual_seed(1234 + rank)
    x, y = next(iter(loader))
    criterion(module(x), y).backward()
    optimizer.step()
    torch.save(model[0].weight.to_local().detach(), f"{folder}/{rank}")


def test_replicas_of_opacus_drift_apart(tmp_path):
    """Shows why noise is keyed by coordinate: replicas of Opacus itself differ, those of `hsdp` above have
    the same bits.
    """
    pytest.importorskip("opacus")
    on_ranks(2, opacus_hsdp, tmp_path)
    one, other = (torch.load(tmp_path / str(rank)) for rank in range(2))
    assert one.shape == other.shape == (10, 10) and (one - other).abs().max() > 0.1


def mixed(model):
    """Some parameters are whole in all processes; others are replicated DTensors."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(), 1), mesh_dim_names=("data", "inner"))
    return fully_shard(model, mesh=mesh, ignored_params=set(model.embed.parameters()))


def own_and_reduced_sums():
    rank, world, plan, model = (
        dist.get_rank(),
        dist.get_world_size(),
        small_plan(dim=200),
        mixed(small_model()),
    )
    loss, (x, y) = nn.functional.cross_entropy, data()[:20]
    one = small_model()
    total = torch.zeros(sum(p.numel() for p in one.parameters()), dtype=torch.float64)
    for a, b in zip(x, y):
        one.zero_grad()
        loss(one(a[None]), b[None]).backward()
        gradient = torch.cat([p.grad.reshape(-1) for p in one.parameters()])
        total += gradient * min(1, plan.clip_norm / gradient.norm())
    row = np.empty(len(total), np.float32)
    an.NoiseStream(plan, len(total), an.Key.from_seed_insecure(5)).add_to_sum(total.numpy(), row)
    noise = CorrelatedNoise(model, plan, key_here(), external_batches=True, reuse_noise_unprotected=True)
    share = slice(rank * 20 // world, (rank + 1) * 20 // world)
    clipped_sum_(model, loss, x[share], y[share], plan.clip_norm)
    assert isinstance(model.up.weight, DTensor) and not isinstance(model.embed.weight, DTensor)
    noise.apply_()
    assert torch.allclose(
        gathered(model), torch.from_numpy(row).double() / plan.expected_batch_size, atol=1e-5
    )


def sums_of_one():
    """Sums over all processes together with a process's own sums; a process without examples leaves zeros."""
    plan, model, mesh = small_plan(dim=200), small_model(), init_device_mesh("cpu", (dist.get_world_size(),))
    model.up.weight = nn.Parameter(distribute_tensor(model.up.weight.data, mesh, [Shard(1)]))
    noise = CorrelatedNoise(model, plan, key_here(), external_batches=True, reuse_noise_unprotected=True)
    totals = {}
    for name, p in model.named_parameters():
        total = torch.ones(p.shape, dtype=torch.float64)
        sharded = isinstance(p, DTensor)
        totals[name] = (
            distribute_tensor(total, mesh, [Shard(1)])
            if sharded
            else total
            if dist.get_rank() == 0
            else torch.zeros_like(total)
        )
    add_clipped_sums(model, totals, 10, plan.clip_norm)
    noise.apply_()
    dim = sum(p.numel() for p in model.parameters())
    row = np.empty(dim, np.float32)
    an.NoiseStream(plan, dim, an.Key.from_seed_insecure(5)).add_to_sum(np.ones(dim), row)
    assert torch.equal(gathered(model), torch.from_numpy(row).double() / plan.expected_batch_size)
    # One process has integer sums, the other float64 sums; also if one has no example.
    own = small_model()
    noise = CorrelatedNoise(own, plan, an.Key.from_seed_insecure(6), external_batches=True)
    first = dist.get_rank() == 0
    totals = {
        name: torch.ones(p.shape, dtype=torch.int64 if first else torch.float64)
        for name, p in own.named_parameters()
    }
    add_clipped_sums(own, totals, 20 if first else 0, plan.clip_norm, plan.grid_spacing if first else None)
    refused("sum is .*in whole points of .* on the ranks but must be the same on all", noise.apply_)


def nobody_waits():
    """Checks that an error in one process does not leave the others waiting."""
    plan, model, mine = small_plan(dim=200), small_model(), key_here()
    CorrelatedNoise(model, plan, mine)
    refused(
        "run is .* but must be a name that is new to this key", lambda: CorrelatedNoise(model, plan, mine)
    )
    noise = CorrelatedNoise(model, plan, an.Key.from_seed_insecure(7))
    state = noise.state_dict()
    if dist.get_rank() == 1:
        del state["past"]
        with pytest.raises(RuntimeError, match="the state cannot be read"):
            noise.load_state_dict(state)
    else:
        refused("the state cannot be read .*'past'.*\\(rank 1\\)", lambda: noise.load_state_dict(state))


class Failing(Small):
    """A model whose forward pass fails at times in one process."""

    def forward(self, x):
        if self.fails and dist.get_rank() == 1:
            raise RuntimeError("out of memory")
        return super().forward(x)


def forward_passes_that_fail():
    plan, rank, model, loss = small_plan(dim=200), dist.get_rank(), Failing(), nn.functional.cross_entropy
    model.double()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    noise = CorrelatedNoise(model, plan, key_here()).attach(optimizer)
    (x, y), sampler = data()[10 * rank : 10 * rank + 10], noise.batch_sampler()

    def clip(start, fails=False):
        model.fails = fails
        clipped_sum_(model, loss, x[start : start + 5], y[start : start + 5], plan.clip_norm)

    for step in range(3):
        batch = next(iter(sampler))
        clip(0)
        if step == 1:
            before = [p.detach().clone() for p in model.parameters()]
            if rank == 1:
                with (
                    pytest.raises(RuntimeError, match="out of memory"),
                    pytest.warns(UserWarning, match="clipping failed; .*: out of"),
                ):
                    clip(5, fails=True)
            else:
                clip(5)
                refused(r"RuntimeError: out of memory \(rank 1\)", optimizer.step)
            assert noise.step == 1 and not any(held_sum(p) for p in model.parameters())
            assert all(torch.equal(p, old) for p, old in zip(model.parameters(), before))
            # The step then succeeds with its whole batch.
            assert next(iter(sampler)) == batch
            clip(0)
        clip(5)
        optimizer.step()
        assert noise.step == step + 1
    del noise, sampler, optimizer
    gc.collect()
    if rank == 1:
        # Without noise no process waits.
        with pytest.raises(RuntimeError, match="out of memory"), warnings.catch_warnings():
            warnings.simplefilter("error")
            clip(0, fails=True)


def each_step_has_its_own_batch(folder):
    """A mistake in one process is refused in both; both record the whole batch."""
    plan, rank, model, loss = small_plan(dim=200), dist.get_rank(), small_model(), nn.functional.cross_entropy
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    noise = CorrelatedNoise(model, plan, key_here()).attach(optimizer)
    loader, wanted = (
        noise.loader(data(), num_workers=2 * rank),
        an.Batches(plan, an.Key.from_seed_insecure(5)),
    )
    batches = iter(loader)
    first = next(batches)
    assert torch.equal(first[0], data()[wanted.at(0)[10 * rank : 10 * rank + 10]][0])
    clipped_sum_(model, loss, *first, plan.clip_norm)
    optimizer.step()
    second = next(batches)
    clipped_sum_(model, loss, *(first if rank else second), plan.clip_norm)
    with pytest.raises(
        RuntimeError if rank else ValueError,
        match="sums of step 1 are of the batch of step 0, which would be used twice",
    ):
        optimizer.step()
    assert noise.step == 1
    clipped_sum_(model, loss, *second, plan.clip_norm)
    optimizer.step()
    with pytest.raises(RuntimeError, match="batch of step 3 is asked for where step 2 comes next"):
        list(batches)
    state = noise.state_dict()
    taken = an.Participations.of_batches(plan, wanted, 2)
    assert state["participations"].numpy().tobytes() == taken.to_bytes()
    dcp.save({"noise": noise}, checkpoint_id=folder)
    other = CorrelatedNoise(small_model(), plan)
    own = other.loader(data())
    dcp.load({"noise": other}, checkpoint_id=folder)
    assert other.step == 2 and torch.equal(
        next(iter(own))[0], data()[wanted.at(2)[10 * rank : 10 * rank + 10]][0]
    )
    # Named batches: the examples of both processes together.
    noise = CorrelatedNoise(model, plan, sums_in_grad=True, external_batches=True)
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    noise.set_batch([2 * rank, 2 * rank + 1])
    noise.apply_()
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    noise.set_batch([3 - 3 * rank])
    refused("batch of step 1 is with an example that took part too often, too few steps ago", noise.apply_)
    noise.set_batch([7])
    refused("batch of step 1 is with an example twice", noise.apply_)
    if rank == 0:
        noise.set_batch([9])
    with pytest.raises(RuntimeError, match="set_batch.. named the examples of step 1 in 1 of 2 processes"):
        noise.apply_()
    assert noise.step == 1


def test_two_processes_have_their_own_batches(tmp_path):
    on_ranks(2, each_step_has_its_own_batch, tmp_path / "checkpoint")


@pytest.mark.parametrize("work", [own_and_reduced_sums, sums_of_one, nobody_waits, forward_passes_that_fail])
def test_two_processes(work):
    on_ranks(2, work)
