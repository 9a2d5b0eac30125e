"""Noise before each step of an optimizer."""

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
from .batches import BatchSampler
from .collected import Collected, among_processes, collect, report
from .failures import await_sums
from .layout import digest_of, is_sharded, like, local_part, ranges_of, stacked_like
from .loaders import loader_of
from .optimizers import guard, has_hook, mark_noisy
from .origin import ORIGIN, UNKNOWN, Origin, differences, digest_of_data, origin_of
from .participations import StepExamples
from .processes import agree, all_make, replicas, shared_key, together
from .release import Part
from .rows import Rows
from .sharded import reshard
from .state import as_tensor, extra_of, readable, total_of, words_of
from .sums import drop_sums, trainable


class CorrelatedNoise(NotCopied):
    """Adds the plan's noise before each step of an optimizer, and divides by the batch size: a `Stateful` for checkpoints.

    What it is added to is the sum that `clipped_sum_` left. Who clips otherwise says `sums_in_grad=True` and leaves in `.grad` the sum of
    the step's gradients, each clipped to the plan's clip norm, in double precision. In single precision one example can move a sum by nearly
    twice its clip norm: who answers for such sums says `trust_float32_sums=True`, and `statement` names it.

    Where processes train together (`torch.distributed`), each makes the noise of a part of what it holds, the same bits as one process would make:
    models may be replicated, sharded (FSDP2, HSDP), tensor parallel or mixtures. Batches are dealt to all processes (`batch_sampler`), which leave
    the sums over their own examples; sums in `.grad` must be reduced, and laid out as their parameters are. The key is each process's own, from one
    file, or that of rank 0, which the others get by one broadcast; without a key one is drawn from the operating system.

    Each step takes the batch that `loader(dataset)` hands out for it, or one drawn from `batch_sampler()` or from a `BatchSampler` of the same key
    that `attach` is given: the statement holds for the plan's batches alone, each in its own step. `batches_from_elsewhere=True` says that the caller
    sees to that: only their sizes are then compared, and the examples that `set_batch` names with the plan's schema.

    With `ahead` the noise of the next step is made on a thread of its own while the model works, and waits in the host's memory (pinned where the model
    is on an accelerator, which then adds it to the sum). Its bits are the same.

    Two processes that resume one state add the same noise to different sums, whose difference then has none, and nothing can notice it. In one process the
    second sum of a step is refused, unless `reuse_noise_unprotected=True` says that nobody sees what was released under this noise before.

    `key` is not kept: the stream holds what it needs. `state_dict` holds the run's key and is as secret as it.
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
        batches_from_elsewhere: bool = False,
        ahead: bool = False,
        trust_float32_sums: bool = False,
        reuse_noise_unprotected: bool = False,
    ) -> None:
        self._plan, self._run, self._threads, self._sums_in_grad = plan, run, threads, sums_in_grad
        self._ahead, self._trusted, self._reuse = ahead, trust_float32_sums, reuse_noise_unprotected
        # Nobody here deals out what an external sampler draws.
        self._from_elsewhere = batches_from_elsewhere or plan.sampler["kind"] == "external"
        reshard(model)
        self._model, self._parameters = ref(model), trainable(model)
        together(self._whatever_is_wrong())
        self._layout = self._layout_now()
        self._digest = digest_of((name, shape) for name, shape, _, _ in self._layout)
        agree("plan", plan.digest)
        agree("names and shapes of the trainable parameters", self._digest)
        agree("sums_in_grad", sums_in_grad)
        self._dim = sum(p.numel() for p in self._parameters.values())
        start, ranges = 0, {}
        for name, p in self._parameters.items():
            ranges[name] = ranges_of(p, start)
            start += p.numel()
        self._parts = [Part(same, self._parameters, ranges, ahead=ahead) for same in replicas(list(ranges.items()))]
        self._shard = [pair for part in self._parts for pair in part.ranges]
        key = shared_key(key, self._parts[0].device)
        self._sampler: BatchSampler | None = None
        self._examples = StepExamples(plan, self._from_elsewhere)
        agree("batches_from_elsewhere", self._from_elsewhere)
        self._steps_made_by: ReferenceType[torch.optim.Optimizer] | None = None
        self._dataset: tuple[int, str, Tensor] = (0, "", UNKNOWN)
        # Of a state, until its first step was compared with it.
        self._origin: Origin | None = None
        how: dict[str, Any] = dict(run=run, shard=self._shard, threads=threads, state_in_memory=True)
        # A key that has served before is one process's: the others have copies of it.
        self._use(all_make(lambda: NoiseStream(plan, self._dim, key, **how)))
        agree("key", self._stream.token)
        self._handle: Any = None
        self._optimizer: ReferenceType[torch.optim.Optimizer] | None = None
        self._own = {id(p) for p in self._parameters.values()}
        await_sums(self)
        guard(self)

    def _whatever_is_wrong(self) -> ValueError | None:
        if not self._parameters:
            return ValueError("model is one without trainable parameters but must have some")
        if self._plan.unit == "user" and not self._sums_in_grad:
            must_be = "example: clipped_sum_ clips examples; who clips users' gradients says sums_in_grad=True"
            return ValueError(f"unit of the plan is user but must be {must_be}")
        return None

    def _use(self, stream: NoiseStream, waiting: Tensor | None = None) -> None:
        if self._reuse:
            stream._forget_released(stream.step - (waiting is not None))
        self._stream = stream
        self._rows = Rows(stream, self._parts, self._plan.grid_spacing, ahead=self._ahead, waiting=waiting)
        external = self._plan.sampler["kind"] == "external"
        if self._sampler is not None:
            self._sampler.follow(self._plan, stream, lambda: self.step)
        self._batches = None if external else Batches.of_noise(self._plan, stream)

    @property
    def step(self) -> int:
        """The step that comes next."""
        return self._rows.step

    @property
    def statement(self) -> str:
        """The plan's statement, and what is assumed of sums beside it."""
        return self._plan.statement + (f"\n{IN_SINGLE}\n" if self._trusted else "")

    @property
    def token(self) -> str:
        """A name for the run and its key, which it tells nothing of."""
        return self._stream.token

    @property
    def coordinates(self) -> int:
        """How many coordinates this process makes noise for."""
        return len(self._stream)

    def batch_sampler(self) -> BatchSampler:
        """The batches of this run from its next step on, for `DataLoader(data, batch_sampler=...)` without workers, or this process's share of
        them. They follow the run when it is resumed; a step whose batch was not drawn here is refused."""
        sampler = BatchSampler.following()
        self.draw_from(sampler)
        return sampler

    def loader(self, dataset: Dataset[Any], **how: Any) -> DataLoader[Any]:
        """Loads the batches of this run from its next step on, of `dataset`, the plan's examples in one order, or this process's share of them; `how`
        are further arguments of `DataLoader`, workers among them. Each batch is handed out once, when its step comes next: another one before that
        step is made is refused, and a new pass begins with the step that comes next, also when the run is resumed."""
        return loader_of(dataset, self._plan, self.batch_sampler(), **how)

    def set_batch(self, examples: Sequence[int] | NDArray[np.int64]) -> None:
        """Names the examples (or users) of the next step's batch, where batches are from elsewhere: those of this process, by number below the plan's
        `examples`. The step refuses them where the plan's schema does not hold for them. Either every step of a run has this, or none."""
        self._examples.name(examples)

    def draw_from(self, batches: BatchSampler) -> None:
        """From now on each step's batch must be drawn from these."""
        batches.check(self._stream)
        batches.follow(self._plan, self._stream, lambda: self.step)
        self._sampler = batches

    def _layout_now(self) -> list[tuple[str, tuple[int, ...], torch.dtype, torch.device]]:
        return [(name, tuple(p.shape), p.dtype, p.device) for name, p in self._parameters.items()]

    def attach(self, optimizer: torch.optim.Optimizer, batches: BatchSampler | None = None) -> CorrelatedNoise:
        """From now on each step of `optimizer`, which must hold the model's trainable parameters and no others, begins with noise. `batches` are
        those that the loader draws, where they were made of the key and not by `batch_sampler`."""
        all_make(lambda: self._prepare(optimizer, batches))
        self.hook(optimizer, self._before_step)
        return self

    def hook(self, optimizer: torch.optim.Optimizer, before_step: Callable[..., Any]) -> None:
        """Has `before_step` called before each step of `optimizer`, which adds the noise: for loops whose steps begin otherwise."""
        self._handle, self._optimizer = optimizer.register_step_pre_hook(before_step), ref(optimizer)

    def serves(self, optimizer: torch.optim.Optimizer) -> bool:
        """Whether a hook on this optimizer's step adds the noise."""
        return self._optimizer is not None and self._optimizer() is optimizer and has_hook(optimizer, self._handle)

    def _prepare(self, optimizer: torch.optim.Optimizer, batches: BatchSampler | None) -> None:
        if self._handle is not None:
            raise ValueError("optimizer is a second one but must be the only one: detach() the first")
        self.check_optimizer(optimizer)
        self._steps_made_by = ref(optimizer)
        if batches is not None:
            self.draw_from(batches)

    def detach(self) -> None:
        """Takes the noise off the optimizer."""
        if self._handle is not None:
            self._handle.remove()
            self._handle, self._optimizer = None, None

    def check_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        """Refuses an optimizer whose step could be moved by anything but the noisy mean, or by a multiple of it."""
        if getattr(optimizer, "grad_scale", None) is not None:
            raise ValueError("grad_scale of the optimizer is set but must not be: gradients would be a multiple of what was clipped")
        # One that came later would be moved by its raw gradient.
        held = [p for group in optimizer.param_groups for p in group["params"]]
        if {id(p) for p in held} != {id(p) for p in self._parameters.values()}:
            raise ValueError("parameters of the optimizer are others but must be the model's trainable ones, all of them")

    def _before_step(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        # The hook gets the optimizer itself first.
        given = [a for a in args if a is not optimizer] + list(kwargs.values())
        error: Exception | None = None
        if any(a is not None for a in given):
            error = ValueError("closure is given but must be left out: it would make gradients after the noise")
        self._add(error, optimizer)

    def takes(self, p: nn.Parameter) -> bool:
        """Whether the sums of `p` are for this noise."""
        return id(p) in self._own

    def forget(self) -> None:
        """Drops what an unfinished step has summed: what comes next is a whole batch."""
        drop_sums(self._parameters.values())

    def add_(self, optimizer: torch.optim.Optimizer | None = None) -> None:
        """Replaces the sums by the noisy mean, in `.grad`: what the hook does, for loops without one. An `optimizer` is checked before."""
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
            # Taken, or refused: not for another step.
            self.forget()
        shared = [part.replicas for part in self._parts if part.replicas.group is not None]
        examples, unreduced = among_processes(report(step, found, error, shared), error)
        if self._sampler is not None and not self._sums_in_grad:
            # Nobody clipped anything.
            examples = examples or 0
        assert found is not None
        batch = self._examples.of_step(step, self._sampler, named)
        self._check_batch(step, examples, found.spacing, batch)
        for part in self._parts:
            part.gather(found.sums, unreduced)
            if found.spacing is not None:
                part.sum.mul_(found.spacing)
        all_make(self._rows.release)
        if batch is not None:
            self._examples.record(step, batch)
        if self._sampler is not None:
            self._sampler.use()
        for part in self._parts:
            for name, row in zip(part.names, part.hand_out()):
                p = self._parameters[name]
                mean = row.to(torch.float64).div_(self._plan.expected_batch_size).to(p.dtype)
                p.grad = like(p, mean.view(local_part(p).shape).to(p.device))
                mark_noisy(p.grad)

    # Whether a state's learning rates are compared: not where a schedule moves on between its saving and its next step.
    compare_rates = True

    def _origin_now(self) -> Origin:
        dataset = None if self._sampler is None else self._sampler.dataset
        if self._dataset[:2] != (id(dataset), self.token):
            self._dataset = id(dataset), self.token, digest_of_data(dataset, self.token)
        optimizer = None if self._steps_made_by is None else self._steps_made_by()
        now = origin_of(self._stream, self._parameters, self._parts, optimizer, self._dataset[2])
        return now if self.compare_rates else now | {"learning rate": UNKNOWN.clone()}

    def _check_origin(self) -> None:
        """Refuses to go on with a state where its next step would release another sum than the run that saved it."""
        if self._origin is None:
            return
        changed = differences(self._origin, self._origin_now())
        error = None
        if changed:
            error = RuntimeError(
                f"{' and '.join(changed)} are not as when the state of step {self.step} was saved: another sum would be released under the noise of the run that "
                "saved it, and the difference of both has none. Nothing was released. Load model, optimizer and noise of one checkpoint and give it the same data, "
                "or begin a run with another key or name; reuse_noise_unprotected=True says that nobody sees what that run released since"
            )
        together(error)
        self._origin = None

    def _found(self, step: int) -> Collected:
        if self._layout_now() != self._layout:
            raise ValueError("layout of the model is another but must be what it was when the noise was made for it")
        self._check_trained()
        found = collect(self._parameters, self._plan, self._sums_in_grad, self._trusted)
        if not self._from_elsewhere and step < self._plan.steps:
            if self._sampler is None:
                raise ValueError(f"batch of step {step} is from elsewhere but must be from loader(dataset), batch_sampler() or attach()'s batches")
            self._sampler.check_handed(step, found.sources)
        return found

    def _check_trained(self) -> None:
        """Refuses a model whose trained parameters are others than when the noise was made."""
        switched = {name: "frozen" for name, p in self._parameters.items() if not p.requires_grad}
        model = self._model()
        # FSDP2 puts whole parameters in the place of shards for a while.
        if model is not None and not any(is_sharded(p) for p in self._parameters.values()):
            now = trainable(model)
            switched |= {name: "unfrozen" for name in now if name not in self._parameters}
            replaced = [name for name, p in now.items() if self._parameters.get(name, p) is not p]
            if replaced:
                raise ValueError(f"parameter {replaced[0]} of the model is another but must be the one that the noise was made for")
        for name, what in switched.items():
            raise RuntimeError(f"parameter {name} was {what} after the noise was made: freeze parameters before, or make noise for a run of its own")

    def _check_batch(self, step: int, examples: int | None, spacing: float | None, batch: NDArray[np.int64] | None) -> None:
        if examples is None or step == self._plan.steps:
            return
        if spacing is not None and examples * (self._plan.clip_norm / spacing + 1) > 2**51:
            raise ValueError(f"batch of step {step} is of {examples} examples but must be smaller, for whole points to be added exactly")
        check_terms(self._plan, step, examples)
        if batch is None and self._batches is not None:
            batch = self._batches.at(step)
        if batch is not None and examples != (wanted := len(batch)):
            raise ValueError(f"batch of step {step} is of {examples} examples but must be the plan's, of {wanted}")

    def state_dict(self) -> dict[str, Any]:
        """Step and noise by coordinate, as secret as the key: store it where nobody else can read. Any number of processes, in any layout of the same
        parameters, goes on with it: tensors are laid out as the parameters are, for `torch.distributed.checkpoint`. All processes call it."""
        run_key = np.zeros(32, np.uint8)
        waiting = self._rows.waiting()
        # The last ones are of a row that was made ahead.
        words = np.zeros((self._stream.state_words + 1, len(self._stream)), np.int32)
        if waiting is not None:
            words[-1] = waiting.numpy()
        steps, sum_of_mine = self._stream.state(words, run_key)
        past, rest = {}, torch.from_numpy(words)
        for part in self._parts:
            mine, rest = rest[:, : part.size_of_share], rest[:, part.size_of_share :]
            for name, whole in zip(part.names, part.all_shares(mine)):
                p = self._parameters[name]
                past[name] = stacked_like(p, whole.reshape(len(words), *local_part(p).shape).contiguous())
        # Numbers as tensors: where a checkpoint is loaded in place, nothing else is filled.
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
        """Goes on where `state_dict` was called, be it in other processes. Nothing changes where it is refused: a state that was altered or put
        together of several (RuntimeError), and an earlier step of the same run, whose noise would be added to other gradients."""
        saved, words = all_make(lambda: self._saved(state))
        total = total_of(saved.sum)
        stream, waiting, participations = all_make(lambda: self._checked(saved, words, total, state))
        agree("step of the state", (stream.step, waiting is not None))
        self._use(stream, waiting)
        self._examples.resume(participations)
        self._origin = None if self._reuse else {name: state[name].clone() for name in ORIGIN}

    def _saved(self, state: dict[str, Any]) -> tuple[SavedState, Tensor]:
        """This process's part of the state, which is still to be checked."""
        with readable():
            for name, mine, got in (("plan", self._plan.digest, "another"), ("layout", self._digest, "another model's")):
                if not torch.equal(state[name].cpu(), as_tensor(bytes.fromhex(mine))):
                    raise ValueError(f"{name} of the state is {got} but must be what this noise was made for")
            count = self._stream.state_words + 1
            past = words_of(state, {name: (count, *local_part(p).shape) for name, p in self._parameters.items()})
            shares = [part.own_share([past[name] for name in part.names]) for part in self._parts]
            words = torch.cat(shares, 1).contiguous()
            first, made, _ = state["steps"].tolist()
            run_key = state["run_key"].cpu().numpy()
            how: dict[str, Any] = dict(run=self._run, shard=self._shard, threads=self._threads)
            return SavedState(words.numpy(), (first, made), run_key, self._plan, self._dim, **how), words

    def _checked(self, saved: SavedState, words: Tensor, total: int, state: dict[str, Any]) -> tuple[NoiseStream, Tensor | None, Participations]:
        with readable():
            stream = saved.resume(state["commitment"].cpu().numpy().tobytes(), total=total, extra=extra_of(state))
        has_row = bool(state["steps"][2])
        if self._sampler is not None:
            self._sampler.check(stream)
        step = stream.step - has_row
        if stream.token == self._stream.token and step < self.step:
            raise ValueError(f"step of the state is {step} but must be at least {self.step}: noise after it is in releases of this process")
        return stream, words[-1] if has_row else None, self._examples.restored(state["participations"], stream, step)
