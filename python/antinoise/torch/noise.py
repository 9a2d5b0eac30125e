"""Correlated noise before each step of a PyTorch optimizer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import ReferenceType, ref

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from .. import Batches, Key, NoiseStream, Participations, Plan, SavedState
from .._once import NotCopied
from .._sums import IN_SINGLE, check_terms
from .data.batches import BatchSampler
from .data.loaders import check_examples, loader_of
from .data.participations import StepExamples
from .distributed.failures import await_sums
from .distributed.layout import digest_of, is_sharded, like, local_part, ranges_of, stacked_like
from .distributed.processes import (
    check_same_on_all_ranks,
    raise_on_all_ranks,
    replicas,
    run_on_all_ranks,
    shared_key,
)
from .distributed.sharded import reshard
from .distributed.share import Share
from .held_sums import drop_sums, trainable, trained
from .memory import StepMemory, memory_of
from .optimizer_guard import check_holds, check_only_noise, guard, has_hook, mark_noisy
from .origin import ORIGIN, UNKNOWN, Origin, differences, digest_of_data, origin_of
from .prefetch import NoiseRows
from .state import as_tensor, extra_of, readable, total_of, words_of
from .step_sums import StepSums, check_on_all_ranks, collect, report


class CorrelatedNoise(NotCopied):
    """Adds the plan's noise to the sum of clipped gradients before each step of an optimizer, and divides
    by the plan's expected batch size.

    The sum is the one that `clipped_sum_` or `add_clipped_sums` left. It is a `Stateful` for
    `torch.distributed.checkpoint`.

    With several processes (`torch.distributed`), each process makes the noise of a part of the coordinates
    that it holds; the bits are those that a single process would make. Models may be replicated, sharded
    (FSDP2, HSDP), tensor parallel, or a mixture. Each process leaves the sum over its own share of a batch;
    sums in `.grad` must be reduced over processes and laid out as their parameters are.

    The privacy statement holds for the plan's batches only, each used in its own step: a step takes the
    batch that `loader(dataset)` handed out for it, or one drawn from `batch_sampler()` or from the
    `BatchSampler` given to `attach`.

    Two processes that resume one state add the same noise to different sums, and the difference of the two
    noisy sums has no noise. Nothing can detect that across processes; within a process the second sum of a
    step is refused.

    Args:
        model: The module whose trainable parameters get noise.
        plan: The plan of the run, from `antinoise.plan`.
        key: The secret of the run; it is not kept. With several processes: the same key in each process
            (from one file), or rank 0's, which is broadcast. `None` draws a key from the operating system.
        run: Name of the run; each run needs a new pair of key and name.
        threads: Number of threads that make noise. It changes speed and no bit.
        sums_in_grad: Take the sums from `.grad` (float64), where the caller left the sum of the step's
            gradients, each clipped to the plan's clip norm.
        external_batches: The caller answers for the batches. Only their sizes are compared with the
            plan, and the examples that `set_batch` names.
        prefetch: Make the next step's noise on a thread while the model works. The row waits in the host's
            memory, pinned where the model is on an accelerator. It changes no bit.
        trust_float32_sums: Accept sums in single precision, in which one example can move a sum by nearly
            twice the clip norm. `statement` then names that assumption.
        reuse_noise_unprotected: Allow a second sum for noise that was used before. The caller asserts that
            nobody sees the noisy sums made with that noise.

    Raises:
        ValueError: The model does not fit the plan, or the pair of key and run name was used before.
    """

    def __init__(
        self,
        model: nn.Module,
        plan: Plan,
        key: Key | None = None,
        *,
        run: str | None = None,
        threads: int | None = None,
        sums_in_grad: bool = False,
        external_batches: bool = False,
        prefetch: bool = False,
        trust_float32_sums: bool = False,
        reuse_noise_unprotected: bool = False,
    ) -> None:
        self._plan, self._run, self._threads, self._sums_in_grad = plan, run, threads, sums_in_grad
        self._prefetch, self._trusted, self._reuse = prefetch, trust_float32_sums, reuse_noise_unprotected
        # An external sampler's batches are not drawn here.
        self._external = external_batches or plan.sampler["kind"] == "external"
        reshard(model)
        self._model, self._parameters = ref(model), run_on_all_ranks(lambda: trained(model))
        run_on_all_ranks(self._check_unit)
        self._layout = self._layout_now()
        self._digest = digest_of((name, shape) for name, shape, _, _ in self._layout)
        check_same_on_all_ranks("plan", plan.digest)
        check_same_on_all_ranks("names and shapes of the trainable parameters", self._digest)
        check_same_on_all_ranks("sums_in_grad", sums_in_grad)
        self._dim = sum(p.numel() for p in self._parameters.values())
        start, ranges = 0, {}
        for name, p in self._parameters.items():
            ranges[name] = ranges_of(p, start)
            start += p.numel()
        self._parts = [
            Share(same, self._parameters, ranges, prefetch=prefetch)
            for same in replicas(list(ranges.items()))
        ]
        self._shard = [pair for part in self._parts for pair in part.ranges]
        key = shared_key(key, self._parts[0].device)
        self._sampler: BatchSampler | None = None
        self._examples = StepExamples(plan, self._external)
        check_same_on_all_ranks("external_batches", self._external)
        self._steps_made_by: ReferenceType[torch.optim.Optimizer] | None = None
        self._dataset: tuple[int, str, Tensor] = (0, "", UNKNOWN)
        # The resumed state's origin, until the first step has been compared with it.
        self._origin: Origin | None = None
        how: dict[str, Any] = dict(run=run, shard=self._shard, threads=threads, state_in_memory=True)
        # The use of a key is recorded in one process only; all processes fail with the one that refuses it.
        self._use(run_on_all_ranks(lambda: NoiseStream(plan, self._dim, key, **how)))
        check_same_on_all_ranks("key", self._stream.token)
        self._handle: Any = None
        self._optimizer: ReferenceType[torch.optim.Optimizer] | None = None
        self._own = {id(p) for p in self._parameters.values()}
        await_sums(self)
        guard(self)

    def _check_unit(self) -> None:
        if self._plan.unit == "user" and not self._sums_in_grad:
            must_be = "example: clipped_sum_ clips examples; for users, clip their gradients and give sums_in_grad=True"
            raise ValueError(f"unit of the plan is user but must be {must_be}")

    def _use(self, stream: NoiseStream, waiting: Tensor | None = None) -> None:
        if self._reuse:
            stream._forget_noisy_sums(stream.step - (waiting is not None))
        self._stream = stream
        self._rows = NoiseRows(
            stream, self._parts, self._plan.grid_spacing, prefetch=self._prefetch, waiting=waiting
        )
        external = self._plan.sampler["kind"] == "external"
        if self._sampler is not None:
            self._sampler.follow(self._plan, stream, lambda: self.step)
        self._batches = None if external else Batches.of_noise(self._plan, stream)

    @property
    def step(self) -> int:
        """The next step, counted from 0."""
        return self._rows.step

    @property
    def statement(self) -> str:
        """The plan's privacy statement and, with `trust_float32_sums`, the assumption about sums."""
        return self._plan.statement + (f"\n{IN_SINGLE}\n" if self._trusted else "")

    @property
    def token(self) -> str:
        """A public name of the pair of run and key; it reveals nothing about the key."""
        return self._stream.token

    @property
    def coordinates(self) -> int:
        """Number of coordinates for which this process makes noise."""
        return len(self._stream)

    @property
    def memory(self) -> StepMemory:
        """The buffers of a step in this process beyond plain training, with their bytes and places: known
        before the first step.
        """
        means = sum(local_part(p).numel() * p.dtype.itemsize for p in self._parameters.values())
        return memory_of(self._parts, means, int(self._stream.placement["bytes"]), self._prefetch)

    def batch_sampler(self, dataset: Dataset[Any] | None = None) -> BatchSampler:
        """Returns the run's batches from its next step, for `DataLoader(data, batch_sampler=...)` without
        workers.

        With several processes, it yields this process's share of each batch. It follows the run after a
        resume. Once it is made, a step whose batch was not drawn from it is refused.

        Args:
            dataset: The loader's data set, if it is to be compared with the plan's number of examples now,
                and with the data of a state that is resumed.

        Raises:
            ValueError: `dataset` has more or fewer examples than the plan.
        """
        if dataset is not None:
            check_examples(dataset, self._plan)
        sampler = BatchSampler.following()
        sampler.dataset = dataset
        self.use_sampler(sampler)
        return sampler

    def loader(self, dataset: Dataset[Any], **how: Any) -> DataLoader[Any]:
        """Returns a loader of the run's batches, from the next step.

        Each batch is handed out once, when its step is the next one: asking for another batch before that
        step is made raises `RuntimeError`. Each new pass begins with the next step, also after a resume.

        Args:
            dataset: The plan's examples, always in the same order; its length is the plan's `examples`.
            how: Further arguments of `DataLoader`, such as `num_workers`.

        Returns:
            A `DataLoader`; with several processes, of this process's share of each batch.
        """
        return loader_of(dataset, self._plan, self.batch_sampler(), **how)

    def set_batch(self, examples: Sequence[int] | NDArray[np.int64]) -> None:
        """Names the examples (or users) of the next step's batch, where batches come from elsewhere.

        Call it before every step of a run, or before none. The step is refused if a participation breaks
        the plan's schema.

        Args:
            examples: Numbers from 0 to the plan's `examples` - 1: those of this process.
        """
        self._examples.name(examples)

    def use_sampler(self, batches: BatchSampler) -> None:
        """Requires each later step's batch to be drawn from `batches`."""
        batches.check(self._stream)
        batches.follow(self._plan, self._stream, lambda: self.step)
        self._sampler = batches

    def _layout_now(self) -> list[tuple[str, tuple[int, ...], torch.dtype, torch.device]]:
        return [(name, tuple(p.shape), p.dtype, p.device) for name, p in self._parameters.items()]

    def attach(
        self, optimizer: torch.optim.Optimizer, batches: BatchSampler | None = None
    ) -> CorrelatedNoise:
        """Adds noise at the beginning of each later step of `optimizer`.

        Args:
            optimizer: It must hold the model's trainable parameters and no others.
            batches: The `BatchSampler` that the loader draws from, if it was made from the key and not by
                `batch_sampler` or `loader`.

        Returns:
            This object.

        Raises:
            ValueError: The optimizer holds other parameters, or its `grad_scale` is set.
        """
        run_on_all_ranks(lambda: self._prepare(optimizer, batches))
        self.hook(optimizer, self._before_step)
        return self

    def hook(self, optimizer: torch.optim.Optimizer, before_step: Callable[..., Any]) -> None:
        """Calls `before_step` before each step of `optimizer`; it must add the noise. For loops that run
        the backward pass within the step.
        """
        self._handle, self._optimizer = optimizer.register_step_pre_hook(before_step), ref(optimizer)

    def attached_to(self) -> torch.optim.Optimizer | None:
        """The optimizer before whose steps the noise is added, if there is one."""
        return None if self._optimizer is None else self._optimizer()

    def serves(self, optimizer: torch.optim.Optimizer) -> bool:
        """Whether a hook on this optimizer's step adds the noise."""
        return (
            self._optimizer is not None
            and self._optimizer() is optimizer
            and has_hook(optimizer, self._handle)
        )

    def _prepare(self, optimizer: torch.optim.Optimizer, batches: BatchSampler | None) -> None:
        if self._handle is not None:
            raise RuntimeError(
                "this noise is attached to an optimizer already: one optimizer holds all trainable"
                " parameters; to attach it to another, call detach() first"
            )
        self.check_optimizer(optimizer)
        check_only_noise(self, self._parameters.values())
        self._steps_made_by = ref(optimizer)
        if batches is not None:
            self.use_sampler(batches)

    def detach(self) -> None:
        """Removes the noise from the optimizer."""
        if self._handle is not None:
            self._handle.remove()
            self._handle, self._optimizer = None, None

    def check_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        """Refuses an optimizer whose step could apply anything but the noisy mean, or a multiple of it."""
        if getattr(optimizer, "grad_scale", None) is not None:
            raise ValueError(
                "grad_scale of the optimizer is set but must not be: gradients would be a multiple of what"
                " was clipped"
            )
        check_holds(optimizer, self._parameters)

    def _before_step(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        # The hook gets the optimizer itself first.
        given = [a for a in args if a is not optimizer] + list(kwargs.values())
        error: Exception | None = None
        if any(a is not None for a in given):
            error = ValueError(
                "closure is given but must be left out: it would make gradients after the noise"
            )
        self._add(error, optimizer)

    def takes(self, p: nn.Parameter) -> bool:
        """Whether this noise is added to the sum of `p`."""
        return id(p) in self._own

    def discard_sums(self) -> None:
        """Drops the sums of an unfinished step, so that the next step begins with a whole batch."""
        drop_sums(self._parameters.values())

    def apply_(self, optimizer: torch.optim.Optimizer | None = None) -> None:
        """Replaces the sums by the noisy mean, in `.grad`, as the hook does: for loops without a hook.
        `optimizer`, if given, is checked first.
        """
        self._add(None, optimizer)

    @torch.no_grad()
    def _add(self, error: Exception | None, optimizer: torch.optim.Optimizer | None) -> None:
        found, named, step = None, self._examples.take_named(), self.step
        if optimizer is not None:
            self._steps_made_by = ref(optimizer)
        try:
            self._check_origin()
            if error is None:
                if optimizer is not None:
                    self.check_optimizer(optimizer)
                found = self._found(step)
        except (ValueError, RuntimeError) as other:
            error = other
        finally:
            # Sums that were taken or refused must not enter another step.
            self.discard_sums()
        shared = [part.replicas for part in self._parts if part.replicas.group is not None]
        examples, unreduced = check_on_all_ranks(report(step, found, error, shared), error)
        if self._sampler is not None and not self._sums_in_grad:
            # No process clipped an example.
            examples = examples or 0
        assert found is not None
        batch = self._examples.of_step(step, self._sampler, named)
        self._check_batch(step, examples, found.spacing, batch)
        for part in self._parts:
            part.gather(found.sums, unreduced, found.spacing)
        run_on_all_ranks(self._rows.add_to_sums)
        if batch is not None:
            self._examples.record(step, batch)
        if self._sampler is not None:
            self._sampler.use()
        for part in self._parts:
            for name, noisy_sum in zip(part.names, part.all_gather_noisy_sums()):
                p = self._parameters[name]
                mean = noisy_sum.to(torch.float64).div_(self._plan.expected_batch_size).to(p.dtype)
                p.grad = like(p, mean.view(local_part(p).shape).to(p.device))
                mark_noisy(p.grad)

    # Whether a resumed state's learning rates must be the saved ones. False where a schedule changes them
    # between saving and the next step.
    compare_rates = True

    def _origin_now(self) -> Origin:
        dataset = None if self._sampler is None else self._sampler.dataset
        if self._dataset[:2] != (id(dataset), self.token):
            self._dataset = id(dataset), self.token, digest_of_data(dataset, self.token)
        optimizer = None if self._steps_made_by is None else self._steps_made_by()
        now = origin_of(self._stream, self._parameters, self._parts, optimizer, self._dataset[2])
        return now if self.compare_rates else now | {"learning rate": UNKNOWN.clone()}

    def _check_origin(self) -> None:
        """Refuses to resume a state if the next step would add noise to a sum other than the run that saved
        the state.
        """
        if self._origin is None:
            return
        changed = differences(self._origin, self._origin_now())
        error = None
        if changed:
            error = RuntimeError(
                f"{' and '.join(changed)} are not as when the state of step {self.step} was saved: another"
                " sum would be added to the noise of the run that saved it, and the difference of both"
                " has none. No noisy sum was made. Load model, optimizer and noise of one checkpoint and give"
                " it the same data, or begin a run with another key or name; if nobody sees the noisy sums that"
                " the run made since, pass reuse_noise_unprotected=True"
            )
        raise_on_all_ranks(error)
        self._origin = None

    def _found(self, step: int) -> StepSums:
        if self._layout_now() != self._layout:
            raise RuntimeError(
                "Shapes, dtypes or devices of the model's parameters changed after the noise was made: move"
                " or convert the model before CorrelatedNoise is made."
            )
        self._check_trained()
        found = collect(self._parameters, self._plan, self._sums_in_grad, self._trusted)
        if not self._external and step < self._plan.steps:
            if self._sampler is None:
                raise RuntimeError(
                    f"The batch of step {step} is not from this noise: take batches from"
                    " noise.loader(dataset), a loader of noise.batch_sampler(), or the BatchSampler given to"
                    " attach(). For batches that other code forms as the plan states, pass"
                    " external_batches=True."
                )
            self._sampler.check_handed(step, found.sources)
        return found

    def _check_trained(self) -> None:
        """Refuses a model whose set of trained parameters changed after the noise was made."""
        switched = {name: "frozen" for name, p in self._parameters.items() if not p.requires_grad}
        model = self._model()
        # FSDP2 temporarily replaces shards by whole parameters.
        if model is not None and not any(is_sharded(p) for p in self._parameters.values()):
            now = trainable(model)
            switched |= {name: "unfrozen" for name in now if name not in self._parameters}
            replaced = [name for name, p in now.items() if self._parameters.get(name, p) is not p]
            if replaced:
                raise RuntimeError(
                    f"Parameter {replaced[0]} of the model was replaced after the noise was made: put the old"
                    " one back, or make noise for the changed model in a run of its own."
                )
        for name, what in switched.items():
            raise RuntimeError(
                f"parameter {name} was {what} after the noise was made: freeze parameters before, or make"
                " noise for a run of its own"
            )

    def _check_batch(
        self, step: int, examples: int | None, spacing: float | None, batch: NDArray[np.int64] | None
    ) -> None:
        if examples is None or step == self._plan.steps:
            return
        if spacing is not None and examples * (self._plan.clip_norm / spacing + 1) > 2**51:
            raise ValueError(
                f"batch of step {step} is of {examples} examples but must be smaller, for whole points to be"
                " added exactly"
            )
        check_terms(self._plan, step, examples)
        if batch is None and self._batches is not None:
            batch = self._batches.at(step)
        if batch is not None and examples != (wanted := len(batch)):
            raise ValueError(
                f"batch of step {step} is of {examples} examples but must be the plan's, of {wanted}"
            )

    def state_dict(self) -> dict[str, Any]:
        """Returns the step and the noise state by coordinate. **As secret as the key**: store it where only
        its owner can read.

        All processes must call it. Tensors are laid out as the parameters are, for
        `torch.distributed.checkpoint`; any number of processes can resume it, in any layout of the same
        parameters.
        """
        run_key = np.zeros(32, np.uint8)
        waiting = self._rows.waiting()
        # The last word of each coordinate is of a row that was made ahead.
        words = np.zeros((self._stream.state_words + 1, len(self._stream)), np.int32)
        if waiting is not None:
            words[-1] = waiting.numpy()
        steps, sum_of_mine = self._stream.state(words, run_key)
        past, rest = {}, torch.from_numpy(words)
        for part in self._parts:
            mine, rest = rest[:, : part.size_of_share], rest[:, part.size_of_share :]
            for name, whole in zip(part.names, part.all_gather_state(mine)):
                p = self._parameters[name]
                past[name] = stacked_like(p, whole.reshape(len(words), *local_part(p).shape).contiguous())
        # Numbers are tensors: loading a checkpoint in place fills tensors only.
        state = {
            "steps": torch.tensor([*steps, int(waiting is not None)]),
            "run_key": torch.from_numpy(run_key),
            "plan": as_tensor(bytes.fromhex(self._plan.digest)),
            "layout": as_tensor(bytes.fromhex(self._digest)),
            "participations": self._examples.saved(),
            "past": past,
            **self._origin_now(),
        }
        # See state.py for how to bind more to the state.
        commitment = self._stream.state_commitment(steps, total_of(sum_of_mine), extra=extra_of(state))
        return state | {"commitment": as_tensor(commitment)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resumes the run from the state that `state_dict` returned, in these or other processes.

        The noise is unchanged if the state is refused.

        Raises:
            RuntimeError: The state was altered, or assembled from several states.
            ValueError: The state is of another plan or model, or of an earlier step of this run, whose noise
                would be added to a second sum.
        """
        saved, words = run_on_all_ranks(lambda: self._saved(state))
        total = total_of(saved.sum)
        stream, waiting, participations = run_on_all_ranks(lambda: self._checked(saved, words, total, state))
        check_same_on_all_ranks("step of the state", (stream.step, waiting is not None))
        self._use(stream, waiting)
        self._examples.resume(participations)
        self._origin = None if self._reuse else {name: state[name].clone() for name in ORIGIN}

    def _saved(self, state: dict[str, Any]) -> tuple[SavedState, Tensor]:
        """This process's part of the state, not yet verified."""
        with readable():
            for name, mine, got in (
                ("plan", self._plan.digest, "another"),
                ("layout", self._digest, "another model's"),
            ):
                if not torch.equal(state[name].cpu(), as_tensor(bytes.fromhex(mine))):
                    raise ValueError(f"{name} of the state is {got} but must be what this noise was made for")
            count = self._stream.state_words + 1
            past = words_of(
                state, {name: (count, *local_part(p).shape) for name, p in self._parameters.items()}
            )
            shares = [part.own_share([past[name] for name in part.names]) for part in self._parts]
            words = torch.cat(shares, 1).contiguous()
            first, made, _ = state["steps"].tolist()
            run_key = state["run_key"].cpu().numpy()
            how: dict[str, Any] = dict(run=self._run, shard=self._shard, threads=self._threads)
            return SavedState(words.numpy(), (first, made), run_key, self._plan, self._dim, **how), words

    def _checked(
        self, saved: SavedState, words: Tensor, total: int, state: dict[str, Any]
    ) -> tuple[NoiseStream, Tensor | None, Participations]:
        with readable():
            stream = saved.resume(
                state["commitment"].cpu().numpy().tobytes(), total=total, extra=extra_of(state)
            )
        has_row = bool(state["steps"][2])
        if self._sampler is not None:
            self._sampler.check(stream)
        step = stream.step - has_row
        if stream.token == self._stream.token and step < self.step:
            raise ValueError(
                f"step of the state is {step} but must be at least {self.step}: noise after it is in noisy sums"
                " of this process"
            )
        return (
            stream,
            words[-1] if has_row else None,
            self._examples.restored(state["participations"], stream, step),
        )
