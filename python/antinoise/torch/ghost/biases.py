"""The relative position bias of T5 and similar models: rows of one table, looked up once for all
examples and added to the attention scores.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from .layers import Layer, Uses, lookup_uses, widened

# Arguments: the table, a function from rows and output gradient to its gradients, the rows, the output.
# Returns the output.
Follow = Callable[[Layer, Callable[[Tensor, Tensor], Uses], Tensor, Tensor], Tensor]


def table_of(module: nn.Module) -> nn.Module | None:
    """The table of a module that computes such a bias, of shape (1, heads, places, places)."""
    table = getattr(module, "relative_attention_bias", None)
    return table if isinstance(table, nn.Embedding) and hasattr(module, "compute_bias") else None


class Bias:
    """Makes `compute_bias` of a module return a separate bias for each example, and follows its gradient."""

    def __init__(self, module: nn.Module, table: Layer, follow: Follow) -> None:
        self._module, self.table, self._follow = module, table, follow
        self._own, self._plain = vars(module).get("compute_bias"), module.compute_bias
        self.examples, self._running = 1, False
        # The rows that were looked up, and the values found there.
        self._found: tuple[Tensor, Tensor] | None = None
        module.compute_bias = self._compute  # type: ignore[assignment]

    def end(self) -> None:
        """Gives the module its own method back."""
        del self._module.compute_bias
        if self._own is not None:
            self._module.compute_bias = self._own

    def looked_up(self, rows: Tensor, output: Tensor) -> bool:
        """Whether a call of the table belongs to the bias; if so, its gradient is followed here."""
        if self._running:
            self._found = (rows, output)
        return self._running

    def _compute(self, *args: Any, **kwargs: Any) -> Any:
        self._running, self._found = True, None
        try:
            output = self._plain(*args, **kwargs)  # type: ignore[operator]
        finally:
            self._running = False
        if self._found is None or not torch.is_grad_enabled():
            return output
        rows, values = self._found
        if rows.dim() != 2 or not torch.equal(output, values.permute(2, 0, 1).unsqueeze(0)):
            raise self.table.unsupported("looked up for the bias of each head and pair of places")
        each = output.detach().expand(self.examples, *output.shape[1:])
        return self._follow(self.table, partial(_uses, self.table), rows, each)


def _uses(table: Layer, rows: Tensor, gradient: Tensor) -> Uses:
    assert isinstance(table.module, nn.Embedding)
    rows = rows.reshape(1, -1).expand(len(gradient), -1)
    rows, gradient = widened(rows, gradient.permute(0, 2, 3, 1).flatten(1, 2).contiguous())
    gradient = gradient.to(torch.promote_types(gradient.dtype, torch.float32))
    name, padding = table.trained["weight"], table.module.padding_idx
    return lookup_uses(name, table.module.num_embeddings, padding, rows, gradient)
