"""A step's release: sums of clipped gradients in, noisy sums out, each process making the noise of its
part."""

from __future__ import annotations

from collections.abc import Mapping, Set

import torch
import torch.distributed as dist
from torch import Tensor, nn

from .layout import Ranges, cut, joined, local_part
from .processes import Replicas, rank_and_world


class Part:
    """Of parameters that the same processes hold: this process's share of their coordinates, and memory for a
    step."""

    def __init__(
        self, replicas: Replicas, parameters: Mapping[str, nn.Parameter], ranges: Mapping[str, Ranges], *, ahead: bool
    ) -> None:
        self.names, self.replicas = replicas.names, replicas
        locals_ = [local_part(parameters[name]) for name in self.names]
        self.device = locals_[0].device
        self.sizes = [local.numel() for local in locals_]
        size, count = sum(self.sizes), len(replicas.ranks)
        # Equal shares, the last ones filled up.
        self._share = -(-size // count)
        first = min(replicas.ranks.index(rank_and_world()[0]) * self._share, size)
        self._first, self._last = first, min(first + self._share, size)
        whole = joined([pair for name in self.names for pair in ranges[name]])
        self.ranges = cut(whole, self._first, self._last)
        self.size, self._count = size, count
        self.size_of_share = self._last - self._first
        # Rows that are made ahead are added where the model is, others in the host's memory.
        place = self.device if ahead else torch.device("cpu")
        self.sum = torch.zeros(self.size_of_share, dtype=torch.float64, device=place)
        self.row = torch.zeros(self.size_of_share, dtype=torch.float32, device=place)

    def gather(self, sums: Mapping[str, Tensor], unreduced: Set[str]) -> None:
        """Puts the sum over all processes of this process's share into `sum`: `sums` of whole numbers, or of
        double precision. Those that are `unreduced`, the same in all processes, are sums over a process's own
        examples; the others are added up already."""
        adds_up = self.replicas.group is not None and self.size > 0 and not unreduced.isdisjoint(self.names)
        first = rank_and_world()[0] == self.replicas.ranks[0]
        whole = torch.zeros(self._share * self._count, dtype=next(iter(sums.values())).dtype, device=self.device)
        for place, name in zip(whole[: self.size].split(self.sizes), self.names):
            # What is added up already counts once.
            if first or not adds_up or name in unreduced:
                place.copy_(sums[name].reshape(-1))
        if adds_up:
            share = whole.new_empty(self._share)
            dist.reduce_scatter_tensor(share, whole, group=self.replicas.group)
            self.sum.copy_(share[: len(self.sum)])
        else:
            self.sum.copy_(whole[self._first : self._last])

    def hand_out(self) -> list[Tensor]:
        """The rows of all who hold these parameters, for each of them."""
        if self.replicas.group is None or not self.size:
            whole = self.row.to(self.device)
        else:
            share = torch.zeros(self._share, dtype=torch.float32, device=self.device)
            share[: len(self.row)].copy_(self.row)
            whole = share.new_empty(self._share * self._count)
            dist.all_gather_into_tensor(whole, share, group=self.replicas.group)
        return list(whole[: self.size].split(self.sizes))

    def all_shares(self, mine: Tensor) -> list[Tensor]:
        """What every holder has of these parameters, where this one has `mine`: rows of its share."""
        if self.replicas.group is None or not self.size:
            whole = mine
        else:
            share = torch.zeros(len(mine), self._share, dtype=mine.dtype, device=self.device)
            share[:, : mine.shape[1]].copy_(mine)
            found = [torch.empty_like(share) for _ in range(self._count)]
            dist.all_gather(found, share, group=self.replicas.group)
            whole = torch.cat(found, 1).cpu()
        return list(whole[:, : self.size].split(self.sizes, 1))

    def own_share(self, whole: list[Tensor]) -> Tensor:
        """The rows of this process's share, of those of the parameters."""
        return torch.cat([rows.reshape(len(rows), -1) for rows in whole], 1)[:, self._first : self._last]
