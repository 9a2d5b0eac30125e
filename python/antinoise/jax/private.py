"""`make_private`: a plain loop in JAX that becomes private in a few lines."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any, Literal

import jax
import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import Key, Plan, plan
from .._asked import refuse_beside
from .._groups import Asked
from .._once import NotCopied
from .clipping import ClippedSum, clipped_grad, of_one_example
from .jitted import JittedStep
from .noise import Noise


class PrivateRun(NotCopied):
    """A private training: what `make_private` returns.

    Args:
        loss: `loss(params, *batch)`, a scalar.
        noise: The run's noise: a new one, or that of `Noise.resume`.
        data: The examples, as in `make_private`, which `save` binds the noise to.
        microbatch_size, groups: As in `clipped_sum`.

    Attributes:
        noise: The run's `Noise`.
    """

    def __init__(
        self,
        loss: Callable[..., jax.Array],
        noise: Noise,
        *,
        data: Any = None,
        microbatch_size: int = 64,
        groups: Asked = None,
    ) -> None:
        self.noise, self._loss, self._data = noise, loss, data
        self._how: dict[str, Any] = dict(microbatch_size=microbatch_size, groups=groups)
        # By the number of arguments of a batch: a function compiles its own functions once.
        self._clipped: dict[int, Callable[..., ClippedSum]] = {}

    @property
    def plan(self) -> Plan:
        """The plan: data, privacy, batches and noise."""
        return self.noise.plan

    @property
    def statement(self) -> str:
        """The privacy statement of the run."""
        return self.noise.statement

    def save(self, folder: str | os.PathLike[str], params: Any) -> None:
        """Saves the noise, bound to these parameters and to the data (`Noise.save`)."""
        self.noise.save(folder, params, data=self._data)

    def batches(self, *, padded: bool = False) -> Iterator[NDArray[np.int64]]:
        """Yields each step's example numbers, from the next step on (`Noise.batches`)."""
        return self.noise.batches(padded=padded)

    def gradient(self, params: Any, *batch: Any, mask: ArrayLike | None = None) -> Any:
        """The noisy mean of the examples' clipped gradients. It takes the place of `jax.grad(loss)(params,
        *batch)`, outside of `jax.jit`, and makes a step of the plan.

        Args:
            params: The tree of parameters.
            batch: The other arguments of the loss: trees of arrays with the examples of `batches()` in the
                first dimension of each.
            mask: Which examples count, as in `clipped_sum`: `examples >= 0` for padded batches.

        Returns:
            A tree with the parameters' shapes, dtypes and shardings.

        Raises:
            ValueError: The batch or the parameters are not those of the run.
            RuntimeError: The step has no batch of its own, or is past the plan's last.
        """
        clipped = self._clipped.get(len(batch))
        if clipped is None:
            places = tuple(range(1, 1 + len(batch)))
            clipped = clipped_grad(
                self._loss, l2_clip_norm=self.plan.clip_norm, batch_argnums=places, **self._how
            )
            self._clipped[len(batch)] = clipped
        return self.noise.noisy_mean(clipped(params, *batch, mask=mask))

    def jitted_step(self, optimizer: Any, arguments: int = 2) -> Callable[..., tuple[Any, Any]]:
        """A whole step as one jitted function: `gradient` and the optimizer's update (`JittedStep`).

            step = run.jitted_step(optimizer)
            for examples in run.batches(padded=True):
                params, state = step(params, state, x[examples], y[examples], mask=examples >= 0)

        Args:
            optimizer: An optax transformation.
            arguments: Number of the loss's arguments after the parameters: `x` and `y` are two.

        Returns:
            A function of parameters, optimizer state, that many arguments and `mask` that returns the new
            parameters and state, and refuses what `gradient` refuses.

        Raises:
            ValueError: `arguments` is below 1, or the parameters are on several devices.
        """
        if arguments < 1:
            raise ValueError(f"arguments is {arguments} but must be at least 1")
        of_one, _ = of_one_example(self._loss, 0, range(1, 1 + arguments), True)
        made = JittedStep(of_one, optimizer, self.noise, **self._how)

        def step(params: Any, state: Any, *batch: Any, mask: ArrayLike | None = None) -> tuple[Any, Any]:
            if len(batch) != arguments:
                raise ValueError(f"arguments after state are {len(batch)} but must be {arguments}")
            return made(params, state, batch, mask=mask)

        return step


def make_private(
    loss: Callable[..., jax.Array],
    params: Any,
    data: Any,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    batch_size: int | None = None,
    epochs: int | None = None,
    steps: int | None = None,
    clip_norm: float = 1.0,
    setting: str | None = None,
    max_batch_size: int | Literal["auto"] | None = None,
    key: Key | None = None,
    plan: Plan | None = None,
    run: str | None = None,
    microbatch_size: int = 64,
    groups: Asked = None,
) -> PrivateRun:
    """Plans a private training and returns the batches and the gradient of its loop.

        run = make_private(loss, params, (x, y), epsilon=4, delta=1e-6, batch_size=100, epochs=3)
        for examples in run.batches():
            params, state = step(params, state, run.gradient(params, x[examples], y[examples]))

    It is short for `antinoise.plan`, `Noise`, `clipped_grad` and `Noise.noisy_mean`, with the same checks and
    the same bits.

    Args:
        loss: `loss(params, *batch)`, a scalar. Each example is a batch of one, so that a mean over the batch
            is that example's loss.
        params: A tree of arrays.
        data: The examples, a tree of arrays with the examples in the first dimension of each. Their number
            is taken, and `save` binds the noise to them.
        epsilon, delta: The privacy to reach. Left out with `plan`, as are the next arguments up to `setting`.
        batch_size: (Expected) number of examples in a batch.
        epochs, steps: The length of the training: one of them.
        clip_norm: Bound on the L2 norm of each example's gradient.
        setting: How batches are formed, as in `antinoise.plan`: `"cyclic"` unless given.
        max_batch_size: For setting `"poisson"`, as in `antinoise.plan`: batches are cut at this size, so that
            `batches(padded=True)` gives arrays of one shape.
        key: The secret of the run. `None` draws one from the operating system, which is lost when the
            process ends; with several processes it must be given.
        plan: A plan, in place of the arguments above.
        run: Name of the run; each run needs a new pair of key and name.
        microbatch_size, groups: As in `clipped_sum`.

    Returns:
        A `PrivateRun` with `batches`, `gradient`, `plan`, `noise` and `statement`.

    Raises:
        ValueError: An argument is absent, contradicts the plan or fits no plan; `data` has no number of
            examples, or another than the plan; or there is nothing to train.
    """
    asked: dict[str, Any] = dict(
        epsilon=epsilon, delta=delta, batch_size=batch_size, epochs=epochs, steps=steps, setting=setting
    )
    asked["max_batch_size"] = max_batch_size
    examples = _number_of_examples(data)
    if plan is not None:
        refuse_beside(plan, asked, clip_norm)
    planned = _planned(params, examples, clip_norm, asked) if plan is None else plan
    if examples != planned.examples:
        raise ValueError(f"data is of {examples} examples but must be of the plan's {planned.examples}")
    if key is None and jax.process_count() > 1:
        raise ValueError(
            "key is None but must be given where several processes train: one key in all of them"
        )
    noise = Noise(params, planned, Key.from_os() if key is None else key, run=run)
    return PrivateRun(loss, noise, data=data, microbatch_size=microbatch_size, groups=groups)


def _planned(params: Any, examples: int, clip_norm: float, asked: dict[str, Any]) -> Plan:
    for name in ("epsilon", "delta", "batch_size"):
        if asked[name] is None:
            raise ValueError(f"{name} is absent but must be given, unless a plan is")
    dim = sum(p.size for p in jax.tree.leaves(params))
    if dim == 0:
        raise ValueError("params is a tree without numbers but must have some")
    given = {name: value for name, value in asked.items() if value is not None}
    return plan(examples, dim=dim, clip_norm=clip_norm, **given)


def _number_of_examples(data: Any) -> int:
    leaves: list[Any] = [data] if isinstance(data, Iterator) else jax.tree.leaves(data)
    wrong = [type(leaf).__name__ for leaf in leaves if not getattr(leaf, "shape", ())]
    counts = {len(leaf) for leaf in leaves if not wrong}
    if wrong or len(counts) != 1:
        found = f"a {wrong[0]}" if wrong else f"of {sorted(counts)} examples"
        raise ValueError(
            f"data is {found} but must be a tree of arrays with the examples in the first dimension of each"
        )
    return counts.pop()
