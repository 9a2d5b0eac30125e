"""A watch for rows that a model chooses by their content."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

_CHOICES = (torch.bool, torch.uint8)
_of_one = ContextVar("of_one", default=False)


@contextmanager
def of_one_example() -> Iterator[None]:
    """Marks the operations of a block as those on a single example, among whose rows they may choose."""
    token = _of_one.set(True)
    try:
        yield
    finally:
        _of_one.reset(token)


def is_of_one_example() -> bool:
    """Whether the running operations are on a single example."""
    return _of_one.get()


class Choices(TorchDispatchMode):
    """Records the operations whose result has a size that depends on values: masks as indices, `nonzero`,
    `unique`, and whole numbers read from a tensor.

    Rows chosen in this way, as experts of a mixture and sparse predictions choose them, belong to unknown
    examples, also where their number is a multiple of the number of examples.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: set[str] = set()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func is torch.ops.aten.index.Tensor:
            chooses = any(i is not None and i.dtype in _CHOICES for i in args[1])
        elif func is torch.ops.aten._local_scalar_dense.default:
            of: Tensor = args[0]
            chooses = not of.is_floating_point() and of.dtype is not torch.bool
        else:
            chooses = torch.Tag.dynamic_output_shape in func.tags
        if chooses and not _of_one.get():
            self.found.add(str(func))
        return func(*args, **(kwargs or {}))
