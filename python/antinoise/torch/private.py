"""`make_private`: a plain PyTorch loop that becomes private in a few lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils.data import DataLoader, Dataset

from .. import Key, Plan
from .._asked import refuse_beside
from .._groups import Asked
from .._once import NotCopied
from .clipping import Norms, Work, clip, code_of
from .data.epochs import EpochSampler
from .data.loaders import check_sampler, loader_of, number_of_examples, planned_loader
from .distributed.processes import rank_and_world, run_on_all_ranks
from .distributed.sharded import reshard
from .ghost.room import KEPT
from .held_sums import trained
from .memory import Buffer, StepMemory
from .noise import CorrelatedNoise
from .optimizer_guard import check_holds, check_only_noise
from .planning import plan_for, workload_of


def work_of(losses: Callable[..., Tensor], batch: tuple[Any, ...]) -> Callable[[], Work]:
    """A function that returns the clipping work of a batch: `losses(*batch)` is the loss of each example."""
    if not callable(losses):
        raise TypeError(
            f"losses is a {type(losses).__name__} but must be a function that returns the loss of each"
            " example, followed by its arguments: backward(lambda x, y: cross_entropy(model(x), y,"
            ' reduction="none"), x, y)'
        )

    def work() -> Work:
        return Work(batch, lambda one: losses(*one), lambda some: (losses(*some), []), code_of(losses))

    return work


class PrivateRun(NotCopied):
    """A private training: what `make_private` returns.

    Attributes:
        plan: The plan: data, privacy, batches and noise.
        noise: The run's `CorrelatedNoise`, attached to the optimizer; `noise.state_dict()` saves it.
        loader: A `DataLoader` of the plan's batches, each handed out once. A pass is an epoch, and begins
            with the next step. A pass after the plan's last step is refused.
    """

    def __init__(
        self,
        model: nn.Module,
        noise: CorrelatedNoise,
        plan: Plan,
        loader: DataLoader[Any],
        batches: EpochSampler,
        **how: Any,
    ) -> None:
        self.plan, self.noise, self.loader = plan, noise, loader
        self._model, self._batches, self._how = model, batches, how

    @property
    def statement(self) -> str:
        """The privacy statement of the run."""
        return self.noise.statement

    @property
    def memory(self) -> StepMemory:
        """The buffers of a step beyond plain training, with their bytes and places; `print` lists them."""
        kept = Buffer(
            "gradients of examples", self._how["kept_bytes"], "of the model", "at most, while clipping"
        )
        return StepMemory((kept, *self.noise.memory.buffers))

    @property
    def epochs(self) -> range:
        """The epochs that are not finished, counted from 0; fewer after a resumption."""
        return self._batches.epochs_left

    def backward(self, losses: Callable[..., Tensor], *batch: Any) -> Tensor:
        """Clips the gradient of each example's loss and leaves their sum for the optimizer's step, which
        adds the noise. It takes the place of `loss.backward()`.

            run.backward(lambda x, y: cross_entropy(model(x), y, reduction="none"), x, y)

        It takes a function, not the losses' values, because clipping runs it on portions of the batch, and
        on two examples to check, once, that none changes the loss or the gradient of another. Where the
        model has modules whose gradient norms need the gradients, a warning names them once and the
        function is run for each example alone.

        Args:
            losses: `losses(*batch)` returns the loss of each example, shape (examples,), from the model
                that was given to `make_private`. Targets and weights of examples are arguments, not
                variables of an outer scope, so that a portion gets its own.
            batch: What the loader yielded, in one or several arguments, possibly moved to a device: tensors,
                or tuples, lists and mappings of tensors, with the examples in the first dimension of each.
                Parts of a batch may be given by several calls before the step.

        Returns:
            The mean loss, a scalar tensor without gradient. **It is not private.**

        Raises:
            ValueError: The losses are not one number per example, tensors disagree about the number of
                examples, or the model cannot be clipped example by example.
        """
        return clip(self._model, work_of(losses, batch), self.plan.clip_norm, **self._how, stacklevel=3)


def make_private(
    model: nn.Module,
    optimizer: Optimizer,
    dataset: Dataset[Any] | DataLoader[Any],
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    batch_size: int | None = None,
    epochs: int | None = None,
    steps: int | None = None,
    clip_norm: float = 1.0,
    setting: str = "auto",
    max_batch_size: int | Literal["auto"] | None = None,
    workload: str | None = None,
    key: Key | None = None,
    plan: Plan | None = None,
    run: str | None = None,
    microbatch_size: int | None = None,
    norms: Norms = "auto",
    groups: Asked = None,
    exact: bool = False,
    kept_bytes: int = KEPT,
    prefetch: bool = False,
    loader: Mapping[str, Any] | None = None,
) -> PrivateRun:
    """Plans a private training, attaches the noise to `optimizer`, and returns the loader and the backward
    pass of the loop.

        run = make_private(model, optimizer, data, epsilon=4, delta=1e-6, batch_size=100, epochs=3)
        for epoch in run.epochs:
            for x, y in run.loader:
                run.backward(lambda x, y: cross_entropy(model(x), y, reduction="none"), x, y)
                optimizer.step()
                optimizer.zero_grad()

    It is short for `antinoise.plan`, `CorrelatedNoise(...).attach(optimizer)`, a loader of its batches and
    `clipped_sum_`, with the same checks and the same bits. With several processes, rank 0 plans.

    Args:
        model: The model; parameters that are not trained have `requires_grad=False` already.
        optimizer: It holds the trainable parameters of `model` and no others.
        dataset: The examples, always in the same order; or a `DataLoader` of them, whose batch size, workers
            and `collate_fn` are kept. The plan's batches replace those of its sampler, which may shuffle or
            distribute examples, and nothing else.
        epsilon: The privacy to reach. Left out with `plan`, as are the next arguments up to `workload`.
        delta: Probability in the claim, below 1 / examples.
        batch_size: (Expected) number of examples in a batch, over all processes. By default that of a
            `DataLoader`, which is a process's share of it.
        epochs, steps: The length of the training: one of them.
        clip_norm: Bound on the L2 norm of each example's gradient.
        setting: How batches are formed, as in `antinoise.plan`. `"auto"` compares sampled batches with
            shuffled ones, which are used in cyclic order, and takes the more accurate kind.
        max_batch_size: For sampled batches, as in `antinoise.plan`: they are cut at this size, at a stated
            cost in privacy. One process then pads each batch to it: all portions have one shape, as
            accelerators and `torch.compile` need.
        workload: The loss that the mechanism minimises, as in `antinoise.plan`. By default it is the noise
            that the last model remembers, `"last-iterate:MOMENTUM"`, if `optimizer` is `torch.optim.SGD`, and
            that of prefix sums otherwise.
        key: The secret of the run. `None` draws one from the operating system, which is lost when the
            process ends.
        plan: A plan, in place of the arguments above.
        run: Name of the run; each run needs a new pair of key and name.
        microbatch_size, norms, groups, kept_bytes: As in `clipped_sum_`. Where batches are cut, the size of a
            portion is by default the plan's `max_batch_size`.
        exact: Round each clipped gradient to the plan's grid and sum integers.
        prefetch: As in `CorrelatedNoise`.
        loader: Further arguments of `DataLoader`, such as `num_workers`.

    Returns:
        A `PrivateRun` with `loader`, `epochs`, `backward`, `plan`, `noise`, `memory` and `statement`.

    Raises:
        ValueError: An argument is absent, contradicts the plan or fits no plan; the data set has no length;
            the loader has a sampler of its own; the model has no trainable parameters; the optimizer holds
            other parameters; or the plan is of another number of examples than `dataset` has.
        RuntimeError: The optimizer, or another one of these parameters, has a noise already.
    """
    given = dataset if isinstance(dataset, DataLoader) else None
    examples: Any = dataset if given is None else given.dataset
    asked: dict[str, Any] = dict(epsilon=epsilon, delta=delta, batch_size=batch_size, epochs=epochs)
    asked |= dict(steps=steps, max_batch_size=max_batch_size, workload=workload)

    def check() -> None:
        if given is not None and loader:
            raise ValueError(
                "loader is given but must be left out where dataset is a DataLoader, which has it"
            )
        number_of_examples(examples)
        if given is not None:
            check_sampler(given.batch_sampler)
        if plan is not None:
            refuse_beside(plan, asked | {"setting": None if setting == "auto" else setting}, clip_norm)
        reshard(model)
        parameters = trained(model)
        check_holds(optimizer, parameters)
        check_only_noise(None, parameters.values())

    # Checked before a plan is designed, which can take minutes.
    run_on_all_ranks(check)
    planned = plan
    if planned is None:
        if given is not None and batch_size is None:
            own: Any = given.batch_sampler
            asked["batch_size"] = own.batch_size * rank_and_world()[1]
        setting = "poisson" if setting == "auto" else setting
        asked["workload"] = workload or workload_of(optimizer)
        planned = plan_for(model, examples, clip_norm=clip_norm, setting=setting, **asked)
    noise = CorrelatedNoise(model, planned, key, run=run, prefetch=prefetch)
    sampler = EpochSampler(planned, noise.discard_sums)
    if given is None:
        batches = loader_of(examples, planned, sampler, **(loader or {}))
    else:
        batches = planned_loader(given, planned, sampler, shares=rank_and_world()[1])
    is_cut = planned.sampler["kind"] == "truncated-poisson"
    if is_cut and microbatch_size is None and rank_and_world()[1] == 1:
        microbatch_size = planned.max_batch_size
    # Last: an argument that is refused leaves the optimizer as it was.
    noise.attach(optimizer, sampler)
    how: dict[str, Any] = dict(microbatch_size=microbatch_size, norms=norms, groups=groups)
    how |= dict(grid_spacing=planned.grid_spacing if exact else None, kept_bytes=kept_bytes)
    return PrivateRun(model, noise, planned, batches, sampler, **how)
