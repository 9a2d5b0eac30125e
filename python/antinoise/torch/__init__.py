"""Private training in plain PyTorch: the plan's batches, clipped sums in double precision, and noise before the optimizer's step.

    noise = CorrelatedNoise(model, plan, key).attach(optimizer)
    for x, y in noise.loader(data):
        clipped_sum_(model, loss, x, y, plan.clip_norm)
        optimizer.step()
        optimizer.zero_grad()

A model is private when every step of the optimizer sees nothing but the noisy mean: what is hooked is its step, and a step that could see
anything else is refused.
"""

from .batches import BatchSampler, CollateEmpty
from .clipping import clipped_sum_
from .examples import clipped_sum_of_
from .noise import CorrelatedNoise
from .sums import leave_sums

__all__ = ["BatchSampler", "CollateEmpty", "CorrelatedNoise", "clipped_sum_", "clipped_sum_of_", "leave_sums"]
