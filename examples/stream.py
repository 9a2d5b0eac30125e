"""Design, calibrate, and make noise: the noisy sums of a run that is stopped halfway and resumed."""

import tempfile
from pathlib import Path

import numpy as np

import antinoise as an

DIM = 1_000
# The mechanism of least loss for these data, with its noise calibrated to epsilon and delta.
plan = an.plan(examples=10_000, batch_size=200, epochs=4, epsilon=2, delta=1e-6, dim=DIM)
print(f"{plan.strategy}: noise of standard deviation {plan.noise_std:.3f} on the sum of a batch")

stream = an.NoiseStream(plan, DIM, an.Key.from_os())
clipped_sum, noisy_sum = np.full(DIM, 0.5), np.empty(DIM, np.float32)
for _ in range(plan.steps // 2):
    # A training takes its step with the noisy sum; nothing else may see the clipped one.
    stream.add_to_sum(clipped_sum, noisy_sum)

with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "noise"  # as secret as the key, and resumed once
    stream.save(file)
    resumed = an.NoiseStream.resume(file, plan, DIM)
resumed.add_to_sum(clipped_sum, noisy_sum)
print(f"after step {resumed.step} of {plan.steps}: the mean of a noisy sum is {noisy_sum.mean():.2f}")
