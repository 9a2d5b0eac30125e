"""A private JAX loop: `run.gradient` takes the place of `jax.grad(loss)`."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flights import TRAINED, report, table

from antinoise.jax import make_private

x, y = table()


def loss(params, x, y):
    return optax.softmax_cross_entropy_with_integer_labels(x @ params["w"] + params["b"], y).mean()


@jax.jit
def step(params, state, gradient):
    updates, state = optimizer.update(gradient, state, params)
    return optax.apply_updates(params, updates), state


params = {"w": jnp.zeros((x.shape[1], 2)), "b": jnp.zeros(2)}
optimizer = optax.sgd(0.5)
state = optimizer.init(params)
data = x[:TRAINED], y[:TRAINED]
run = make_private(loss, params, data, epsilon=1, delta=1e-5, batch_size=200, epochs=10)
print(run.statement.split("\n\n")[0])
for examples in run.batches():
    params, state = step(params, state, run.gradient(params, x[examples], y[examples]))
report(np.asarray(x[TRAINED:] @ params["w"] + params["b"]).argmax(1), y[TRAINED:])
