"""Steps of JAX that are one jitted function: the bits of the longer way, one compilation, and refusals."""

import os

import numpy as np
import pytest
from conftest import small_plan

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
os.environ["JAX_PLATFORMS"] = "cpu"
jax = pytest.importorskip("jax")
optax = pytest.importorskip("optax")

import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import antinoise as an
from antinoise.jax import JittedStep, Noise, clipped_sum, jitted, make_private

CLIP = 0.7
PLAN = small_plan(dim=100, clip_norm=CLIP)
PLAN_459 = small_plan(dim=459, clip_norm=CLIP)
OPTIMIZERS = {"momentum": optax.sgd(0.5, momentum=0.9), "adam": optax.adam(1e-2)}


def key():
    return an.Key.from_seed_insecure(5)


def data(count=240):
    made = np.random.default_rng(2)
    return made.normal(size=(count, 8, 6)).astype(np.float32), made.integers(0, 3, count)


def params(model="layers"):
    made = np.random.default_rng(1)
    shapes = {
        "layers": {"in": (48, 9), "out": (9, 3)},
        "attention": {"qkv": (6, 18), "out": (6, 3), "b": (3,)},
    }
    return {n: jnp.asarray(made.normal(size=s) / 3, jnp.float32) for n, s in shapes[model].items()}


def loss(params, example):
    x, y = example
    if "qkv" in params:
        q, k, v = jnp.split(x @ params["qkv"], 3, axis=1)
        x = (jax.nn.softmax(q @ k.T) @ v).mean(0)
        logits = x @ params["out"] + params["b"]
    else:
        logits = jnp.tanh(x.reshape(-1) @ params["in"]) @ params["out"]
    return optax.softmax_cross_entropy_with_integer_labels(logits, y)


def longer(model, optimizer, plan, **how):
    """The parameters after every step, made by clipped_sum, noisy_mean and a jitted update."""
    (x, y), now, noise = data(), params(model), Noise(params(model), plan, key())
    state = optimizer.init(now)

    @jax.jit
    def update(params, state, mean):
        updates, state = optimizer.update(mean, state, params)
        return optax.apply_updates(params, updates), state

    for examples in noise.batches():
        sums = clipped_sum(loss, now, (x[examples], y[examples]), plan.clip_norm, **how)
        now, state = update(now, state, noise.noisy_mean(sums))
        yield now


def shorter(model, optimizer, plan, *, loss=loss, **how):
    """The same, made by a JittedStep on padded batches whose padding is not a number."""
    (x, y), now, noise = data(), params(model), Noise(params(model), plan, key())
    step, state = JittedStep(loss, optimizer, noise, **how), optimizer.init(now)
    for number, examples in enumerate(noise.batches(padded=True)):
        mask = examples >= 0
        rows = np.where(mask[:, None, None], x[examples], np.float32(np.nan))
        now, state = step(now, state, (rows, y[examples]), mask=mask)
        assert noise.step == number + 1
        yield now


def equal(a, b):
    assert jax.tree.structure(a) == jax.tree.structure(b)
    return all(
        x.dtype == y.dtype and np.array_equal(x, y)
        for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    )


def cut_plan(dim):
    how = dict(epsilon=4, delta=1e-5, batch_size=20, steps=24, clip_norm=CLIP, dim=dim)
    return an.plan(240, setting="poisson", mechanism="identity", max_batch_size="auto", **how)


@pytest.mark.parametrize("double", [False, True], ids=["single", "double"])
@pytest.mark.parametrize("microbatch_size", [1, 7, 64])
@pytest.mark.parametrize("optimizer", OPTIMIZERS.values(), ids=OPTIMIZERS)
@pytest.mark.parametrize("model", ["layers", "attention"])
def test_it_makes_the_bits_of_the_longer_way(model, optimizer, microbatch_size, double):
    dim = sum(p.size for p in params(model).values())
    how = dict(microbatch_size=microbatch_size)
    with jax.enable_x64(double):
        for plan in (small_plan(dim=dim, clip_norm=CLIP), cut_plan(dim)):
            ways = zip(
                longer(model, optimizer, plan, **how), shorter(model, optimizer, plan, **how), strict=True
            )
            assert [equal(*both) for both in ways] == plan.steps * [True]


def test_groups_and_plans_without_a_grid():
    how = dict(groups={"in": 0.5, "out": 0.4})
    plan, optimizer = small_plan(dim=459, clip_norm=CLIP), OPTIMIZERS["momentum"]
    ways = zip(
        longer("layers", optimizer, plan, **how), shorter("layers", optimizer, plan, **how), strict=True
    )
    assert [equal(*both) for both in ways] == plan.steps * [True]
    plan = small_plan(dim=459, clip_norm=CLIP, arithmetic="plain")
    *_, (a, b) = zip(longer("layers", optimizer, plan), shorter("layers", optimizer, plan), strict=True)
    assert all(np.allclose(x, y, rtol=1e-5, atol=1e-6) for x, y in zip(a.values(), b.values(), strict=True))


def test_batches_of_one_shape_compile_once():
    traces = []

    def counted(params, example):
        traces.append(1)
        return loss(params, example)

    plan = cut_plan(459)
    assert len({len(batch) for batch in an.Batches(plan, key())}) > 3
    assert len(list(shorter("layers", OPTIMIZERS["adam"], plan, loss=counted))) == 24 and traces == [1]


def test_one_example_moves_the_sum_by_its_clip_norm():
    (x, y), now, optimizer = data(20), params(), optax.sgd(1.0)
    x = 30 * x

    def sums(present):
        noise = Noise(now, PLAN_459, key(), run=f"without {np.flatnonzero(~present)}", external_batches=True)
        step = JittedStep(loss, optimizer, noise, microbatch_size=7)
        with jax.enable_x64(True):
            found = jax.jit(lambda p, b, m: step._sums(False, p, b, m))(
                now, (jnp.asarray(x), jnp.asarray(y, jnp.int32)), np.pad(present, (0, 1)).reshape(3, 7)
            )
        return np.concatenate([np.asarray(leaf).ravel() for leaf in jax.tree.leaves(found)])

    whole = sums(np.ones(20, bool))
    assert whole.dtype == np.float64
    for left_out in range(0, 20, 3):
        moved = np.linalg.norm(whole - sums(np.arange(20) != left_out))
        assert CLIP * (1 - 2**-19) < moved <= CLIP


def test_each_step_has_its_own_batch_and_its_noise_is_for_one_sum(tmp_path):
    (x, y), now, noise = data(), params(), Noise(params(), PLAN_459, key())
    optimizer = OPTIMIZERS["momentum"]
    step, state = JittedStep(loss, optimizer, noise), optimizer.init(now)
    with pytest.raises(RuntimeError, match="Step 0 has no batch of its own"):
        step(now, state, (x[:20], y[:20]))
    first = next(noise.batches())
    with pytest.raises(ValueError, match="batch of step 0 is of 19 examples but must be the plan's, of 20"):
        step(now, state, (x[first], y[first]), mask=np.arange(20) > 0)
    noise.save(tmp_path / "state", now)
    wanted, _ = step(now, state, (x[first], y[first]))
    with pytest.raises(RuntimeError, match="Step 1 has no batch of its own"):
        step(now, state, (x[first], y[first]))
    assert noise.step == 1
    later = Noise.resume(tmp_path / "state", now, PLAN_459)
    again = JittedStep(loss, optimizer, later)
    assert np.array_equal(next(later.batches()), first)
    with pytest.raises(RuntimeError, match="noisy sum .* was made|another sum"):
        again(now, state, (x[first] + 1, y[first]))
    assert later.step == 0
    found, _ = again(now, state, (x[first], y[first]))
    assert later.step == 1 and equal(found, wanted)


def test_a_state_saved_after_a_step_is_of_the_next_one(tmp_path):
    (x, y), now, noise = data(), params(), Noise(params(), PLAN_459, key())
    optimizer = optax.sgd(0.5)
    step, state = JittedStep(loss, optimizer, noise), optimizer.init(now)
    for examples in noise.batches():
        now, state = step(now, state, (x[examples], y[examples]))
        if noise.step == 9:
            break
    noise.save(tmp_path / "state", now)
    later = Noise.resume(tmp_path / "state", now, PLAN_459)
    step = JittedStep(loss, optimizer, later)
    for examples in later.batches():
        now, state = step(now, state, (x[examples], y[examples]))
    assert later.step == PLAN_459.steps
    *_, wanted = longer("layers", optimizer, PLAN_459)
    assert equal(now, wanted)
    with pytest.raises(RuntimeError, match="all 24 steps of this stream have been made"):
        step(now, state, (x[:20], y[:20]))


def test_sums_that_are_not_finite_are_refused(monkeypatch):
    (x, y), now, noise = data(), params(), Noise(params(), PLAN_459, key())
    optimizer, added = optax.sgd(0.5), jitted.added
    step, examples = JittedStep(loss, optimizer, noise), next(noise.batches())
    broken = lambda *args: jax.tree.map(lambda total: total.at[0, 0].set(jnp.nan), added(*args))  # noqa: E731
    monkeypatch.setattr(jitted, "added", broken)
    with pytest.raises(ValueError, match="sum is not finite, or beyond what a noisy sum can hold"):
        step(now, optimizer.init(now), (x[examples], y[examples]))
    assert noise.step == 0
    monkeypatch.setattr(jitted, "added", added)
    found, _ = JittedStep(loss, optimizer, noise)(now, optimizer.init(now), (x[examples], y[examples]))
    assert noise.step == 1 and equal(found, next(longer("layers", optimizer, PLAN_459)))


@pytest.mark.parametrize("wrong", [np.inf, np.nan, 3e38])
def test_what_is_not_finite_adds_nothing(wrong):
    (x, y), now, optimizer, found = data(), params(), optax.sgd(1.0), []
    # 3e38 overflows in its square. In sums of products it overflows only in some orders and without fusion.
    squared = lambda params, example: loss(params, (jnp.square(example[0]), example[1]))  # noqa: E731
    for value in (wrong, np.nan):
        noise = Noise(now, PLAN_459, key())
        examples = next(noise.batches())
        x[examples[3]] = value
        found.append(
            JittedStep(squared, optimizer, noise)(now, optimizer.init(now), (x[examples], y[examples]))[0]
        )
    assert equal(*found) and all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(found))


def test_what_is_wrong_is_named():
    (x, y), now, optimizer = data(), params(), optax.sgd(1.0)
    noise = Noise(now, PLAN_459, key(), external_batches=True)
    state, batch = optimizer.init(now), (x[:20], y[:20])
    step = JittedStep(loss, optimizer, noise)
    for call, message in (
        (lambda: JittedStep(loss, optimizer, noise, microbatch_size=0), "microbatch_size is 0 but must be"),
        (lambda: step(now, state, (x[:20], y[:19])), r"batch is of \[19, 20\] examples but must be of one"),
        (lambda: step(now, state, batch, mask=np.ones(19, bool)), "mask is of bool and shape"),
        (lambda: step({"in": now["in"]}, state, batch), "params is a tree .* but must have the parameters'"),
        (lambda: step(now | {"in": now["out"]}, state, batch), r"in.* of params is of shape \(9, 3\)"),
        (
            lambda: jax.jit(lambda p: step(p, state, batch))(now),
            "params and batch are traced but must be arrays: call a JittedStep outside",
        ),
        (
            lambda: JittedStep(loss, optimizer, noise, groups=["in"])(now, state, batch),
            "out is in 0 groups but must be in one",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    assert noise.step == 0
    mesh = jax.make_mesh((4,), ("x",))
    spread = {"w": jax.device_put(jnp.zeros(8), NamedSharding(mesh, P("x")))}
    with pytest.raises(ValueError, match="params is a tree in 4 pieces but must be on one device"):
        JittedStep(loss, optimizer, Noise(spread, PLAN, key(), run="spread", external_batches=True))


def test_the_short_form_has_the_same_bits():
    (x, y), now, optimizer = data(), params(), optax.adam(1e-2)
    run = make_private(lambda p, x, y: loss(p, (x[0], y[0])), now, (x, y), plan=PLAN_459, key=key())
    assert run.plan == PLAN_459
    step, state = run.jitted_step(optimizer), optimizer.init(now)
    for examples in run.batches(padded=True):
        now, state = step(now, state, x[examples], y[examples], mask=examples >= 0)
    *_, wanted = longer("layers", optimizer, PLAN_459)
    assert equal(now, wanted) and run.noise.step == 24
    with pytest.raises(ValueError, match="arguments after state are 1 but must be 2"):
        step(now, state, x)
    with pytest.raises(ValueError, match="arguments is 0 but must be at least 1"):
        run.jitted_step(optimizer, arguments=0)
