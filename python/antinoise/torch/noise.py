"""Noise before each step of an optimizer."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

import torch
from torch import nn

from .. import Key, NoiseStream, Plan
from .sums import drop_sum, held_sum, trainable


def _margin(examples: int) -> float:
    """What rounding adds to the sensitivity of a sum of so many terms, in clip norms, in whatever order they are added: a term meets
    a rounding of its product and at most one for each other term (docs/training.md)."""
    roundings = (examples + 2) * 2.0**-53
    return 2 * examples * roundings / (1 - roundings)


def _secret_folder() -> TemporaryDirectory[str]:
    """A folder for its owner alone, where there is one in memory."""
    memory = "/dev/shm"
    return TemporaryDirectory(dir=memory if os.access(memory, os.W_OK | os.X_OK) else None)


def _no_copy() -> NoReturn:
    raise TypeError("a CorrelatedNoise cannot be pickled or copied: two of them would release the same noise twice")


class CorrelatedNoise:
    """Adds the plan's noise before each step of an optimizer, and divides by the batch size: a `Stateful` for checkpoints.

    What it is added to is the sum that `clipped_sum_` left. Who clips otherwise says `sums_in_grad=True` and leaves in `.grad` the sum of
    the step's gradients, each clipped to the plan's clip norm: in double precision, where the plan's release is `grid`. `key` is not kept: the stream holds what it needs. `state_dict` holds the run's key and is as
    secret as it.
    """

    def __init__(
        self,
        model: nn.Module,
        plan: Plan,
        key: Key,
        *,
        run: str | None = None,
        threads: int | None = None,
        sums_in_grad: bool = False,
    ) -> None:
        self._plan, self._run, self._threads, self._sums_in_grad = plan, run, threads, sums_in_grad
        self._parameters = trainable(model)
        if not self._parameters:
            raise ValueError("model is one without trainable parameters but must have some")
        if plan.unit == "user" and not sums_in_grad:
            must_be = "example: clipped_sum_ clips examples; who clips users' gradients says sums_in_grad=True"
            raise ValueError(f"unit of the plan is user but must be {must_be}")
        self._layout = self._layout_now()
        self._dim = sum(p.numel() for p in self._parameters.values())
        self._stream = NoiseStream(plan, self._dim, key, run=run, threads=threads)
        self._sum = torch.zeros(self._dim, dtype=torch.float64)
        self._row = torch.zeros(self._dim, dtype=torch.float32)
        self._handle: Any = None

    @property
    def step(self) -> int:
        """The step that comes next."""
        return self._stream.step

    def _layout_now(self) -> list[tuple[str, tuple[int, ...], torch.dtype, torch.device]]:
        return [(name, tuple(p.shape), p.dtype, p.device) for name, p in self._parameters.items()]

    def attach(self, optimizer: torch.optim.Optimizer) -> CorrelatedNoise:
        """From now on each step of `optimizer`, which must hold the model's trainable parameters and no others, begins with noise."""
        if self._handle is not None:
            raise ValueError("optimizer is a second one but must be the only one: detach() the first")
        self._check_parameters(optimizer)
        self._handle = optimizer.register_step_pre_hook(self._before_step)
        return self

    def detach(self) -> None:
        """Takes the noise off the optimizer."""
        if self._handle is not None:
            self._handle.remove()
            self._handle = None

    def _check_parameters(self, optimizer: torch.optim.Optimizer) -> None:
        held = [p for group in optimizer.param_groups for p in group["params"]]
        if {id(p) for p in held} != {id(p) for p in self._parameters.values()}:
            raise ValueError("parameters of the optimizer are others but must be the model's trainable ones, all of them")

    def _before_step(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        # The hook gets the optimizer itself first.
        given = [a for a in args if a is not optimizer] + list(kwargs.values())
        if any(a is not None for a in given):
            raise ValueError("closure is given but must be left out: it would make gradients after the noise")
        if getattr(optimizer, "grad_scale", None) is not None:
            raise ValueError("grad_scale of the optimizer is set but must not be: gradients would be a multiple of what was clipped")
        # One that came later would be moved by its raw gradient.
        self._check_parameters(optimizer)
        self.add_()

    def _gathered(self) -> int | None:
        """Brings the step's sum into one place; tells how many examples are in it, where that is known."""
        counts: set[int] = set()
        rest = self._sum
        for name, p in self._parameters.items():
            part, rest = rest[: p.numel()], rest[p.numel() :]
            if (held := held_sum(p)) is not None:
                if held.clip_norm > self._plan.clip_norm:
                    raise ValueError(f"clip_norm of the sum is {held.clip_norm} but must be the plan's, {self._plan.clip_norm}")
                counts.add(held.examples)
                part.copy_(held.total.reshape(-1))
                continue
            if p.grad is None:
                # A gradient that is missing is zero; its noise is not.
                part.zero_()
                continue
            if not self._sums_in_grad:
                must_be = "the sum that clipped_sum_ leaves, or a sum of clipped gradients that sums_in_grad=True tells of"
                raise ValueError(f"gradient of {name} is in .grad but must be {must_be}")
            if p.grad.dtype != torch.float64 and self._plan.release == "grid":
                must_be = "torch.float64: a sum in single precision has no bound that the plan's noise covers"
                raise ValueError(f"gradient of {name} is of dtype {p.grad.dtype} but must be {must_be}")
            part.copy_(p.grad.reshape(-1))
        if len(counts) > 1:
            raise ValueError(f"sums of the parameters are of {sorted(counts)} examples but must be of one batch")
        return counts.pop() if counts else None

    def _check_batch(self, count: int | None) -> None:
        sampler, step = self._plan.sampler, self.step
        if count is not None and _margin(count) * self._plan.clip_norm > self._plan.sum_allowance:
            raise ValueError(f"batch of step {step} is of {count} examples but must be smaller, for its sum to be exact enough")
        if count is None or sampler["kind"] == "external" or step == self._plan.steps:
            return
        groups = int(sampler["groups"])
        start, end = (g * self._plan.examples // groups for g in (step % groups, step % groups + 1))
        # A sampled batch is a part of its group.
        if count > end - start or sampler["kind"] == "cyclic" and count < end - start:
            most = "" if sampler["kind"] == "cyclic" else "at most "
            raise ValueError(f"batch of step {step} is of {count} examples but must be the plan's, of {most}{end - start}")

    @torch.no_grad()
    def add_(self) -> None:
        """Replaces the sums by the noisy mean, in `.grad`: what the hook does, for loops without one."""
        if self._layout_now() != self._layout:
            raise ValueError("layout of the model is another but must be what it was when the noise was made for it")
        try:
            self._check_batch(self._gathered())
        finally:
            # Taken, or refused: not for another step.
            for p in self._parameters.values():
                drop_sum(p)
        self._stream.release(self._sum, self._row)
        rest = self._row
        for p in self._parameters.values():
            part, rest = rest[: p.numel()], rest[p.numel() :]
            mean = part.to(torch.float64).div_(self._plan.expected_batch_size).to(p.dtype)
            p.grad = mean.view(p.shape).to(p.device)

    def state_dict(self) -> dict[str, Any]:
        """Step and noise, as secret as the key: store it where nobody else can read."""
        with _secret_folder() as folder:
            path = Path(folder) / "noise"
            self._stream.save(path)
            state = torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.uint8)
        return {"stream": state, "plan": self._plan.digest, "layout": self._shapes()}

    def _shapes(self) -> str:
        """What a state is bound to: not devices or precisions, which may change when a run is resumed."""
        return str([(name, shape) for name, shape, _, _ in self._layout])

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on where `state_dict` was called."""
        if state["plan"] != self._plan.digest:
            raise ValueError("plan of the state is another but must be the one that this noise was made by")
        if state["layout"] != self._shapes():
            raise ValueError("layout of the state is another model's but must be this one's")
        with _secret_folder() as folder:
            path = Path(folder) / "noise"
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(state["stream"].cpu().numpy().tobytes())
            self._stream = NoiseStream.resume(path, self._plan, self._dim, run=self._run, threads=self._threads)

    def __copy__(self) -> NoReturn:
        _no_copy()

    def __deepcopy__(self, memo: Any) -> NoReturn:
        _no_copy()

    def __reduce__(self) -> NoReturn:
        _no_copy()
