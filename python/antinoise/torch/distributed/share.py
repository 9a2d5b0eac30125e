"""A step's noisy sum: sums of clipped gradients in, noisy sums out. Each process makes the noise of its
part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Set

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
        self._place = self.device if prefetch else torch.device("cpu")
        # Sums over all processes, then noisy sums in their place, in one piece or one for each parameter,
        # during a step.
        self.sums: list[Tensor] = []

    def gather(self, sums: MutableMapping[str, Tensor], unreduced: Set[str], spacing: float | None) -> None:
        """Takes the parameters' sums out of `sums` and puts this process's share of the sums over all
        processes into `self.sums`.

        Args:
            sums: This process's sums by parameter: float64, or int64 multiples of `spacing`.
            unreduced: Parameters (the same in all processes) whose sums cover a process's own examples
                only; the other sums are over all processes already.
            spacing: The grid's spacing; None for sums in double precision.
        """
        if self.replicas.group is None:
            self.sums = _apart([self._taken(sums.pop(name), spacing) for name in self.names])
        else:
            own = {name: sums.pop(name) for name in self.names}
            self.sums = [self._taken(self._added_up(own, unreduced), spacing)]

    def _taken(self, sum: Tensor, spacing: float | None) -> Tensor:
        """The sum in double precision, on the device where the noise is added."""
        sum = sum.detach().to(self._place, torch.float64).reshape(-1).contiguous()
        return sum if spacing is None else sum.mul_(spacing)

    def _added_up(self, sums: Mapping[str, Tensor], unreduced: Set[str]) -> Tensor:
        """This process's share of the sum over all processes."""
        adds_up = self.size > 0 and not unreduced.isdisjoint(self.names)
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
            return share[: self.size_of_share]
        return whole[self._first : self._last]

    def all_gather_noisy_sums(self) -> Iterator[Tensor]:
        """Exchanges the noisy shares; yields the noisy sum of each parameter, which is no longer held here:
        numbers in single precision, in tensors of single or double precision that nothing else uses.
        """
        noisy, self.sums = self.sums, []
        if self.replicas.group is None:
            while noisy:
                yield self._on_device(noisy.pop(0))
            return
        whole = self._on_device(noisy.pop())
        if self.size:
            share = torch.zeros(self._share, dtype=torch.float32, device=self.device)
            share[: self.size_of_share].copy_(whole)
            whole = share.new_empty(self._share * self._count)
            dist.all_gather_into_tensor(whole, share, group=self.replicas.group)
        yield from whole[: self.size].split(self.sizes)

    def _on_device(self, noisy: Tensor) -> Tensor:
        return noisy if noisy.device == self.device else noisy.to(torch.float32).to(self.device)

    def wipe(self) -> None:
        """Removes noisy sums that nobody may see."""
        for noisy in self.sums:
            noisy.zero_()
        self.sums = []

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


def _apart(sums: list[Tensor]) -> list[Tensor]:
    """The sums, with a copy of each that shares the memory of an earlier one."""
    found: dict[int, Tensor] = {}
    return [
        sum.clone() if found.setdefault(sum.untyped_storage().data_ptr(), sum) is not sum else sum
        for sum in sums
    ]
