"""Sums of clipped contributions in any framework, with the bound that docs/training.md proves."""

from __future__ import annotations

from . import Plan

IN_SINGLE = (
    "Assumed, not proved: that one example moves the sums, which are in single precision, by no more than it"
    " would move exact ones. Rounding can nearly double it (docs/training.md)."
)

# Factor on the clip norm, so that rounding of lengths and factors never makes a clipped contribution too
# long.
SHORTER = 1 - 2.0**-20


def margin(terms: int) -> float:
    """The increase of a sum's sensitivity by rounding in double precision, in units of the clip norm.

    Args:
        terms: Number of terms, added in any order. A term is rounded once in its product and at most once
            for each other term.
    """
    roundings = (terms + 2) * 2.0**-53
    return 2 * terms * roundings / (1 - roundings)


def refuse_single(what: str, dtype: object, is_double: bool, trusted: bool) -> None:
    """Refuses sums in single precision, whose rounding no bound covers, unless they are `trusted`."""
    if not is_double and not trusted:
        must_be = (
            "float64: sums in less precision may have larger rounding errors than the plan's noise covers;"
            " trust_float32_sums=True accepts them"
        )
        raise ValueError(f"{what} is of dtype {dtype} but must be {must_be}")


def check_terms(plan: Plan, step: int, count: int) -> None:
    """Refuses a sum of more contributions than the plan's rounding allowance covers."""
    if margin(count) * plan.clip_norm > plan.sum_allowance:
        raise ValueError(
            f"batch of step {step} is of {count} examples but must be smaller, for its sum to be exact enough"
        )


def check_batch(plan: Plan, step: int, count: int) -> None:
    """Refuses a batch whose size is not possible in the plan at this step."""
    check_terms(plan, step, count)
    sizes = plan.batch_sizes(step)
    if sizes is None or step >= plan.steps:
        return
    least, most = sizes
    if not least <= count <= most:
        raise ValueError(
            f"batch of step {step} is of {count} examples but must be the plan's, of"
            f" {'at most ' if least < most else ''}{most}"
        )
