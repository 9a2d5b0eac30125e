"""Private training in JAX: clipped sums in double precision, and noise with the parameters' shardings.

    noise = Noise(params, plan, key)
    for examples in noise.batches():
        sums = clipped_sum(loss, params, (x[examples], y[examples]), plan.clip_norm)
        updates, state = optimizer.update(noise.noisy_mean(sums), state, params)
        params = optax.apply_updates(params, updates)

`make_private` makes the plan and the noise, and returns `batches` and `gradient` of a loop. The model is
private if its optimizer sees only what `noisy_mean` returns. `JittedStep` is a whole step in one jitted
function, with the same checks. `add_noise` and `noise_addition_transform` serve steps that are jitted
elsewhere; their docstrings say what they then cannot check.
"""

from .clipping import ClippedSum, clipped_grad, clipped_sum
from .jitted import JittedStep
from .noise import Noise
from .private import PrivateRun, make_private
from .transforms import NoiseState, add_noise, noise_addition_transform

__all__ = [
    "ClippedSum",
    "JittedStep",
    "Noise",
    "NoiseState",
    "PrivateRun",
    "add_noise",
    "clipped_grad",
    "clipped_sum",
    "make_private",
    "noise_addition_transform",
]
