"""The sums of a step: collected from the parameters, checked, and compared with the sums of the other
processes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from .. import Plan
from .._sums import refuse_single
from .data.sources import Source
from .distributed.layout import is_sharded, local_part
from .distributed.processes import Replicas, all_gather
from .held_sums import ClippedSum, held_sum


@dataclass
class StepSums:
    """This process's sums of a step."""

    sums: dict[str, Tensor] = field(default_factory=dict)
    """The sum of each parameter, over the coordinates that this process holds."""
    unreduced: set[str] = field(default_factory=set)
    """The parameters whose sums are over this process's examples alone."""
    examples: int | None = None
    """Number of this process's examples in the sums; None if unknown."""
    sources: frozenset[Source] = frozenset()
    """The steps to which the sums are known to belong."""
    spacing: float | None = None
    """Spacing of the grid, if the sums are whole points of one; None for double precision."""

    @property
    def kind(self) -> str:
        """How the sums were clipped, for error messages."""
        if self.examples is None:
            return "in .grad"
        return "in double precision" if self.spacing is None else f"in whole points of {self.spacing}"


def collect(
    parameters: Mapping[str, nn.Parameter], plan: Plan, sums_in_grad: bool, trusted: bool
) -> StepSums:
    """Collects the sums. Refuses sums whose sensitivity is not bounded; sums in single precision are
    accepted if `trusted`.
    """
    held = {name: held_sum(p) for name, p in parameters.items()}
    clipped = {name: found for name, found in held.items() if found is not None}
    made = StepSums()
    if clipped:
        _check_calls(held)
        _check_clipped(clipped, plan)
        first = next(iter(clipped.values()))
        made.examples, made.spacing = first.examples, first.spacing
        made.sources = frozenset(source for call in first.calls for source in call.sources)
    for name, p in parameters.items():
        if name in clipped:
            total = clipped[name].total
            if not is_sharded(total):
                made.unreduced.add(name)
            elif getattr(p, "placements", None) != total.placements:  # type: ignore[attr-defined]
                raise ValueError(f"sum of {name} is laid out otherwise but must be as its parameter is")
            made.sums[name] = _finite(name, local_part(total))
        elif p.grad is None:
            # A missing gradient is zero, and still gets noise.
            made.sums[name] = torch.zeros(local_part(p).shape, dtype=torch.float64, device=p.device)
        else:
            made.sums[name] = _checked_gradient(name, p, p.grad, sums_in_grad, trusted)
    return made


def _check_calls(held: Mapping[str, ClippedSum | None]) -> None:
    """Refuses sums of parameters that were clipped by separate calls: one example could move the sums of each
    call by the clip norm, and all sums together by more.
    """
    calls = {name: found.calls if found is not None else () for name, found in held.items()}
    for call in dict.fromkeys(call for of in calls.values() for call in of):
        inside, outside = (
            sorted(name for name, of in calls.items() if (call in of) is there) for there in (True, False)
        )
        further = len(call.names) - len(inside)
        if outside or further:
            apart = (
                f"{_listed(inside)} apart from {_listed(outside)}"
                if outside
                else f"{further} parameters more than the noise was made for"
            )
            raise RuntimeError(
                f"a call of this step clipped {apart}: its examples can move the sums by more than the clip"
                " norm in all. Clip all trained parameters of the model in one call, without freezing or"
                ' unfreezing any between calls; groups="layer" clips them by layer'
            )


def _listed(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _check_clipped(clipped: Mapping[str, ClippedSum], plan: Plan) -> None:
    most = max(found.clip_norm for found in clipped.values())
    if most > plan.clip_norm:
        raise ValueError(f"clip_norm of the sum is {most} but must be the plan's, {plan.clip_norm}")
    units = {found.unit for found in clipped.values()}
    if units != {plan.unit}:
        raise ValueError(
            f"unit of the sum is {' and '.join(sorted(units))} but must be the plan's, {plan.unit}: what is"
            " clipped is what is protected"
        )
    spacings = {found.spacing for found in clipped.values()}
    if len(spacings) > 1 or not spacings <= {None, plan.grid_spacing}:
        raise ValueError(
            f"grid_spacing of the sums is {spacings} but must be the plan's, {plan.grid_spacing}, or none"
        )


def _checked_gradient(name: str, p: nn.Parameter, grad: Tensor, sums_in_grad: bool, trusted: bool) -> Tensor:
    if not sums_in_grad:
        raise RuntimeError(
            f"The gradient of {name} is in .grad, where nothing has clipped it: call clipped_sum_ in place of"
            " loss.backward(), or say sums_in_grad=True if .grad holds sums of clipped gradients."
        )
    refuse_single(f"gradient of {name}", grad.dtype, grad.dtype == torch.float64, trusted)
    if getattr(grad, "placements", None) != getattr(p, "placements", None):
        places = getattr(grad, "placements", "whole")
        raise ValueError(
            f"gradient of {name} is {places} but must be reduced and laid out as its parameter is"
        )
    # A copy: the noisy sum takes the place of the sum.
    return _finite(name, local_part(grad).to(torch.float64, copy=True))


def _finite(name: str, sum: Tensor) -> Tensor:
    # A finite total has finite terms alone; finite terms may have an infinite total.
    if sum.is_floating_point() and not bool(torch.isfinite(sum.sum()) or torch.isfinite(sum).all()):
        raise ValueError(f"sum of {name} is not finite but must be one of clipped gradients")
    return sum


@dataclass(frozen=True)
class RankReport:
    """A process's message to the others about a step."""

    error: str | None
    step: int
    kind: str
    examples: int | None
    # For sums that several processes hold: their ranks, the parameter, and a checksum of the bits.
    shared: tuple[tuple[tuple[int, ...], str, int], ...]
    # Parameters whose sums cover only this process's examples.
    unreduced: tuple[str, ...] = ()


def report(
    step: int, found: StepSums | None, error: Exception | None, shared: Sequence[Replicas]
) -> RankReport:
    """This process's report; `shared` are the parameters that other processes hold too."""
    if found is None:
        return RankReport(str(error), step, "", None, ())
    names = [(same.ranks, name) for same in shared for name in same.names if name not in found.unreduced]
    sums = tuple((ranks, name, _bits(found.sums[name])) for ranks, name in names)
    return RankReport(
        None if error is None else str(error), step, found.kind, found.examples, sums, tuple(found.unreduced)
    )


def _bits(sum: Tensor) -> int:
    """A checksum of a sum's bits: equal bits give equal checksums."""
    words = sum.reshape(-1).contiguous().view(torch.int64)
    # Position-dependent weights (with wrap-around) detect values that changed places.
    places = torch.arange(1, len(words) + 1, device=words.device) * 0x9E3779B97F4A7C1
    return int((words * (2 * places + 1)).sum()) if len(words) else 0


def check_on_all_ranks(mine: RankReport, error: Exception | None) -> tuple[int | None, set[str]]:
    """Exchanges all reports and raises the same refusal in every process.

    Returns:
        The number of examples in the sum over all processes, if known; and the parameters whose sums must
        be added up over processes (one process left a sum of its own examples; the others left theirs, or
        zeros).
    """
    reports = all_gather(mine)
    if error is not None:
        raise error
    for rank, told in enumerate(reports):
        if told.error is not None:
            raise ValueError(f"{told.error} (rank {rank})")
    for name, found in {"step": [r.step for r in reports], "sum": [r.kind for r in reports]}.items():
        if len(set(found)) > 1:
            raise ValueError(f"{name} is {found} on the ranks but must be the same on all")
    sums: dict[tuple[tuple[int, ...], str], int] = {}
    for told in reports:
        for ranks, name, bits in told.shared:
            if sums.setdefault((ranks, name), bits) != bits:
                raise ValueError(
                    f"gradient of {name} differs between ranks but must be reduced: the same on all that"
                    " hold it"
                )
    counts = [told.examples for told in reports if told.examples is not None]
    return sum(counts) if counts else None, {name for told in reports for name in told.unreduced}
