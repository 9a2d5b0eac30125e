"""Opacus with FSDP2 (`ghost_fsdp`): its optimizers see the noisy mean of the plan's batch over all
processes. Also shows why `ghost_tp` is refused.
"""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("opacus")
import torch.distributed as dist
from opacus import PrivacyEngine
from opacus.utils.batch_memory_manager import BatchMemoryManager
from opacus.utils.fsdp_utils import FSDP2Wrapper
from opacus_run import (
    CLIP,
    Run,
    data,
    flat,
    key,
    mean_of,
    no_noise_of_opacus,
    plan,
    small_model,
)
from ranks import on_ranks, preload, refused
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from torch.utils.data import DataLoader

import antinoise as an

pytestmark = pytest.mark.filterwarnings("ignore")
preload("opacus")


def hsdp(model, rows):
    mesh = init_device_mesh(
        "cpu", (rows, dist.get_world_size() // rows), mesh_dim_names=("replicas", "shards")
    )
    for part in (model[0], model[2]):
        fully_shard(part, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def by_hand(model, x, y):
    """The sum of clipped gradients of examples taken one by one."""
    whole, total = small_model(), np.zeros(93)
    with torch.no_grad():
        for p, q in zip(whole.parameters(), model.parameters(), strict=True):
            p.copy_(q.full_tensor())
    for a, b in zip(x, y, strict=True):
        gradient = torch.autograd.grad(
            nn.functional.cross_entropy(whole(a[None]), b[None]), list(whole.parameters())
        )
        gradient = flat(gradient).double().numpy()
        total += gradient * min(1.0, CLIP / np.linalg.norm(gradient))
    return total


def runs(plan):
    world, batches = dist.get_world_size(), an.Batches(plan, key())
    for arranged in (FSDP2Wrapper, *(lambda m, rows=rows: hsdp(m, rows) for rows in (1, world))):
        for reduction in ("mean", "sum"):
            run = Run(plan, "ghost_fsdp", model=arranged(small_model()), loss_reduction=reduction)
            stream, wanted = an.NoiseStream(plan, 93, key()), []
            for x, y in run.loader:
                batch = data()[batches.at(len(wanted))]
                run.backward(x, y)
                # FSDP2 leaves the mean over processes in .grad.
                sums = [p.grad.double() * world for p in run.model.parameters()]
                assert (
                    np.allclose(flat(sums), by_hand(run.model, *batch), rtol=1e-4, atol=1e-5)
                    and flat(sums).abs().max() > 0.1
                )
                wanted.append(mean_of(stream, flat(sums).numpy(), plan))
                run.optimizer.step()
                run.optimizer.zero_grad()
            scale = 1 if reduction == "mean" else torch.tensor(plan.expected_batch_size)
            assert len(run.seen) == len(wanted) == run.engine.noise.step == 12
            assert all(torch.equal(a, b * scale) for a, b in zip(run.seen, wanted, strict=True))
            assert 'grad_sample_mode="ghost_fsdp"), WITHOUT A PROOF' in run.engine.statement
            assert run.engine.get_epsilon(plan.delta) == plan.epsilon


@pytest.mark.parametrize("world", [1, 2, 3])
def test_a_step_sees_sum_and_noise_over_the_batch_size(world, plan):
    on_ranks(world, runs, plan)


def virtual_steps(plan):
    run, stream, total, wanted = (
        Run(plan, "ghost_fsdp", model=FSDP2Wrapper(small_model())),
        an.NoiseStream(plan, 93, key()),
        0,
        [],
    )
    with BatchMemoryManager(
        data_loader=run.loader, max_physical_batch_size=5, optimizer=run.optimizer
    ) as portions:
        for number, (x, y) in enumerate(portions):
            run.backward(x, y)
            total = total + flat([p.grad.double() * 2 for p in run.model.parameters()]).numpy()
            if number % 2:
                wanted.append(mean_of(stream, total, plan))
                total = 0
            run.optimizer.step()
            run.optimizer.zero_grad()
    assert len(run.seen) == len(wanted) == run.engine.noise.step == 12
    assert all(torch.equal(a, b) for a, b in zip(run.seen, wanted, strict=True))


def test_virtual_steps_make_noise_once(plan):
    on_ranks(2, virtual_steps, plan)


def refusals(plan):
    rank, one = dist.get_rank(), small_model()
    refused("module is a Sequential but must be one of FSDP2", lambda: Run(plan, "ghost_fsdp", model=one))
    sharded = FSDP2Wrapper(small_model())
    refused(
        "module is a FSDPSequential in 2 processes but must be DifferentiallyPrivate",
        lambda: Run(plan, "hooks", model=sharded),
    )
    low = FSDP2Wrapper(small_model(), mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16))
    refused(
        "mp_policy of module is .*bfloat16.* but must be of float32",
        lambda: Run(plan, "ghost_fsdp", model=low),
    )
    scaled = FSDP2Wrapper(small_model())
    scaled[2].set_gradient_divide_factor(1.0)
    refused(
        "gradient_divide_factor of 2 is 1.0 but must be left as it is",
        lambda: Run(plan, "ghost_fsdp", model=scaled),
    )
    partly = fully_shard(one, ignored_params={one[2].bias})
    refused(
        "parameter 2.bias is laid out .* but must be sharded by FSDP2, over all 2",
        lambda: Run(plan, "ghost_fsdp", model=partly),
    )
    refused(
        "key is .* on rank 1 but must be",
        lambda: Run(plan, "ghost_fsdp", model=FSDP2Wrapper(small_model()), seed=5 + rank),
    )
    run = Run(plan, "ghost_fsdp", model=FSDP2Wrapper(small_model()))
    before = flat(run.model.parameters())
    saved = "module is one that is sharded over processes but must be saved by torch.distributed.checkpoint"
    refused(saved, lambda: run.engine.save_checkpoint(path="nowhere", module=run.module))
    refused(saved, lambda: run.engine.load_checkpoint(path="nowhere", module=run.module))
    x, y = next(iter(run.loader))
    refused(
        "batch of step 0 is of 19 examples but must be the plan's, of 20",
        lambda: run.step(x[rank:], y[rank:]),
    )
    late = Run(plan, "ghost_fsdp", model=FSDP2Wrapper(small_model()))
    for part in late.model.modules():
        if isinstance(part, FSDPModule):
            part.set_force_sum_reduction_for_comms(True)
            part.set_gradient_divide_factor(1.0)
    refused("gradient_divide_factor of .* is 1.0 but must be left as it is", lambda: late.step(x, y))
    # An example that is not finite makes the sum of all processes not finite.
    x[rank] = float("nan") if rank == 1 else 1.0
    refused("sum of 0.weight is not finite but must be one of clipped gradients", lambda: run.step(x, y))
    assert run.engine.noise.step == 0 and torch.equal(before, flat(run.model.parameters()))


def test_what_would_void_the_claim_is_refused_on_all_ranks(plan):
    on_ranks(2, refusals, plan)


def tensor_parallel(plan):
    """For `ghost_tp`, Opacus's own engine does not wrap the model, and so has neither its clip norm nor a
    private optimizer.
    """

    def private(mode, wrap):
        torch.manual_seed(1)
        model = nn.Sequential(nn.Linear(6, 8, bias=False), nn.Tanh(), nn.Linear(8, 4, bias=False))
        parallelize_module(
            model, init_device_mesh("cpu", (2,)), {"0": ColwiseParallel(), "2": RowwiseParallel()}
        )
        optimizer, loader = torch.optim.SGD(model.parameters(), lr=1.0), DataLoader(data(), batch_size=20)
        how = dict(
            noise_multiplier=1.0,
            max_grad_norm=0.25,
            poisson_sampling=False,
            grad_sample_mode=mode,
            wrap_model=wrap,
        )
        how |= dict(optimizer=optimizer, criterion=nn.CrossEntropyLoss(), data_loader=loader)
        return model, *PrivacyEngine().make_private(module=model, **how)

    refused("Unexpected grad_sample_mode: ghost_tp", lambda: private("ghost_tp", True))
    model, hooks, optimizer, criterion, loader = private("ghost_tp", False)
    assert hooks.max_grad_norm == 1 != optimizer.max_grad_norm
    x, y = next(iter(loader))
    criterion(model(x), y).backward()
    refused("Per sample gradient is not initialized", optimizer.step)
    refused("grad_sample_mode is ghost_tp but must be one of", lambda: Run(plan, "ghost_tp", model=model))


def test_why_tensor_parallel_models_are_refused(plan):
    on_ranks(2, tensor_parallel, plan)
