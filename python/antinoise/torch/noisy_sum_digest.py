"""The digest of a noisy sum, as `NoiseStream.add_to_sum` computes it, on the sum's device."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad

from .. import NoiseStream

BLOCK = 1024
# Number of blocks that are processed together.
_TOGETHER = 4096


def digest_of_noisy_sum(parts: Sequence[Tensor]) -> int:
    """The digest of concatenated parts, whose values are of single precision; ValueError if one is not
    finite.
    """
    first, found = 0, []
    for part in parts:
        start = 0
        while start < len(part):
            # Stops at the end of a block.
            stop = min(start + _TOGETHER * BLOCK - (first + start) % BLOCK, len(part))
            found.append(_digest_and_finite(part[start:stop], first + start))
            start = stop
        first += len(part)
    if not all(bool(finite) for _, finite in found):
        must_be = "a sum of clipped gradients: no noisy sum was made, and the step is still to come"
        raise ValueError(f"sum is not finite, or beyond what a noisy sum can hold, but must be {must_be}")
    return sum(int(digest) for digest, _ in found) % 2**64


def _digest_and_finite(some: Tensor, first: int) -> tuple[Tensor, Tensor]:
    """The digest of some outputs, the first of which has number `first`, and whether they are finite."""
    before, some = first % BLOCK, some.to(torch.float32)
    words = some.view(torch.int32).to(torch.int64) & 0xFFFFFFFF
    # Zeros add nothing to the digest.
    words = pad(words, (before, -(before + len(some)) % BLOCK)).view(-1, BLOCK)
    numbers = NoiseStream._digest_numbers(first // BLOCK, first // BLOCK + len(words))
    weights, factors = (torch.from_numpy(n).to(some.device) for n in numbers)
    return ((words * weights).sum(1) * factors).sum(), torch.isfinite(some).all()
