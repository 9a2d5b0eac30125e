"""A step that is one jitted function: clipped sum, noise on the plan's grid, optimizer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax  # type: ignore[import-untyped]
from numpy.typing import ArrayLike, NDArray

from .._groups import Asked
from .._once import NotCopied
from .clipping import (
    added,
    check_microbatch_size,
    check_platforms,
    enable_x64,
    gradients_of,
    groups_of,
    mask_of,
    number_of_examples,
    portion_of,
)
from .noise import Noise
from .transforms import from_words, io_callback, precision_of, to_words


class JittedStep(NotCopied):
    """A private step as one jitted function: gradients, clipping, the sum in double precision, sum and noise
    added in whole numbers of the plan's grid, the mean, and the optimizer's update.

        step = JittedStep(loss, optimizer, noise)
        state = optimizer.init(params)
        for examples in noise.batches(padded=True):
            batch = (x[examples], y[examples])
            params, state = step(params, state, batch, mask=examples >= 0)

    The sum goes to the host inside of the function, by an ordered callback, in which `Noise` adds the step's
    noise as `Noise.noisy_mean` does. So all that `noisy_mean` refuses is refused, and each step's noise is
    added to one sum. On the grid the parameters have the bits of `clipped_sum`, `noisy_mean` and a jitted
    update, one after the other, wherever XLA computes gradients with the same bits in both (on a CPU, for the
    models of the tests).

    Each shape of a batch is compiled once. Poisson batches are all of one shape if the plan cuts them
    (`max_batch_size="auto"`) and `batches(padded=True)` fills them.

    Args:
        loss: `loss(params, example)`, a scalar; `example` is a batch without the first dimension.
        optimizer: An optax transformation: `update(mean, state, params)`.
        noise: The run's noise. Its parameters are on one device, as ordered callbacks need.
        microbatch_size, groups: As in `clipped_sum`.

    Raises:
        ValueError: An argument is out of range, or the parameters are on several devices or a TPU.
    """

    def __init__(
        self,
        loss: Callable[[Any, Any], jax.Array],
        optimizer: optax.GradientTransformation,
        noise: Noise,
        *,
        microbatch_size: int = 64,
        groups: Asked = None,
    ) -> None:
        check_microbatch_size(microbatch_size)
        noise._layout.check_one_device()
        self._loss, self._optimizer, self._noise = loss, optimizer, noise
        self._microbatch_size, self._asked = microbatch_size, groups
        self._error: BaseException | None = None
        self._compiled = jax.jit(self._traced, static_argnums=0)

    @property
    def noise(self) -> Noise:
        """The run's noise."""
        return self._noise

    def __call__(
        self, params: Any, state: Any, batch: Any, *, mask: ArrayLike | None = None
    ) -> tuple[Any, Any]:
        """Makes the next step of the plan, outside of `jax.jit`.

        Args:
            params: The tree of parameters, as `Noise` was made for.
            state: The optimizer's state.
            batch: A tree of arrays with the step's examples in the first dimension of each.
            mask: Which examples of `batch` count, as in `clipped_sum`: `examples >= 0` for padded batches.

        Returns:
            The new parameters and the optimizer's new state.

        Raises:
            ValueError: Batch, mask or parameters are not those of the run, or the sum is not finite.
            RuntimeError: The step has no batch of its own, or is past the plan's last.
        """
        noise = self._noise
        examples = number_of_examples("a JittedStep", params, batch)
        masked = mask_of(mask, examples)
        noise._layout.check("params", params)
        check_platforms(params)
        # A callback of other code may not have run yet.
        jax.effects_barrier()  # type: ignore[no-untyped-call]
        noise._check_clipped(int(masked.sum()), noise.plan.clip_norm)
        portions = -(-examples // self._microbatch_size)
        present = np.zeros((portions, self._microbatch_size), bool)
        present.reshape(-1)[:examples] = masked
        # Made before double precision is enabled, so that they keep the types that they have without it.
        batch, wide = jax.tree.map(jnp.asarray, batch), precision_of(np.float64) == np.float64
        self._error = None
        try:
            with enable_x64(True):
                found = self._compiled(wide, params, state, batch, present, np.int32(noise.step))
            # The noise is added before this returns, so that the next batch, and `save`, find the next step.
            jax.effects_barrier()  # type: ignore[no-untyped-call]
        except jax.errors.JaxRuntimeError:
            if self._error is None:
                raise
        if self._error is not None:
            raise self._error
        return found  # type: ignore[no-any-return]

    def _traced(
        self, wide: bool, params: Any, state: Any, batch: Any, present: jax.Array, step: jax.Array
    ) -> tuple[Any, Any]:
        """The step. Double precision is enabled; `wide` is whether it is for the program, so for the loss and
        the optimizer.
        """
        layout = self._noise._layout
        sums = self._sums(wide, params, batch, present)
        shapes = [jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in layout.leaves]  # type: ignore[no-untyped-call]
        words = [to_words(leaf) for leaf in jax.tree.leaves(sums)]
        means = io_callback(self._mean, shapes, step, words, ordered=True)
        with enable_x64(wide):
            mean = jax.tree_util.tree_unflatten(layout.tree, means)
            updates, state = self._optimizer.update(mean, state, params)
            return optax.apply_updates(params, updates), state

    def _sums(self, wide: bool, params: Any, batch: Any, present: jax.Array) -> Any:
        """The clipped sums in double precision, as `clipped_sum` makes them."""
        of, norms = groups_of(self._asked, params, self._noise.plan.clip_norm)
        size, most = self._microbatch_size, jnp.asarray(norms, jnp.float64)
        examples = len(jax.tree.leaves(batch)[0])

        def add_portion(number: jax.Array, totals: Any) -> Any:
            start = number * size
            portion = portion_of(batch, start, jnp.minimum(size, examples - start), size)
            with enable_x64(wide):
                gradients = gradients_of(self._loss, params, portion)
            # Lengths and sums must be of the same bits. Without a barrier, XLA may compute a gradient twice
            # and round it differently in its length and in the sum.
            gradients = jax.lax.optimization_barrier(gradients)  # type: ignore[no-untyped-call]
            return added(totals, gradients, present[number], most, of)

        zeros = jax.tree.map(lambda p: jnp.zeros_like(p, dtype=jnp.float64), params)
        return jax.lax.fori_loop(0, len(present), add_portion, zeros)

    def _mean(self, step: Any, words: list[Any]) -> list[NDArray[Any]]:
        """The noisy mean of a step's sums, on the host."""
        try:
            if int(step) != self._noise.step:
                raise RuntimeError(
                    f"step is {int(step)} but must be {self._noise.step}, which comes next: a step's noise is"
                    " for one sum"
                )
            layout = self._noise._layout
            row = self._noise._mean(
                [from_words(part, leaf, np.float64) for part, leaf in zip(words, layout.leaves, strict=True)]
            )
            return [
                row[leaf.offset :][: leaf.size].reshape(leaf.shape).astype(leaf.dtype, copy=False)
                for leaf in layout.leaves
            ]
        except Exception as error:
            self._error = error
            raise
