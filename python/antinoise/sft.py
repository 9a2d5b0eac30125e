"""The supervised fine-tuning trainer of trl with a plan: `PrivateTrainer` with the data preparation, the
collation and the evaluation of `SFTTrainer`.

    trainer = PrivateSFTTrainer(model=model, args=args, train_dataset=data, processing_class=tokenizer, plan=plan)
    trainer.train()
"""

from __future__ import annotations

from typing import Any

from transformers import Trainer
from trl import SFTConfig, SFTTrainer  # type: ignore[attr-defined]

from ._relied import relied
from .hf import PrivateTrainer

# Methods of the SFTTrainer that are called or overridden here.
_OVERRIDDEN = ("compute_loss", "prediction_step", "_prepare_dataset")


class PrivateSFTTrainer(PrivateTrainer, SFTTrainer):
    """`trl.SFTTrainer` that trains privately. An example is one row of the prepared data set: a text, or one
    conversation.

    The loss of an example is the model's own (the mean over its tokens that have a label), or that of
    `label_smoothing_factor` or `compute_loss_func`. Entropies and accuracies of tokens are measured on
    evaluation data alone: those of private examples are not private.

    Args:
        model, args, more, kwargs: As in `PrivateTrainer` and `trl.SFTTrainer`; with `max_grad_norm=0`, and
            without `packing`, which would make one row of parts of several examples.
    """

    def __init__(self, model: Any = None, args: SFTConfig | None = None, *more: Any, **kwargs: Any) -> None:
        for name in _OVERRIDDEN:
            relied("trl", SFTTrainer, name)
        # Whether the loss is one of evaluation data.
        self._evaluates = False
        if not isinstance(args, SFTConfig):
            raise ValueError(
                f"args is a {type(args).__name__} but must be an SFTConfig, with max_grad_norm=0"
            )
        for name, right, must_be in (
            ("packing", not args.packing, "False: a packed row has parts of several examples"),
            ("padding_free", not args.padding_free, "False: examples would be joined to one row"),
            ("loss_type", args.loss_type == "nll", "'nll'"),
            ("activation_offloading", not args.activation_offloading, "False"),
        ):
            if not right:
                raise ValueError(f"{name} is {getattr(args, name)!r} but must be {must_be}")
        super().__init__(model, args, *more, **kwargs)

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """The loss: of training examples without the metrics that `SFTTrainer` records and logs."""
        compute = SFTTrainer.compute_loss if self._evaluates else Trainer.compute_loss
        return compute(self, model, inputs, return_outputs, num_items_in_batch)

    def prediction_step(self, *args: Any, **kwargs: Any) -> Any:
        """A step of the evaluation."""
        self._evaluates = True
        try:
            return super().prediction_step(*args, **kwargs)
        finally:
            self._evaluates = False
