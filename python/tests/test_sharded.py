"""Exact sums of sharded models: the bits of one process, in every layout and world size."""

import pytest
from conftest import small_plan

torch = pytest.importorskip("torch")
import torch.distributed as dist
from distributed_run import Small, arranged, data, key_here
from ranks import on_ranks, refused
from torch import nn
from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method
from torch.distributed.tensor import DTensor
from torch.utils.data import DataLoader, TensorDataset

import antinoise as an
from antinoise.torch import CorrelatedNoise, clipped_sum_
from antinoise.torch.held_sums import drop_sums, held_sum

loss = nn.functional.cross_entropy
STEPS = 5
WORLDS = {
    1: ["replicated", "fsdp", "tp"],
    2: ["replicated", "fsdp", "fsdp-columns", "tp"],
    4: ["fsdp", "fsdp-columns", "hsdp", "fsdp+tp"],
}


def small_model():
    torch.manual_seed(1)
    return Small()


def rows():
    x, y = data().tensors
    return TensorDataset(x.float(), y)


def plan_of():
    """A plan whose batches processes do not share evenly."""
    return small_plan(dim=200, batch_size=21, epochs=None, steps=11, clip_norm=0.3)


def full(p):
    return p.detach().full_tensor() if isinstance(p, DTensor) else p.detach()


def flat(tensors):
    return torch.cat([full(t).reshape(-1) for t in tensors])


def train(kinds, folder):
    plan = plan_of()
    for kind in kinds:
        model = arranged(kind, small_model())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
        noise, seen = (
            CorrelatedNoise(model, plan, key_here(), reuse_noise_unprotected=True).attach(optimizer),
            [],
        )
        for x, y in DataLoader(rows(), batch_sampler=noise.batch_sampler()):
            how = dict(microbatch_size=1, grid_spacing=plan.grid_spacing)
            if noise.step % 2:
                clipped_sum_(model, loss, x, y, plan.clip_norm, **how)
            else:
                clipped_sum_(
                    model,
                    lambda model, example: loss(model(example[0]), example[1]),
                    (x, y),
                    plan.clip_norm,
                    **how,
                )
            seen.append(flat(held_sum(p).total for p in model.parameters()))
            assert seen[-1].dtype == torch.int64 and seen[-1].abs().max() > 100
            optimizer.step()
            seen.append(flat(p.grad for p in model.parameters()))
            optimizer.zero_grad()
            if noise.step == STEPS:
                break
            if "tp" not in kind:
                with torch.no_grad():
                    # FSDP2 leaves the outer parameters whole after this pass.
                    model(x)
        torch.save(
            (seen, flat(model.parameters())), f"{folder}/{kind}-{dist.get_world_size()}-{dist.get_rank()}"
        )


def test_every_layout_has_the_bits_of_one_process(tmp_path):
    for world, kinds in WORLDS.items():
        on_ranks(world, train, kinds, tmp_path)
    wanted, parameters = torch.load(tmp_path / "replicated-1-0")
    assert len(wanted) == 2 * STEPS and not torch.equal(parameters, flat(small_model().parameters()))
    for world, kinds in WORLDS.items():
        for kind in kinds:
            for rank in range(world):
                seen, found = torch.load(tmp_path / f"{kind}-{world}-{rank}")
                if kind in ("replicated", "tp") and world > 1:
                    # For parameters that are not DTensors, each process has the sum over its own examples
                    # before the step.
                    seen[::2] = wanted[::2]
                assert all(torch.equal(a, b) for a, b in zip(seen, wanted, strict=True)), (kind, world, rank)
                assert torch.equal(found, parameters), (kind, world, rank)
    # By hand: gradients one by one, rounded, summed.
    plan, total = plan_of(), 0
    for i in an.Batches(plan, an.Key.from_seed_insecure(5)).at(0):
        model, (x, y) = small_model(), rows()[i]
        gradient = torch.autograd.grad(loss(model(x[None]), y[None]), list(model.parameters()))
        gradient = torch.cat([g.reshape(-1) for g in gradient]).double()
        total += torch.round(
            gradient * min(1.0, (1 - 2**-20) * 0.3 / float(gradient.norm())) / plan.grid_spacing
        ).long()
    assert (wanted[0] - total).abs().max() <= 1


class Failing(Small):
    """A forward pass that fails in one process."""

    def forward(self, x):
        if dist.get_rank() == 1 and self.fails:
            raise RuntimeError("out of memory")
        return super().forward(x)


class Through(Small):
    """Its forward pass calls a method that gathers parameters by itself."""

    def __init__(self):
        super().__init__()
        self.up.inner = self.up.forward

    def forward(self, x):
        return self.down(torch.tanh(self.up.inner(torch.tanh(self.embed(x)))))


def one_by_one():
    plan, share = plan_of(), slice(7 * dist.get_rank(), 7 * dist.get_rank() + 7)
    x, y = (part[:14] for part in rows().tensors)
    one, model = small_model().double(), arranged("fsdp", small_model().double())
    clipped_sum_(one, loss, x.double(), y, 0.3)
    clipped_sum_(model, loss, x[share].double(), y[share], 0.3, norms="per_example")
    hooks = [len(module._forward_pre_hooks) for module in model.modules()]
    for p, q in zip(one.parameters(), model.parameters(), strict=True):
        found, wanted = full(held_sum(q).total), held_sum(p).total
        assert (
            isinstance(q, DTensor)
            and wanted.abs().max() > 0.01
            and torch.allclose(found, wanted, rtol=1e-9, atol=1e-12)
        )
    assert sum(hooks) == 3
    drop_sums([*one.parameters(), *model.parameters()])
    # A process can have no example.
    clipped_sum_(one, loss, x.double(), y, 0.3, microbatch_size=1, grid_spacing=plan.grid_spacing)
    share_of_one = slice(0, 14 if dist.get_rank() == 0 else 0)
    clipped_sum_(
        model,
        loss,
        x[share_of_one].double(),
        y[share_of_one],
        0.3,
        microbatch_size=1,
        grid_spacing=plan.grid_spacing,
    )
    assert all(
        torch.equal(held_sum(p).total, full(held_sum(q).total))
        for p, q in zip(one.parameters(), model.parameters(), strict=True)
    )
    drop_sums(model.parameters())
    # A forward pass without a backward pass leaves parameters whole; ghost norms and noise must still begin
    # with shards.
    for begin in (
        lambda: clipped_sum_(model, loss, x[share].double(), y[share], 0.3),
        lambda: CorrelatedNoise(model, plan),
    ):
        with torch.no_grad():
            model(x.double())
        assert not all(isinstance(q, DTensor) for q in model.parameters())
        made = begin()
        assert all(isinstance(q, DTensor) and held_sum(q) for q in model.parameters())
    assert made.coordinates < sum(p.numel() for p in one.parameters())
    drop_sums(model.parameters())
    # A failure in one process is raised in all, and leaves the model unchanged.
    failing = Failing()
    failing.fails = False
    failing = arranged("fsdp", failing)
    failing.fails = True
    for how in (dict(norms="per_example"), dict(grid_spacing=plan.grid_spacing)):
        wanted = "out of memory" if dist.get_rank() == 1 else r"out of memory \(rank 1\)"
        with pytest.raises(RuntimeError if dist.get_rank() == 1 else ValueError, match=wanted):
            clipped_sum_(failing, loss, x[share], y[share], 0.3, **how)
        assert all(isinstance(q, DTensor) and held_sum(q) is None for q in failing.parameters())
        assert [len(module._forward_pre_hooks) for module in failing.modules()] == hooks
    through = Through()
    fully_shard(through.up)
    register_fsdp_forward_method(through.up, "inner")
    fully_shard(through)
    with torch.no_grad():
        through(x)
    with pytest.raises(
        ValueError, match="parameter of the model is replaced in its forward pass but must be left as it is"
    ):
        clipped_sum_(through, loss, x[share], y[share], 0.3, norms="per_example")
    refused(
        "grid_spacing is 0.3 but must be a power of two",
        lambda: clipped_sum_(model, loss, x, y, 0.3, grid_spacing=0.3 if dist.get_rank() == 1 else None),
    )


def test_gradients_one_by_one_of_two_processes():
    on_ranks(2, one_by_one)
