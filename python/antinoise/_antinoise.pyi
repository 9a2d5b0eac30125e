"""Types of the compiled part of antinoise."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NoReturn, Protocol, TypeAlias, TypedDict, final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer, NotRequired

_Path: TypeAlias = str | os.PathLike[str]
_Objective: TypeAlias = Literal["max", "rms"]
_Adjacency: TypeAlias = Literal["zero-out", "replace-one"]
_Workload: TypeAlias = str | Sequence[float] | Sequence[Sequence[float]]
_Participation: TypeAlias = str | Sequence[Sequence[int]]
# A NumPy array, a torch tensor in the host's memory, or another buffer. A row is one of them, or a sequence
# of several, which are concatenated.
_Place: TypeAlias = NDArray[Any] | Buffer | Any
_Row: TypeAlias = _Place | list[_Place] | tuple[_Place, ...]

class _ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...

# A table of pandas, polars, pyarrow or DuckDB; or columns by name; or an iterable of rows.
_Events: TypeAlias = _ArrowStream | Mapping[str, Any] | Iterable[Mapping[str, Any]]
# A `datetime.date` or a day or month of NumPy; a `datetime.datetime` is refused.
_Period: TypeAlias = str | int | np.integer[Any] | date | np.datetime64

__version__: str

class _Sensitivity(TypedDict):
    value: float
    kind: Literal["exact", "upper_bound"]
    source: str

class _Loss(TypedDict):
    strategy: str
    steps: int
    max_loss: float
    rms_loss: float
    total_loss: float
    max_error: float
    rms_error: float
    sensitivity: _Sensitivity
    status: str
    gap: float | None

class _Compared(_Loss):
    spec: str

class _Account(TypedDict):
    epsilon: float
    epsilon_lower: float
    delta: float
    noise_multiplier: float

class _Candidate(TypedDict):
    strategy: str
    noise_multiplier: float
    sensitivity: float
    max_loss: float
    rms_loss: float
    relative_to_independent: float
    state_bytes: int
    noise_seconds: float
    status: str
    amplified: bool
    chosen: bool
    reference: bool

class _Found(TypedDict):
    rows: int
    counted: int
    beyond_max_rows: int
    beyond_max_periods: int
    unknown_keys: int
    late: int
    later: int

class _After(TypedDict):
    periods: int
    standard_deviation: float

class _Query(TypedDict):
    query: str
    workload: str | dict[str, Any]
    deviation_of: str | None
    largest_standard_deviation: NotRequired[float]
    # Only for open-ended releases.
    after: NotRequired[list[_After]]

class _Link(TypedDict):
    number: int
    first_period: int
    last_period: int
    growth: str

class _Status(TypedDict):
    # None for open-ended releases.
    periods: int | None
    # Only for open-ended releases.
    link: NotRequired[_Link]
    complete: bool
    frozen: int
    published: int
    keys: list[str]
    queries: list[_Query]
    unit: Literal["user", "event"]
    max_periods: int
    max_rows: int
    epsilon: float
    delta: float
    noise_multiplier: float
    strategy: str
    statement: str

def plan(
    examples: int,
    batch_size: int,
    *,
    epsilon: float,
    delta: float,
    epochs: int | None = None,
    steps: int | None = None,
    setting: Literal["single", "cyclic", "federated", "poisson", "b-min-sep", "stream"] = "cyclic",
    min_sep: int | None = None,
    max_participations: int | None = None,
    clip_norm: float = 1.0,
    dim: int = 0,
    unit: Literal["example", "user"] | None = None,
    adjacency: _Adjacency = "zero-out",
    workload: _Workload | None = None,
    objective: _Objective = "rms",
    mechanism: str | Sequence[str] | None = None,
    memory: int | None = None,
    noise_time: float | None = None,
    tolerance: float = 0.05,
    thorough: bool = True,
    release: Literal["grid", "plain"] = "grid",
) -> Plan: ...
def loss(
    strategy: Strategy | str,
    steps: int | None = None,
    *,
    workload: _Workload | None = None,
    participation: _Participation | None = None,
    adjacency: _Adjacency = "zero-out",
    objective: _Objective = "rms",
    bands: int | None = None,
    order: int | None = None,
) -> _Loss: ...
def compare(
    strategies: Sequence[str],
    steps: Sequence[int],
    *,
    workload: _Workload | None = None,
    participation: _Participation | None = None,
    adjacency: _Adjacency = "zero-out",
    objective: _Objective = "rms",
) -> list[_Compared]: ...
def account(
    noise_multiplier: float, delta: float, sampling_rate: float | None = None, steps: int = 1
) -> _Account: ...
def calibrate(epsilon: float, delta: float, sampling_rate: float | None = None, steps: int = 1) -> float: ...
def run_command(arguments: Sequence[str]) -> int: ...

@final
class Strategy:
    @staticmethod
    def design(
        spec: str,
        steps: int,
        *,
        workload: _Workload | None = None,
        participation: _Participation | None = None,
        objective: _Objective = "rms",
        bands: int | None = None,
        order: int | None = None,
    ) -> Strategy: ...
    @staticmethod
    def load(path: _Path) -> Strategy: ...
    @staticmethod
    def from_toml(text: str) -> Strategy: ...
    def save(self, path: _Path, *, force: bool = False) -> None: ...
    def to_toml(self) -> str: ...
    def sensitivity(
        self, *, participation: _Participation | None = None, adjacency: _Adjacency = "zero-out"
    ) -> _Sensitivity: ...
    def error(self, *, workload: _Workload | None = None) -> dict[str, float]: ...
    @property
    def name(self) -> str: ...
    @property
    def steps(self) -> int: ...
    @property
    def status(self) -> str: ...
    @property
    def first_column(self) -> NDArray[np.float64]: ...

@final
class Plan:
    @staticmethod
    def load(path: _Path) -> Plan: ...
    @staticmethod
    def from_toml(text: str) -> Plan: ...
    def save(self, path: _Path, *, force: bool = False) -> None: ...
    def to_toml(self) -> str: ...
    def verify(self) -> None: ...
    @property
    def statement(self) -> str: ...
    @property
    def digest(self) -> str: ...
    @property
    def examples(self) -> int: ...
    @property
    def batch_size(self) -> int: ...
    @property
    def steps(self) -> int: ...
    @property
    def clip_norm(self) -> float: ...
    @property
    def noise_multiplier(self) -> float: ...
    @property
    def noise_std(self) -> float: ...
    @property
    def sensitivity(self) -> _Sensitivity: ...
    @property
    def epsilon(self) -> float: ...
    @property
    def epsilon_lower(self) -> float: ...
    @property
    def delta(self) -> float: ...
    @property
    def unit(self) -> Literal["example", "user"]: ...
    @property
    def adjacency(self) -> _Adjacency: ...
    @property
    def accountant(self) -> Literal["gdp", "sampled-gaussian", "balls-in-bins", "b-min-sep"]: ...
    @property
    def strategy(self) -> str: ...
    @property
    def sampler(self) -> dict[str, str | int]: ...
    @property
    def participation(self) -> str: ...
    @property
    def workload(self) -> str: ...
    @property
    def release(self) -> Literal["grid", "plain"]: ...
    @property
    def expected_batch_size(self) -> float: ...
    @property
    def grid_spacing(self) -> float | None: ...
    @property
    def widened_clip_norm(self) -> float: ...
    @property
    def sum_allowance(self) -> float: ...
    @property
    def candidates(self) -> list[_Candidate]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Key:
    @staticmethod
    def from_os() -> Key: ...
    @staticmethod
    def from_file(path: _Path) -> Key: ...
    @staticmethod
    def from_seed_insecure(seed: int) -> Key: ...
    @staticmethod
    def broadcast(exchange: Callable[[NDArray[np.uint8]], object], key: Key | None = None) -> Key: ...
    def __copy__(self) -> NoReturn: ...
    def __deepcopy__(self, memo: Any, /) -> NoReturn: ...

@final
class Batches:
    def __init__(self, plan: Plan, key: Key, *, run: str | None = None) -> None: ...
    @staticmethod
    def of_noise(plan: Plan, noise: NoiseStream) -> Batches: ...
    @property
    def token(self) -> str: ...
    def at(self, step: int) -> NDArray[np.int64]: ...
    def __iter__(self) -> Iterator[NDArray[np.int64]]: ...
    def __len__(self) -> int: ...
    def __copy__(self) -> NoReturn: ...
    def __deepcopy__(self, memo: Any, /) -> NoReturn: ...

@final
class Participations:
    def __init__(self, plan: Plan) -> None: ...
    @staticmethod
    def of_batches(plan: Plan, batches: Batches, steps: int) -> Participations: ...
    @staticmethod
    def from_bytes(plan: Plan, bytes: bytes) -> Participations: ...
    @property
    def next_step(self) -> int: ...
    def check(self, step: int, batch: NDArray[np.int64]) -> None: ...
    def record(self, step: int, batch: NDArray[np.int64]) -> None: ...
    def to_bytes(self) -> bytes: ...

@final
class NoiseStream:
    def __init__(
        self,
        plan: Plan,
        dim: int,
        key: Key,
        *,
        run: str | None = None,
        shard: Sequence[tuple[int, int]] | None = None,
        threads: int | None = None,
        memory: int | None = None,
        look_ahead: int | None = None,
        state_in_memory: bool = False,
    ) -> None: ...
    @staticmethod
    def resume(
        path: _Path,
        plan: Plan,
        dim: int,
        *,
        run: str | None = None,
        shard: Sequence[tuple[int, int]] | None = None,
        threads: int | None = None,
        memory: int | None = None,
        look_ahead: int | None = None,
    ) -> NoiseStream: ...
    @property
    def state_words(self) -> int: ...
    def state(self, words: _Place, run_key: _Place) -> tuple[tuple[int, int], int]: ...
    def sum_of_words(self, purpose: str, words: _Place) -> int: ...
    def state_commitment(self, steps: tuple[int, int], total: int, *, extra: bytes = ...) -> bytes: ...
    @property
    def commitment(self) -> str: ...
    @property
    def token(self) -> str: ...
    def next_into(self, out: _Row) -> None: ...
    def next_points_into(self, out: _Place) -> None: ...
    def add_next_into(self, gradient: _Row, scale: float = 1.0) -> None: ...
    def release(self, sum: _Row, out: _Row) -> None: ...
    def _make_ahead_into(self, out: _Row) -> None: ...
    def _forget_released(self, step: int) -> None: ...
    def _release_made(self, step: int, digest: int) -> None: ...
    @staticmethod
    def _digest_numbers(first: int, last: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]: ...
    def seek(
        self,
        step: int,
        *,
        progress: Callable[[int, int], object] | None = None,
        reuse_noise_unprotected: bool = False,
    ) -> None: ...
    def save(self, path: _Path) -> None: ...
    @property
    def step(self) -> int: ...
    @property
    def steps(self) -> int: ...
    @property
    def run(self) -> str: ...
    @property
    def placement(self) -> dict[str, str | int]: ...
    @property
    def description(self) -> str: ...
    def __len__(self) -> int: ...
    def __copy__(self) -> NoReturn: ...
    def __deepcopy__(self, memo: Any, /) -> NoReturn: ...

@final
class SavedState:
    def __init__(
        self,
        words: _Place,
        steps: tuple[int, int],
        run_key: _Place,
        plan: Plan,
        dim: int,
        *,
        run: str | None = None,
        shard: Sequence[tuple[int, int]] | None = None,
        threads: int | None = None,
        look_ahead: int | None = None,
    ) -> None: ...
    @property
    def sum(self) -> int: ...
    def resume(self, commitment: bytes, *, total: int | None = None, extra: bytes = ...) -> NoiseStream: ...

@final
class RunningCounts:
    @staticmethod
    def create(
        folder: _Path,
        keys: Sequence[str],
        *,
        periods: int,
        epsilon: float,
        delta: float,
        unit: Literal["user", "event"] = "user",
        max_periods: int | None = None,
        max_rows: int = 1,
        queries: str | Sequence[str] | None = None,
        weights: Sequence[float] | None = None,
        non_negative: bool = False,
        monotone: bool = False,
    ) -> RunningCounts: ...
    @staticmethod
    def open(folder: _Path) -> RunningCounts: ...
    @staticmethod
    def adopt(folder: _Path) -> RunningCounts: ...
    def freeze(
        self,
        period: _Period,
        events: _Events,
        *,
        time: str,
        key: str,
        user: str | None = None,
        value: str | None = None,
        late: Literal["leave", "next", "refuse"] = "leave",
        unknown: Literal["refuse", "leave"] = "refuse",
    ) -> _Found: ...
    def freeze_counts(self, period: _Period, counts: Mapping[str, int]) -> None: ...
    def publish(self) -> Table: ...
    def published(self) -> Table: ...
    def query(self, sql: str) -> Table: ...
    def status(self) -> _Status: ...
    @property
    def folder(self) -> Path: ...
    def close(self) -> None: ...
    def __enter__(self) -> RunningCounts: ...
    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
        /,
    ) -> None: ...
    def __copy__(self) -> NoReturn: ...
    def __deepcopy__(self, memo: Any, /) -> NoReturn: ...

@final
class Table:
    @property
    def columns(self) -> list[str]: ...
    def to_dict(self) -> dict[str, list[Any]]: ...
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...
    def __len__(self) -> int: ...
