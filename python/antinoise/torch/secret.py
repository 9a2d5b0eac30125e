"""What a checkpoint keeps of the noise: as secret as the key while the run goes on, and nothing when it is done."""

from __future__ import annotations

import os
from typing import Any

import torch

from .. import Plan
from .._sealed import check_sealed, new_sealed
from .noise import CorrelatedNoise


def state_of(noise: CorrelatedNoise, plan: Plan) -> dict[str, Any]:
    """The state of the noise; after the last step, when nobody needs it any more, no more than that."""
    return {"finished": True} if noise.step == plan.steps else noise.state_dict()


def go_on(noise: CorrelatedNoise, state: dict[str, Any]) -> None:
    """Goes on where `state_of` was called."""
    if state.get("finished"):
        must_be = "of one that goes on: its model can be loaded without the noise"
        raise ValueError(f"state is of a run whose steps have all been made but must be {must_be}")
    noise.load_state_dict(state)


def save_secret(state: Any, path: str | os.PathLike[str], **how: Any) -> None:
    """`torch.save` into a file that its owner alone may read, whole or not at all, and that ends in a digest of its content."""
    with new_sealed(path) as file:
        torch.save(state, file, **how)


def load_secret(path: str | os.PathLike[str], **how: Any) -> Any:
    """`torch.load` of what `save_secret` wrote; RuntimeError if anything of the file was altered since."""
    check_sealed(path)
    return torch.load(path, **({"weights_only": True} | how))
