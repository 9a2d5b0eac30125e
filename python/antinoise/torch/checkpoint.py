"""The noise in checkpoints: as secret as the key during the run, and without any secret after its last
step.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import torch

from .. import Plan
from .._sealed import check_sealed, new_sealed
from .noise import CorrelatedNoise


def noise_state(noise: CorrelatedNoise, plan: Plan) -> dict[str, Any]:
    """The noise's state; after the last step, only a mark that the run is finished."""
    return {"finished": True} if noise.step == plan.steps else noise.state_dict()


def load_noise(noise: CorrelatedNoise, state: dict[str, Any]) -> None:
    """Resumes the noise from the state that `noise_state` returned."""
    if state.get("finished"):
        raise RuntimeError(
            "This state is of a run whose steps have all been made: no step is left to resume. Its model can"
            " be loaded without the noise."
        )
    noise.load_state_dict(state)


def check_arguments(state: dict[str, Any], now: Mapping[str, str], reuse_noise_unprotected: bool) -> None:
    """Removes from a state the arguments that determine the updates, and refuses the state if they differ
    now. Without this check, a checkpoint's optimizer and schedule would silently replace them.
    """
    was = state.pop("arguments", now)
    names = sorted({*was, *now})
    changed = [
        f"{name} is {now.get(name)} and was {was.get(name)}"
        for name in names
        if now.get(name) != was.get(name)
    ]
    if changed and not reuse_noise_unprotected:
        raise RuntimeError(
            f"{', '.join(changed)} when the checkpoint was saved: another model would be trained with noise"
            " that the earlier run has used. Give the same arguments, or begin a run with another key or"
            " name; if nobody sees the noisy sums that the run made since, pass reuse_noise_unprotected=True"
        )


def save_private(state: Any, path: str | os.PathLike[str], **how: Any) -> None:
    """`torch.save` to a file of mode 0600 that ends in a digest, written completely or not at all."""
    with new_sealed(path) as file:
        torch.save(state, file, **how)


def load_private(path: str | os.PathLike[str], **how: Any) -> Any:
    """`torch.load` of a file of `save_private`; RuntimeError if the file was altered."""
    check_sealed(path)
    return torch.load(path, **({"weights_only": True} | how))
