"""A step's noisy sum: sums of clipped gradients in, noisy sums out. Each process makes the noise of its
part.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

import torch
import torch.distributed as dist
from torch import Tensor, nn

from .layout import Ranges, cut, joined, local_part
from .processes import Replicas, rank_and_world


class Share:
    """Parameters that the same processes hold: this process's share of their coordinates, and buffers for a
    step.
    """

    def __init__(
        self,
        replicas: Replicas,
        parameters: Mapping[str, nn.Parameter],
        ranges: Mapping[str, Ranges],
        *,
        prefetch: bool,
    ) -> None:
        self.names, self.replicas = replicas.names, replicas
        locals_ = [local_part(parameters[name]) for name in self.names]
        self.device = locals_[0].device
        self.sizes = [local.numel() for local in locals_]
        size, count = sum(self.sizes), len(replicas.ranks)
        # Equal shares; the last ones are padded.
        self._share = -(-size // count)
        first = min(replicas.ranks.index(rank_and_world()[0]) * self._share, size)
        self._first, self._last = first, min(first + self._share, size)
        whole = joined([pair for name in self.names for pair in ranges[name]])
        self.ranges = cut(whole, self._first, self._last)
        self.size, self._count = size, count
        self.size_of_share = self._last - self._first
        # Rows that are made ahead are added on the model's device, others in the host's memory.
        place = self.device if prefetch else torch.device("cpu")
        self.sum = torch.zeros(self.size_of_share, dtype=torch.float64, device=place)
        self.row = torch.zeros(self.size_of_share, dtype=torch.float32, device=place)

    def gather(self, sums: Mapping[str, Tensor], unreduced: Set[str]) -> None:
        """Puts this process's share of the sum over all processes into `sum`.

        Args:
            sums: This process's sums by parameter: int64 or float64.
            unreduced: Parameters (the same in all processes) whose sums cover a process's own examples
                only; the other sums are over all processes already.
        """
        adds_up = self.replicas.group is not None and self.size > 0 and not unreduced.isdisjoint(self.names)
        first = rank_and_world()[0] == self.replicas.ranks[0]
        whole = torch.zeros(
            self._share * self._count, dtype=next(iter(sums.values())).dtype, device=self.device
        )
        for place, name in zip(whole[: self.size].split(self.sizes), self.names):
            # A sum over all processes is counted once.
            if first or not adds_up or name in unreduced:
                place.copy_(sums[name].reshape(-1))
        if adds_up:
            share = whole.new_empty(self._share)
            dist.reduce_scatter_tensor(share, whole, group=self.replicas.group)
            self.sum.copy_(share[: len(self.sum)])
        else:
            self.sum.copy_(whole[self._first : self._last])

    def all_gather_rows(self) -> list[Tensor]:
        """Exchanges the noisy shares; returns the whole row of each parameter."""
        if self.replicas.group is None or not self.size:
            whole = self.row.to(self.device)
        else:
            share = torch.zeros(self._share, dtype=torch.float32, device=self.device)
            share[: len(self.row)].copy_(self.row)
            whole = share.new_empty(self._share * self._count)
            dist.all_gather_into_tensor(whole, share, group=self.replicas.group)
        return list(whole[: self.size].split(self.sizes))

    def all_gather_state(self, mine: Tensor) -> list[Tensor]:
        """The parameters' rows put together from the shares of all holders; `mine` is this process's."""
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
        """This process's share of the parameters' concatenated rows."""
        return torch.cat([rows.reshape(len(rows), -1) for rows in whole], 1)[:, self._first : self._last]
