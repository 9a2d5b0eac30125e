"""Checks of Opacus's `ghost_fsdp` mode, in which FSDP2 reduces sums before other code can see them."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.distributed.fsdp import FSDPModule

from ._relied import relied
from .torch.distributed.layout import is_sharded
from .torch.distributed.processes import rank_and_world


def check_sharded(module: nn.Module) -> None:
    """Refuses an FSDP2 module unless its `.grad` is the mean of the sums of all processes, in single
    precision or better.
    """
    if not isinstance(module, FSDPModule):
        raise ValueError(
            f"module is a {type(module).__name__} but must be one of FSDP2 (fully_shard) where"
            " grad_sample_mode is ghost_fsdp"
        )
    _, count = rank_and_world()
    for name, p in module.named_parameters():
        places: Any = getattr(p, "placements", ())
        fsdp_alone = (
            is_sharded(p) and all(place.is_replicate() for place in places[:-1]) and places[-1].is_shard()
        )
        if p.requires_grad and (not fsdp_alone or p.device_mesh.size() != count):  # type: ignore[attr-defined]
            must_be = f"sharded by FSDP2, over all {count} processes, and by nothing else"
            raise ValueError(f"parameter {name} is laid out {places} but must be {must_be}")
    for name, part in module.named_modules():
        if isinstance(part, FSDPModule):
            _check_reduction(name or "module", part)


def refuse_sharded(module: nn.Module) -> None:
    """Refuses to save or load, as one file, a model that several processes hold."""
    if any(is_sharded(p) for p in module.parameters()):
        must_be = (
            "saved by torch.distributed.checkpoint, {'noise': engine.noise} along with the model's state"
        )
        raise ValueError(f"module is one that is sharded over processes but must be {must_be}")


def _check_reduction(name: str, part: FSDPModule) -> None:
    # The settings have no public getter.
    state = relied("torch", part, "_get_fsdp_state")()
    policy = relied("torch", state, "_mp_policy")
    if not {relied("torch", policy, "param_dtype"), relied("torch", policy, "reduce_dtype")} <= {
        None,
        torch.float32,
        torch.float64,
    }:
        raise ValueError(
            f"mp_policy of {name} is {policy} but must be of float32: in lower precision no bound on the effect"
            " of an example is known"
        )
    # PyTorch before 2.10 has a single group per module.
    groups = (
        state._fsdp_param_groups
        if hasattr(state, "_fsdp_param_groups")
        else [relied("torch", state, "_fsdp_param_group")]
    )
    for group in (group for group in groups if group is not None):
        if (factor := relied("torch", group, "gradient_divide_factor")) is not None:
            raise ValueError(
                f"gradient_divide_factor of {name} is {factor} but must be left as it is: sums are computed from the"
                " means that FSDP2 leaves"
            )
        if relied("torch", group, "_all_reduce_hook") is not None:
            raise ValueError(f"all_reduce_hook of {name} is set but must not be: it could change the mean")
        comm = relied("torch", group, "_reduce_scatter_comm")
        if not type(comm).__module__.startswith("torch.distributed."):
            raise ValueError(f"reduce_scatter of {name} is a {type(comm).__name__} but must be PyTorch's own")
