"""Arguments that a plan answers, where the plan is given too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import Plan


def refuse_beside(plan: Plan, asked: Mapping[str, Any], clip_norm: float) -> None:
    """Refuses arguments that only a run without a plan has (None is absent), and another clip norm."""
    for name, value in asked.items():
        if value is not None:
            raise ValueError(f"{name} is given but must be left out where plan is given")
    if clip_norm not in (1.0, plan.clip_norm):
        raise ValueError(f"clip_norm is {clip_norm} but must be left out, or the plan's, {plan.clip_norm}")
