"""Private training in JAX: clipped sums in double precision, and noise laid out as the parameters are.

    noise = Noise(params, plan, key)
    for examples in Batches(plan, key):
        sums = clipped_sum(loss, params, (x[examples], y[examples]), plan.clip_norm)
        updates, state = optimizer.update(noise.release(sums), state, params)
        params = optax.apply_updates(params, updates)

A model is private when its optimizer sees nothing but what `release` returns. Where the whole step is to be one jitted function, sums
are formed in it: see `add_noise` and `noise_addition_transform`, and what they cannot prove.
"""

from .clipping import ClippedSum, clipped_sum
from .noise import Noise
from .transforms import NoiseState, add_noise, noise_addition_transform

__all__ = ["ClippedSum", "Noise", "NoiseState", "add_noise", "clipped_sum", "noise_addition_transform"]
