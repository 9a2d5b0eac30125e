"""Fine-tunes a small language model on private lines of code, sharded by FSDP2 over two processes.

Each process clips its half of every batch and makes the noise of its shard. Under torchrun the last lines are
`work(int(os.environ["RANK"]))`, and `init_process_group` finds the rest in the environment.
"""

import tempfile

import torch
import torch.distributed as dist
from texts import loss_on, losses, pretrained, texts
from torch import multiprocessing
from torch.distributed.fsdp import fully_shard
from torch.utils.data import TensorDataset

from antinoise.torch import make_private

PROCESSES = 2


def work(rank, weights, peers):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{peers}", rank=rank, world_size=PROCESSES)
    public, (train, _), (test, _) = texts()
    model = pretrained(public, steps=0)
    model.load_state_dict(weights)
    before = loss_on(model, test)
    for block in model.blocks:
        fully_shard(block)
    fully_shard(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    how = dict(epsilon=8, delta=1e-5, batch_size=256, epochs=2, setting="cyclic")
    run = make_private(model, optimizer, TensorDataset(train), **how)  # rank 0 draws the key
    for (rows,) in (batch for _ in run.epochs for batch in run.loader):
        run.backward(lambda rows: losses(model(rows[:, :-1]), rows[:, 1:]), rows)
        optimizer.step()
        optimizer.zero_grad()
    after = loss_on(model, test)
    if rank == 0:
        print(run.statement.split("\n\n")[0])
    dim = sum(p.numel() for p in model.parameters())
    print(
        f"process {rank}: noise of {run.noise.coordinates:,} of {dim:,} parameters, loss {before:.3f}, now {after:.3f}"
    )
    dist.destroy_process_group()


if __name__ == "__main__":
    weights = pretrained(texts()[0]).state_dict()
    with tempfile.TemporaryDirectory() as folder:
        multiprocessing.spawn(work, (weights, f"{folder}/peers"), nprocs=PROCESSES)
