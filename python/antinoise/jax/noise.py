"""A run's noise, laid out as the parameters are."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from .. import Key, NoiseStream, Plan
from .._once import NotCopied
from .._relied import relied
from .._sealed import content_of, new_sealed
from .._sums import IN_SINGLE, check_batch, refuse_single
from .._weights import sum_of_weights
from .clipping import ClippedSum, Tracer
from .handed import HandedOut
from .layout import Layout

process_allgather: Callable[[Any], Any] = relied(
    "jax", "jax.experimental.multihost_utils", "process_allgather"
)


def is_traced(*arrays: Any) -> bool:
    """Whether one of `arrays` is traced, or a function is traced in which other arrays would become
    constants.
    """
    return any(isinstance(array, Tracer) for array in (jnp.zeros(()), *arrays))


def _refuse_in_trace() -> None:
    if is_traced():
        raise ValueError(
            "noise is asked for in a traced function, each call of which would use the same noise again, but must"
            " be made outside of it"
        )


class Noise(NotCopied):
    """The noise of a plan's run for a tree of parameters.

    A process makes each coordinate that its devices hold once, and no bit depends on devices or shardings.
    `noisy_mean` turns a step's sum of clipped gradients into the noisy mean; for plans with
    `arithmetic="plain"`,
    `next` returns a row of noise to be added elsewhere. Each call is one of the plan's steps.

    The privacy statement holds for the plan's batches only, each used in its own step: a step takes the
    batch that `batches()` handed out for it.

    Args:
        params: The tree of parameters; its shapes, dtypes and shardings are those of noisy means.
        plan: The plan of the run.
        key: The secret of the run, the same in all processes; it is not kept.
        run: Name of the run; each run needs a new pair of key and name.
        threads: Number of threads that make noise. It changes speed and no bit.
        trust_float32_sums: Accept sums in single precision, in which one example can move a sum by nearly
            twice the clip norm. `statement` then names that assumption.
        external_batches: The caller answers for the batches; only their sizes are compared.

    Raises:
        ValueError: Processes differ in plan, key, run or parameters, or the pair of key and run was used
            before.
    """

    _layout: Layout
    _stream: NoiseStream

    def __init__(
        self,
        params: Any,
        plan: Plan,
        key: Key,
        *,
        run: str | None = None,
        threads: int | None = None,
        trust_float32_sums: bool = False,
        external_batches: bool = False,
    ) -> None:
        self._plan, self._trusted, self._layout = plan, trust_float32_sums, Layout(params)
        stream = NoiseStream(plan, self._layout.dim, key, run=run, shard=self._layout.ranges, threads=threads)
        self._use(stream, external_batches)

    def _use(self, stream: NoiseStream, external_batches: bool) -> None:
        self._stream = stream
        self._agree()
        self._handed: HandedOut | None = None
        if not external_batches and self._plan.sampler["kind"] != "external":
            self._handed = HandedOut(self._plan, stream)

    def _agree(self) -> None:
        """Refuses, in all processes, a noise that differs between processes: copies of a coordinate would
        get different noise, or a step's noise would be used twice.
        """
        told = json.dumps([self._plan.digest, self._stream.token, self.step, self._layout.shapes()])
        mine = np.frombuffer(hashlib.sha256(told.encode()).digest(), np.uint8)
        all_of_them = np.asarray(process_allgather(mine)).reshape(-1, len(mine))
        others = np.flatnonzero((all_of_them != all_of_them[0]).any(1)).tolist()
        if others:
            must_be = "that of process 0: of one plan, key, run, step and parameters"
            raise ValueError(f"noise is different in processes {others} but must be {must_be}")

    @property
    def step(self) -> int:
        """The next step, counted from 0."""
        return self._stream.step

    @property
    def plan(self) -> Plan:
        """The plan of the run."""
        return self._plan

    @property
    def statement(self) -> str:
        """The plan's privacy statement and, where sums are in single precision, the assumption about them."""
        return self._plan.statement + (f"\n{IN_SINGLE}\n" if self._trusted else "")

    def __len__(self) -> int:
        """Number of coordinates for which this process makes noise."""
        return self._layout.held

    def next(self) -> Any:
        """Makes the next step's row of noise, to be added to one sum, once. For plans with
        `arithmetic="plain"`.

        Returns:
            A tree of float32 arrays with the parameters' shapes and shardings.
        """
        if self._plan.arithmetic != "plain":
            must_be = "plain: on a grid sum and noise are added in whole numbers, by noisy_mean(sums)"
            raise ValueError(f"arithmetic of the plan is {self._plan.arithmetic} but must be {must_be}")
        _refuse_in_trace()
        batch = self._own_batch()
        row = self._layout.row()
        self._stream.next_into(row)
        self._use_up(batch)
        return self._layout.arrays(row, as_params=False)

    def noisy_mean(self, sums: ClippedSum | Any) -> Any:
        """Adds the step's noise to a sum of clipped gradients and divides by the plan's expected batch
        size.

        Sum and noise are added on the host, on the plan's grid if it has one.

        Args:
            sums: What `clipped_sum` returned; or, for gradients clipped elsewhere to the plan's clip norm
                (over all leaves together), a tree of float64 arrays of NumPy or JAX.

        Returns:
            The noisy mean: a tree with the parameters' shapes, dtypes and shardings.

        Raises:
            ValueError: The sums do not fit the parameters, the plan or the batch.
        """
        _refuse_in_trace()
        return self._layout.arrays(self._mean(self._leaves(sums)), as_params=True)

    def _mean(self, leaves: list[Any]) -> NDArray[np.float32]:
        """The row of the noisy mean of a step's sums."""
        row = self._layout.row()
        self._add_to_sum_into(leaves, row)
        size = self._plan.expected_batch_size
        # The result is that of double precision, rounded to single. If the divisor is exact in single
        # precision, division in single precision gives the same bits, faster.
        precision = np.float32 if float(np.float32(size)) == size else np.float64
        np.divide(row, precision(size), out=row, dtype=precision, casting="same_kind")
        return row

    def _leaves(self, sums: ClippedSum | Any) -> list[Any]:
        if isinstance(sums, ClippedSum):
            self._check_clipped(sums.examples, sums.clip_norm)
            sums = sums.total
        leaves = self._layout.check("sums", sums)
        for leaf in leaves:
            refuse_single("sum", leaf.dtype, leaf.dtype == np.float64, self._trusted)
        return leaves

    def _check_clipped(self, examples: int, clip_norm: float) -> None:
        """Refuses a sum of `examples` examples, each clipped to `clip_norm`, that is not the next step's."""
        if self._plan.unit == "user":
            must_be = "example: clipped_sum clips examples; for users, clip their gradients and give the tree of sums"
            raise ValueError(f"unit of the plan is user but must be {must_be}")
        if clip_norm > self._plan.clip_norm:
            raise ValueError(
                f"clip_norm of the sum is {clip_norm} but must be the plan's, {self._plan.clip_norm}"
            )
        check_batch(self._plan, self.step, examples)
        batch = self._own_batch()
        if batch is not None and examples != len(batch):
            raise ValueError(
                f"batch of step {self.step} is of {examples} examples but must be the plan's, of {len(batch)}"
            )

    def _add_to_sum_into(self, leaves: list[Any], row: NDArray[np.float32]) -> None:
        parts = [part.astype(np.float64, copy=False) for part in self._layout.on_host(leaves)]
        batch = self._own_batch()
        self._stream.add_to_sum(parts, row)
        self._use_up(batch)

    def _own_batch(self) -> NDArray[np.int64] | None:
        """The next step's batch, which must be the batch that was handed out last; None if batches come from
        elsewhere.
        """
        return None if self._handed is None or self.step == self._plan.steps else self._handed.own_batch()

    def _use_up(self, batch: NDArray[np.int64] | None) -> None:
        if self._handed is not None and batch is not None:
            self._handed.use_up(batch)

    def batches(self, *, padded: bool = False) -> Iterator[NDArray[np.int64]]:
        """Yields the run's batches from the next step, also after `resume`: arrays of example numbers
        (int64).

        Each step takes the batch handed out last, and no batch is used twice. A batch that the loop does not
        use is handed out again.

        Args:
            padded: All arrays have the plan's `max_batch_size` numbers, of which -1 stands for no example:
                `clipped_sum` takes `mask=examples >= 0`.
        """
        if self._handed is None:
            raise RuntimeError(
                "This noise was made with external_batches=True, so that it has no batches to hand out: leave"
                " that out."
            )
        return self._handed.handed_out(padded)

    def save(self, folder: str | os.PathLike[str], params: Any, *, data: Any = None) -> None:
        """Saves step, noise state and the run's key to a folder. **As secret as the key**: files have mode
        0600.

        Each process writes its own files.

        Args:
            folder: An existing or new folder.
            params: The parameters at which the next step's gradients are taken; `resume` accepts no others.
            data: The examples that batches are taken from, a tree of arrays, all of which is read; `resume`
                then accepts no others.
        """
        # A jitted function makes its step in a callback, which may not have run yet.
        jax.effects_barrier()  # type: ignore[no-untyped-call]
        folder, weights = Path(folder), self._weights(params)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        noise = _noise_file(folder, self._stream.commitment)
        self._stream.save(noise)
        # This file names the noise file: the previous checkpoint stays valid until it is replaced.
        with new_sealed(_layout_file(folder)) as layout:
            contents = [self._stream.commitment, self._layout.shapes(), weights, _digest_of(data)]
            layout.write(json.dumps(contents).encode())
        for other in folder.glob(f"noise-{jax.process_index()}-*"):
            if other != noise:
                other.unlink()

    def _weights(self, params: Any) -> str:
        """A keyed digest of this process's part of the parameters, as secret as the key."""
        parts = self._layout.on_host(self._layout.check("params", params))
        dtype = np.float64 if any(part.dtype == np.float64 for part in parts) else np.float32
        return f"{sum_of_weights(self._stream, np.concatenate([part.astype(dtype) for part in parts])):032x}"

    @classmethod
    def resume(
        cls,
        folder: str | os.PathLike[str],
        params: Any,
        plan: Plan,
        *,
        data: Any = None,
        run: str | None = None,
        threads: int | None = None,
        trust_float32_sums: bool = False,
        external_batches: bool = False,
        reuse_noise_unprotected: bool = False,
    ) -> Noise:
        """Resumes from the folder that `save` wrote.

        Two processes that resume from one folder use the same noise twice, and nothing can detect it.
        Within a process, a second sum is refused for a step whose noisy sum was made after `save`.

        Args:
            folder: The folder of `save`.
            params: The parameters that were saved with it, in the same shardings.
            data: The examples that were given to `save`, if they were.
            plan, run, threads, trust_float32_sums, external_batches: As in `Noise`.
            reuse_noise_unprotected: Allow other parameters and data, and other sums for noise that was used.
                The caller asserts that nobody sees the noisy sums made with that noise.

        Raises:
            RuntimeError: A file was altered or is another checkpoint's, or parameters or data are not the
                saved ones.
            ValueError: The state is of another plan, run or tree of parameters.
        """
        noise = cls.__new__(cls)
        noise._plan, noise._trusted, noise._layout = plan, trust_float32_sums, Layout(params)
        found = json.loads(content_of(_layout_file(Path(folder))))
        if len(found) != 4:
            must_be = (
                "of this version, whose states name the parameters: finish the run with the version that"
                " saved it"
            )
            raise RuntimeError(f"state in {folder} is of an earlier version but must be {must_be}")
        commitment, shapes, weights, examples = found
        if shapes != noise._layout.shapes():
            raise ValueError(
                "params is a tree of other names or shapes but must be what the noise was saved for"
            )
        where = dict(run=run, shard=noise._layout.ranges, threads=threads)
        stream = NoiseStream.resume(_noise_file(Path(folder), commitment), plan, noise._layout.dim, **where)  # type: ignore[arg-type]
        if stream.commitment != commitment:
            raise RuntimeError(
                f"noise in {folder} is not what was saved with its layout: files of several checkpoints were"
                " mixed. Use another one"
            )
        noise._stream = stream
        if reuse_noise_unprotected:
            stream._forget_noisy_sums(stream.step)
        elif other := [
            name
            for name, saved, given in (
                ("params", weights, noise._weights(params)),
                ("data", examples, _digest_of(data)),
            )
            if saved != given
        ]:
            raise RuntimeError(
                f"{' and '.join(other)} are not as when the noise of step {stream.step} was saved: another sum"
                " would be added to the noise of the run that saved it, and the difference of both has none."
                " Give those of the same checkpoint, or begin a run with another key or name;"
                " if nobody sees the noisy sums that the run made since, pass reuse_noise_unprotected=True"
            )
        noise._use(stream, external_batches)
        return noise


def _digest_of(data: Any) -> str | None:
    """The digest of a tree of arrays; None for no data."""
    if data is None:
        return None
    digest = hashlib.sha256(str(jax.tree.structure(data)).encode())
    for leaf in map(np.ascontiguousarray, jax.tree.leaves(data)):
        digest.update(f" {leaf.dtype} {leaf.shape} ".encode())
        digest.update(leaf.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _layout_file(folder: Path) -> Path:
    return folder / f"layout-{jax.process_index()}"


def _noise_file(folder: Path, commitment: str) -> Path:
    """The noise file at one step."""
    return folder / f"noise-{jax.process_index()}-{commitment[:16]}"
