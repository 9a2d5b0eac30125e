"""What a checkpoint keeps of the noise: as secret as the key while the run goes on, and nothing when it is
done."""

from __future__ import annotations

import os
from collections.abc import Mapping
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


def check_arguments(state: dict[str, Any], now: Mapping[str, str], reuse_noise_unprotected: bool) -> None:
    """Takes the arguments that make the updates out of a state, and refuses it where they are others now:
    what a checkpoint holds of optimizer and schedule would take their place without a word."""
    was = state.pop("arguments", now)
    names = sorted({*was, *now})
    changed = [f"{name} is {now.get(name)} and was {was.get(name)}" for name in names if now.get(name) != was.get(name)]
    if changed and not reuse_noise_unprotected:
        raise RuntimeError(
            f"{', '.join(changed)} when the checkpoint was saved: another model would be trained with noise that the run before has used. Give the same "
            "arguments, or begin a run with another key or name; reuse_noise_unprotected=True says that nobody sees what that run released since"
        )


def save_secret(state: Any, path: str | os.PathLike[str], **how: Any) -> None:
    """`torch.save` into a file that its owner alone may read, whole or not at all, and that ends in a digest
    of its content."""
    with new_sealed(path) as file:
        torch.save(state, file, **how)


def load_secret(path: str | os.PathLike[str], **how: Any) -> Any:
    """`torch.load` of what `save_secret` wrote; RuntimeError if anything of the file was altered since."""
    check_sealed(path)
    return torch.load(path, **({"weights_only": True} | how))
