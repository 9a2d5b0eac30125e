"""Lightning with a plan: a callback that adds the noise and keeps its state in Lightning's checkpoints.

    class Classifier(lightning.LightningModule):
        def training_step(self, batch, _):
            return clipped_sum_(self.net, cross_entropy, *batch, plan.clip_norm)

    private = PrivateTraining(plan, key)
    Trainer(max_epochs=3, callbacks=[private]).fit(Classifier(), private.loader(data))

`PrivateTraining.with_epsilon` makes the plan, and `private.backward` takes any loss of each example.

Lightning runs the training step in a closure within the optimizer's step. The noise is added at the end of
that closure, before the optimizer reads a gradient.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.plugins import MixedPrecision
from lightning.pytorch.plugins.io import AsyncCheckpointIO, CheckpointIO
from lightning.pytorch.strategies import DDPStrategy, ModelParallelStrategy
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from . import Key, Plan
from ._groups import Asked
from ._relied import relied
from ._sealed import check_sealed, seal
from .torch.checkpoint import check_arguments, load_noise, noise_state
from .torch.clipping import Norms, clip
from .torch.data.epochs import EpochSampler
from .torch.data.loaders import planned_loader
from .torch.distributed.processes import run_on_all_ranks
from .torch.noise import CorrelatedNoise
from .torch.origin import options_of
from .torch.planning import plan_for
from .torch.private import work_of


class PrivateTraining(Callback):
    """A callback that makes training private: noise before each step, the plan's batches, and both in
    Lightning's checkpoints.

    The training step calls `clipped_sum_` or `backward` and returns its result, which has no gradient; with
    manual optimization it takes the optimizer's step itself. A callback serves one model and one run.

    Checkpoints hold the noise's state: they are **as secret as the key** until the plan's last step is
    made, and have mode 0600. Publish `model.state_dict()`.

    Args:
        plan: The plan of the run.
        key: The secret of the run, dropped when training begins. With several processes the same in each,
            or rank 0's. `None` draws one.
        run: Name of the run; each run needs a new pair of key and name.
        threads: Number of threads that make noise.
        reuse_noise_unprotected: As in `antinoise.torch.CorrelatedNoise`.
    """

    def __init__(
        self,
        plan: Plan,
        key: Key | None = None,
        *,
        run: str | None = None,
        threads: int | None = None,
        reuse_noise_unprotected: bool = False,
    ) -> None:
        self._plan, self._key = plan, key
        self._how: dict[str, Any] = dict(
            run=run, threads=threads, reuse_noise_unprotected=reuse_noise_unprotected
        )
        self._sampler = EpochSampler(plan, lambda: self.noise.discard_sums())
        self._noise: CorrelatedNoise | None = None
        self._module: LightningModule | None = None
        self._state: dict[str, Any] | None = None
        # The optimizer's options as the module set them.
        self._arguments: dict[str, str] = {}

    @classmethod
    def with_epsilon(
        cls,
        module: LightningModule,
        dataset: Dataset[Any],
        *,
        epsilon: float,
        delta: float,
        batch_size: int,
        epochs: int | None = None,
        steps: int | None = None,
        clip_norm: float = 1.0,
        setting: str = "cyclic",
        key: Key | None = None,
        **how: Any,
    ) -> PrivateTraining:
        """Plans the training of `module` on `dataset` and returns its callback.

        Args:
            module: The module; its trained parameters exist already.
            dataset: The examples, of which the number is taken.
            epsilon, delta: The privacy to reach.
            batch_size: (Expected) number of examples in a batch, over all processes.
            epochs, steps: The length of the training: one of them.
            clip_norm: Bound on the L2 norm of each example's gradient.
            setting: How batches are formed, as in `antinoise.plan`.
            key: As in `PrivateTraining`.
            how: Further arguments of `PrivateTraining`.

        Raises:
            ValueError: The data set has no length, the module no trainable parameters, or no plan fits.
        """
        asked = dict(epsilon=epsilon, delta=delta, batch_size=batch_size, epochs=epochs, steps=steps)
        return cls(plan_for(module, dataset, clip_norm=clip_norm, setting=setting, **asked), key, **how)

    @property
    def plan(self) -> Plan:
        """The plan of the run."""
        return self._plan

    def backward(
        self,
        losses: Callable[..., Tensor],
        *batch: Any,
        microbatch_size: int | None = None,
        norms: Norms = "auto",
        groups: Asked = None,
        exact: bool = False,
    ) -> Tensor:
        """Clips the gradient of each example's loss and leaves their sum for the optimizer's step. The
        training step returns its result.

            return private.backward(lambda x, y: cross_entropy(self(x), y, reduction="none"), x, y)

        Args:
            losses, batch: As in `antinoise.torch.PrivateRun.backward`.
            microbatch_size, norms, groups: As in `antinoise.torch.clipped_sum_`.
            exact: Round each clipped gradient to the plan's grid and sum integers.

        Returns:
            The mean loss, a scalar tensor without gradient. **It is not private.**

        Raises:
            RuntimeError: Training has not begun.
            ValueError: As in `antinoise.torch.PrivateRun.backward`.
        """
        if self._module is None:
            raise RuntimeError(
                "There is no noise yet: backward() is called in the training step of a module."
            )
        spacing = self._plan.grid_spacing if exact else None
        how: dict[str, Any] = dict(microbatch_size=microbatch_size, norms=norms, groups=groups)
        return clip(
            self._module,
            work_of(losses, batch),
            self._plan.clip_norm,
            grid_spacing=spacing,
            **how,
            stacklevel=3,
        )

    @property
    def noise(self) -> CorrelatedNoise:
        """The run's noise. Available once training has begun."""
        if self._noise is None:
            raise RuntimeError("There is no noise yet: it is made for a module, when training begins.")
        return self._noise

    @property
    def step(self) -> int:
        """The next step, counted from 0."""
        return 0 if self._noise is None else self._noise.step

    def loader(self, dataset: Dataset[Any], **how: Any) -> DataLoader[Any]:
        """Returns a loader of the plan's batches, for `Trainer.fit`; one pass is one epoch.

        Args:
            dataset: The plan's examples, always in the same order.
            how: Further arguments of `DataLoader`, such as `num_workers`.
        """
        return planned_loader(
            DataLoader(dataset, **({"batch_size": self._plan.batch_size} | how)), self._plan, self._sampler
        )

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Makes checkpoints readable by their owner only, and refuses a trainer that would distribute
        batches over processes a second time.
        """
        # Lightning keeps the option in a private object.
        connector = relied("lightning", trainer, "_accelerator_connector")
        if (
            stage == "fit"
            and trainer.world_size > 1
            and relied("lightning", connector, "use_distributed_sampler")
        ):
            must_be = "False where processes train together: each has its share of a batch"
            raise ValueError(f"use_distributed_sampler of the trainer is True but must be {must_be}")
        if stage == "fit" and not isinstance(trainer.strategy.checkpoint_io, SecretCheckpoints):
            trainer.strategy.checkpoint_io = SecretCheckpoints(trainer.strategy.checkpoint_io)

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Makes the noise, or resumes it from a checkpoint."""
        run_on_all_ranks(lambda: self._refuse(trainer, pl_module))
        state, self._state = self._state, None
        optimizer = trainer.optimizers[0]
        if self._noise is None:
            self._arguments = options_of(optimizer)
            given = {} if state is None else state
            run_on_all_ranks(
                lambda: check_arguments(given, self._arguments, self._how["reuse_noise_unprotected"])
            )
            self._noise = CorrelatedNoise(pl_module, self._plan, self._key, **self._how)
            self._noise.use_sampler(self._sampler)
            # Schedules by epoch change the rates after an epoch's checkpoint is saved, so that rates at the
            # next step may differ from the saved ones. `check_arguments` has compared the module's own.
            self._noise.compare_rates = False
            self._module = pl_module
            del self._key
            if state is not None:
                load_noise(self._noise, state)
        noise = self._noise
        run_on_all_ranks(lambda: noise.check_optimizer(optimizer))
        noise.hook(optimizer, self._before_step)
        # The training step already took gradients, example by example.
        pl_module.backward = _no_backward  # type: ignore[method-assign]

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Removes the noise from the optimizer."""
        if self._noise is not None and "backward" in vars(pl_module):
            self._noise.detach()
            del pl_module.backward

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Refuses a loader that does not draw the plan's batches."""
        run_on_all_ranks(lambda: self._check_loader(trainer.train_dataloader))

    def _check_loader(self, loader: Any) -> None:
        if (found := getattr(loader, "batch_sampler", None)) is not self._sampler:
            raise ValueError(
                f"batch sampler of the loader is {type(found).__name__} but must be the plan's:"
                " loader(dataset) makes one"
            )

    def state_dict(self) -> dict[str, Any]:
        """The noise's state for a checkpoint, as secret as the key. After the plan's last step it holds no
        noise.
        """
        if self._noise is None:
            return {}
        state = noise_state(self._noise, self._plan)
        return state if "finished" in state else state | {"arguments": self._arguments}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Stores a checkpoint's state, from which the noise resumes when training begins."""
        self._state = state_dict

    def _refuse(self, trainer: Trainer, pl_module: LightningModule) -> None:
        strategy, alone, size = trainer.strategy, trainer.world_size == 1, self._plan.batch_size
        known = isinstance(strategy, (DDPStrategy, ModelParallelStrategy))
        # Lightning would write only one process's part of the noise, into a file that others may read.
        sharded = isinstance(strategy, ModelParallelStrategy)
        weights_only = all(
            getattr(callback, "save_weights_only", False) for callback in trainer.checkpoint_callbacks
        )
        in_shards = (
            "False, or weights alone: torch.distributed.checkpoint saves {'noise': private.noise} of sharded"
            " parameters"
        )
        scales = isinstance(trainer.precision_plugin, MixedPrecision)
        scaler = relied("lightning", trainer.precision_plugin, "scaler") if scales else None
        noise_would_be_clipped = (
            "None: it would clip the noise, which could not cancel itself then; the plan clips"
        )
        whole = "1: a batch of the plan is one step, and clipped_sum_ takes it in portions"
        for name, found, right, must_be in (
            (
                "strategy of the trainer",
                type(strategy).__name__,
                alone or known,
                "DDPStrategy or ModelParallelStrategy, or one process",
            ),
            ("enable_checkpointing of the trainer", True, not sharded or weights_only, in_shards),
            ("batch_size of the plan", size, size >= trainer.world_size, "at least the number of processes"),
            (
                "gradient_clip_val of the trainer",
                trainer.gradient_clip_val,
                not trainer.gradient_clip_val,
                noise_would_be_clipped,
            ),
            (
                "accumulate_grad_batches of the trainer",
                trainer.accumulate_grad_batches,
                trainer.accumulate_grad_batches == 1,
                whole,
            ),
            (
                "precision of the trainer",
                trainer.precision,
                scaler is None,
                "one that does not scale gradients (32, bf16-mixed)",
            ),
            ("number of optimizers", len(trainer.optimizers), len(trainer.optimizers) == 1, "1"),
            ("module", "another", self._module in (None, pl_module), "the one that the noise was made for"),
            (
                "checkpoint",
                "one without noise",
                trainer.ckpt_path is None or self._state is not None,
                "a whole one, not of weights only",
            ),
            (
                "checkpoint",
                "given",
                self._noise is None or self._state is None,
                "left out: a callback serves one run, make a new one",
            ),
        ):
            if not right:
                raise ValueError(f"{name} is {found} but must be {must_be}")

    def _before_step(
        self, optimizer: torch.optim.Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        closure = kwargs.get("closure") or (args[1] if len(args) > 1 else None)
        if closure is None:
            self.noise.apply_(optimizer)
            return None

        made = self.step

        def with_noise() -> Any:
            if self.step != made:
                raise RuntimeError(
                    "The optimizer calls its closure again, but a step of it is one step of the plan: use an"
                    " optimizer that calls it once (not LBFGS)."
                )
            loss = closure()
            self.noise.apply_(optimizer)
            return loss

        return args[:1], {name: value for name, value in kwargs.items() if name != "closure"} | {
            "closure": with_noise
        }


def _no_backward(loss: Tensor, *args: Any, **kwargs: Any) -> None:
    if loss.requires_grad:
        raise RuntimeError(
            "The loss of the training step has gradients, so that Lightning would run another backward pass:"
            " return what clipped_sum_ or backward() returns."
        )


class SecretCheckpoints(CheckpointIO):
    """Wraps a `CheckpointIO` so that files are readable by their owner only and end in a digest of their
    content.
    """

    def __init__(self, of: CheckpointIO) -> None:
        if isinstance(of, AsyncCheckpointIO):
            raise ValueError(
                "plugin AsyncCheckpointIO is given but must be left out: everyone could read its files"
            )
        self._of = of

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None
    ) -> None:
        """Saves with mode 0600, completely or not at all."""
        if "://" in os.fspath(path):
            raise ValueError(
                f"path of the checkpoint is {path} but must be that of a local file: it is as secret as"
                " the key"
            )
        written = f"{os.fspath(path)}.part"
        before = os.umask(0o077)
        try:
            self._of.save_checkpoint(checkpoint, written, storage_options)
            with open(written, "r+b") as file:
                seal(file)
            os.replace(written, path)
        finally:
            os.umask(before)
            # Left over if the file could not be written completely.
            Path(written).unlink(missing_ok=True)

    def load_checkpoint(self, path: str | Path, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Loads with the wrapped `CheckpointIO`; RuntimeError if the file was altered."""
        check_sealed(path)
        return self._of.load_checkpoint(path, *args, **kwargs)

    def remove_checkpoint(self, *args: Any, **kwargs: Any) -> None:
        """Calls the wrapped `CheckpointIO`."""
        self._of.remove_checkpoint(*args, **kwargs)

    def teardown(self) -> None:
        """Calls the wrapped `CheckpointIO`."""
        self._of.teardown()
