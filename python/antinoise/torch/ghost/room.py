"""Memory for the per-example gradients of matrices between the backward pass and the sum."""

from __future__ import annotations

import math

from torch import Tensor

# Default maximum of kept gradients, in bytes, beyond the memory of the tensors that they are made from.
KEPT = 2**28


class Room:
    """Buffers for the gradients that are kept until they are summed, up to a limit in bytes. If the limit is
    above the size of the sums, buffers in host memory are reused by later portions and steps, because
    allocation is slow there. Otherwise each buffer is freed once it is added: the sums, which are allocated
    meanwhile, then take its place at the peak.
    """

    def __init__(self, limit: int) -> None:
        self._limit = self._left = limit
        self._stay, self._next = True, 0
        self._places: list[Tensor] = []

    def resize(self, limit: int, sums: int) -> None:
        """Sets the limit in bytes; `sums` is the size of the sums in bytes."""
        self._limit, self._stay = limit, limit > sums

    def begin(self) -> None:
        """Records that a portion begins: all buffers are free."""
        self._left, self._next = self._limit, 0

    def take(self, shape: tuple[int, ...], gradients: Tensor, leave: int = 0) -> Tensor | None:
        """Memory of this shape for values that replace `gradients`; None if less than `leave` bytes would be
        left for others.
        """
        count = math.prod(shape)
        more = max(0, count - gradients.numel()) * gradients.element_size()
        if more > self._left - leave:
            return None
        self._left -= more
        if gradients.device.type != "cpu" or not self._stay:
            return gradients.new_empty(shape)
        number, self._next = self._next, self._next + 1
        if number == len(self._places):
            self._places.append(gradients.new_empty(0))
        place = self._places[number]
        if place.numel() < count or place.dtype != gradients.dtype:
            self._places[number] = place = gradients.new_empty(count)
        return place[:count].view(shape)
