"""Sums of clipped gradients for parameters that are sharded over processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from ..relied import hooks, own_parameters
from .layout import is_sharded
from .processes import all_gather

Sums = dict[str, Tensor]


def sharded_sums(
    parameters: Mapping[str, nn.Parameter],
    ghost_sums: Callable[..., tuple[Sums, float]],
    examples: int,
    microbatch_size: int,
) -> tuple[Sums, float]:
    """The sums over the examples of all processes, laid out as the parameters are.

    A forward pass gathers the parameters, so that every process must run the same number of portions.
    """
    most = max(all_gather(-(-examples // microbatch_size)))
    sums, losses = ghost_sums(at_least=most, agreed=lambda here: any(all_gather(here)))
    return {name: reduced(parameters[name], sums.pop(name)) for name in parameters}, losses


def reduced(p: Any, own: Tensor) -> Tensor:
    """The sum over all processes of their whole-shaped sums, in the layout of `p`."""
    if not is_sharded(p):
        return own
    from torch.distributed.tensor import DTensor, Partial

    whole = DTensor.from_local(own, p.device_mesh, [Partial()] * p.device_mesh.ndim, run_check=False)
    found: Tensor = whole.redistribute(placements=p.placements)
    return found


def reshard(model: nn.Module) -> None:
    """Makes FSDP2 shard parameters again that a forward pass without a backward pass left whole."""
    for module in model.modules():
        if hasattr(module, "set_reshard_after_forward"):
            module.reshard()  # type: ignore[operator]


@contextmanager
def whole(model: nn.Module) -> Iterator[None]:
    """Temporarily makes the model that one process would have: whole parameters, and no hooks that gather
    or shard them.
    """
    made: dict[int, nn.Parameter] = {}
    kept = [(own_parameters(module), dict(own_parameters(module))) for module in model.modules()]
    found = [hooks(module, when) for module in model.modules() for when in ("forward_pre", "forward")]
    kept_hooks = [(held, dict(held)) for held in found]
    try:
        for held, own in kept:
            for name, p in own.items():
                if p is not None and is_sharded(p):
                    # A parameter that modules share stays shared.
                    if id(p) not in made:
                        made[id(p)] = nn.Parameter(p.detach().full_tensor(), requires_grad=p.requires_grad)  # type: ignore[attr-defined]
                    held[name] = made[id(p)]
        for held_hooks, own_hooks in kept_hooks:
            for number, hook in own_hooks.items():
                if (getattr(hook, "__module__", None) or "").startswith("torch.distributed."):
                    del held_hooks[number]
        given = [dict(held) for held, _ in kept]
        yield
        if any(
            held[name] is not p for (held, _), now in zip(kept, given, strict=True) for name, p in now.items()
        ):
            must_be = "left as it is: a model may be sharded only by hooks of its modules"
            raise ValueError(f"parameter of the model is replaced in its forward pass but must be {must_be}")
    finally:
        for held, own in kept:
            held.update(own)
        for held_hooks, own_hooks in kept_hooks:
            held_hooks.clear()
            held_hooks.update(own_hooks)
