"""A logistic regression on a table, in NumPy alone: the plan's batches, clipped sums, noise, and a step."""

import numpy as np
from flights import TRAINED, report, table

import antinoise as an

x, y = table()
dim = x.shape[1] + 1
x = np.hstack([x, np.ones((len(x), 1))])
plan = an.plan(examples=TRAINED, batch_size=200, epochs=10, epsilon=1, delta=1e-5, dim=dim, clip_norm=1.0)
print(plan.statement.split("\n\n")[0])

stream = an.NoiseStream(plan, dim, an.Key.from_os())  # who has the key can subtract the noise
weights, noisy_sum = np.zeros(dim), np.empty(dim, np.float32)
for batch in an.Batches.of_noise(plan, stream):
    probability = 1 / (1 + np.exp(-x[batch] @ weights))
    gradients = x[batch] * (probability - y[batch])[:, None]
    norms = np.linalg.norm(gradients, axis=1, keepdims=True)
    clipped = gradients * np.minimum(1, plan.clip_norm / np.maximum(norms, 1e-12))
    stream.add_to_sum(clipped.sum(axis=0), noisy_sum)
    weights -= noisy_sum / plan.expected_batch_size
report((x[TRAINED:] @ weights > 0).astype(int), y[TRAINED:])
