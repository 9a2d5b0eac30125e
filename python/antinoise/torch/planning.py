"""A plan for a model and its data, the same in all processes."""

from __future__ import annotations

from collections.abc import Sized
from typing import Any

from torch import nn

from .. import Plan, plan
from .distributed.processes import all_gather, rank_and_world, run_on_all_ranks
from .held_sums import trainable


def plan_for(model: nn.Module, examples: Sized, **how: Any) -> Plan:
    """The plan that rank 0 chooses for the trained parameters of `model`.

    Args:
        model: The model, of which the number of coordinates is taken.
        examples: The data set, of which the length is taken.
        how: Further arguments of `antinoise.plan`, of which None stands for absent.

    Raises:
        ValueError: An argument is absent, or no plan fits.
    """
    rank, world = rank_and_world()

    def choose() -> Plan | None:
        for name in ("epsilon", "delta", "batch_size"):
            if how[name] is None:
                raise ValueError(f"{name} is absent but must be given, unless a plan is")
        dim = sum(p.numel() for p in trainable(model).values())
        return plan(len(examples), dim=dim, **how) if rank == 0 else None

    made = run_on_all_ranks(choose)
    if world > 1:
        made = Plan.from_toml(all_gather(made and made.to_toml())[0])
    assert made is not None
    return made
