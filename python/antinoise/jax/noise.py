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

process_allgather: Callable[[Any], Any] = relied("jax", "jax.experimental.multihost_utils", "process_allgather")


def is_traced(*arrays: Any) -> bool:
    """True where a function is traced, by which arrays that are none of its arguments become constants, or one of these is."""
    return any(isinstance(array, Tracer) for array in (jnp.zeros(()), *arrays))


def _refuse_in_trace() -> None:
    if is_traced():
        raise ValueError("noise is asked for in a traced function, whose every call would use it again, but must be made outside of it")


class Noise(NotCopied):
    """The noise of a plan's run for a tree of parameters: a process makes each coordinate that its devices hold once,
    however many hold it, and no bit depends on how they are laid out.

    `release` makes a step's noisy mean of a sum of clipped gradients; for plans whose release is `plain`, `next` makes a row of noise to be
    added elsewhere. Each is one step, of the plan's `steps`. `key` is not kept. `threads` changes speed and no bit.

    Each step takes the batch that `batches()` hands out for it: the statement holds for the plan's batches alone, each in its own step.
    `batches_from_elsewhere=True` says that the caller sees to that: only their sizes are then compared.
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
        batches_from_elsewhere: bool = False,
    ) -> None:
        self._plan, self._trusted, self._layout = plan, trust_float32_sums, Layout(params)
        stream = NoiseStream(plan, self._layout.dim, key, run=run, shard=self._layout.ranges, threads=threads)
        self._use(stream, batches_from_elsewhere)

    def _use(self, stream: NoiseStream, batches_from_elsewhere: bool) -> None:
        self._stream = stream
        self._agree()
        self._handed: HandedOut | None = None
        if not batches_from_elsewhere and self._plan.sampler["kind"] != "external":
            self._handed = HandedOut(self._plan, stream)

    def _agree(self) -> None:
        """Refuses, in all processes, to make parts of noises that are not one: what several hold would be released with several noises, or a
        step's noise twice."""
        told = json.dumps([self._plan.digest, self._stream.token, self.step, self._layout.shapes()])
        mine = np.frombuffer(hashlib.sha256(told.encode()).digest(), np.uint8)
        all_of_them = np.asarray(process_allgather(mine)).reshape(-1, len(mine))
        others = np.flatnonzero((all_of_them != all_of_them[0]).any(1)).tolist()
        if others:
            must_be = "that of process 0: of one plan, key, run, step and parameters"
            raise ValueError(f"noise is another in processes {others} but must be {must_be}")

    @property
    def step(self) -> int:
        """The step that comes next."""
        return self._stream.step

    @property
    def plan(self) -> Plan:
        return self._plan

    @property
    def statement(self) -> str:
        """The plan's statement, with the assumption about sums."""
        return self._plan.statement + (f"\n{IN_SINGLE}\n" if self._trusted else "")

    def __len__(self) -> int:
        """Coordinates that this process makes of a row."""
        return self._layout.held

    def next(self) -> Any:
        """The next row, in single precision, with the parameters' shapes and shardings: to be added to one step's sums, once."""
        if self._plan.release != "plain":
            must_be = "plain: on a grid sum and noise are added in whole numbers, by release(sums)"
            raise ValueError(f"release of the plan is {self._plan.release} but must be {must_be}")
        _refuse_in_trace()
        batch = self._own_batch()
        row = self._layout.row()
        self._stream.next_into(row)
        self._use_up(batch)
        return self._layout.arrays(row, as_params=False)

    def release(self, sums: ClippedSum | Any) -> Any:
        """The step's noisy mean, with the parameters' shapes, dtypes and shardings: sum and noise are added on the host, on the plan's grid
        if it has one, and divided by the expected batch size.

        `sums` is what `clipped_sum` returns. Who clips otherwise gives a tree of float64, NumPy's or JAX's: the sums of gradients that are
        clipped to the plan's clip norm together.
        """
        _refuse_in_trace()
        row = self._layout.row()
        self._release_into(self._leaves(sums), row)
        size = self._plan.expected_batch_size
        # As in double precision, rounded to single. Where single precision holds the divisor, its own division gives the same bits, faster.
        precision = np.float32 if float(np.float32(size)) == size else np.float64
        np.divide(row, precision(size), out=row, dtype=precision, casting="same_kind")
        return self._layout.arrays(row, as_params=True)

    def _leaves(self, sums: ClippedSum | Any) -> list[Any]:
        if isinstance(sums, ClippedSum):
            if self._plan.unit == "user":
                must_be = "example: clipped_sum clips examples; who clips users' gradients gives the tree of their sums"
                raise ValueError(f"unit of the plan is user but must be {must_be}")
            if sums.clip_norm > self._plan.clip_norm:
                raise ValueError(f"clip_norm of the sum is {sums.clip_norm} but must be the plan's, {self._plan.clip_norm}")
            check_batch(self._plan, self.step, sums.examples)
            batch = self._own_batch()
            if batch is not None and sums.examples != len(batch):
                raise ValueError(f"batch of step {self.step} is of {sums.examples} examples but must be the plan's, of {len(batch)}")
            sums = sums.total
        leaves = self._layout.check("sums", sums)
        for leaf in leaves:
            refuse_single("sum", leaf.dtype, leaf.dtype == np.float64, self._trusted)
        return leaves

    def _release_into(self, leaves: list[Any], row: NDArray[np.float32]) -> None:
        parts = [part.astype(np.float64, copy=False) for part in self._layout.on_host(leaves)]
        batch = self._own_batch()
        self._stream.release(parts, row)
        self._use_up(batch)

    def _own_batch(self) -> NDArray[np.int64] | None:
        """The batch of the step that comes next, which must be in the loop's hands, where batches are the plan's."""
        return None if self._handed is None or self.step == self._plan.steps else self._handed.own_batch()

    def _use_up(self, batch: NDArray[np.int64] | None) -> None:
        if self._handed is not None and batch is not None:
            self._handed.use_up(batch)

    def batches(self) -> Iterator[NDArray[np.int64]]:
        """The examples of the run's batches, from the step that comes next on: also of a run that is resumed, whose key nobody else has. Each is
        that of the step which then comes next; one that is dropped comes again, once. A step takes the one that was handed out last, and none is
        used again."""
        if self._handed is None:
            raise ValueError("batches are from elsewhere but must be the plan's, for batches() to hand them out")
        return self._handed.handed_out()

    def save(self, folder: str | os.PathLike[str], params: Any) -> None:
        """Saves step, state and the run's key to a folder, in files that only their owner can read: they are
        as secret as the key. Each process writes its own. `params` are those that the next step's gradients
        are taken of: the run goes on with them alone."""
        folder, weights = Path(folder), self._weights(params)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        noise = _noise_file(folder, self._stream.commitment)
        self._stream.save(noise)
        # It names the noise: what was saved before is valid until it is there.
        with new_sealed(_layout_file(folder)) as layout:
            layout.write(json.dumps([self._stream.commitment, self._layout.shapes(), weights]).encode())
        for other in folder.glob(f"noise-{jax.process_index()}-*"):
            if other != noise:
                other.unlink()

    def _weights(self, params: Any) -> str:
        """What this process's part of the parameters is known by: as secret as the key."""
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
        run: str | None = None,
        threads: int | None = None,
        trust_float32_sums: bool = False,
        batches_from_elsewhere: bool = False,
        reuse_noise_unprotected: bool = False,
    ) -> Noise:
        """Continues from the folder that `save` wrote, with the same parameters, in the same shardings.
        RuntimeError where a file of it was altered or is another checkpoint's, or the parameters are.

        Two processes that continue from one folder use the same noise twice, and nothing can notice it. In
        one process the noise of a step that was used after `save` is refused to another sum, and so are other
        parameters, unless `reuse_noise_unprotected` says that nobody sees what it was used for.
        """
        noise = cls.__new__(cls)
        noise._plan, noise._trusted, noise._layout = plan, trust_float32_sums, Layout(params)
        commitment, shapes, weights = json.loads(content_of(_layout_file(Path(folder))))
        if shapes != noise._layout.shapes():
            raise ValueError("params is a tree of other names or shapes but must be what the noise was saved for")
        where = dict(run=run, shard=noise._layout.ranges, threads=threads)
        stream = NoiseStream.resume(_noise_file(Path(folder), commitment), plan, noise._layout.dim, **where)  # type: ignore[arg-type]
        if stream.commitment != commitment:
            raise RuntimeError(f"noise in {folder} is not what was saved with its layout: files of several checkpoints were mixed. Use another one")
        noise._stream = stream
        if reuse_noise_unprotected:
            stream._forget_released(stream.step)
        elif weights != noise._weights(params):
            raise RuntimeError(
                f"params are not as when the noise of step {stream.step} was saved: another sum would be released under the noise of the run that saved it, "
                "and the difference of both has none. Give the parameters of the same checkpoint, or begin a run with another key or name; "
                "reuse_noise_unprotected=True says that nobody sees what that run released since"
            )
        noise._use(stream, batches_from_elsewhere)
        return noise


def _layout_file(folder: Path) -> Path:
    return folder / f"layout-{jax.process_index()}"


def _noise_file(folder: Path, commitment: str) -> Path:
    """That of the noise at a step."""
    return folder / f"noise-{jax.process_index()}-{commitment[:16]}"
