"""Sums of clipped gradients, which clipping leaves for the noise, and the call that clipped them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Literal

from torch import Tensor, float64, int64, nn

from .data.sources import Source
from .relied import WeakTensorKeyDictionary


@dataclass(frozen=True, eq=False)
class Clipping:
    """A call that clipped examples: over all parameters in `names` together, one example moves the sums by
    at most `clip_norm`.

    Two calls never compare equal.
    """

    names: tuple[str, ...]
    examples: int
    clip_norm: float
    spacing: float | None
    unit: Literal["example", "user"]
    sources: frozenset[Source]
    """The steps to whose batches the examples are known to belong."""


@dataclass(frozen=True)
class ClippedSum:
    """A parameter's sum of clipped gradients in one step, and the calls that clipped them, in order.

    `total` is float64, or int64 multiples of `spacing` if each gradient was rounded to that grid.
    """

    total: Tensor
    calls: tuple[Clipping, ...]

    @property
    def examples(self) -> int:
        """The number of examples in the sum."""
        return sum(call.examples for call in self.calls)

    @property
    def clip_norm(self) -> float:
        """The largest clip norm of its calls."""
        return max(call.clip_norm for call in self.calls)

    @property
    def spacing(self) -> float | None:
        """The grid's spacing; None for double precision."""
        return self.calls[0].spacing

    @property
    def unit(self) -> Literal["example", "user"]:
        """The unit whose contribution was clipped as one."""
        return self.calls[0].unit


# Sums are kept apart from the parameters: they have no noise yet, and attributes of a parameter are pickled
# with its model.
_held: MutableMapping[Tensor, ClippedSum] = WeakTensorKeyDictionary()


def trainable(model: nn.Module) -> dict[str, nn.Parameter]:
    """The trained parameters by name, in the model's order."""
    return {name: p for name, p in model.named_parameters() if p.requires_grad}


def trained(model: nn.Module) -> dict[str, nn.Parameter]:
    """The trained parameters by name. Refuses a model without any."""
    found = trainable(model)
    if not found:
        raise ValueError("model is one without trainable parameters but must have some")
    return found


def held_sum(p: nn.Parameter) -> ClippedSum | None:
    """The sum that was left for `p`, if any."""
    return _held.get(p)


def add_clipped_sums(
    model: nn.Module,
    totals: Mapping[str, Tensor],
    examples: int,
    clip_norm: float,
    spacing: float | None = None,
    unit: Literal["example", "user"] = "example",
) -> None:
    """Leaves sums of contributions that the caller clipped, for the noise, or adds them to the step's
    earlier sums.

    Each call must cover all trained parameters of the model that the noise is made for. Parameters that
    were clipped by separate calls are refused at the step: one example could move each of their sums by
    `clip_norm`.

    Args:
        model: The model that the noise is made for.
        totals: For each trained parameter, by name, the float64 sum of clipped contributions, with the
            parameter's shape; it is copied. With several processes and replicated parameters: the sum over
            this process's examples. A DTensor is the sum over all processes, laid out as its parameter is.
        examples: Number of contributions in the sums (of users, if `unit` is `"user"`).
        clip_norm: Bound on the L2 norm of each contribution over all of these parameters.
        spacing: If given, `totals` are int64 multiples of this grid spacing, to which each contribution was
            rounded.
        unit: `"user"` if all of a user's examples were clipped as one contribution, which plans that
            protect users need.
    """
    totals = {name: total.clone() for name, total in totals.items()}
    hold(trainable(model), totals, examples, clip_norm, spacing, unit)


def hold(
    parameters: Mapping[str, nn.Parameter],
    totals: Mapping[str, Tensor],
    examples: int,
    clip_norm: float,
    spacing: float | None = None,
    unit: Literal["example", "user"] = "example",
    sources: frozenset[Source] = frozenset(),
) -> None:
    """`add_clipped_sums` for given parameters, for batches of the steps in `sources`."""
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
        _held[p] = (
            ClippedSum(totals[name], (call,))
            if held is None
            else ClippedSum(held.total + totals[name], (*held.calls, call))
        )


def drop_sums(parameters: Iterable[nn.Parameter]) -> None:
    """Removes the sums of these parameters, which must not enter another step."""
    for p in parameters:
        _held.pop(p, None)
