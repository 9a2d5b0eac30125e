"""Private training in plain PyTorch: the plan's batches, clipped sums in double precision, and noise before
each optimizer step.

    noise = CorrelatedNoise(model, plan, key).attach(optimizer)
    for x, y in noise.loader(data):
        clipped_sum_(model, loss, x, y, plan.clip_norm)
        optimizer.step()
        optimizer.zero_grad()

The model is private because the optimizer sees only noisy means: a hook on its step replaces the sums by
them, and refuses a step that would apply anything else.
"""

from .clipping import clipped_sum_
from .data.batches import BatchSampler, CollateEmpty
from .held_sums import add_clipped_sums
from .noise import CorrelatedNoise
from .private import PrivateRun, make_private

__all__ = [
    "BatchSampler",
    "CollateEmpty",
    "CorrelatedNoise",
    "PrivateRun",
    "add_clipped_sums",
    "clipped_sum_",
    "make_private",
]
