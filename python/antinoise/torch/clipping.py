"""Sums of clipped per-example gradients: `clipped_sum_`, and the code that it shares with
`PrivateRun.backward`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, overload
from weakref import WeakKeyDictionary, WeakSet

import torch
from torch import Tensor, nn
from torch.func import vmap

from .._groups import Asked, Groups
from .data.sources import sources_of
from .data.trees import examples_in
from .distributed.failures import broadcast_failure
from .distributed.layout import is_sharded
from .distributed.processes import all_gather, run_on_all_ranks
from .distributed.sharded import reshard, sharded_sums
from .ghost.independence import Forward, check_output
from .ghost.layers import Unsupported
from .ghost.made import Sums
from .ghost.room import KEPT
from .ghost.sums import ghost_sums
from .grid_sums import checked_spacing
from .held_sums import hold, trainable
from .model_checks import check_clipping, unchanged_state
from .per_example import LossOfOne, per_example_sums
from .relied import tree_leaves, tree_map

Norms = Literal["auto", "ghost", "per_example"]
# The loss of model(x) and y.
Loss = Callable[[Any, Tensor], Tensor]

# Maximum number of examples in a portion, and of values of their gradients, unless the caller names a number.
PORTION = 64
GRADIENT_VALUES = 2**28
# Models for which the fallback from ghost norms to per-example gradients was warned of.
_warned: WeakSet[nn.Module] = WeakSet()
# Models that ghost norms do not support: a later batch may hide the reason.
_refused: WeakSet[nn.Module] = WeakSet()
# For each model under norms="auto", the modules for which ghost norms gave way to per-example gradients.
_alone: WeakKeyDictionary[nn.Module, WeakSet[nn.Module]] = WeakKeyDictionary()
# Models that torch.func.vmap cannot run.
_one_by_one: WeakSet[nn.Module] = WeakSet()


@overload
def clipped_sum_(
    model: nn.Module,
    loss: Loss,
    x: Tensor,
    y: Tensor,
    clip_norm: float,
    /,
    *,
    microbatch_size: int | None = None,
    norms: Norms = "auto",
    groups: Asked = None,
    grid_spacing: float | None = None,
    kept_bytes: int = KEPT,
) -> Tensor: ...
@overload
def clipped_sum_(
    model: nn.Module,
    loss: Callable[[nn.Module, Any], Tensor],
    batch: Any,
    clip_norm: float,
    /,
    *,
    microbatch_size: int | None = None,
    norms: Norms = "auto",
    groups: Asked = None,
    grid_spacing: float | None = None,
    kept_bytes: int = KEPT,
) -> Tensor: ...
def clipped_sum_(
    model: nn.Module,
    loss: Callable[..., Tensor],
    /,
    *batch_and_clip_norm: Any,
    microbatch_size: int | None = None,
    norms: Norms = "auto",
    groups: Asked = None,
    grid_spacing: float | None = None,
    kept_bytes: int = KEPT,
) -> Tensor:
    """Clips each example's gradient and leaves their sum for `CorrelatedNoise` to add noise to.

        clipped_sum_(model, loss, x, y, clip_norm)      # loss(model(x), y), with x and y tensors
        clipped_sum_(model, loss, batch, clip_norm)     # loss(model, example), with a batch of any structure

    One call covers all trained parameters of the model that the noise is made for. Further calls before the
    step add to the sum, for portions of one batch. Sums that were clipped over other sets of parameters (a
    submodule, or with `requires_grad` switched between calls) are refused at the step: one example could
    move each of them by the clip norm.

    Lengths, factors and sums are in double precision, so that one example moves the sum by at most
    clip_norm (1 + 2^-20), which plans allow for (docs/python-torch.md). That bound compares batches in
    which one gradient is replaced by zero and all others keep their bits. PyTorch may round a gradient
    differently at another position of its portion; to compare batches from which an example is *absent*, so
    that later examples change position, use `microbatch_size=1`. An example whose gradient is not finite
    adds nothing.

    With several processes, each process sums its own examples. Sharded parameters get the sum over all
    processes at once: with FSDP2, ghost norms use the parameters as FSDP2 gathers them, while per-example
    gradients need the whole model and a whole sum in every process.

    Args:
        model: It must treat examples independently (no batch normalisation); for ghost norms, with examples
            in the first dimension of every layer's input and output.
        loss: `loss(model(x), y)`, evaluated for one example at a time; or, with `batch`,
            `loss(model, example)`, where `example` is a batch of one example.
        x: Inputs, shape (examples, ...).
        y: Targets, shape (examples, ...).
        batch: A tensor, or tuples, lists and mappings of tensors, with examples in the first dimension of
            each.
        clip_norm: Bound on the L2 norm of each example's gradient: the plan's.
        microbatch_size: Number of examples in one forward and backward pass. The last portion is padded to
            it. The default divides x and y into equal portions of at most 64, and takes the examples of
            `batch` one by one, which any model allows; portions of `batch` are for models without
            data-dependent control flow (`torch.func.vmap`).
        norms: `"ghost"` finds norms and sum without per-example gradients, in one forward and one backward
            pass, for models of Linear, Conv1d to Conv3d, Embedding, LayerNorm, GroupNorm, RMSNorm and
            modules without parameters. `"per_example"` computes per-example gradients (`torch.func.vmap`),
            for any model. `"auto"` tries `"ghost"`, else computes per-example gradients: of single modules if
            that is enough, else of the whole model. It warns once per model, naming modules and parameters.
            With `batch` it is always per-example gradients.
        groups: Clips groups of parameters separately, to norms whose squares add up to at most clip_norm^2.
            `"layer"`: one group per module. A list of names of parameters or modules (`["conv", ("fc1",
            "fc2.bias")]`): k groups with clip_norm / sqrt(k) each. A mapping gives each group's norm
            (`{"conv": 0.6, "head": 0.8}`). Each parameter must be in one group.
        grid_spacing: The plan's: rounds each clipped gradient to integer multiples of it and sums integers.
            The sum's bits then do not depend on the order of examples or on their distribution over
            processes. Implies per-example gradients.
        kept_bytes: Memory for the per-example gradients of matrices that ghost norms keep until they are
            summed, in bytes, beyond that of the activations and their gradients. Gradients for which there is
            no room are made twice: 0 takes least memory and most time.

    Returns:
        The mean loss, a scalar tensor without gradient. **It is not private.**

    Raises:
        ValueError: An argument is out of range, the model cannot be clipped example by example, or its
            forward pass changes a buffer.
    """
    if len(batch_and_clip_norm) == 3:
        x, y, clip_norm = batch_and_clip_norm
        make = partial(_of_pair, model, loss, x, y)
    elif len(batch_and_clip_norm) == 2:
        batch, clip_norm = batch_and_clip_norm
        make = partial(Work, batch, lambda example: loss(model, example), portion_of_each=1)
    else:
        raise TypeError(
            "clipped_sum_ takes (model, loss, x, y, clip_norm) or (model, loss, batch, clip_norm)"
        )
    return clip(
        model, make, clip_norm, microbatch_size, norms, groups, grid_spacing, kept_bytes, stacklevel=3
    )


def code_of(loss: Any) -> Hashable:
    """Identifies a loss for the check of independence, even if every step creates the function again."""
    code: Hashable = getattr(loss, "__code__", None)
    return type(loss).__qualname__ if code is None else code


@dataclass
class Work:
    """A batch and its losses."""

    batch: Any
    of_one: LossOfOne
    # The losses of a portion, for ghost norms; None where only one example at a time has a loss.
    of_portion: Forward | None = None
    # Identifies the loss, whose independence of examples is tested once.
    tested: Hashable = None
    # The default number of examples in a portion of per-example gradients; None lets memory decide.
    portion_of_each: int | None = None
    # The default maximum number of examples in other portions.
    portion: int = PORTION


def _of_pair(model: nn.Module, loss: Loss, x: Tensor, y: Tensor) -> Work:
    for name, value in (("x", x), ("y", y)):
        if not isinstance(value, Tensor):
            raise ValueError(
                f"{name} is a {type(value).__name__} but must be a tensor: clipped_sum_(model, loss, batch,"
                " clip_norm), with loss(model, example), takes inputs of any structure"
            )
    if len(x) != len(y):
        raise ValueError(f"y is of {len(y)} examples but must be of {len(x)}, as x is")

    def of_portion(portion: tuple[Tensor, Tensor]) -> tuple[Tensor, list[Tensor]]:
        output = model(portion[0])
        outputs = tree_leaves(output)
        check_output(outputs, len(portion[1]))

        def one(output: Any, y: Tensor) -> Tensor:
            return loss(tree_map(lambda o: o.unsqueeze(0), output), y.unsqueeze(0))

        # The loss of one example at a time: it may be a mean or a sum.
        losses = vmap(one, randomness="different")(output, portion[1])
        if losses.dim() != 1:
            raise ValueError(f"loss is of shape {tuple(losses.shape[1:])} but must be one number")
        return losses, outputs

    of_one: LossOfOne = lambda example: loss(model(example[0]), example[1])  # noqa: E731
    return Work((x, y), of_one, of_portion, code_of(loss))


def clip(
    model: nn.Module,
    make: Callable[[], Work],
    clip_norm: float,
    microbatch_size: int | None,
    norms: str,
    groups: Asked,
    grid_spacing: float | None,
    kept_bytes: int = KEPT,
    *,
    stacklevel: int,
) -> Tensor:
    """`clipped_sum_` of the work that `make` returns; `stacklevel` makes warnings point to the caller."""
    reshard(model)
    parameters = trainable(model)
    sharded = any(is_sharded(p) for p in parameters.values())

    def check() -> tuple[Work, int, Groups, float | None]:
        check_clipping(model, clip_norm, microbatch_size, kept_bytes)
        if norms not in ("auto", "ghost", "per_example"):
            raise ValueError(f"norms is {norms!r} but must be 'auto', 'ghost' or 'per_example'")
        if grid_spacing is not None and norms == "ghost":
            raise ValueError(
                "norms is 'ghost' but must be 'per_example' or 'auto' where grid_spacing is given:"
                " each example's gradient is rounded"
            )
        work = make()
        if norms == "ghost" and work.of_portion is None:
            raise ValueError("norms is 'ghost' but must be 'per_example' or 'auto' for a whole batch")
        grouped = Groups.made(groups, parameters, clip_norm)
        return work, examples_in(work.batch), grouped, checked_spacing(grid_spacing, clip_norm)

    with broadcast_failure(parameters.values()):
        with unchanged_state(model):
            work, count, grouped, spacing = run_on_all_ranks(check) if sharded else check()
            most = max(all_gather(count)) if sharded else count
            size = equal_portion(most, work.portion) if microbatch_size is None else microbatch_size
            each = work.portion_of_each if microbatch_size is None else microbatch_size
            of_each = partial(_of_each, model, work, count, grouped, spacing, each, most)
            if norms == "per_example" or spacing is not None or work.of_portion is None:
                sums, losses = of_each()
            else:
                of_portion, batch, tested = work.of_portion, work.batch, work.tested
                by_ghosts = partial(
                    ghost_sums, model, of_portion, batch, count, grouped, tested=tested, kept=kept_bytes
                )
                if sharded:
                    sums, losses = sharded_sums(parameters, partial(by_ghosts, size), count, size)
                else:
                    some_alone = partial(
                        _by_ghosts, model, norms, by_ghosts, microbatch_size, most, work.portion
                    )
                    sums, losses = _ghosts_or_each(model, norms, some_alone, of_each, stacklevel + 1)
        hold(parameters, sums, count, clip_norm, spacing, sources=sources_of(work.batch))
    return torch.tensor(losses / max(count, 1), dtype=torch.float64)


def equal_portion(examples: int, most: int = PORTION) -> int:
    """The size of portions of a batch: the number of portions of at most `most` examples is the smallest
    possible, and all have one size. Only the last has padding, of fewer examples than there are portions.
    """
    return max(1, -(-examples // max(1, -(-examples // most))))


def _of_each(
    model: nn.Module,
    work: Work,
    count: int,
    groups: Groups,
    spacing: float | None,
    microbatch_size: int | None,
    most: int,
) -> tuple[Sums, float]:
    """Sums from per-example gradients: by default in portions that fit a bound on memory, or one by one if
    the model has control flow that depends on data.
    """
    of = partial(per_example_sums, model, work.of_one, work.batch, count, groups)
    if microbatch_size is not None:
        return of(microbatch_size, spacing)
    dim = sum(p.numel() for p in trainable(model).values())
    size = equal_portion(most, max(1, min(work.portion, GRADIENT_VALUES // max(1, dim))))
    if size > 1 and model not in _one_by_one:
        try:
            return of(size, spacing)
        except (RuntimeError, ValueError) as error:
            _one_by_one.add(model)
            warnings.warn(
                "examples are taken one by one, which is slower: the model cannot be run by"
                f" torch.func.vmap ({str(error).splitlines()[0]})",
                stacklevel=5,
            )
    return of(1, spacing)


def _by_ghosts(
    model: nn.Module,
    norms: str,
    by_ghosts: Callable[..., tuple[Sums, float]],
    microbatch_size: int | None,
    most: int,
    portion: int,
) -> tuple[tuple[Sums, float], Unsupported | None]:
    """Sums by ghost norms, with per-example gradients only in the modules that need them, in portions
    that fit a bound on memory. Also returns the reason if a module was added to these.
    """
    reason: Unsupported | None = None
    alone: WeakSet[nn.Module] = _alone.setdefault(model, WeakSet()) if norms == "auto" else WeakSet()
    while True:
        own = [p for module in alone for p in module.parameters(recurse=False) if p.requires_grad]
        fitting = max(1, min(portion, GRADIENT_VALUES // max(1, sum(p.numel() for p in own))))
        size = equal_portion(most, fitting) if microbatch_size is None else microbatch_size
        try:
            return by_ghosts(size, alone=alone), reason
        except Unsupported as error:
            more = set(error.modules).difference(alone)
            if norms == "ghost":
                raise
            if not more:
                # The first reason names what the model contains.
                raise reason or error from error
            alone.update(more)
            reason = reason or error.without_traceback()


def _ghosts_or_each(
    model: nn.Module,
    norms: str,
    by_ghosts: Callable[[], tuple[tuple[Sums, float], Unsupported | None]],
    of_each: Callable[[], tuple[Sums, float]],
    stacklevel: int,
) -> tuple[Sums, float]:
    if norms == "auto" and model in _refused:
        return of_each()
    found: tuple[Sums, float] | None = None
    what = ""
    try:
        found, reason = by_ghosts()
        own = {id(p) for module in _alone.get(model, ()) for p in module.parameters(recurse=False)}
        what = " of " + ", ".join(name for name, p in trainable(model).items() if id(p) in own)
    except Unsupported as error:
        if norms == "ghost":
            raise
        reason = error.without_traceback()
        _refused.add(model)
    if reason is not None and model not in _warned:
        _warned.add(model)
        warnings.warn(
            f'norms="auto" makes the gradients{what} one by one, which is slower: {reason}',
            stacklevel=stacklevel,
        )
    return of_each() if found is None else found
