"""Rows of a noise stream, made on request or one step ahead while the model works."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

import torch
from torch import Tensor

from .. import NoiseStream
from .distributed.share import Share
from .noisy_sum_digest import digest_of_noisy_sum

# Sums of integers are exact up to this bound.
_BOUND = 2.0**51


class NoiseRows:
    """Adds rows of noise to the gradient sums of this process's shares of the parameters.

    A row may be generated before its step. It is then in the host's memory: int32 multiples of `spacing` for
    a grid, or plain noise. `waiting` is such a row from a saved state. No bit of a row depends on data.
    """

    def __init__(
        self,
        stream: NoiseStream,
        parts: list[Share],
        spacing: float | None,
        *,
        prefetch: bool,
        waiting: Tensor | None = None,
    ) -> None:
        self._stream, self._parts, self._spacing = stream, parts, spacing
        self._thread = ThreadPoolExecutor(1, "antinoise") if prefetch else None
        self._coming: Future[None] | None = None
        self._row: Tensor | None = None
        if waiting is not None:
            self._row = self._empty()
            self._row.view(torch.int32).copy_(waiting)
        elif prefetch:
            self._begin()

    def _empty(self) -> Tensor:
        on_device = any(part.device.type != "cpu" for part in self._parts)
        dtype = torch.float32 if self._spacing is None else torch.int32
        return torch.empty(len(self._stream), dtype=dtype, pin_memory=on_device)

    def _begin(self) -> None:
        """Starts making the next row, if there is one."""
        assert self._thread is not None
        if self._stream.step == self._stream.steps:
            return
        self._row = row = self._empty() if self._row is None else self._row
        self._coming = self._thread.submit(self._stream._make_ahead_into, row.numpy())

    def waiting(self) -> Tensor | None:
        """The bits of the row made ahead, if there is one. As secret as the noise."""
        if self._coming is not None:
            self._coming.result()
        return None if self._row is None else self._row.view(torch.int32)

    @property
    def step(self) -> int:
        """The next step, whose row has not been used yet."""
        made_ahead = self.waiting() is not None
        return self._stream.step - made_ahead

    def add_to_sums(self) -> None:
        """Adds the next row to the sums of all parts. Each noisy sum takes the place of its sum: a step needs
        no further memory.
        """
        try:
            self._add_to([sum for part in self._parts for sum in part.sums])
        except Exception:
            for part in self._parts:
                part.wipe()
            raise

    def _add_to(self, sums: list[Tensor]) -> None:
        if (bits := self.waiting()) is None:
            self._stream.add_to_sum(sums)
            return
        assert self._row is not None
        for sum, row in zip(sums, self._row.split([len(sum) for sum in sums])):
            self._add_row(sum, row.to(sum.device, non_blocking=True))
        # If the noisy sum is refused, the row is kept for its own sum.
        self._stream._noisy_sum_made(self.step, digest_of_noisy_sum(sums))
        # The copy must finish before its source is overwritten.
        if bits.is_pinned():
            torch.cuda.synchronize()
        self._coming, row, self._row = None, self._row, None
        if self._thread is not None and self._stream.step < self._stream.steps:
            self._row = row
            self._begin()

    def _add_row(self, sum: Tensor, row: Tensor) -> None:
        """Makes the noisy sum as `NoiseStream.add_to_sum` computes it, on the sum's device and in its place;
        NaN if the sum is too large for exact integers.
        """
        if self._spacing is not None:
            sum.div_(self._spacing).round_()
            sum.masked_fill_(~(sum.abs() <= _BOUND), torch.nan)
        sum.add_(row)
        if self._spacing is not None:
            sum.mul_(self._spacing)
        sum.copy_(sum.to(torch.float32))
