"""The Trainer of Hugging Face with a plan: private training and fine-tuning of transformers, LoRA included.

    trainer = PrivateTrainer(model=model, args=args, train_dataset=data, plan=plan, key=key)
    trainer.train()

Noise is made for the trained parameters only.
"""

from __future__ import annotations

import copy
import os
from typing import Any, cast

import torch
from accelerate.data_loader import BatchSamplerShard, prepare_data_loader  # type: ignore[import-untyped]
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from transformers import Trainer, TrainingArguments
from transformers.trainer_utils import HubStrategy
from transformers.training_args import ParallelMode

from . import Key, Plan
from ._groups import Asked
from ._hf_losses import Losses
from ._relied import relied
from .torch.checkpoint import check_arguments, load_noise, load_private, noise_state, save_private
from .torch.clipping import PORTION, Norms, Work, clip, code_of
from .torch.data.epochs import EpochSampler
from .torch.data.loaders import HandingOut, planned_loader
from .torch.distributed.processes import run_on_all_ranks
from .torch.noise import CorrelatedNoise
from .torch.planning import plan_for

NOISE_NAME = "noise.pt"
# Arguments that determine the updates. Without a check, a checkpoint's optimizer and schedule would silently
# replace other arguments.
_UPDATES = (
    "learning_rate",
    "weight_decay",
    "optim",
    "optim_args",
    "adam_beta1",
    "adam_beta2",
    "adam_epsilon",
    "lr_scheduler_type",
)

# Methods of the Trainer that are called or overridden here.
_OVERRIDDEN = (
    *(
        "get_train_dataloader",
        "create_optimizer",
        "create_scheduler",
        "training_step",
        "compute_loss",
        "compute_loss_context_manager",
    ),
    *("log", "_prepare_inputs", "_save_optimizer_and_scheduler", "_load_optimizer_and_scheduler"),
)


def _batch_in_portions(args: TrainingArguments | None) -> tuple[TrainingArguments | None, int]:
    """A copy of the arguments that makes one batch of the batches to be accumulated, and the number of its
    examples in a portion.
    """
    if args is None or args.gradient_accumulation_steps == 1:
        return args, PORTION
    whole, portion = copy.copy(args), args.per_device_train_batch_size
    whole.per_device_train_batch_size = portion * args.gradient_accumulation_steps
    whole.gradient_accumulation_steps = 1
    return whole, portion


class PrivateTrainer(Trainer):
    """`transformers.Trainer` that trains privately: noise, clip norm and batches come from a plan.

    An example is one row of the collator's output; its loss is `compute_loss` of that row alone. Several
    processes (`torchrun`, `accelerate launch`) each train a replica with a share of every batch. A trainer
    serves one run.

    A checkpoint holds `noise.pt`, which is **as secret as the key** until the plan's last step is made; its
    mode is 0600. Publish the model that `save_model` writes.

    Args:
        model, args, more, kwargs: As in `transformers.Trainer`, with `max_grad_norm=0` in its arguments. A
            batch is `per_device_train_batch_size` times `gradient_accumulation_steps` examples of each
            process: what would be accumulated is drawn as one batch, and clipped in portions of
            `per_device_train_batch_size`. `trainer.args` are a copy with the numbers of that batch.
        plan: The plan of the run. In its place `epsilon`, `delta` and `clip_norm` make one from the training
            arguments: their batch over all processes, and their epochs or `max_steps`.
        key: The secret of the run; with several processes the same in each, or rank 0's. `None` draws one.
        run: Name of the run; each run needs a new pair of key and name.
        threads: Number of threads that make noise.
        norms: `"auto"` finds the lengths of gradients without the gradients where model and loss allow it
            (`clipped_sum_`), for all examples of a portion together; else it warns once and takes examples
            one by one. `"ghost"` refuses instead. `"per_example"` computes per-example gradients.
        microbatch_size: Number of examples in one forward and backward pass. For ghost norms the
            default is equal portions of at most 64 examples, or of `per_device_train_batch_size` if batches
            are accumulated. For per-example gradients it is 1, which any model allows; larger numbers
            need a model without data-dependent control flow (`torch.func.vmap`).
        groups: Groups of parameters that are clipped separately, as in `clipped_sum_`.
        exact: Round each clipped gradient to the plan's grid and sum integers, as in `clipped_sum_`.
        log_private_losses: Log and return losses of private examples. They are **not private**.
        reuse_noise_unprotected: As in `CorrelatedNoise`.

    Raises:
        ValueError: Training arguments do not fit the plan.
    """

    def __init__(
        self,
        model: Any = None,
        args: TrainingArguments | None = None,
        *more: Any,
        plan: Plan | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        clip_norm: float = 1.0,
        key: Key | None = None,
        run: str | None = None,
        threads: int | None = None,
        norms: Norms = "auto",
        microbatch_size: int | None = None,
        groups: Asked = None,
        exact: bool = False,
        log_private_losses: bool = False,
        reuse_noise_unprotected: bool = False,
        **kwargs: Any,
    ) -> None:
        for name in _OVERRIDDEN:
            relied("transformers", Trainer, name)
        whole, self._portion = _batch_in_portions(args)
        super().__init__(model, whole, *more, **kwargs)
        self._plan, self._key = self._planned_for(plan, epsilon, delta, clip_norm), key
        self._how: dict[str, Any] = dict(
            run=run, threads=threads, reuse_noise_unprotected=reuse_noise_unprotected
        )
        self._microbatch_size, self._groups, self._report = microbatch_size, groups, log_private_losses
        self._norms = norms
        self._losses = Losses(self, self._loss_of_one)
        self._grid_spacing = self._plan.grid_spacing if exact else None
        self._noise: CorrelatedNoise | None = None
        self._sampler = EpochSampler(self._plan, lambda: self.noise.discard_sums())
        run_on_all_ranks(self._refuse)
        # The plan's batches already begin with the noise's next step: skipping would lose batches.
        self.args.ignore_data_skip = True

    def _planned_for(
        self, plan: Plan | None, epsilon: float | None, delta: float | None, clip_norm: float
    ) -> Plan:
        if plan is not None:
            if (epsilon, delta, clip_norm) != (None, None, 1.0):
                raise ValueError(
                    "epsilon, delta or clip_norm is given but must be left out where plan is given"
                )
            return plan
        args, model, data = self.args, self.model, self.train_dataset
        if model is None or data is None:
            name = "model" if model is None else "train_dataset"
            raise ValueError(f"{name} is absent but must be given, for a plan to be made, unless a plan is")
        epochs, steps = args.num_train_epochs, args.max_steps if args.max_steps > 0 else None
        if steps is None and epochs != int(epochs):
            raise ValueError(
                f"num_train_epochs is {epochs} but must be a whole number, for a plan to be made"
            )
        batch_size = args.per_device_train_batch_size * args.world_size
        length = dict(epochs=int(epochs) if steps is None else None, steps=steps)
        how = dict(epsilon=epsilon, delta=delta, clip_norm=clip_norm)
        return plan_for(model, data, batch_size=batch_size, **length, **how)

    @property
    def plan(self) -> Plan:
        """The plan of the run."""
        return self._plan

    def _refuse(self) -> None:
        alone = self.args.world_size == 1
        args, whole = (
            self.args,
            "1 in accelerator_config: the argument of TrainingArguments divides the plan's batch",
        )
        published = args.push_to_hub and args.hub_strategy in (
            HubStrategy.CHECKPOINT,
            HubStrategy.ALL_CHECKPOINTS,
        )
        for name, found, right, must_be in (
            ("max_grad_norm", args.max_grad_norm, not args.max_grad_norm, "0: the plan clips"),
            (
                "gradient_accumulation_steps",
                args.gradient_accumulation_steps,
                args.gradient_accumulation_steps == 1,
                whole,
            ),
            ("fp16", args.fp16, not args.fp16, "False: gradients would be scaled (bf16 is not)"),
            (
                "parallel_mode",
                args.parallel_mode,
                alone or args.parallel_mode == ParallelMode.DISTRIBUTED,
                "replicas, or one process",
            ),
            (
                "batch_size of the plan",
                self._plan.batch_size,
                self._plan.batch_size >= args.world_size,
                "at least the number of processes",
            ),
            ("number of devices", args.n_gpu, args.n_gpu <= 1, "1: CUDA_VISIBLE_DEVICES chooses it"),
            ("deepspeed or fsdp", "on", not self.is_deepspeed_enabled and not self.is_fsdp_enabled, "off"),
            (
                "auto_find_batch_size",
                args.auto_find_batch_size,
                not args.auto_find_batch_size,
                "False: the plan has the batch size",
            ),
            (
                "hub_strategy",
                args.hub_strategy,
                not published,
                "end or every_save: a checkpoint is as secret as the key",
            ),
            (
                "model_init",
                "given",
                self.model_init is None,
                "left out: a second model needs a run of its own",
            ),
            (
                "microbatch_size",
                self._microbatch_size,
                self._microbatch_size is None or self._microbatch_size >= 1,
                "at least 1",
            ),
            (
                "norms",
                repr(self._norms),
                self._norms in ("auto", "ghost", "per_example"),
                "'auto', 'ghost' or 'per_example'",
            ),
            (
                "gradient_checkpointing",
                args.gradient_checkpointing,
                not args.gradient_checkpointing
                or self._norms == "per_example"
                or self._grid_spacing is not None,
                "False, unless norms are 'per_example': ghost norms free what a layer saw themselves",
            ),
        ):
            if not right:
                raise ValueError(f"{name} is {found} but must be {must_be}")

    @property
    def noise(self) -> CorrelatedNoise:
        """The run's noise; `noise.step` is the next step. Available once the optimizer is made."""
        if self._noise is None:
            raise RuntimeError("There is no noise yet: it is made with the optimizer, when training begins.")
        return self._noise

    def get_train_dataloader(self) -> DataLoader[Any]:
        """A loader of the plan's batches, or of this process's share of them; one pass is one epoch."""
        return run_on_all_ranks(self._planned)

    def _planned(self) -> DataLoader[Any]:
        given: DataLoader[Any] = super().get_train_dataloader()
        batches: Any = given.batch_sampler
        if isinstance(batches, BatchSamplerShard):
            # Accelerate would distribute whole batches over processes, which moves them to other steps.
            batches = batches.batch_sampler
        loader = planned_loader(
            given, self._plan, self._sampler, batches=batches, shares=self.args.world_size
        )
        found = prepare_data_loader(
            loader, self.accelerator.device, num_processes=1, process_index=0, put_on_device=True
        )
        # Accelerate's loader prefetches one batch: only the outermost loader knows when a batch is used.
        return cast(DataLoader[Any], HandingOut(found))

    def create_optimizer(self, model: nn.Module | None = None) -> torch.optim.Optimizer:
        """`Trainer.create_optimizer`, with noise before each step."""
        optimizer: torch.optim.Optimizer = super().create_optimizer(model)
        if self._noise is None:
            trained: Any = self.model
            noise = CorrelatedNoise(trained, self._plan, self._key, **self._how)
            self._noise = noise.attach(optimizer, self._sampler)
            del self._key
        return optimizer

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
        """`Trainer.create_scheduler`, for at most the plan's number of steps."""
        if num_training_steps > self._plan.steps:
            raise ValueError(
                f"number of steps is {num_training_steps} but must be at most the plan's, {self._plan.steps}"
            )
        return super().create_scheduler(num_training_steps, optimizer)

    def training_step(
        self, model: nn.Module, inputs: dict[str, Any], num_items_in_batch: Any = None
    ) -> Tensor:
        """Clips the gradients of a batch and leaves their sum for the noise; returns the loss to log."""
        if self.state.global_step != self.noise.step:
            raise RuntimeError(
                f"the trainer is at step {self.state.global_step} and the noise at step {self.noise.step}:"
                " the noise was not restored with the checkpoint, and would be added to other gradients a"
                " second time. Resume with a new PrivateTrainer, from a checkpoint of its own"
            )
        model.train()
        if callable(train := getattr(self.optimizer, "train", None)):
            train()
        # Each replica sums its own examples.
        own = model.module if isinstance(model, DistributedDataParallel) else model
        batch = dict(self._prepare_inputs(inputs))
        losses, together = self._losses, self._norms != "per_example" and self._grid_spacing is None
        together = together and losses.known(own, batch, self._norms == "ghost")
        work = Work(
            batch,
            lambda one: self._loss_of_one(own, one),
            (lambda some: (losses.together(own, some), [])) if together else None,
            code_of(self.compute_loss),
            portion_of_each=1,
            portion=self._portion,
        )
        loss = clip(
            own,
            lambda: work,
            self._plan.clip_norm,
            self._microbatch_size,
            self._norms,
            self._groups,
            self._grid_spacing,
            stacklevel=3,
        )
        return loss.to(self.args.device) if self._report else torch.zeros((), device=self.args.device)

    def _loss_of_one(self, model: nn.Module, example: dict[str, Any]) -> Tensor:
        with self.compute_loss_context_manager():
            loss: Any = self.compute_loss(model, example)
        return torch.as_tensor(loss)

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """`Trainer.log` without training losses, which are not private, and without gradient norms, which
        are not available.
        """
        hidden = {"grad_norm"} if self._report else {"grad_norm", "loss", "train_loss"}
        super().log({name: value for name, value in logs.items() if name not in hidden}, start_time)

    def _save_optimizer_and_scheduler(self, output_dir: str) -> None:
        super()._save_optimizer_and_scheduler(output_dir)
        state = noise_state(self.noise, self._plan)
        if "finished" not in state:
            state["arguments"] = self._arguments()
        if self.args.should_save:
            save_private(state, os.path.join(output_dir, NOISE_NAME))

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        if checkpoint is not None:
            load_noise(self.noise, run_on_all_ranks(lambda: self._state_in(checkpoint)))
        super()._load_optimizer_and_scheduler(checkpoint)

    def _state_in(self, checkpoint: str) -> dict[str, Any]:
        path = os.path.join(checkpoint, NOISE_NAME)
        if not os.path.isfile(path):
            raise ValueError(
                f"checkpoint is one without {NOISE_NAME} but must be one that a PrivateTrainer saved"
            )
        if self.noise.step > 0:
            raise RuntimeError(
                f"This trainer is at step {self.noise.step} and serves one run: resume the checkpoint with a"
                " new PrivateTrainer."
            )
        state: dict[str, Any] = load_private(path)
        check_arguments(state, self._arguments(), self._how["reuse_noise_unprotected"])
        return state

    def _arguments(self) -> dict[str, str]:
        return {name: str(getattr(self.args, name, None)) for name in _UPDATES}
