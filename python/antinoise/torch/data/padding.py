"""Examples that fill batches up to one size, so that a model always sees tensors of one shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import Tensor
from torch.utils.data import Dataset

# The number of the example that stands for none.
PADDING = -1


class Padded(Dataset[Any]):
    """A data set with one more example, number -1: zeros in the form of example 0.

    Padding depends on no example's values, and its gradient is left out of sums.

    Args:
        dataset: Examples of tensors, arrays and numbers, or tuples, lists and mappings of them.
    """

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, number: int) -> Any:
        return zeros_like(self._dataset[0]) if number == PADDING else self._dataset[number]


def zeros_like(example: Any) -> Any:
    """An example of the same structure, shapes and types whose numbers are all 0."""
    if isinstance(example, Mapping):
        made: Any = {name: zeros_like(part) for name, part in example.items()}
        return made if type(example) is dict else type(example)(made)  # type: ignore[call-arg]
    if isinstance(example, (list, tuple)):
        parts = [zeros_like(part) for part in example]
        return type(example)(*parts) if hasattr(example, "_fields") else type(example)(parts)
    if isinstance(example, Tensor):
        return example.new_zeros(example.shape)
    if isinstance(example, (np.ndarray, np.generic)):
        return np.zeros_like(example)
    if isinstance(example, (bool, int, float)):
        return type(example)(0)
    raise ValueError(
        f"example of the data set is one with a {type(example).__name__} but must be made of tensors, arrays"
        " and numbers, for padding to be made"
    )
