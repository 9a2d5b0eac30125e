"""The loss of each of several examples from one forward pass of a model of transformers, whose own loss is
the mean over the examples.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from transformers import PretrainedConfig, masking_utils

from ._relied import relied
from .torch.data.trees import examples_in, portion_of
from .torch.ghost.choices import Choices
from .torch.ghost.layers import Unsupported
from .torch.model_checks import unchanged_state

# Names of the Trainer's losses that replace the model's loss.
_LOSSES = ("label_smoother", "compute_loss_func")
_MEANS = (functional.cross_entropy, functional.mse_loss, functional.binary_cross_entropy_with_logits)
# Functions of transformers that leave out a mask where no example of the batch has padding.
_SKIPS = ("_ignore_causal_mask_sdpa", "_ignore_bidirectional_mask_sdpa")
# Implementations of attention that compute in the same way whatever a mask holds.
_MASKED = ("eager", "sdpa")
_keeps_masks = ContextVar("keeps_masks", default=False)


class ByExample(TorchFunctionMode):
    """Replaces a loss that is a mean over the batch by a mean for each example: cross entropy, squared error
    or binary cross entropy of rows that belong to the examples in their order.
    """

    def __init__(self, examples: int) -> None:
        super().__init__()
        self._examples, self._apart = examples, True

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        how = dict(kwargs or {})
        if not self._apart or func not in _MEANS or len(args) < 2 or how.get("reduction") == "none":
            return func(*args, **how)
        x, target, *more = args
        if self._examples == 1:
            return func(x, target, *more, **how).reshape(1)
        if x.dim() == 0 or target.dim() == 0 or len(x) != len(target) or len(x) % self._examples:
            return func(x, target, *more, **how)
        parts = zip(x.tensor_split(self._examples), target.tensor_split(self._examples), strict=True)
        return torch.stack([func(a, b, *more, **how) for a, b in parts])

    def of_each(self, loss: Callable[..., Tensor]) -> Callable[..., Tensor]:
        """Turns a loss of outputs and labels into one that returns a loss for each example."""

        def losses(outputs: Any, labels: Tensor | None, **how: Any) -> Tensor:
            self._apart = False
            try:
                found = [loss(*self._example(i, outputs, labels), **how) for i in range(self._examples)]
            finally:
                self._apart = True
            return torch.stack([torch.as_tensor(of_one).reshape(()) for of_one in found])

        return losses

    def _example(self, i: int, outputs: Any, labels: Tensor | None) -> tuple[Any, Tensor | None]:
        if not isinstance(outputs, Mapping):
            raise Unsupported(
                f"output of model is a {type(outputs).__name__} but must be a mapping, for ghost norms"
            )
        # Keys and values of attention are for later passes, and no part of a loss.
        made = {
            name: self._of_one(i, name, value) for name, value in outputs.items() if name != "past_key_values"
        }
        kind: Any = type(outputs)
        return kind(**made), None if labels is None else labels[i : i + 1]

    def _of_one(self, i: int, name: str, value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, (tuple, list)):
            return tuple(self._of_one(i, name, part) for part in value)
        if not isinstance(value, Tensor) or not value.dim() or len(value) != self._examples:
            raise Unsupported(
                f"output {name} of model is not one for each example but must be, for ghost norms"
            )
        return value[i : i + 1]


def follow_masks(model: nn.Module) -> bool:
    """Whether masks of padding can be kept in this model; makes `kept_masks` work."""
    configs = [
        config
        for part in model.modules()
        if isinstance(config := getattr(part, "config", None), PretrainedConfig)
    ]
    of = {relied("transformers", config, "_attn_implementation") for config in configs}
    if not of <= {None, *_MASKED} or not all(hasattr(masking_utils, name) for name in _SKIPS):
        return False
    for name in _SKIPS:
        plain = getattr(masking_utils, name)
        if not hasattr(plain, "keeps"):
            setattr(masking_utils, name, _unless_kept(plain))
    return True


def _unless_kept(plain: Callable[..., bool]) -> Callable[..., bool]:
    def skip(*args: Any, **kwargs: Any) -> bool:
        padding = args[0] if args else kwargs.get("padding_mask")
        return not (padding is not None and _keeps_masks.get()) and plain(*args, **kwargs)

    skip.keeps = True  # type: ignore[attr-defined]
    return skip


@contextmanager
def kept_masks() -> Iterator[None]:
    """Makes attention use a given mask of padding even if no example has padding. Attention without a mask
    computes in another way, so that an example's rounding would depend on the other examples.
    """
    token = _keeps_masks.set(True)
    try:
        yield
    finally:
        _keeps_masks.reset(token)


class Losses:
    """The loss of each example that a Trainer's `compute_loss` contains, if it can be found.

    Args:
        trainer: The Trainer.
        of_one: The loss of a batch of one example.
    """

    def __init__(self, trainer: Any, of_one: Callable[[nn.Module, dict[str, Any]], Tensor]) -> None:
        self._trainer, self._of_one = trainer, of_one
        # For each set of names in a batch: whether the losses of its examples can be found together.
        self._known: dict[frozenset[str], bool] = {}

    def known(self, model: nn.Module, batch: dict[str, Any], must: bool) -> bool:
        """Whether the losses of several examples can be found together; tried once for each kind of batch. If
        not, warns, or raises the error if they `must` be.
        """
        names = frozenset(batch)
        if names not in self._known and examples_in(batch) > 0:
            reason: Exception | None = None
            # A forward pass that stores values in the model is refused, whichever way losses are computed.
            with unchanged_state(model):
                try:
                    self._compare(model, batch)
                except Exception as error:
                    reason = error
            if reason is not None and must:
                raise reason
            self._known[names] = reason is None
            if reason is not None:
                warnings.warn(
                    f'norms="auto" takes examples one by one, which is slower: {reason}', stacklevel=3
                )
        return self._known.get(names, True)

    def together(self, model: nn.Module, batch: dict[str, Any]) -> Tensor:
        examples = examples_in(batch)
        losses, trainer = ByExample(examples), self._trainer
        kept = {name: relied("transformers", trainer, name) for name in _LOSSES}
        try:
            for name, loss in kept.items():
                setattr(trainer, name, loss and losses.of_each(loss))
            with losses, kept_masks(), trainer.compute_loss_context_manager():
                found: Any = trainer.compute_loss(model, dict(batch))
        finally:
            for name, loss in kept.items():
                setattr(trainer, name, loss)
        if not isinstance(found, Tensor) or found.shape != (examples,):
            self._known[frozenset(batch)] = False
            raise Unsupported(
                f"loss of {type(model).__name__} is one number for {examples} examples but must be computed as a"
                " mean over their rows (cross_entropy, mse_loss, binary_cross_entropy_with_logits), for ghost norms"
            )
        return found

    def _compare(self, model: nn.Module, batch: dict[str, Any]) -> None:
        """Refuses losses of several examples together that differ from those of each example alone, without
        dropout, and models and losses that choose rows by their content.
        """
        if batch.get("attention_mask") is not None and not follow_masks(model):
            raise Unsupported(
                "attention of model is of an implementation that may depend on what attention_mask holds but must"
                " be 'sdpa' or 'eager', for ghost norms"
            )
        modes = [(module, module.training) for module in model.modules()]
        places = torch.tensor([0, examples_in(batch) - 1])
        some = portion_of(batch, places)
        choices = Choices()
        devices = {p.device for p in model.parameters() if p.is_cuda}
        model.eval()
        try:
            with torch.no_grad(), kept_masks(), torch.random.fork_rng(devices=devices):
                with choices:
                    together = self.together(model, some)
                alone = [self._of_one(model, portion_of(batch, place[None])) for place in places]
        finally:
            for module, training in modes:
                module.training = training
        if choices.found:
            raise Unsupported(
                f"loss of {type(model).__name__} chooses rows by their content ({', '.join(sorted(choices.found))}) but"
                " must keep all, for ghost norms"
            )
        of_each = torch.stack(alone).reshape(-1).double()
        is_half = any(p.dtype.itemsize < 4 for p in model.parameters()) or self._trainer.args.bf16
        tolerance = 0.02 if is_half or self._trainer.args.fp16 else 1e-4
        if not torch.allclose(together.double(), of_each, tolerance, 1e-6, True):
            raise Unsupported(
                f"loss of {type(model).__name__} is different for an example among others than for the example alone"
                " but must depend on that example alone, for ghost norms"
            )
