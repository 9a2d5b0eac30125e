"""The grid of nodes as a wrapped strategy sees it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from flwr.app import ArrayRecord, ConfigRecord, Message
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Strategy

# With these settings, Flower's own strategies take all nodes of the grid.
_ALL = {"fraction_train": 1.0, "min_train_nodes": 0, "min_available_nodes": 0}


class _Shown:
    """A grid that lists only the given nodes."""

    def __init__(self, grid: Grid, nodes: list[int]) -> None:
        self._grid, self._nodes = grid, nodes

    def get_node_ids(self) -> list[int]:
        return self._nodes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._grid, name)


@contextmanager
def _sampling_all(strategy: Strategy) -> Iterator[None]:
    own = {name: getattr(strategy, name) for name in _ALL if hasattr(strategy, name)}
    try:
        for name in own:
            setattr(strategy, name, _ALL[name])
        yield
    finally:
        for name, value in own.items():
            setattr(strategy, name, value)


def messages_to(
    nodes: Iterable[int],
    strategy: Strategy,
    server_round: int,
    arrays: ArrayRecord,
    config: ConfigRecord,
    grid: Grid,
) -> list[Message]:
    """The training messages that a strategy sends if the grid lists only these nodes: one message per
    node.
    """
    nodes = sorted(nodes)
    shown: Any = _Shown(grid, nodes)
    with _sampling_all(strategy):
        messages = list(strategy.configure_train(server_round, arrays, config, shown))
    if sorted(message.metadata.dst_node_id for message in messages) != nodes:
        got = f"for {len(messages)} nodes"
        raise ValueError(
            f"messages of the strategy are {got} but must be one for each of the {len(nodes)} that it was"
            " shown"
        )
    return messages
