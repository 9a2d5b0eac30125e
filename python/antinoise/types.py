"""Types of the dictionaries that functions of antinoise return, for annotations."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, TypedDict


class Sensitivity(TypedDict):
    """A sensitivity and the theorem that proves it."""

    value: float
    kind: Literal["exact", "upper_bound"]
    source: str
    """The theorem that proves the value, or the computation that gave it."""


class Loss(TypedDict):
    """Losses and errors of a strategy, for a noise multiplier of 1: `loss = sensitivity * error`."""

    strategy: str
    steps: int
    max_loss: float
    rms_loss: float
    total_loss: float
    """Sensitivity squared times the squared Frobenius norm of the error matrix."""
    max_error: float
    rms_error: float
    sensitivity: Sensitivity
    status: str
    """How the optimisation ended."""
    gap: float | None
    """Relative duality gap."""


class ComparedLoss(Loss):
    """A row of `compare`."""

    spec: str
    """The strategy's name, as the caller gave it."""


class Account(TypedDict):
    """The privacy of a noise multiplier."""

    epsilon: float
    """Upper bound on epsilon."""
    epsilon_lower: float
    """Lower bound on epsilon."""
    delta: float
    noise_multiplier: float


class Candidate(TypedDict):
    """A mechanism that `plan` compared. Losses include the noise multiplier and 1 / batch size."""

    strategy: str
    is_given: bool
    """Whether the strategy was given to `plan`, not designed."""
    noise_multiplier: float
    sensitivity: float
    max_loss: float
    rms_loss: float
    relative_to_independent: float
    """The loss divided by that of independent noise."""
    state_bytes: int
    noise_seconds: float
    """Estimated time for one step's noise on one core."""
    status: str
    amplified: bool
    """Whether sampling amplifies the mechanism's privacy."""
    chosen: bool
    reference: bool
    """Whether the mechanism is listed only for comparison."""


SettingName: TypeAlias = Literal[
    "poisson", "b-min-sep", "cyclic", "shuffled", "federated", "single", "stream"
]
"""What `plan` is asked for: how privacy units take part."""
AccountantName: TypeAlias = Literal["gdp", "sampled-gaussian", "balls-in-bins", "b-min-sep"]
"""How a plan's epsilon was computed."""


class _Kind(TypedDict):
    kind: Literal[
        "cyclic",
        "shuffled",
        "poisson",
        "truncated-poisson",
        "balls-in-bins",
        "b-min-sep",
        "stream",
        "external",
    ]


class Sampler(_Kind, total=False):
    """How batches are formed: `kind`, and its numbers."""

    groups: int
    """Number of groups, of `cyclic`, `shuffled`, `poisson` and `truncated-poisson`."""
    max_batch_size: int
    """Size at which batches are cut, of `truncated-poisson`."""
    bins: int
    """Number of bins, of `balls-in-bins`."""
    min_sep: int
    """Minimum number of steps between participations, of `b-min-sep`."""


class FreezeReport(TypedDict):
    """Numbers of a period's rows, by their treatment. **Not private.**"""

    rows: int
    counted: int
    beyond_max_rows: int
    beyond_max_periods: int
    unknown_keys: int
    late: int
    lost: int
    later: int
    skipped: int


class FreezeCheck(TypedDict):
    """The effect that freezing a period would have: the numbers of rows, and reasons to look again. **Not
    private.**
    """

    counted: int
    left_out: int
    lost: int
    late: int
    later: int
    problems: list[str]


class DeviationAfter(TypedDict):
    """The standard deviation of an open-ended release's figure after a number of periods."""

    periods: int
    standard_deviation: float


class TableDeviation(TypedDict):
    """A table of marginals."""

    columns: str
    relative_deviation: float
    """The standard deviation of its cells, divided by the largest of the query."""


class _Query(TypedDict):
    query: str
    workload: str | dict[str, Any]
    intervals: str
    of_all: bool
    deviation_of: str | None


class QueryStatus(_Query, total=False):
    """A query of a release, and its error."""

    largest_standard_deviation: float
    tables: list[TableDeviation]
    """Only for marginals."""
    after: list[DeviationAfter]
    """Only for open-ended releases."""


class Segment(TypedDict):
    """The current segment of an open-ended release."""

    number: int
    first_period: int
    last_period: int
    growth: str


class _Release(TypedDict):
    periods: int | None
    complete: bool
    frozen: int
    published: int
    keys: list[str]
    queries: list[QueryStatus]
    unit: Literal["user", "event"]
    max_periods: int
    max_rows: int
    intervals: str
    epsilon: float
    delta: float
    noise_multiplier: float
    strategy: str
    statement: str


class ReleaseStatus(_Release, total=False):
    """The state of a release; `periods` is None for open-ended releases, which have a `segment`."""

    segment: Segment


__all__ = [
    "Account",
    "AccountantName",
    "Candidate",
    "ComparedLoss",
    "DeviationAfter",
    "FreezeCheck",
    "FreezeReport",
    "Loss",
    "QueryStatus",
    "ReleaseStatus",
    "Sampler",
    "Segment",
    "Sensitivity",
    "SettingName",
]
