"""Opacus with its own replicas (DDP): each optimizer sees the noisy mean of the plan's whole batch, bit by
bit.
"""

import numpy as np
import pytest
from conftest import small_plan

torch = pytest.importorskip("torch")
pytest.importorskip("opacus")
from opacus.distributed import DifferentiallyPrivateDistributedDataParallel
from opacus_run import (
    CLIP,
    Run,
    data,
    key,
    mean_of,
    no_noise_of_opacus,
    plan,
    small_model,
    sum_of,
)
from ranks import on_ranks, preload, refused

import antinoise as an

pytestmark = pytest.mark.filterwarnings("ignore")
preload("opacus")


def replicas(folder):
    """One of two processes, with its share of every batch; records its own sums and what its optimizer
    saw."""
    rank, plan = torch.distributed.get_rank(), small_plan(dim=100, clip_norm=CLIP)
    refused("module is a Sequential in 2 processes but must be DifferentiallyPrivate", lambda: Run(plan))
    model = DifferentiallyPrivateDistributedDataParallel(small_model())
    refused("key is .* on rank 1 but must be .*, as on rank 0", lambda: Run(plan, model=model, seed=5 + rank))
    for mode in ("hooks", "functorch", "ew", "ghost"):
        run, sums = Run(plan, mode, model=DifferentiallyPrivateDistributedDataParallel(small_model())), []
        for x, y in run.loader:
            assert torch.equal(
                x, data()[an.Batches(plan, key()).at(run.engine.noise.step)[10 * rank : 10 * rank + 10]][0]
            )
            run.backward(x, y)
            sums.append(sum_of(run, mode))
            run.optimizer.step()
            run.optimizer.zero_grad()
        torch.save(
            {"sums": torch.from_numpy(np.stack(sums)), "seen": torch.stack(run.seen)},
            f"{folder}/{mode}-{rank}",
        )


def test_processes_join_their_sums_before_the_noise(plan, tmp_path):
    on_ranks(2, replicas, tmp_path)
    for mode in ("hooks", "functorch", "ew", "ghost"):
        first, second = (torch.load(tmp_path / f"{mode}-{rank}") for rank in (0, 1))
        stream = an.NoiseStream(plan, 93, key())
        sums = first["sums"].numpy() + second["sums"].numpy()
        wanted = torch.stack([mean_of(stream, total, plan) for total in sums])
        assert (
            len(wanted) == 12 and torch.equal(first["seen"], wanted) and torch.equal(second["seen"], wanted)
        )
