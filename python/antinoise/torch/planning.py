"""A plan for a model and its data, the same in all processes."""

from __future__ import annotations

from typing import Any

from torch import nn
from torch.optim import SGD, Optimizer

from .. import Plan, plan
from .data.loaders import number_of_examples
from .distributed.processes import all_gather, rank_and_world, run_on_all_ranks
from .held_sums import trained


def plan_for(model: nn.Module, dataset: Any, **how: Any) -> Plan:
    """The plan that rank 0 chooses for the trained parameters of `model`.

    Args:
        model: The model, of which the number of trained coordinates is taken.
        dataset: The data set, of which the length is taken.
        how: Further arguments of `antinoise.plan`, of which None stands for absent.

    Raises:
        ValueError: An argument is absent, the model has no trainable parameters, the data set has no
            length, or no plan fits.
    """
    rank, world = rank_and_world()

    def choose() -> Plan | None:
        for name in ("epsilon", "delta", "batch_size"):
            if how[name] is None:
                raise ValueError(f"{name} is absent but must be given, unless a plan is")
        examples, dim = number_of_examples(dataset), sum(p.numel() for p in trained(model).values())
        return plan(examples, dim=dim, **how) if rank == 0 else None

    made = run_on_all_ranks(choose)
    if world > 1:
        made = Plan.from_toml(all_gather(made and made.to_toml())[0])
    assert made is not None
    return made


def workload_of(optimizer: Optimizer) -> str | None:
    """The workload to design for: the noise that the last iterate of SGD remembers; None for other
    optimizers, and where groups of parameters have different momentum.
    """
    if type(optimizer) is not SGD:
        return None
    momenta = {float(group["momentum"]) for group in optimizer.param_groups}
    momentum = momenta.pop()
    return None if momenta or momentum >= 1 else f"last-iterate:{momentum}"
