"""What clipping leaves for parameters and noise takes: sums of clipped gradients, and which call clipped them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Literal

from torch import Tensor, float64, int64, nn

from .relied import WeakTensorKeyDictionary
from .sources import Source


@dataclass(frozen=True, eq=False)
class Clipping:
    """A call that clipped examples: `names` are the parameters that it covered, in which an example moves the sums by `clip_norm` at most in
    all. Two calls are never equal."""

    names: tuple[str, ...]
    examples: int
    clip_norm: float
    spacing: float | None
    unit: Literal["example", "user"]
    sources: frozenset[Source]
    """The steps whose batches they are known to be of."""


@dataclass(frozen=True)
class ClippedSum:
    """Of a step and a parameter: the sum of its clipped gradients, and the calls that clipped them, in their order.

    `total` is in double precision, or in whole points (int64) of a grid of this spacing, to which each gradient was rounded.
    """

    total: Tensor
    calls: tuple[Clipping, ...]

    @property
    def examples(self) -> int:
        """How many are in it."""
        return sum(call.examples for call in self.calls)

    @property
    def clip_norm(self) -> float:
        """The largest that an example was clipped to."""
        return max(call.clip_norm for call in self.calls)

    @property
    def spacing(self) -> float | None:
        """Of the grid; None for double precision."""
        return self.calls[0].spacing

    @property
    def unit(self) -> Literal["example", "user"]:
        """What was clipped."""
        return self.calls[0].unit


# Beside the parameters, not on them: these sums have no noise yet, and what is on a parameter is pickled with its model.
_held: MutableMapping[Tensor, ClippedSum] = WeakTensorKeyDictionary()


def trainable(model: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters that are trained, by name, in the model's order."""
    return {name: p for name, p in model.named_parameters() if p.requires_grad}


def held_sum(p: nn.Parameter) -> ClippedSum | None:
    """What was left for `p`."""
    return _held.get(p)


def leave_sums(
    model: nn.Module,
    totals: Mapping[str, Tensor],
    examples: int,
    clip_norm: float,
    spacing: float | None = None,
    unit: Literal["example", "user"] = "example",
) -> None:
    """Leaves a sum for each trained parameter of `model`, by name, or adds it to the one that is there: for whoever clips otherwise.

    `totals`, float64, are the sums of `examples` gradients, each clipped over all of these parameters to `clip_norm`, or of this process's alone where
    processes train together and each has the whole of a parameter; a DTensor is the sum of all, laid out as its parameter is. With a `spacing` they
    are in whole points of that grid, int64. Where a plan protects users, what is clipped is all that a user adds: whoever does so says
    `unit="user"`, and how many users.

    Calls before a step add up, and each must be for all trained parameters of the model that the noise is made for: parameters that were clipped apart
    are refused at the step, since one example could move each of their sums by `clip_norm`.
    """
    leave(trainable(model), totals, examples, clip_norm, spacing, unit)


def leave(
    parameters: Mapping[str, nn.Parameter],
    totals: Mapping[str, Tensor],
    examples: int,
    clip_norm: float,
    spacing: float | None = None,
    unit: Literal["example", "user"] = "example",
    sources: frozenset[Source] = frozenset(),
) -> None:
    """As `leave_sums`, for the trained parameters of a model, of batches of the steps in `sources`."""
    if set(totals) != set(parameters):
        name = min(set(totals) ^ set(parameters))
        must_be = "there for each trained parameter of the model, and for no other"
        raise ValueError(f"sum of {name} is {'given' if name in totals else 'absent'} but must be {must_be}")
    dtype = float64 if spacing is None else int64
    for name, p in parameters.items():
        total, held = totals[name], held_sum(p)
        if total.dtype != dtype or total.shape != p.shape:
            found = f"dtype {total.dtype} and shape {tuple(total.shape)}"
            raise ValueError(f"sum of {name} is of {found} but must be of {dtype} and {tuple(p.shape)}")
        if held is not None and held.spacing != spacing:
            raise ValueError(f"grid_spacing is {spacing} but must be {held.spacing}, that of the sum so far")
        if held is not None and held.unit != unit:
            raise ValueError(f"unit is {unit} but must be {held.unit}, that of the sum so far")
    call = Clipping(tuple(parameters), examples, float(clip_norm), spacing, unit, sources)
    for name, p in parameters.items():
        held = held_sum(p)
        _held[p] = ClippedSum(totals[name], (call,)) if held is None else ClippedSum(held.total + totals[name], (*held.calls, call))


def drop_sums(parameters: Iterable[nn.Parameter]) -> None:
    """Takes away what was left for them: it is not for another step."""
    for p in parameters:
        _held.pop(p, None)
