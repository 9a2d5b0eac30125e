"""A check of arguments that may contradict a given plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import Plan


def refuse_beside(plan: Plan, asked: Mapping[str, Any], clip_norm: float) -> None:
    """Refuses arguments that are only for a run without a plan (None: not given), and a clip norm other than
    the plan's.
    """
    for name, value in asked.items():
        if value is not None:
            raise ValueError(f"{name} is given but must be left out where plan is given")
    if clip_norm not in (1.0, plan.clip_norm):
        raise ValueError(f"clip_norm is {clip_norm} but must be left out, or the plan's, {plan.clip_norm}")
