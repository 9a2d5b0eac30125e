"""Opacus with a plan: its per-example gradients and training loops, with the plan's noise, clip norm and
batches.

    engine = PrivacyEngine(plan, key)
    model, optimizer, loader = engine.make_private(module=model, optimizer=optimizer, data_loader=loader)
    for x, y in loader:
        ...

Per-example gradients come from Opacus. Clipping, sums and noise come from `antinoise.torch`, whose hook on
the wrapped optimizer runs immediately before its step.
"""

from __future__ import annotations

import os
import warnings
from typing import Any

import opacus  # type: ignore[import-untyped]
import torch
from opacus.distributed import DifferentiallyPrivateDistributedDataParallel as DPDDP  # type: ignore[import-untyped]
from opacus.optimizers import DPOptimizer  # type: ignore[import-untyped]
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader

from . import Key, Plan
from ._groups import Asked
from ._opacus import ASSUMED, ASSUMED_OF_GHOSTS, GHOSTS, MODES, PlanAccountant, Steps
from ._opacus_sharded import check_sharded, refuse_sharded
from ._relied import relied
from .torch.checkpoint import load_noise, load_private, noise_state, save_private
from .torch.data.epochs import EpochSampler
from .torch.data.loaders import check_sampler, number_of_examples, planned_loader
from .torch.distributed.processes import rank_and_world, run_on_all_ranks
from .torch.noise import CorrelatedNoise
from .torch.planning import plan_for, workload_of


def _check_processes(module: nn.Module, mode: str) -> None:
    """Refuses models and modes that mix examples' gradients, or whose sum over processes is not known."""
    _, count = rank_and_world()
    if mode == "ghost_fsdp":
        check_sharded(module)
    elif (count > 1) != isinstance(module, DPDDP) or isinstance(module, DDP):
        wanted = "DifferentiallyPrivateDistributedDataParallel" if count > 1 else "of one process"
        raise ValueError(f"module is a {type(module).__name__} in {count} processes but must be {wanted}")


class PrivacyEngine(opacus.PrivacyEngine):  # type: ignore[misc]
    """`opacus.PrivacyEngine` whose noise, clip norm and batches come from a plan. It makes one model
    private.

    Args:
        plan: The plan of the run. `None`: `make_private_with_epsilon` makes it.
        key: The secret of the run, dropped after `make_private`. With several processes the same in each,
            or rank 0's. `None` draws one.
        run: Name of the run; each run needs a new pair of key and name.
        threads: Number of threads that make noise.
        reuse_noise_unprotected: As in `antinoise.torch.CorrelatedNoise`.
    """

    def __init__(
        self,
        plan: Plan | None = None,
        key: Key | None = None,
        *,
        run: str | None = None,
        threads: int | None = None,
        reuse_noise_unprotected: bool = False,
    ) -> None:
        with warnings.catch_warnings():
            # Opacus warns about its random generator, which is never used here.
            warnings.simplefilter("ignore")
            super().__init__(accountant="rdp")
        self._plan, self._key = plan, key
        self._how: dict[str, Any] = dict(
            run=run, threads=threads, reuse_noise_unprotected=reuse_noise_unprotected
        )
        self._noise: CorrelatedNoise | None = None
        self._steps: Steps | None = None
        self._assumed = ""
        self.accountant = PlanAccountant(lambda: self.plan, lambda: self.noise.step)

    @property
    def plan(self) -> Plan:
        """The plan of the run."""
        if self._plan is None:
            raise RuntimeError(
                "this engine has no plan: call make_private_with_epsilon(), or give PrivacyEngine a plan"
            )
        return self._plan

    @property
    def noise(self) -> CorrelatedNoise:
        """The run's noise; `noise.step` is the next step."""
        return self._made()[0]

    @property
    def statement(self) -> str:
        """The plan's privacy statement and the assumption about Opacus's gradients."""
        self._made()
        return self.plan.statement + self._assumed

    def _made(self) -> tuple[CorrelatedNoise, Steps]:
        if self._noise is None or self._steps is None:
            raise RuntimeError("There is no private model yet: call make_private() first.")
        return self._noise, self._steps

    def make_private(
        self,
        *,
        module: nn.Module,
        optimizer: torch.optim.Optimizer,
        criterion: Any = None,
        data_loader: DataLoader[Any],
        noise_multiplier: float | None = None,
        max_grad_norm: float | None = None,
        batch_first: bool = True,
        loss_reduction: str = "mean",
        poisson_sampling: bool | None = None,
        clipping: str = "flat",
        noise_generator: None = None,
        grad_sample_mode: str = "hooks",
        wrap_model: bool = True,
        padded: bool = False,
    ) -> Any:
        """`opacus.PrivacyEngine.make_private` with the plan's noise, clip norm and batches.

        Args:
            module, optimizer, criterion, batch_first, loss_reduction, grad_sample_mode, wrap_model: As in
                Opacus.
            data_loader: A loader with the plan's batch size. Its dataset, workers and `collate_fn` are
                kept. One pass is an epoch of the plan's batches and begins with the next step.
            noise_multiplier, max_grad_norm, poisson_sampling: Leave them out; other values than the plan's
                are refused.
            clipping: `"flat"`, or `"per_layer"`: each of k layers is clipped to clip_norm / sqrt(k).
            noise_generator: Must be None: noise comes from the key.
            padded: Fill every batch up to the plan's `max_batch_size` with rows of zeros, so that the model
                sees one shape. Their gradients are left out of sums: rows must keep their order, and a batch
                may come in portions.

        Returns:
            Module, optimizer and loader; for `grad_sample_mode` `"ghost"` or `"ghost_fsdp"` the criterion
            comes before the loader.

        Raises:
            ValueError: An argument contradicts the plan, or a model was made private before.
        """
        self._refuse(
            noise_multiplier, max_grad_norm, poisson_sampling, clipping, noise_generator, grad_sample_mode
        )
        if padded and grad_sample_mode == "ghost_fsdp":
            raise ValueError(
                "padded is True but must be left out where grad_sample_mode is ghost_fsdp, whose lengths are"
                " those of all processes"
            )
        run_on_all_ranks(lambda: _check_processes(module, grad_sample_mode))
        sampler = EpochSampler(self.plan, lambda: self._made()[1].start(), padded=padded)
        made = super().make_private(
            module=module,
            optimizer=optimizer,
            criterion=criterion if criterion is not None else nn.CrossEntropyLoss(reduction=loss_reduction),
            data_loader=planned_loader(data_loader, self.plan, sampler, padded=padded),
            noise_multiplier=self.plan.noise_multiplier,
            max_grad_norm=self.plan.clip_norm,
            batch_first=batch_first,
            loss_reduction=loss_reduction,
            poisson_sampling=False,
            grad_sample_mode=grad_sample_mode,
            wrap_model=wrap_model,
        )
        hooks, private = made[:2]
        try:
            inner = relied("opacus", hooks, "_module")
            inner = inner.module if isinstance(inner, DPDDP) else inner
            noise = CorrelatedNoise(inner, self.plan, self._key, **self._how)
            groups: Asked = "layer" if clipping == "per_layer" else None
            self._steps = Steps(self.plan, private, hooks, inner, noise, sampler, grad_sample_mode, groups)
        except (ValueError, RuntimeError):
            hooks.cleanup()
            raise
        del self._key
        self._noise = noise
        assumed = ASSUMED_OF_GHOSTS if grad_sample_mode in GHOSTS else ASSUMED
        self._assumed = assumed.format(
            mode=grad_sample_mode, reduction=loss_reduction, clip=self.plan.clip_norm
        )
        if grad_sample_mode in GHOSTS:
            warnings.warn(
                "ghost clipping sums in single precision, for which no bound is proved: see engine.statement",
                stacklevel=2,
            )
        return made

    def _refuse(
        self,
        noise_multiplier: float | None,
        max_grad_norm: float | None,
        poisson_sampling: bool | None,
        clipping: str,
        noise_generator: None,
        mode: str,
    ) -> None:
        poisson = self.plan.sampler["kind"] in ("poisson", "truncated-poisson")
        for name, found, wanted in (
            ("noise_multiplier", noise_multiplier, self.plan.noise_multiplier),
            ("max_grad_norm", max_grad_norm, self.plan.clip_norm),
            ("poisson_sampling", poisson_sampling, poisson),
        ):
            if found is not None and found != wanted:
                raise ValueError(f"{name} is {found} but must be left out, or {wanted} as the plan says")
        if self._noise is not None:
            raise RuntimeError(
                "This engine has made a model private already: another model needs a plan, and an engine, of"
                " its own."
            )
        if clipping not in ("flat", "per_layer"):
            raise ValueError(
                f"clipping is {clipping} but must be flat or per_layer: a plan's clip norm does not change"
            )
        if clipping == "per_layer" and mode in GHOSTS:
            raise ValueError(
                f"clipping is per_layer but must be flat where grad_sample_mode is {mode}: Opacus clips there"
            )
        if noise_generator is not None:
            raise ValueError("noise_generator is given but must be left out: noise comes from the key")
        if mode not in MODES:
            raise ValueError(f"grad_sample_mode is {mode} but must be one of {', '.join(MODES)}")

    def make_private_with_epsilon(
        self,
        *,
        module: nn.Module,
        optimizer: torch.optim.Optimizer,
        criterion: Any = None,
        data_loader: DataLoader[Any],
        target_epsilon: float,
        target_delta: float,
        epochs: int,
        max_grad_norm: float,
        poisson_sampling: bool = True,
        **how: Any,
    ) -> Any:
        """`opacus.PrivacyEngine.make_private_with_epsilon`: plans the run, then makes it private as
        `make_private` does. For an engine that was made without a plan. With `torch.optim.SGD` the mechanism
        is designed for the noise that the last model remembers.

        Args:
            module, optimizer, criterion, data_loader: As in `make_private`.
            target_epsilon, target_delta: The privacy to reach.
            epochs: Number of passes over the data.
            max_grad_norm: The clip norm.
            poisson_sampling: Compare sampled batches with shuffled ones and take the more accurate. `False`:
                shuffled once, in cyclic order.
            how: Further arguments of `make_private`.

        Returns:
            What `make_private` returns.
        """
        if self._plan is not None:
            raise RuntimeError(
                "this engine has a plan, which states epsilon: call make_private(), or make the engine"
                " without a plan"
            )
        batches: Any = data_loader.batch_sampler

        def check() -> None:
            number_of_examples(data_loader.dataset)
            check_sampler(batches)

        run_on_all_ranks(check)
        self._plan = plan_for(
            module,
            data_loader.dataset,
            batch_size=batches.batch_size,
            epsilon=target_epsilon,
            delta=target_delta,
            epochs=epochs,
            clip_norm=max_grad_norm,
            setting="poisson" if poisson_sampling else "cyclic",
            workload=workload_of(optimizer),
        )
        try:
            return self.make_private(
                module=module, optimizer=optimizer, criterion=criterion, data_loader=data_loader, **how
            )
        except (ValueError, RuntimeError):
            self._plan = None
            raise

    def save_checkpoint(
        self,
        *,
        path: str | os.PathLike[str],
        module: nn.Module,
        optimizer: DPOptimizer | None = None,
        checkpoint_dict: dict[str, Any] | None = None,
        module_state_dict_kwargs: dict[str, Any] | None = None,
        torch_save_kwargs: dict[str, Any] | None = None,
    ) -> None:
        """Opacus's `save_checkpoint`, with the noise's state.

        The file is **as secret as the key** until the plan's last step is made: with it, the noise can be
        removed from the noisy sums. Its mode is 0600.
        """
        refuse_sharded(module)
        state = dict(checkpoint_dict or {})
        state["module_state_dict"] = module.state_dict(**(module_state_dict_kwargs or {}))
        if optimizer is not None:
            state["optimizer_state_dict"] = optimizer.state_dict()
        state["noise_state_dict"] = noise_state(self.noise, self.plan)
        save_private(state, path, **(torch_save_kwargs or {}))

    def load_checkpoint(
        self,
        *,
        path: str | os.PathLike[str],
        module: nn.Module,
        optimizer: DPOptimizer | None = None,
        module_load_dict_kwargs: dict[str, Any] | None = None,
        torch_load_kwargs: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Resumes from a file that `save_checkpoint` wrote, with the same bits.

        Returns:
            The file's other entries, `checkpoint_dict` of `save_checkpoint`.

        Raises:
            RuntimeError: The file was altered.
            ValueError: `optimizer` is given and was not saved, or the reverse.
        """
        refuse_sharded(module)
        state: dict[str, Any] = load_private(path, **(torch_load_kwargs or {}))
        if (optimizer is None) != ("optimizer_state_dict" not in state):
            raise ValueError(
                f"optimizer is {'absent' if optimizer is None else 'given'} but must be as when the state was"
                " saved"
            )
        load_noise(self.noise, state.pop("noise_state_dict"))
        module.load_state_dict(state.pop("module_state_dict"), **(module_load_dict_kwargs or {}))
        if optimizer is not None:
            optimizer.load_state_dict(state.pop("optimizer_state_dict"))
        return state
