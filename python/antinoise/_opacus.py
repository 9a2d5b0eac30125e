"""Replacements for Opacus's accountant and for its optimizer's clipping and noise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import torch
from opacus.accountants import IAccountant  # type: ignore[import-untyped]
from opacus.optimizers import (  # type: ignore[import-untyped]
    DistributedDPOptimizer,
    DistributedDPOptimizerFastGradientClipping,
    DPOptimizer,
)
from torch import nn

from . import Plan
from ._groups import Asked, Groups
from ._opacus_sharded import check_sharded
from ._relied import relied
from .torch.data.epochs import EpochSampler
from .torch.distributed.layout import is_sharded
from .torch.held_sums import drop_sums, hold, trainable
from .torch.noise import CorrelatedNoise
from .torch.per_example import clipped_totals

MODES = ("hooks", "functorch", "ew", "no_op", "ghost", "ghost_fsdp")
GHOSTS = ("ghost", "ghost_fsdp")

# Attributes of Opacus's optimizer that are replaced, read or restored.
_TAKEN_OVER = (
    *("expected_batch_size", "add_noise", "scale_grad", "original_optimizer", "params", "loss_reduction"),
    *("noise_multiplier", "max_grad_norm", "_step_skip_queue", "_is_last_step_skipped"),
)

ASSUMED = """
Assumed of Opacus (grad_sample_mode="{mode}"):
- the gradient that it computes for row i of a batch is a function of the parameters and of example i alone: the model treats rows apart
  and the loss is the {reduction} of the rows' losses. Lengths, factors and sums are antinoise's, in double precision.
"""
ASSUMED_OF_GHOSTS = """
Assumed of Opacus (grad_sample_mode="{mode}"), WITHOUT A PROOF:
- the model treats the rows of a batch apart and the loss is the {reduction} of the rows' losses.
- lengths that ghost norms find and sums that a second backward pass makes, both in single precision, let one example move the sum by
  no more than clip norm {clip}. Examples are known that move a sum in single precision by 1.003 (500 examples) to 1.79 clip norms
  (60,000 examples; docs/training.md). The modes hooks, functorch and ew have no such assumption.
"""


class PlanAccountant(IAccountant):  # type: ignore[misc]
    """An accountant that returns the plan's epsilon, which covers the whole run, at every step."""

    def __init__(self, plan: Callable[[], Plan], steps_made: Callable[[], int]) -> None:
        super().__init__()
        self.history: list[tuple[float, float, int]] = []
        self._plan, self._steps_made = plan, steps_made

    def step(self, *, noise_multiplier: float, sample_rate: float) -> NoReturn:
        """Raises an error: steps are counted by the noise, not here."""
        raise RuntimeError(
            "The accountant counts no steps: the noise counts them, for the plan. Do not call step()."
        )

    def get_epsilon(self, delta: float, *args: Any, **kwargs: Any) -> float:
        """The plan's epsilon, which holds at the plan's delta and at any larger delta."""
        plan = self._plan()
        if not plan.delta <= delta < 1:
            raise ValueError(f"delta is {delta} but must be from {plan.delta}, the plan's, to below 1")
        return plan.epsilon

    def __len__(self) -> int:
        return self._steps_made()

    @classmethod
    def mechanism(cls) -> str:
        return "antinoise"

    def get_optimizer_hook_fn(self, sample_rate: float) -> Callable[[DPOptimizer], None]:
        """A hook that does nothing: steps are not counted here."""
        return lambda optimizer: None


class Steps:
    """Replaces a `DPOptimizer`'s clipping and noise."""

    def __init__(
        self,
        plan: Plan,
        optimizer: DPOptimizer,
        hooks: Any,
        model: nn.Module,
        noise: CorrelatedNoise,
        sampler: EpochSampler,
        mode: str,
        groups: Asked = None,
    ) -> None:
        self._plan, self._optimizer, self._hooks = plan, optimizer, hooks
        self._noise, self._sampler = noise, sampler
        # Rows of the step's batch that were clipped, and which of those of a ghost pass are no padding.
        self._rows, self._present = 0, torch.ones(0, dtype=torch.bool)
        noise.check_optimizer(optimizer.original_optimizer)
        names = {id(p): name for name, p in trainable(model).items()}
        # Parameters by name, in the optimizer's order.
        self._parameters = {names[id(p)]: p for p in optimizer.params}
        self._groups = Groups.made(groups, self._parameters, plan.clip_norm)
        for name in (*_TAKEN_OVER, "accumulate" if mode in GHOSTS else "clip_and_accumulate"):
            relied("opacus", optimizer, name)
        relied("opacus", type(optimizer), "grad_samples")
        optimizer.expected_batch_size = plan.expected_batch_size
        optimizer.add_noise, optimizer.scale_grad = self.finish, lambda: None
        if mode in GHOSTS:
            optimizer.accumulate = self.take_sums
            self._coefficients = relied("opacus", hooks, "get_clipping_coef")
            hooks.get_clipping_coef = self._without_padding
        else:
            optimizer.clip_and_accumulate = self.take_examples
        if mode == "ew":
            hooks.register_forward_pre_hook(self._before_pass)
        noise.attach(optimizer.original_optimizer, sampler)
        if isinstance(optimizer, (DistributedDPOptimizer, DistributedDPOptimizerFastGradientClipping)):
            # The noise already sums over processes: Opacus must not reduce gradients as well.
            relied("opacus", optimizer, "reduce_gradients")
            optimizer.reduce_gradients = lambda: None
        if optimizer.loss_reduction == "sum":
            optimizer.original_optimizer.register_step_pre_hook(self._as_sum)

    def take_examples(self) -> None:
        """Clips the per-example gradients of a backward pass and adds them to the step's sum."""
        parameters, samples = self._optimizer.params, self._optimizer.grad_samples
        counts = {len(g) for g in samples}
        if len(counts) != 1:
            raise ValueError(
                f"gradients of the parameters are of {sorted(counts)} examples but must be of one batch"
            )
        present = self._next_rows(counts.pop())
        if not present.all():
            samples = [g[present.to(g.device)] for g in samples]
        totals = clipped_totals(dict(zip(self._parameters, samples, strict=True)), self._groups)
        hold(self._parameters, totals, int(present.sum()), self._plan.clip_norm)
        for p in parameters:
            # Gradients already in the sum must not enter another step.
            p.grad_sample = None

    def _next_rows(self, count: int) -> torch.Tensor:
        """Which of the next `count` rows of the step's batch are examples and not padding."""
        present = self._sampler.present_in(self._noise.step, self._rows, count)
        self._rows += count
        return torch.tensor(present, dtype=torch.bool)

    def _without_padding(self) -> Any:
        """The factors of a ghost pass, 0 for padding."""
        factors = self._coefficients()
        self._present = self._next_rows(len(factors))
        if self._present.all():
            return factors
        return factors * self._present.to(factors)

    def take_sums(self) -> None:
        """Adds, to the step's sum, the sum from the second backward pass of ghost clipping."""
        parameters, lengths = self._optimizer.params, getattr(self._hooks, "per_sample_gradient_norms", None)
        if lengths is None or any(p.grad is None for p in parameters):
            raise RuntimeError(
                "There is no clipped sum of this batch: call backward() of the criterion that make_private"
                " returned, once for each batch."
            )
        if self._hooks.max_grad_norm != self._plan.clip_norm:
            raise ValueError(
                f"max_grad_norm of the module is {self._hooks.max_grad_norm} but must be the plan's,"
                f" {self._plan.clip_norm}"
            )
        if any(is_sharded(p) for p in parameters):
            # FSDP2's settings may have changed since make_private, so that .grad would have another value.
            check_sharded(relied("opacus", self._hooks, "_module"))
        # FSDP2 leaves the mean of the processes' sums, which the number of processes turns into the sum.
        totals = [
            p.grad.detach().to(torch.float64) * (p.device_mesh.size() if is_sharded(p) else 1)
            for p in parameters
        ]
        for p in parameters:
            p.grad = None
        self._hooks.per_sample_gradient_norms = None
        hold(
            self._parameters,
            dict(zip(self._parameters, totals, strict=True)),
            int(self._present.sum()) if len(self._present) == len(lengths) else len(lengths),
            self._plan.clip_norm,
        )

    def finish(self) -> None:
        """Checks, before a batch's step, the settings that schedulers could have changed."""
        self._rows = 0
        for name, wanted in (
            ("noise_multiplier", self._plan.noise_multiplier),
            ("max_grad_norm", self._plan.clip_norm),
        ):
            if (found := getattr(self._optimizer, name)) != wanted:
                self.start()
                raise ValueError(f"{name} of the optimizer is {found} but must be the plan's, {wanted}")

    def start(self) -> None:
        """Drops the sum of an unfinished step: a new pass begins with a whole batch."""
        self._rows = 0
        relied("opacus", self._optimizer, "_step_skip_queue").clear()
        self._optimizer._is_last_step_skipped = False
        drop_sums(self._optimizer.params)
        self._optimizer.zero_grad()

    def _before_pass(self, module: nn.Module, inputs: Any) -> None:
        if torch.is_grad_enabled() and any(p.grad_sample is not None for p in self._optimizer.params):
            raise RuntimeError(
                "This forward pass follows a backward pass without a step between them: expanded weights"
                " would mix two batches' examples. Call optimizer.step() and zero_grad() first."
            )

    def _as_sum(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        for p in self._optimizer.params:
            p.grad.mul_(self._plan.expected_batch_size)
