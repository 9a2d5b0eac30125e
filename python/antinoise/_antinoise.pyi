"""Types and documentation of the compiled part of antinoise."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NoReturn, Protocol, TypeAlias, final, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from typing_extensions import Buffer

from . import types

_Path: TypeAlias = str | os.PathLike[str]
_Objective: TypeAlias = Literal["max", "rms"]
_Adjacency: TypeAlias = Literal["zero-out", "replace-one"]
_Neighbours: TypeAlias = Literal["zero-out", "replace-one", "add-or-remove"]
_Workload: TypeAlias = "Workload | str | Sequence[float] | Sequence[Sequence[float]]"
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

def plan(
    examples: int,
    batch_size: int,
    *,
    epsilon: float,
    delta: float | None = None,
    epochs: int | None = None,
    steps: int | None = None,
    setting: types.SettingName = "cyclic",
    min_sep: int | None = None,
    max_participations: int | None = None,
    max_batch_size: int | Literal["auto"] | None = None,
    clip_norm: float = 1.0,
    dim: int = 0,
    unit: Literal["example", "user"] | None = None,
    adjacency: _Adjacency = "zero-out",
    workload: _Workload | None = None,
    objective: _Objective = "rms",
    mechanism: str | Sequence[str] | None = None,
    strategy: Strategy | ArrayLike | None = None,
    memory: int | None = None,
    noise_time: float | None = None,
    tolerance: float = 0.05,
    thorough: bool = True,
    arithmetic: Literal["grid", "plain"] = "grid",
) -> Plan:
    """Chooses a mechanism for a training run and states its privacy.

    Candidates must fit `memory` and `noise_time`. Of those whose loss is at most `tolerance` above the
    smallest, the one with the smallest state is chosen; `Plan.candidates` lists all candidates.

    Args:
        examples: Number of examples, or of users where `unit` is `"user"`.
        batch_size: Number of examples in a batch; the expected number where batches are sampled.
        epsilon: Upper bound on epsilon, above 0.
        delta: Delta of the claim, from 0 to 1; by default the power of ten at or below 0.1 / examples,
            at most 1e-5. From 1 / examples on, a warning is given.
        epochs: Number of passes over the examples. Either this or `steps`.
        steps: Number of steps, which are batches.
        setting: How batches are formed. `"cyclic"`: shuffled once, batches in cyclic order. `"poisson"`:
            sampling, which amplifies privacy, compared with cyclic batches. `"b-min-sep"`: sampled, with a
            minimum distance between participations. `"shuffled"`: shuffled anew in every epoch. `"single"`: each example in one step at most.
            `"stream"`: one pass over the data in their given order. `"federated"`: users who are available.
        min_sep: Minimum number of steps between two participations of a user, for `"federated"`.
        max_participations: Maximum number of participations of a user, for `"federated"`.
        max_batch_size: For `"poisson"`: batches of more examples are cut to this number, uniformly at random,
            so that all can be padded to one shape. `"auto"` takes the smallest number that costs at most a
            hundredth of delta.
        clip_norm: Bound on the L2 norm of one unit's contribution to a step.
        dim: Number of trained coordinates at most; 0 allows 2^30.
        unit: The privacy unit. Default: `"user"` for `"federated"`, else `"example"`.
        adjacency: Neighbouring data sets: one unit's contributions are zero, or replaced by others.
        workload: The workload of the losses: `"prefix"` (default), `"momentum:BETA"` and others by name;
            Toeplitz coefficients, shape (steps,); or rows of a matrix.
        objective: The loss to minimise: `"rms"` over the steps, or `"max"`.
        mechanism: A mechanism by name (`"blt:2"`), or several to choose from. Default: all that fit.
        strategy: A finished strategy, or its matrix C, shape (rows, steps), as `Strategy.of_matrix` takes it.
            It is planned as it is; with `mechanism`, the better one is chosen.
        memory: Bound on the noise's state, in bytes.
        noise_time: Bound on the estimated time for one step's noise on one core, in seconds.
        tolerance: Excess over the smallest loss that is accepted for a smaller state, as a fraction of it.
        thorough: False leaves out strategies that take seconds to optimise.
        arithmetic: `"grid"` adds noise in whole numbers on a grid, which leaves no trace of floating point;
            `"plain"` adds in floating point.

    Returns:
        A verified plan.

    Raises:
        ValueError: An argument is out of range, or no mechanism fits.
    """

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
) -> types.Loss:
    """The loss of a strategy: error times sensitivity, for a noise multiplier of 1.

    Args:
        strategy: A strategy, or its name, such as `"blt"` or `"banded-toeplitz"`, which is then designed.
        steps: Number of steps; not given for a `Strategy`, which has its own.
        workload, participation, adjacency, objective: As in `plan` and `Strategy`.
        bands: Number of bands, for banded strategies.
        order: Number of buffers, for a BLT.

    Returns:
        Losses, errors and sensitivity by name.

    Raises:
        ValueError: An argument is out of range.
    """

def compare(
    strategies: Sequence[str],
    steps: Sequence[int],
    *,
    workload: _Workload | None = None,
    participation: _Participation | None = None,
    adjacency: _Adjacency = "zero-out",
    objective: _Objective = "rms",
) -> list[types.ComparedLoss]:
    """The losses of several strategies at several numbers of steps.

    Args:
        strategies: Names, such as `"blt:4"`.
        steps: Numbers of steps.
        workload, participation, adjacency, objective: As in `loss`.

    Returns:
        One row for each strategy and number of steps.

    Raises:
        ValueError: An argument is out of range.
    """

def account(
    noise_multiplier: float,
    delta: float,
    sampling_rate: float | None = None,
    steps: int = 1,
    *,
    adjacency: _Neighbours = "zero-out",
    group_size: int = 1,
    fixed_batch_size: int | None = None,
    examples: int | None = None,
    random_allocation: int | None = None,
) -> types.Account:
    """The privacy of the Gaussian mechanism, or of its composition over sampled batches.

    Args:
        noise_multiplier: Standard deviation of the noise divided by the sensitivity under `adjacency`.
        delta: From 0 to 1.
        sampling_rate: Poisson sampling: the probability that an example is in a batch.
        steps: Number of steps, with sampling.
        adjacency: How neighbouring data sets differ; replace-one doubles the sensitivity.
        group_size: Number of units that are protected together, such as the examples of one user.
        fixed_batch_size: Batches of this many of the `examples`, drawn without replacement in every step.
        examples: Number of examples, with `fixed_batch_size`.
        random_allocation: Number of steps of an epoch, in one of which, chosen uniformly and independently of
            others, each example takes part; `steps` is a multiple of it.

    Returns:
        `epsilon`, never below the truth, and `epsilon_lower`, never above it.

    Raises:
        ValueError: An argument is out of range.
    """

def calibrate(
    epsilon: float,
    delta: float,
    sampling_rate: float | None = None,
    steps: int = 1,
    *,
    adjacency: _Neighbours = "zero-out",
    fixed_batch_size: int | None = None,
    examples: int | None = None,
    random_allocation: int | None = None,
) -> float:
    """The smallest noise multiplier that reaches (epsilon, delta).

    Args:
        epsilon, delta: The privacy to reach.
        sampling_rate, steps, adjacency, fixed_batch_size, examples, random_allocation: As in `account`.

    Returns:
        Standard deviation of the noise divided by the sensitivity.

    Raises:
        ValueError: An argument is out of range.
    """

def _squared_lengths(vectors: _Row, squares: _Row, threads: int) -> None: ...
def _add_weighted(vectors: _Row, factors: _Row, sums: _Row, threads: int) -> None: ...
def _draw_cohort(noise: NoiseStream, step: int, users: Iterable[str], size: int) -> list[str]: ...
def _similar_names(users: Iterable[str]) -> str | None: ...
def _clipped_update_sum(
    update: Callable[[int], NDArray[np.float32] | None], count: int, dim: int, clip_norm: float
) -> NDArray[np.float64]: ...
def run_command(arguments: Sequence[str]) -> int:
    """Runs the command line in this process.

    Args:
        arguments: The program's name and its arguments.

    Returns:
        The exit status: 0 done, 2 bad input, 1 another failure.
    """

@final
class Strategy:
    """A strategy matrix C, lower triangular, of shape (steps, steps)."""

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
    ) -> Strategy:
        """Optimises a strategy.

        Args:
            spec: Class and size: `"blt"`, `"banded-toeplitz:16"`, `"tree"`, ...
            steps: Number of steps.
            workload, participation, objective: The loss to minimise, and the participation schema.
            bands, order: As in `loss`.

        Raises:
            ValueError: An argument is out of range.
        """
    @staticmethod
    def of_matrix(
        c: ArrayLike,
        *,
        b: ArrayLike | None = None,
        a: ArrayLike | None = None,
        workload: _Workload | None = None,
    ) -> Strategy:
        """The strategy of a matrix C: the lower-triangular C' with the same C^T C, so that noise, errors and
        sensitivity are those of C.

        Args:
            c: C, shape (rows, steps), with at least as many rows as steps and of full column rank; triangular
                or not.
            b, a: The decoder B, shape (queries, rows), and the workload A, shape (queries, steps), of a
                factorisation A = B C. They are only compared with `workload`.
            workload: The workload to compare with. Default: `"prefix"`.

        Raises:
            ValueError: An entry is not finite, C has no inverse, or B C or A is not the workload.
        """
    @staticmethod
    def load(path: _Path, *, workload: _Workload | None = None) -> Strategy:
        """Reads a strategy from a file that `save` wrote, or a matrix as `of_matrix` takes it (`.npy`, `.npz`
        with the array C and at most B and A, `.toml` with C as rows).

        Args:
            path: The file.
            workload: As in `of_matrix`.

        Raises:
            OSError: The file cannot be read.
            ValueError: The file does not hold a strategy.
        """
    @staticmethod
    def from_toml(text: str) -> Strategy:
        """Reads a strategy from TOML text.

        Raises:
            ValueError: The text is not a strategy.
        """
    def save(self, path: _Path, *, force: bool = False) -> None:
        """Writes the strategy to a file, completely or not at all.

        Args:
            path: The file.
            force: Replace an existing file.

        Raises:
            OSError: The file exists, or cannot be written.
        """
    def to_toml(self) -> str:
        """The strategy as TOML text, every number with all its digits."""
    def sensitivity(
        self, *, participation: _Participation | None = None, adjacency: _Adjacency = "zero-out"
    ) -> types.Sensitivity:
        """The L2 sensitivity of C x, for contributions of norm 1.

        Args:
            participation: The steps that a unit may take part in: `"single"` (default), `"cyclic:B,K"`,
                `"min-sep:B,K"`, `"each-epoch:B"`, `"full-batch"`, or lists of steps.
            adjacency: Neighbouring data sets.

        Returns:
            The value of the sensitivity, whether it is exact or an upper bound, and the theorem that proves
            it.
        """
    def error(self, *, workload: _Workload | None = None) -> dict[str, float]:
        """The error of A C^-1 Z for noise Z of standard deviation 1.

        Args:
            workload: A; default: prefix sums.

        Returns:
            `max_error` and `rms_error` over the steps.
        """
    @property
    def name(self) -> str:
        """The name of the strategy's class."""
    @property
    def steps(self) -> int:
        """Number of steps."""
    @property
    def status(self) -> str:
        """How the optimisation ended: `converged`, `closed-form`, `stalled` or `iteration-limit`."""
    @property
    def first_column(self) -> NDArray[np.float64]:
        """The first column of C, shape (steps,), for Toeplitz strategies."""

@final
class Plan:
    """A verified plan: its privacy claim follows from its numbers. Made by `plan`, or read and verified."""

    @staticmethod
    def load(path: _Path) -> Plan:
        """Reads and verifies a plan from a file that `save` wrote.

        Raises:
            OSError: The file cannot be read.
            ValueError: The claim does not follow from the numbers, or the file is not a plan.
        """
    @staticmethod
    def from_toml(text: str) -> Plan:
        """Reads and verifies a plan from TOML text.

        Raises:
            ValueError: The claim does not follow from the numbers, or the text is not a plan.
        """
    def save(self, path: _Path, *, force: bool = False) -> None:
        """Writes the plan to a file, completely or not at all.

        Args:
            path: The file.
            force: Replace an existing file.

        Raises:
            OSError: The file exists, or cannot be written.
        """
    def to_toml(self) -> str:
        """The plan as TOML text, every number with all its digits."""
    def verify(self) -> None:
        """Recomputes the claim from the numbers.

        Raises:
            ValueError: It does not follow, which cannot happen for a verified plan.
        """
    @property
    def statement(self) -> str:
        """The claim in words: unit, mechanism, observer, and the limits of the claim."""
    @property
    def digest(self) -> str:
        """SHA-256 of the TOML text, in hexadecimal digits."""
    @property
    def examples(self) -> int:
        """Number of examples, or of users."""
    @property
    def batch_size(self) -> int:
        """The requested batch size. Sums are divided by `expected_batch_size`."""
    @property
    def steps(self) -> int:
        """Number of steps."""
    @property
    def clip_norm(self) -> float:
        """Bound on the L2 norm of one unit's contribution to a step."""
    @property
    def noise_multiplier(self) -> float:
        """Standard deviation of the noise divided by the sensitivity."""
    @property
    def noise_std(self) -> float:
        """Standard deviation of the seed noise on the sum of clipped contributions."""
    @property
    def sensitivity(self) -> types.Sensitivity:
        """The sensitivity for contributions of norm 1, with the theorem that proves it."""
    @property
    def epsilon(self) -> float:
        """The claimed epsilon: an upper bound on the true one."""
    @property
    def epsilon_lower(self) -> float:
        """A lower bound on every epsilon that the accountant can prove."""
    @property
    def delta(self) -> float:
        """The claimed delta."""
    @property
    def unit(self) -> Literal["example", "user"]:
        """The privacy unit."""
    @property
    def adjacency(self) -> _Adjacency:
        """The neighbouring relation."""
    @property
    def accountant(self) -> types.AccountantName:
        """The accountant; all except `gdp` account for amplification by sampling."""
    @property
    def strategy(self) -> str:
        """The name of the strategy's class."""
    @property
    def sampler(self) -> types.Sampler:
        """How batches are formed: `kind`, and its number of groups or bins, or minimum distance."""
    @property
    def max_batch_size(self) -> int | None:
        """The number of examples to which all batches can be padded: the largest batch; None if sizes are
        random and not cut, or batches are formed elsewhere.
        """
    def batch_sizes(self, step: int) -> tuple[int, int] | None:
        """The smallest and the largest batch of a step that the sampler can form.

        Args:
            step: The step, from 0.

        Returns:
            Two numbers of examples; None if batches are formed elsewhere.
        """
    @property
    def participation(self) -> str:
        """The schema for which the sensitivity holds: `single`, `cyclic:B,K`, `min-sep:B,K`, ..."""
    @property
    def workload(self) -> str:
        """The workload of which the losses are computed."""
    @property
    def arithmetic(self) -> Literal["grid", "plain"]:
        """Whether sums and noise are added on a grid or in floating point."""
    @property
    def expected_batch_size(self) -> float:
        """The divisor of the noisy sum."""
    @property
    def grid_spacing(self) -> float | None:
        """The spacing of the grid, a power of two; None for plain arithmetic."""
    @property
    def widened_clip_norm(self) -> float:
        """Bound on the change of a step's noisy sum by one unit, rounding included."""
    @property
    def sum_allowance(self) -> float:
        """The part of `widened_clip_norm` that allows for rounding of the clipped sum."""
    @property
    def candidates(self) -> list[types.Candidate]:
        """The mechanisms that `plan` compared, the chosen one included; empty for a plan that was read."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Key:
    """The secret of a run. Anyone who has it can subtract the noise. It cannot be copied or pickled, and is
    wiped from memory when it is dropped.
    """

    @staticmethod
    def from_os() -> Key:
        """A key from the random numbers of the operating system."""
    @staticmethod
    def from_file(path: _Path) -> Key:
        """Reads a key of 32 bytes, or 64 hexadecimal digits, that only its owner may read (mode 0600).

        Raises:
            OSError: The file cannot be read.
            ValueError: Users other than the owner may read the file, or it does not hold a key.
        """
    @staticmethod
    def from_seed_insecure(seed: int) -> Key:
        """A key from a number, for tests: it protects nothing. Each new stream of such a key forgets which of
        its noise was used before.
        """
    @staticmethod
    def broadcast(exchange: Callable[[NDArray[np.uint8]], object], key: Key | None = None) -> Key:
        """One key for several processes that make parts of the same noise.

        Args:
            exchange: Called with 32 bytes: the key's in the process that passes `key`, zeros in the others.
                It must give all processes the bytes of the key; they are wiped afterwards.
            key: The key, in one of the processes.

        Returns:
            The key; the process that passed one gets it back.
        """
    def __copy__(self) -> NoReturn: ...
    def __deepcopy__(self, memo: Any, /) -> NoReturn: ...

@final
class Batches:
    """The batches of a run, drawn from its key. An iterator of all batches, from step 0.

    Args:
        plan: The plan of the run.
        key: The key of the run; it is not kept.
        run: The name of the run.

    Raises:
        ValueError: The plan's batches are formed elsewhere (`setting="federated"`).
    """

    def __init__(self, plan: Plan, key: Key, *, run: str | None = None) -> None: ...
    @staticmethod
    def of_noise(plan: Plan, noise: NoiseStream) -> Batches:
        """The batches of the run whose noise is given."""
    @property
    def token(self) -> str:
        """A public name of the pair of run and key."""
    def at(self, step: int) -> NDArray[np.int64]:
        """The examples of a step's batch.

        Args:
            step: From 0 to the plan's steps - 1.

        Returns:
            Their numbers, int64, shape (batch,); sampled batches may be empty.
        """
    def __iter__(self) -> Iterator[NDArray[np.int64]]: ...
    def __len__(self) -> int: ...
    def __copy__(self) -> NoReturn: ...
    def __deepcopy__(self, memo: Any, /) -> NoReturn: ...

@final
class OwnedExamples:
    """Examples that belong to one or several users each, such as messages, and batches for a plan of these
    users: no two examples of a batch share an owner, and each owner takes part as rarely as the plan's
    min-sep schema says. The claim holds for neighbouring data sets in which the same users own the same
    examples: ownership is not protected.

    Args:
        owners: The names of each example's owners. 7, 7.0 and 007 are one user, and spaces around a name do
            not count.

    Raises:
        ValueError: There is no example, or one has no owner, or a name is empty, stands for a missing one or
            is a number that is not whole.

    Warns:
        UserWarning: Names of users differ only in case, spaces or Unicode form.
    """

    def __init__(self, owners: Sequence[Sequence[str]]) -> None: ...
    @property
    def users(self) -> list[str]:
        """The names of the users, in the order of their numbers."""
    def batches(self, plan: Plan, key: Key, *, run: str | None = None) -> list[NDArray[np.int64]]:
        """The examples of each step.

        Args:
            plan: A plan with `setting="federated"` for as many units as there are users.
            key: The key of the run; it is not kept.
            run: The name of the run.

        Returns:
            For each step, the numbers of its examples, int64, shape (batch,), at most the plan's batch size;
            a batch is smaller only where every other example has an owner who may not take part.

        Raises:
            ValueError: The plan is another one.
        """
    def owners(self, batch: NDArray[np.int64]) -> NDArray[np.int64]:
        """The numbers of the owners of a batch's examples: the units that take part in its step, for
        `Participations.record` and `CorrelatedNoise.set_batch`.
        """
    def __len__(self) -> int: ...

@final
class Participations:
    """The number of participations of each example of a run, and its last step, checked against the plan's
    schema.

    Args:
        plan: The plan of the run.
    """

    def __init__(self, plan: Plan) -> None: ...
    @staticmethod
    def of_batches(plan: Plan, batches: Batches, steps: int) -> Participations:
        """The participations of the first `steps` batches of a run."""
    @staticmethod
    def from_bytes(plan: Plan, bytes: bytes) -> Participations:
        """Reads what `to_bytes` returned.

        Raises:
            ValueError: The bytes are of another plan, or damaged.
        """
    @property
    def next_step(self) -> int:
        """The step after the last one that was recorded."""
    def check(self, step: int, batch: NDArray[np.int64]) -> None:
        """Refuses a batch that the plan does not account for.

        Args:
            step: The step of the batch.
            batch: Numbers of examples, int64, shape (batch,).

        Raises:
            ValueError: An example would take part too often or too soon.
        """
    def record(self, step: int, batch: NDArray[np.int64]) -> None:
        """Records a step's batch. Arguments and errors are those of `check`."""
    def to_bytes(self) -> bytes:
        """The saved form: 8 bytes, and 8 for each example."""

@final
class NoiseStream:
    """The rows of C^-1 Z, step by step.

    Within a process the noise of a step is used for one sum. The stream cannot be copied, pickled or used
    after a fork.

    Args:
        plan: The plan of the run.
        dim: Number of coordinates of a row, over all processes.
        key: The secret of the run; it is not kept.
        run: Name of the run; each run needs a new pair of key and name.
        shard: Ranges of coordinates (start, stop) that this process makes; default: all.
        threads: Number of threads; it changes speed and no bit.
        memory: Bound on the state's size in memory, in bytes; a larger state is recomputed instead of stored.
        look_ahead: Number of steps that are made together.
        state_in_memory: Keep the state by coordinate, for `state`.

    Raises:
        ValueError: An argument does not fit the plan, or the pair of key and run was used before.
    """

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
    ) -> NoiseStream:
        """Resumes the stream that `save` wrote to a file. Two processes that resume one file use the same
        noise twice.

        Args:
            path: The file.
            plan, dim, run, shard, threads, memory, look_ahead: As in `NoiseStream`.

        Raises:
            OSError: The file cannot be read.
            ValueError: The file belongs to another plan, run or shard, or was altered.
        """
    @property
    def state_words(self) -> int:
        """Number of 4-byte words of state for each coordinate."""
    def state(self, words: _Place, run_key: _Place) -> tuple[tuple[int, int], int]:
        """Writes the state by coordinate, from which any number of processes can continue. **As secret as the
        key.**

        Args:
            words: int32, shape (state_words, coordinates).
            run_key: uint8, shape (32,).

        Returns:
            The first and the next step, and the keyed sum of this process's words.
        """
    def sum_of_words(self, purpose: str, words: _Place) -> int:
        """A keyed sum of 4-byte words by coordinate. Sums of processes that hold different coordinates add up
        modulo 2^128.

        Args:
            purpose: Label of the summed quantity; sums for different purposes are unrelated.
            words: int32, one or several vectors of this process's coordinates, concatenated.
        """
    def state_commitment(self, steps: tuple[int, int], total: int, *, extra: bytes = ...) -> bytes:
        """The digest of a state, keyed by the run's key, that `SavedState.resume` verifies.

        Args:
            steps: As `state` returned them.
            total: The total of the keyed sums that `state` returned in all processes, modulo 2^128.
            extra: Further bytes that the digest covers.

        Returns:
            32 bytes.
        """
    @property
    def commitment(self) -> str:
        """A digest of step and state that identifies a checkpoint."""
    @property
    def token(self) -> str:
        """A public name of the pair of run and key."""
    def next_into(self, out: _Row) -> None:
        """Writes the next row.

        Args:
            out: float32, shape (coordinates,): an array, a tensor in the host's memory, a buffer, or several
                of these, which are concatenated.

        Raises:
            RuntimeError: All steps have been made, or the row was handed out before.
            ValueError: `out` has another dtype, length or stride.
        """
    def next_points_into(self, out: _Place) -> None:
        """Writes the next row in multiples of the plan's grid spacing.

        Args:
            out: int32, shape (coordinates,).
        """
    def add_next_into(self, gradient: _Row, scale: float = 1.0) -> None:
        """Adds the next row times `scale` to `gradient`.

        Args:
            gradient: float32, shape (coordinates,), in one or several parts.
            scale: A factor.

        Raises:
            RuntimeError: The step's noise is in use with another sum, or all steps have been made.
            ValueError: `gradient` has another dtype, length or stride.
        """
    def add_to_sum(self, sum: _Row, out: _Row | None = None) -> None:
        """Adds the next row to a sum, on the plan's grid if it has one.

        Args:
            sum: float64, shape (coordinates,), in one or several parts: the sum of clipped contributions.
            out: float32, of the same length: the noisy sum. Without it, each noisy sum takes the place of its
                sum: the same numbers, without further memory.

        Raises:
            RuntimeError: The step's noise is in use with another sum, or all steps have been made.
            ValueError: The sum is not finite or beyond the grid, or an array does not fit. `out`, or the sum
                in its place, is then zeros.
        """
    def _make_ahead_into(self, out: _Row) -> None: ...
    def _forget_noisy_sums(self, step: int) -> None: ...
    def _noisy_sum_made(self, step: int, digest: int) -> None: ...
    @staticmethod
    def _digest_numbers(first: int, last: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]: ...
    def seek(
        self,
        step: int,
        *,
        progress: Callable[[int, int], object] | None = None,
        reuse_noise_unprotected: bool = False,
    ) -> None:
        """Makes `step` the next step.

        Args:
            step: The next step, from 0 to the plan's steps.
            progress: Called from time to time with the step that was reached and with `step`.
            reuse_noise_unprotected: Allow the noise from `step` on to be used again. The caller asserts that
                nobody sees the noisy sums made with it.
        """
    def save(self, path: _Path) -> None:
        """Writes step, state and the run's key to a file of mode 0600. **As secret as the key.**

        Args:
            path: The file; it is replaced completely or not at all.
        """
    @property
    def step(self) -> int:
        """The next step, counted from 0."""
    @property
    def steps(self) -> int:
        """Number of steps of the plan."""
    @property
    def run(self) -> str:
        """Name of the run."""
    @property
    def placement(self) -> dict[str, str | int]:
        """Storage of the state, and the number of steps that are made together."""
    @property
    def description(self) -> str:
        """A digest of everything that determines the noise, apart from key and run. All processes of a run
        must have the same.
        """
    def __len__(self) -> int: ...
    def __copy__(self) -> NoReturn: ...
    def __deepcopy__(self, memo: Any, /) -> NoReturn: ...

@final
class SavedState:
    """A state that `NoiseStream.state` wrote, for the coordinates of this process.

    Args:
        words: int32, shape (state_words, coordinates).
        steps, run_key: As `state` wrote them.
        plan, dim, run, shard, threads, look_ahead: As in `NoiseStream`.

    Raises:
        ValueError: An argument does not fit the plan.
    """

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
    def sum(self) -> int:
        """The keyed sum of this process's words."""
    def resume(self, commitment: bytes, *, total: int | None = None, extra: bytes = ...) -> NoiseStream:
        """Continues from the state, once.

        Args:
            commitment: The state's digest, from `NoiseStream.state_commitment`.
            total: The total of `sum` over all processes; default: this process's `sum`.
            extra: The further bytes that the digest covers.

        Raises:
            RuntimeError: The state was altered.
        """

@final
class Ledger:
    """The ledger of a federated run, an SQLite file: which users took part in which step, and the last noisy
    sum. It belongs to one plan and run, and to one process at a time. Each change is on the disk before the
    call returns.

    Args:
        path: The file, of mode 0600; it is created if it is absent.
        plan: A plan with `setting="federated"`.
        run: Name of the run.

    Raises:
        OSError: The file cannot be read or written.
        ValueError: The file belongs to another plan or run, was altered, or is open in another process.
    """

    def __new__(cls, path: _Path, plan: Plan, run: str | None = None) -> Ledger: ...
    @property
    def path(self) -> Path:
        """The path of the file."""
    @property
    def step(self) -> int:
        """The next step; all earlier steps are finished."""
    def eligible(self, users: Iterable[str]) -> list[str]:
        """The users among `users` who may take part in the next step."""
    def charged(self) -> list[str]:
        """The users who were recorded for the next step before a failure, in the order of their names."""
    def charge(self, users: Iterable[str]) -> None:
        """Records that users take part in the next step, before their updates are used. A user keeps one
        name: 7, 7.0 and 007 are one user, and so are names with spaces around them.

        Args:
            users: Their names, each once.

        Raises:
            ValueError: One of them may not take part, or is named in another way than before; then nobody is
                recorded.
        """
    def record_noisy_sum(self, step: int, base: str, noisy_sum: bytes) -> None:
        """Records the noisy sum of the next step in place of the previous one.

        Args:
            step: The next step, whose users were charged.
            base: A digest of the model that the step started from.
            noisy_sum: Its bytes.

        Raises:
            ValueError: `step` is not the next step, or its users were not charged.
        """
    def last_noisy_sum(self) -> tuple[int, str, bytes] | None:
        """Step of the last noisy sum, its base (a digest of the model that the step started from) and its
        bytes; None before the first one.
        """
    def bind(self, name: str, value: str) -> None:
        """Records, once, a value that identifies the ledger in addition to plan and run.

        Args:
            name: Name of the value.
            value: The value.

        Raises:
            ValueError: Another value is recorded.
        """
    def rebind(self, name: str, value: str) -> None:
        """Replaces the recorded value of this name."""
    def bound(self, name: str) -> str | None:
        """The recorded value of this name, if any."""
    def participations(self) -> list[tuple[str, int]]:
        """All pairs of user and step, ordered by user, then step."""
    def close(self) -> None:
        """Closes the file, so that another process can open it."""

@final
class Workload:
    """A workload of a kind that has no name in text, such as `ServerOptimizer.workload`."""

@final
class ServerOptimizer:
    """The optimizer of a federated run's server, on the noisy means of updates: that of `antinoise train`. It
    computes in single precision, whatever the model's.

    Args:
        learning_rate: The full learning rate. 1 without momentum and schedule is federated averaging.
        rule: `"sgd"`, `"nesterov"` or `"adam"`.
        momentum: Of sgd and nesterov; by default 0.9.
        schedule: How the learning rate falls: `"constant"`, `"linear[:LAST]"`, `"cosine[:LAST]"`,
            `"cooldown:SHARE[,LAST]"`, `"drop:SHARE,LAST"` or `"steps:PARTS,FACTOR"`.
        warm_up: Number of first steps over which the learning rate rises.
        weight_decay: Decoupled weight decay, as in AdamW.
        zero_beyond: Bound on the entries of the noisy mean: a step with a larger one is skipped.

    Raises:
        ValueError: A setting is out of range, or the rule would ignore it.
    """

    def __new__(
        cls,
        learning_rate: float,
        *,
        rule: Literal["sgd", "nesterov", "adam"] = "sgd",
        momentum: float | None = None,
        schedule: str = "constant",
        warm_up: int = 0,
        weight_decay: float = 0.0,
        zero_beyond: float | None = None,
    ) -> ServerOptimizer: ...
    def workload(self, steps: int) -> Workload:
        """The workload for which `antinoise train` designs a strategy with this optimizer, for `plan`'s
        argument of that name.

        Args:
            steps: Number of steps of the run.
        """
    def _check(self, steps: int) -> None: ...
    def _first_state(self, dim: int, steps: int) -> bytes: ...
    def _moved(self, state: bytes, step: int, steps: int, parameters: _Row, mean: _Row) -> bytes: ...

@final
class RunningCounts:
    """A continual release: counts, sums, means, shares, quantiles and other queries of a stream of events,
    published period by period from a folder.
    """

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
        left_out: bool = True,
    ) -> RunningCounts:
        """Plans a release and makes its folder.

        Args:
            folder: A new folder.
            keys: The public categories that are counted, such as the names of pages.
            periods: Number of periods.
            epsilon, delta: The privacy of the whole release.
            unit: The privacy unit.
            max_periods: Maximum number of periods in which a user counts.
            max_rows: Maximum number of a user's rows that count in a period.
            queries: Queries: `"counts"`, `"sum:LO,HI"`, `"mean:LO,HI"`, `"window:W"`, `"decay:G"`,
                `"histogram:EDGES"`, `"marginals:CITY=a|b;AGE@18,65;ways=1,2"`, ...; default: counts.
            weights: Weights of the queries, in their order: twice the weight gives half the noise.
            non_negative: Publish no figure below 0.
            monotone: Replace each figure by the running maximum.
            left_out: Also publish counts of the users whose rows the bounds leave out: `"users-at-bound"` and
                `"users-over-rows"`, with an empty key.

        Raises:
            ValueError: An argument is out of range.
            OSError: The folder exists, or cannot be made.
        """
    @staticmethod
    def open(folder: _Path) -> RunningCounts:
        """Opens a release's folder.

        Raises:
            OSError: The folder cannot be read, or another process has it open.
            ValueError: The folder is a copy, or was altered.
        """
    @staticmethod
    def adopt(folder: _Path) -> RunningCounts:
        """Opens a folder that was copied or restored and whose original will never be used again."""
    @overload
    def freeze(
        self,
        period: _Period,
        events: _Events,
        *,
        time: str,
        key: str | None = None,
        user: str | None = None,
        value: str | None = None,
        late: Literal["leave", "next", "refuse"] = "leave",
        unknown: Literal["refuse", "leave"] = "refuse",
        check: Literal[True],
        yes: bool = False,
    ) -> types.FreezeCheck: ...
    @overload
    def freeze(
        self,
        period: _Period,
        events: _Events,
        *,
        time: str,
        key: str | None = None,
        user: str | None = None,
        value: str | None = None,
        late: Literal["leave", "next", "refuse"] = "leave",
        unknown: Literal["refuse", "leave"] = "refuse",
        check: Literal[False] = False,
        yes: bool = False,
    ) -> types.FreezeReport:
        """Counts the events of a period and freezes it: the period cannot be changed afterwards.

        Args:
            period: Its number, or its date or name.
            events: A table, a dict of columns, or an iterable of rows as dicts.
            time, key, user, value: Names of the columns; key may be absent if the release has marginals
                and one key.
                Marginals name their columns themselves.
            late: Treatment of rows of earlier periods: left out, counted in this period, or refused.
            unknown: Treatment of rows of unknown keys or categories.
            check: Changes nothing, and returns what freezing would do.
            yes: Freezes although the period seems to be mistyped: see Raises.

        Returns:
            The number of counted rows, and the number of rows left out for each reason. **Not private.**

        Raises:
            ValueError: A row cannot be read; or the period comes before a frozen one, differs in form from the
                first one or from times of the events, counts no row, or loses rows of skipped periods; or a
                first period loses rows before it, or is a number and counts rows of several dates.
        """
    def freeze_counts(self, period: _Period, counts: Mapping[str, int], *, yes: bool = False) -> None:
        """Freezes a period whose counts were computed elsewhere.

        Args:
            period: As in `freeze`.
            counts: The exact count of each key, within the bounds of the release.
            yes: As in `freeze`; here, a period after skipped ones is refused too.
        """
    def publish(self) -> Table:
        """Publishes all frozen periods, and returns their figures with 95% intervals."""
    def published(self) -> Table:
        """All published figures."""
    def query(self, sql: str) -> Table:
        """Runs an SQL query on the table `published`.

        Args:
            sql: One SELECT.
        """
    def status(self) -> types.ReleaseStatus:
        """The state of the release, and its privacy statement."""
    @property
    def folder(self) -> Path:
        """The folder of the release."""
    def close(self) -> None:
        """Closes the folder, so that another process can open it."""
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
    """A table: columns of equal length. Data frames read it through the Arrow interface."""

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
    def to_dict(self) -> dict[str, list[Any]]:
        """Columns by name."""
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...
    def __len__(self) -> int: ...
