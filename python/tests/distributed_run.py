"""Models in every layout over the processes of a group, and their sums, for tests of processes that train
together.
"""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.utils.data import TensorDataset

import antinoise as an


class Net(nn.Module):
    """A model with sizes that processes mostly do not divide evenly."""

    def __init__(self):
        super().__init__()
        self.embed, self.up, self.down = nn.Embedding(13, 8), nn.Linear(8, 11), nn.Linear(11, 5, bias=False)
        self.norm, self.conv, self.scale = nn.LayerNorm(5), nn.Conv2d(3, 5, 3), nn.Parameter(torch.ones(1))
        self.frozen = nn.Parameter(torch.ones(3), requires_grad=False)


def net():
    torch.manual_seed(0)
    return Net().double()


DIM = sum(p.numel() for p in net().parameters() if p.requires_grad)


def key_here():
    """The key in rank 0, None in the others, which get it by broadcast."""
    return an.Key.from_seed_insecure(5) if dist.get_rank() == 0 else None


def arranged(kind, model=None):
    model, world = model or net(), dist.get_world_size()
    if kind == "replicated":
        return model
    mesh = init_device_mesh("cpu", (world,))
    if kind == "fsdp":
        for part in (model.embed, model.up):
            fully_shard(part, mesh=mesh)
        return fully_shard(model, mesh=mesh)
    if kind == "fsdp-columns":
        # Columns must divide evenly.
        return fully_shard(
            model, mesh=mesh, shard_placement_fn=lambda p: Shard(int(p.ndim == 2 and p.shape[1] % world == 0))
        )
    if kind == "tp":
        return parallelize_module(model, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    mesh = init_device_mesh("cpu", (2, world // 2), mesh_dim_names=("data", "inner"))
    if kind == "hsdp":
        return fully_shard(model, mesh=mesh)
    parallelize_module(model, mesh["inner"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
    for name, p in list(model.named_parameters()):
        if not isinstance(p, DTensor):
            place, _, last = name.rpartition(".")
            whole = distribute_tensor(p.data, mesh["inner"], [Replicate()])
            setattr(model.get_submodule(place), last, nn.Parameter(whole, requires_grad=p.requires_grad))
    return fully_shard(model, mesh=mesh["data"])


def trained(model):
    return [p for p in model.parameters() if p.requires_grad]


def sums(step):
    generator = torch.Generator().manual_seed(step)
    return torch.randn(DIM, generator=generator, dtype=torch.float64)


def leave(model, whole):
    """Leaves a step's sum, laid out as the parameters are."""
    for p, part in zip(trained(model), whole.split([p.numel() for p in trained(model)])):
        part = part.view(p.shape)
        p.grad = (
            distribute_tensor(part, p.device_mesh, p.placements, src_data_rank=None)
            if isinstance(p, DTensor)
            else part.clone()
        )


def gathered(model):
    return torch.cat(
        [(p.grad.full_tensor() if isinstance(p, DTensor) else p.grad).reshape(-1) for p in trained(model)]
    )


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.up, self.down = nn.Linear(6, 9), nn.Linear(9, 5), nn.Linear(5, 3)

    def forward(self, x):
        return self.down(torch.tanh(self.up(torch.tanh(self.embed(x)))))


def small_model():
    torch.manual_seed(1)
    return Small().double()


def data():
    generator = torch.Generator().manual_seed(2)
    return TensorDataset(
        torch.randn(240, 6, generator=generator).double(), torch.randint(0, 3, (240,), generator=generator)
    )
