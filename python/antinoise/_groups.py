"""Groups of parameters that are clipped separately, with clip norms whose squares add up to at most the
plan's squared clip norm.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

Members = str | tuple[str, ...]
Asked = Literal["layer"] | Sequence[Members] | Mapping[Members, float] | None

# Tolerance, in squares, for decimal clip norms such as 0.6 and 0.8, whose squares exceed 1 when rounded to
# binary; `_within` removes the excess.
_DECIMALS = 1 + Fraction(1, 2**50)


@dataclass(frozen=True)
class Groups:
    """Parameters that are clipped together.

    `of` maps a parameter's name to its group's number, and `norms` has the groups' clip norms c_g. The sum
    of c_g^2 is exactly at most clip_norm^2, so that one example moves all sums together by at most
    clip_norm.
    """

    of: dict[str, int]
    norms: tuple[float, ...]

    @classmethod
    def made(cls, asked: Asked, names: Iterable[str], clip_norm: float) -> Groups:
        """Makes the groups of parameters.

        Args:
            asked: `None`: one group. `"layer"`: one group per module. A sequence of groups of names of
                parameters and modules: k groups with clip_norm / sqrt(k) each. A mapping of such groups to
                their clip norms.
            names: Names of all trained parameters.
            clip_norm: The plan's clip norm.

        Raises:
            ValueError: A parameter is in no group or in two, a group is empty, or the norms are too large
                together.
        """
        names = list(names)
        if asked is None:
            return cls(dict.fromkeys(names, 0), (float(clip_norm),))
        if isinstance(asked, str):
            if asked != "layer":
                raise ValueError(
                    f"groups is {asked!r} but must be 'layer', groups of names, or clip norms of groups of"
                    " names"
                )
            layers = list(dict.fromkeys(_layer(name) for name in names))
            of = {name: layers.index(_layer(name)) for name in names}
            return cls(of, _equal(len(layers), clip_norm))
        members = [(group,) if isinstance(group, str) else tuple(group) for group in asked]
        of = {name: _place(name, members) for name in names}
        empty = [group for number, group in enumerate(members) if number not in of.values()]
        if empty:
            raise ValueError(f"group {', '.join(empty[0])} is without trained parameters but must have some")
        return cls(
            of, _given(asked, clip_norm) if isinstance(asked, Mapping) else _equal(len(members), clip_norm)
        )


def _layer(name: str) -> str:
    return name.rpartition(".")[0]


def _place(name: str, members: list[tuple[str, ...]]) -> int:
    """The group that names a parameter, or a module that contains it."""
    found = [
        number
        for number, group in enumerate(members)
        if any(name == m or name.startswith(f"{m}.") for m in group)
    ]
    if len(found) != 1:
        raise ValueError(f"{name} is in {len(found)} groups but must be in one")
    return found[0]


def _equal(count: int, clip_norm: float) -> tuple[float, ...]:
    return _within([clip_norm / math.sqrt(count)] * count, clip_norm)


def _given(norms: Mapping[Members, float], clip_norm: float) -> tuple[float, ...]:
    wrong = [norm for norm in norms.values() if not (norm > 0 and math.isfinite(norm))]
    if wrong:
        raise ValueError(f"clip norm of a group is {wrong[0]} but must be a finite number above 0")
    if _squares(norms.values()) > Fraction(clip_norm) ** 2 * _DECIMALS:
        total = math.sqrt(_squares(norms.values()))
        raise ValueError(
            f"root of the sum of the groups' squared clip norms is {total} but must be at most clip_norm,"
            f" {clip_norm}"
        )
    return _within(list(norms.values()), clip_norm)


def _squares(norms: Iterable[float]) -> Fraction:
    return sum((Fraction(norm) ** 2 for norm in norms), Fraction(0))


def _within(norms: list[float], clip_norm: float) -> tuple[float, ...]:
    """The norms, rounded down until their squares add up to at most clip_norm^2 in exact arithmetic."""
    while _squares(norms) > Fraction(clip_norm) ** 2:
        norms = [math.nextafter(norm, 0.0) for norm in norms]
    return tuple(float(norm) for norm in norms)
