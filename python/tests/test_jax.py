"""Noise, sums and transformations for JAX, compared with loops over examples and streams of NumPy, on four
CPU devices of one machine.
"""

import copy
import json
import os
import pickle
import socket
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from conftest import small_plan
from corruption import refuses_all

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
os.environ["JAX_PLATFORMS"] = "cpu"
jax = pytest.importorskip("jax")
optax = pytest.importorskip("optax")

import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import antinoise as an
from antinoise._sealed import content_of, new_sealed
from antinoise.jax import (
    ClippedSum,
    Noise,
    add_noise,
    clipped_grad,
    clipped_sum,
    noise_addition_transform,
)
from antinoise.jax.layout import Layout, ranges_of

DIM = 8 * 12 + 8 + 1
PLAN = small_plan(dim=DIM)
PLAIN = small_plan(dim=DIM, arithmetic="plain")
UNEVEN = small_plan(dim=DIM, examples=250)  # a batch size that single precision does not hold


def key():
    return an.Key.from_seed_insecure(3)


def tree():
    made = np.random.default_rng(0)
    return {
        n: jnp.asarray(made.normal(size=s), jnp.float32) for n, s in (("b", (8,)), ("s", ()), ("w", (8, 12)))
    }


def flat(tree):
    return np.concatenate([np.asarray(leaf).ravel() for leaf in jax.tree.leaves(tree)])


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.size > 0 and a.tobytes() == b.tobytes()


def rows(plan, count):
    stream, made = an.NoiseStream(plan, DIM, key()), np.empty((count, DIM), np.float32)
    for row in made:
        stream.next_into(row)
    return made


def layouts(kind=AxisType.Auto):
    mesh, params = jax.make_mesh((2, 2), ("x", "y"), axis_types=(kind, kind)), tree()

    def put(b, w):
        return {
            "b": jax.device_put(params["b"], NamedSharding(mesh, b)),
            "s": jax.device_put(params["s"], NamedSharding(mesh, P())),
            "w": jax.device_put(params["w"], NamedSharding(mesh, w)),
        }

    yield "one device", params, DIM
    yield "replicated", put(P(), P()), DIM
    yield "rows over four", put(P(("x", "y")), P(("x", "y"))), DIM
    yield "blocks", put(P("x"), P("x", "y")), DIM
    yield "columns, replicated", put(P(), P(None, "y")), DIM
    yield "columns turned", put(P("y"), P(None, ("y", "x"))), DIM


LAYOUTS = list(layouts())


def noise_of(*what, **how):
    """Noise for sums of batches from elsewhere."""
    return Noise(*what, external_batches=True, **how)


@pytest.mark.parametrize("name, params, made", LAYOUTS, ids=[name for name, *_ in LAYOUTS])
def test_rows_have_the_same_bits_in_every_layout_and_each_coordinate_is_made_once(name, params, made):
    noise, wanted = noise_of(params, PLAIN, key()), rows(PLAIN, 3)
    assert len(noise) == made
    for step in range(3):
        row = noise.next()
        assert same(flat(row), wanted[step])
        for got, leaf in zip(jax.tree.leaves(row), jax.tree.leaves(params), strict=True):
            assert got.shape == leaf.shape and got.sharding == leaf.sharding
    assert noise.step == 3


@pytest.mark.parametrize("plan", [PLAN, PLAIN, UNEVEN], ids=["grid", "plain", "uneven"])
@pytest.mark.parametrize("name, params, made", LAYOUTS, ids=[name for name, *_ in LAYOUTS])
def test_a_noisy_mean_is_the_streams_over_the_batch(plan, name, params, made):
    noise, stream, out = (
        noise_of(params, plan, key()),
        an.NoiseStream(plan, DIM, key()),
        np.empty(DIM, np.float32),
    )
    for step in range(3):
        sums = {n: np.random.default_rng(step).normal(size=p.shape) for n, p in params.items()}
        if step == 2:  # arrays of JAX, laid out otherwise
            with jax.enable_x64(True):
                sums = jax.tree.map(jnp.asarray, sums)
        stream.add_to_sum(flat(sums).astype(np.float64), out)
        mean = noise.noisy_mean(sums)
        assert same(flat(mean), (out.astype(np.float64) / plan.expected_batch_size).astype(np.float32))
        assert all(
            m.sharding == p.sharding
            for m, p in zip(jax.tree.leaves(mean), jax.tree.leaves(params), strict=True)
        )


def test_means_have_the_parameters_precision():
    params = jax.tree.map(lambda p: p.astype(jnp.bfloat16), tree())
    mean = noise_of(params, PLAN, key()).noisy_mean(jax.tree.map(lambda p: np.ones(p.shape), params))
    stream, out = an.NoiseStream(PLAN, DIM, key()), np.empty(DIM, np.float32)
    stream.add_to_sum(np.ones(DIM), out)
    assert {leaf.dtype for leaf in jax.tree.leaves(mean)} == {jnp.dtype(jnp.bfloat16)}
    assert same(flat(mean), (out.astype(np.float64) / 20).astype(np.float32).astype(jnp.bfloat16))


def test_ranges_are_those_of_numpy():
    made, seen = np.random.default_rng(1), 0
    for _ in range(300):
        shape = tuple(int(n) for n in made.integers(1, 8, size=made.integers(0, 4)))
        box = tuple(
            (int(a), int(made.integers(a, n + 1)))
            for n, a in ((n, made.integers(0, (n + 1) // 2)) for n in shape)
        )
        index = (
            np.arange(7, 7 + int(np.prod(shape))).reshape(shape)[tuple(slice(*part) for part in box)].ravel()
        )
        ranges = ranges_of(7, shape, box)
        assert np.array_equal(np.concatenate([np.arange(*r) for r in ranges]) if ranges else [], index)
        seen += len(index)
    assert seen > 300
    assert Layout(tree()).ranges == [(0, DIM)]


X = np.random.default_rng(4).normal(size=(20, 8)).astype(np.float32) * 3
Y = np.random.default_rng(5).normal(size=(20, 12)).astype(np.float32)


def loss(params, example):
    x, y = example
    return jnp.sum((jnp.tanh((x + params["b"]) @ params["w"]) * params["s"] - y) ** 2)


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda: clipped_sum(loss, tree(), (X, Y), 0.0),
            "clip_norm is 0.0 but must be a finite number above 0",
        ),
        (
            lambda: clipped_sum(loss, tree(), (X, Y), np.inf),
            "clip_norm is inf but must be a finite number above 0",
        ),
        (
            lambda: clipped_sum(loss, tree(), (X, Y), 1.0, microbatch_size=0),
            "microbatch_size is 0 but must be at least 1",
        ),
        (
            lambda: clipped_sum(loss, tree(), (X, Y[:3]), 1.0),
            r"batch is of \[3, 20\] examples but must be of one number",
        ),
        (
            lambda: jax.jit(lambda p: clipped_sum(loss, p, (X, Y), 1.0).total)(tree()),
            "params and batch are traced but must be arrays",
        ),
        (
            lambda: noise_of({"w": np.zeros(3)}, PLAN, key()),
            r"\['w'\] is <class 'numpy.ndarray'> but must be a jax.Array",
        ),
        (
            lambda: noise_of({"w": jnp.zeros(3, jnp.int32)}, PLAN, key()),
            r"\['w'\] is of dtype int32 but must be of a floating one",
        ),
        (lambda: noise_of({}, PLAN, key()), "params is a tree without numbers but must have some"),
        (lambda: noise_of(tree(), PLAN, key()).next(), "arithmetic of the plan is grid but must be plain"),
        (
            lambda: noise_of(tree(), PLAN, key()).noisy_mean(tree()),
            "sum is of dtype float32 but must be float64: sums in less precision",
        ),
        (
            lambda: noise_of(tree(), PLAN, key()).noisy_mean([np.zeros(DIM)]),
            "sums is a tree .* but must have the parameters' structure",
        ),
        (
            lambda: noise_of(tree(), PLAN, key()).noisy_mean(
                {"b": np.zeros(8), "s": np.zeros(1), "w": np.zeros((8, 12))}
            ),
            r"\['s'\] of sums is of shape \(1,\) but must be of \(\)",
        ),
        (
            lambda: noise_of(tree(), PLAN, key()).noisy_mean(ClippedSum(None, 20, 1.5)),
            "clip_norm of the sum is 1.5 but must be the plan's, 1.0",
        ),
        (
            lambda: noise_of(tree(), PLAN, key()).noisy_mean(ClippedSum(None, 19, 1.0)),
            "batch of step 0 is of 19 examples but must be the plan's",
        ),
        (
            lambda: noise_of(tree(), PLAN, key()).noisy_mean(ClippedSum(None, 10**8, 1.0)),
            "but must be smaller, for its sum to be exact enough",
        ),
        (
            lambda: noise_of(tree(), small_plan(dim=DIM, setting="federated", min_sep=12), key()).noisy_mean(
                ClippedSum(None, 20, 1.0)
            ),
            "unit of the plan is user but must be example",
        ),
        (lambda: add_noise(PLAN), "arithmetic of the plan is grid but must be plain"),
        (
            lambda: noise_addition_transform(noise_of(tree(), PLAN, key()), sensitivity=1.1),
            "sensitivity is 1.1 but must be above 0 and at most",
        ),
        (
            lambda: noise_addition_transform(noise_of(LAYOUTS[2][1], PLAN, key()), sensitivity=1),
            "pieces but must be on one device",
        ),
    ],
)
def test_what_is_wrong_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_whole_training_sees_the_noisy_mean_alone():
    params, secret = tree(), key()
    noise, optimizer = Noise(params, PLAN, secret), optax.sgd(0.1)
    state, x, y = optimizer.init(params), np.tile(X, (12, 1)), np.tile(Y, (12, 1))
    stream, own, out = an.NoiseStream(PLAN, DIM, key()), flat(params), np.empty(DIM, np.float32)
    for examples in noise.batches():
        sums = clipped_sum(loss, params, (x[examples], y[examples]), PLAN.clip_norm)
        with pytest.raises((ValueError, TypeError, AttributeError)):
            optax.apply_updates(params, optimizer.update(sums, state, params)[0])
        stream.add_to_sum(flat(sums.total), out)
        updates, state = optimizer.update(noise.noisy_mean(sums), state, params)
        params = optax.apply_updates(params, updates)
        own = own + np.float32(-0.1) * (out.astype(np.float64) / 20).astype(np.float32)
    assert noise.step == PLAN.steps and np.allclose(flat(params), own, rtol=1e-6, atol=1e-6)
    with pytest.raises(RuntimeError, match="all 24 steps of this stream have been made"):
        noise.noisy_mean(jax.tree.map(lambda p: np.zeros(p.shape), params))


def test_noise_enters_a_jitted_step_as_an_argument():
    for dtype, trust in ((jnp.float64, False), (jnp.float32, True)):
        with jax.enable_x64(dtype == jnp.float64):
            params, noise = tree(), noise_of(tree(), PLAIN, key())
            tx = optax.chain(add_noise(PLAIN, trust_float32_sums=trust), optax.scale(-1.0))
            sums = jax.tree.map(partial(jnp.asarray, dtype=dtype), params)
            updates, _ = jax.jit(tx.update)(sums, tx.init(params), params, noise=noise.next())
        want = -((flat(sums) + rows(PLAIN, 1)[0].astype(dtype)) / 20).astype(np.float32)
        assert flat(updates).dtype == np.float32 and np.allclose(flat(updates), want, rtol=1e-6)
        assert np.array_equal(flat(updates), want) or dtype == jnp.float32


def test_a_step_without_its_noise_is_refused():
    params, tx = tree(), add_noise(PLAIN, trust_float32_sums=True)
    row = noise_of(params, PLAIN, key()).next()
    for given, message in (
        ({}, "noise is absent but must be the step's row"),
        ({"noise": {"w": row["w"]}}, "noise is a tree .* but must have the sums' structure"),
        (
            {"noise": row | {"w": row["w"][0]}},
            r"noise is of shape \(12,\) but must be of the sums' shape, \(8, 12\)",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            tx.update(params, tx.init(params), params, **given)
    with pytest.raises(ValueError, match="sum is of dtype float32 but must be float64"):
        add_noise(PLAIN).update(params, optax.EmptyState(), params, noise=row)
    with jax.enable_x64(True):
        double = jax.tree.map(lambda p: p.astype(jnp.float64), params)
    # what JAX would make of it
    with pytest.raises(ValueError, match="sum is of dtype float32 but must be float64"):
        jax.jit(add_noise(PLAIN).update)(double, optax.EmptyState(), params, noise=row)


@pytest.mark.parametrize("plan", [PLAN, PLAIN], ids=["grid", "plain"])
@pytest.mark.parametrize("double", [False, True])
def test_the_transformation_adds_the_streams_noise_under_jit(plan, double):
    with jax.enable_x64(double):
        params = tree()
        noise, stream = (
            noise_of(params, plan, key(), trust_float32_sums=not double),
            an.NoiseStream(plan, DIM, key()),
        )
        tx = noise_addition_transform(noise, sensitivity=1.0)
        state, update, out = tx.init(params), jax.jit(tx.update), np.empty(DIM, np.float32)
        for step in range(3):
            sums = jax.tree.map(
                lambda p, step=step: p.astype(jnp.float64 if double else jnp.float32) * (step + 1), params
            )
            got, state = update(sums, state)
            stream.add_to_sum(flat(sums).astype(np.float64), out)
            assert (
                same(flat(got), out.astype(np.float64) if double else out)
                and int(state.step) == step + 1 == noise.step
            )


def test_sums_in_double_precision_reach_a_callback_as_they_are(monkeypatch):
    """A callback may run where double precision is not enabled: in a thread of XLA's, as with JittedStep, or
    after the function was compiled. JAX would round its arguments to single precision there.
    """
    params, seen, add = tree(), [], Noise._add_to_sum_into

    def watched(noise, leaves, row):
        seen.append(np.concatenate([np.ravel(leaf) for leaf in leaves]))
        add(noise, leaves, row)

    monkeypatch.setattr(Noise, "_add_to_sum_into", watched)
    with jax.enable_x64(True):
        tx = noise_addition_transform(noise_of(params, PLAN, key()), sensitivity=1.0)
        sums = jax.tree.map(lambda p: p.astype(jnp.float64) / 3, params)
        state = tx.init(params)
        update = jax.jit(tx.update).lower(sums, state).compile()
    for _ in range(PLAN.steps):
        _, state = update(sums, state)
    jax.effects_barrier()
    assert flat(sums).dtype == np.float64 and not np.array_equal(flat(sums), flat(sums).astype(np.float32))
    assert len(seen) == PLAN.steps and all(same(sum, flat(sums)) for sum in seen)


def test_the_transformation_refuses_a_step_again_and_one_past_the_last():
    params = tree()
    noise = noise_of(params, PLAN, key(), trust_float32_sums=True)
    tx = noise_addition_transform(noise, sensitivity=1.0)
    first, update = tx.init(params), jax.jit(tx.update)
    _, state = update(params, first)
    jax.effects_barrier()
    with pytest.raises(Exception, match="step is 0 but must be 1, which comes next"):
        jax.block_until_ready(update(params, first))
    for _ in range(PLAN.steps - 1):
        _, state = update(params, state)
    jax.effects_barrier()
    with pytest.raises(Exception, match="all 24 steps of this stream have been made"):
        jax.block_until_ready(update(params, state))
    assert noise.step == PLAN.steps
    with pytest.raises(ValueError, match="sum is of dtype float32 but must be float64"):
        tx = noise_addition_transform(noise_of(params, PLAN, key()), sensitivity=1.0)
        jax.jit(tx.update)(params, tx.init(params))


@pytest.mark.parametrize("layout", [0, 3])
def test_a_run_goes_on_where_it_was_saved(layout, tmp_path):
    params, whole = LAYOUTS[layout][1], rows(PLAIN, 5)
    noise = noise_of(params, PLAIN, key(), run="a")
    made = [flat(noise.next()) for _ in range(2)]
    noise.save(tmp_path / "state", params)
    made += [flat(noise.next()) for _ in range(3)]
    with pytest.raises(
        RuntimeError, match="the noise of step 2 was handed out in this process, to be added to something"
    ):
        Noise.resume(tmp_path / "state", params, PLAIN, run="a", external_batches=True).next()
    later = Noise.resume(
        tmp_path / "state", params, PLAIN, run="a", external_batches=True, reuse_noise_unprotected=True
    )
    assert later.step == 2
    for step in range(2, 5):
        assert same(flat(later.next()), made[step]) and not same(made[step], whole[step])
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700
    assert [file.stat().st_mode & 0o777 for file in (tmp_path / "state").iterdir()] == [0o600, 0o600]
    swapped = {"b": params["s"], "s": params["b"], "w": params["w"]}
    with pytest.raises(ValueError, match="params is a tree of other names or shapes"):
        Noise.resume(tmp_path / "state", swapped, PLAIN, run="a")
    for how in (dict(plan=PLAN, run="a"), dict(plan=PLAIN, run="b")):
        with pytest.raises(ValueError, match="not a checkpoint of this stream"):
            Noise.resume(tmp_path / "state", params, **how)


@pytest.mark.parametrize("layout", [0, 3])
def test_a_checkpoint_goes_on_with_its_own_parameters_alone(layout, tmp_path):
    params, folder = LAYOUTS[layout][1], tmp_path / "state"
    made = noise_of(params, PLAN, key(), run="a")
    made.noisy_mean(jax.tree.map(lambda p: np.zeros(p.shape), params))
    made.save(folder, params)
    how = dict(plan=PLAN, run="a", external_batches=True)
    changed = [params | {name: leaf.at[(0,) * leaf.ndim].add(1e-6)} for name, leaf in params.items()]
    for other in changed:
        with pytest.raises(
            RuntimeError,
            match="^params are not as when the noise of step 1 was saved: another sum would be added",
        ):
            Noise.resume(folder, other, **how)
        assert Noise.resume(folder, other, reuse_noise_unprotected=True, **how).step == 1
    assert len(changed) == 3 and Noise.resume(folder, params, **how).step == 1
    with pytest.raises(ValueError, match="params is a tree .* but must have the parameters' structure"):
        made.save(folder, {})


def test_a_checkpoint_goes_on_with_its_own_data_alone(tmp_path):
    params, folder = LAYOUTS[0][1], tmp_path / "state"
    made = noise_of(params, PLAN, key(), run="d")
    made.noisy_mean(jax.tree.map(lambda p: np.zeros(p.shape), params))
    made.save(folder, params, data=(X, Y))
    how = dict(plan=PLAN, run="d", external_batches=True)
    changed = Y.copy()
    changed[3, 4] += 1
    for other in (
        (X, changed),
        (Y, X),
        [X, Y],
        {"x": X, "y": Y},
        (X.astype(np.float64), Y),
        (X, Y[1:]),
        None,
    ):
        with pytest.raises(RuntimeError, match="^data are not as when the noise of step 1 was saved"):
            Noise.resume(folder, params, data=other, **how)
        assert Noise.resume(folder, params, data=other, reuse_noise_unprotected=True, **how).step == 1
    moved = jax.tree.map(lambda p: p + 1, params)
    with pytest.raises(RuntimeError, match="^params and data are not as when"):
        Noise.resume(folder, moved, data=(X, changed), **how)
    assert Noise.resume(folder, params, data=(jnp.asarray(X), Y), **how).step == 1
    made.save(folder, params)
    with pytest.raises(RuntimeError, match="^data are not as when"):
        Noise.resume(folder, params, data=(X, Y), **how)


def test_it_is_not_copied_and_a_key_makes_it_once():
    secret = an.Key.from_os()
    noise = noise_of(tree(), PLAN, secret)
    for copied in (lambda: pickle.dumps(noise), lambda: copy.copy(noise), lambda: copy.deepcopy(noise)):
        with pytest.raises(TypeError, match="two of them would use the same noise twice"):
            copied()
    with pytest.raises(ValueError, match="a name that is new to this key"):
        noise_of(tree(), PLAN, secret)


def test_rows_are_not_written_again():
    """Arrays of a CPU may share the memory in which the noise was made."""
    params, noise = {"w": jnp.zeros(DIM)}, noise_of({"w": jnp.zeros(DIM)}, PLAIN, key())
    made = [noise.next()["w"] for _ in range(4)]
    assert same(np.stack(made), rows(PLAIN, 4)) and params["w"].sum() == 0


def test_a_row_is_not_compiled_into_a_step():
    params, noise, tx = tree(), noise_of(tree(), PLAIN, key()), add_noise(PLAIN, trust_float32_sums=True)
    row, state = noise.next(), optax.EmptyState()
    wrong = [
        lambda s: tx.update(s, state, params, noise=row)[0],
        lambda s: noise.next(),
        lambda s: noise.noisy_mean(params),
    ]
    for step, what in zip(
        wrong,
        (
            "a constant of the traced function",
            "asked for in a traced function",
            "asked for in a traced function",
        ),
    ):
        for traced in (
            jax.jit(step),
            lambda s, step=step: jax.lax.scan(lambda c, _: (c, step(s)), 0, None, length=2),
        ):
            with pytest.raises(ValueError, match=f"noise is {what}"):
                traced(params)
    assert noise.step == 1
    with pytest.raises(ValueError, match="noise is a constant of the traced function"):
        jax.vmap(wrong[0])(jax.tree.map(lambda p: jnp.stack([p, p]), params))
    assert same(flat(noise.next()), rows(PLAIN, 2)[1])


@pytest.mark.parametrize("plan", [PLAN, PLAIN], ids=["grid", "plain"])
def test_sums_that_are_not_finite_are_refused(plan):
    noise = noise_of(tree(), plan, key())
    sums = {n: np.zeros(p.shape) for n, p in tree().items()}
    sums["w"][3, 4] = np.nan
    with pytest.raises(
        ValueError,
        match="sum is not finite, or beyond what a noisy sum can hold, but must be a sum of clipped",
    ):
        noise.noisy_mean(sums)
    assert noise.step == 0


def test_batches_go_on_with_the_noise(tmp_path):
    params, wanted = {"w": jnp.zeros(8)}, list(an.Batches(PLAN, key()))
    noise, zeros = Noise(params, PLAN, key()), {"w": np.zeros(8)}
    for step, examples in enumerate(noise.batches()):
        assert np.array_equal(examples, wanted[step])
        if step == 2:
            break
        noise.noisy_mean(zeros)
    noise.save(tmp_path / "state", params)
    noise.save(tmp_path / "state", params)
    later, found = Noise.resume(tmp_path / "state", params, PLAN), []
    for at, examples in enumerate(later.batches()):
        if at != 5:  # dropped, and the same one comes again
            found.append(examples)
            later.noisy_mean(zeros)
    assert later.step == PLAN.steps and len(found) == PLAN.steps - 2
    assert all(np.array_equal(a, b) for a, b in zip(found, wanted[2:], strict=True))
    assert sorted(p.name for p in (tmp_path / "state").iterdir()) == [
        "layout-0",
        f"noise-0-{_commitment(tmp_path / 'state')}",
    ]


def _commitment(folder):
    return json.loads(content_of(folder / "layout-0"))[0][:16]


def test_a_checkpoint_that_was_damaged_or_mixed_is_refused(tmp_path):
    params = {"w": jnp.zeros((8, 12)), "b": jnp.zeros(8)}
    # Other steps, runs and keys.
    of = [(2, key(), "a"), (3, key(), "a"), (2, key(), "b"), (2, an.Key.from_seed_insecure(6), "a")]
    folders = [tmp_path / str(number) for number in range(4)]
    for folder, (steps, secret, run) in zip(folders, of):
        noise = Noise(params, PLAN, secret, run=run, external_batches=True)
        for _ in range(steps):
            noise.noisy_mean({"w": np.zeros((8, 12)), "b": np.zeros(8)})
        noise.save(folder, params)

    def resumed():
        return Noise.resume(folders[0], params, PLAN, run="a")

    files = [[folder / "layout-0", folder / f"noise-0-{_commitment(folder)}"] for folder in folders]
    for path, *others in zip(*files):
        refuses_all(path, others, resumed)
    assert resumed().step == 2
    kept, tried = [path.read_bytes() for path in files[0]], 0
    for other in files[1:]:
        for number in range(2):
            files[0][number].write_bytes(other[number].read_bytes())
            with pytest.raises(
                (RuntimeError, ValueError, FileNotFoundError),
                match="files of several checkpoints|not a checkpoint|noise-0",
            ):
                resumed()
            files[0][number].write_bytes(kept[number])
            tried += 1
    assert tried == 6 and resumed().step == 2
    with new_sealed(files[0][0]) as layout:
        layout.write(json.dumps(json.loads(kept[0][: kept[0].rindex(b"antinoise sha256")])[:2]).encode())
    with pytest.raises(
        RuntimeError, match="^state in .* is of an earlier version but must be of this version"
    ):
        resumed()


@pytest.mark.parametrize("plan", [PLAN, PLAIN], ids=["grid", "plain"])
def test_each_step_has_its_own_batch(plan, tmp_path):
    """Batches that are dropped, listed, used twice or from another pass: each step takes its own batch or
    is refused.
    """
    params, wanted, zeros = {"w": jnp.zeros(8)}, list(an.Batches(plan, key())), {"w": np.zeros(8)}
    noise = Noise(params, plan, key())

    def step(noise=noise):
        return noise.noisy_mean(zeros) if plan is PLAN or noise.step % 2 else noise.next()

    with pytest.raises(
        RuntimeError, match="Step 0 has no batch of its own: none was handed out since the last step"
    ):
        step()
    batches = noise.batches()
    assert np.array_equal(next(batches), wanted[0])
    step()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="Step 1 has no batch of its own"):
            step()
    assert all(np.array_equal(next(batches), wanted[1]) for _ in range(2))  # dropped once
    with pytest.raises(
        RuntimeError,
        match=(
            "The batch of step 1 was handed out twice, and another one is asked for before the step is made"
        ),
    ):
        next(batches)
    with pytest.raises(RuntimeError, match="The batch of step 1 was handed out twice"):
        list(noise.batches())
    first, second = noise.batches(), noise.batches()
    assert np.array_equal(next(first), next(second))
    step()
    with pytest.raises(RuntimeError, match="This pass over the batches is over: another one was begun"):
        next(first)
    next(second)
    with pytest.raises(
        ValueError,
        match=(
            "batch of step 2 is of 19 examples but must be the plan's, of 20|is of 19 examples but must be"
            " the plan's"
        ),
    ):
        noise.noisy_mean(ClippedSum(None, 19, 1.0))
    step()
    noise.save(tmp_path / "state", params)
    later = Noise.resume(tmp_path / "state", params, plan)
    with pytest.raises(RuntimeError, match="Step 3 has no batch of its own"):
        step(later)
    for at, batch in enumerate(later.batches(), 3):
        assert np.array_equal(batch, wanted[at])
        step(later)
    assert later.step == plan.steps
    with pytest.raises(RuntimeError, match="This noise was made with external_batches=True"):
        noise_of(params, plan, key()).batches()


PROCESS = """
import sys, jax, numpy as np, jax.numpy as jnp, antinoise as an
from conftest import small_plan
from antinoise.jax import Noise
rank, port, folder = int(sys.argv[1]), sys.argv[2], sys.argv[3]
jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(f"127.0.0.1:{port}", 2, rank, initialization_timeout=60)
mesh, P = jax.make_mesh((2,), ("x",)), jax.sharding.PartitionSpec
params = {n: jax.device_put(jnp.zeros(4), jax.sharding.NamedSharding(mesh, at)) for n, at in (("a", P()), ("b", P("x")))}
plan, zeros, how = small_plan(dim=8), {n: np.zeros(4) for n in params}, dict(external_batches=True)
try:
    Noise(params, plan, an.Key.from_seed_insecure(rank), **how)
except ValueError as error:
    assert "noise is different in processes [1] but must be that of process 0" in str(error)
    noise = Noise(params, plan, an.Key.from_seed_insecure(9), **how)
    want = np.empty(8, np.float32)
    an.NoiseStream(plan, 8, an.Key.from_seed_insecure(9)).add_to_sum(np.zeros(8), want)
    mean = noise.noisy_mean(zeros)
    for name, whole in (("a", want[:4]), ("b", want[4:])):
        for shard in mean[name].addressable_shards:
            assert np.array_equal(np.asarray(shard.data), whole[shard.index] / np.float32(20))
    noise.save(folder, params)
    assert Noise.resume(folder, params, plan, **how).step == 1
    if rank == 1:
        noise.noisy_mean(zeros)
        noise.save(folder, params)
    try:
        Noise.resume(folder, params, plan, **how)
    except ValueError as error:
        assert "noise is different in processes [1]" in str(error)
        print("refused")
"""


def test_processes_make_one_noise(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = os.environ | {
        "XLA_FLAGS": "--xla_force_host_platform_device_count=1",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    command = [sys.executable, "-W", "ignore", "-c", PROCESS]
    how = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    both = [
        subprocess.Popen([*command, str(rank), str(port), str(tmp_path / "state")], **how)
        for rank in range(2)
    ]
    for process in both:
        out, errors = process.communicate(timeout=120)
        assert process.returncode == 0 and "refused" in out, errors


SCRIPT = """
import dataclasses, jax, jax.numpy as jnp, numpy as np, antinoise as an
from jax_privacy.experimental import execution_plan
from antinoise.jax import Noise, noise_addition_transform
config = execution_plan.BandMFExecutionPlanConfig.default(
    num_bands=2, iterations=8, strategy_optimization_steps=5, epsilon=None, delta=None, noise_multiplier=1.0, sampling_prob=0.5)
theirs = config.plan
params = {"w": jnp.zeros(4), "b": jnp.zeros(())}
gradient = theirs.clipped_grad(lambda p, x, y: ((x @ p["w"] + p["b"] - y) ** 2).mean(), argnums=0, batch_argnums=(1, 2))
plan = an.plan(examples=40, batch_size=10, steps=8, epsilon=4, delta=1e-5, setting="poisson", mechanism="banded-toeplitz:2",
               clip_norm=gradient.sensitivity(), dim=5)
key = an.Key.from_seed_insecure(1)
noise = Noise(params, plan, key, trust_float32_sums=True)
mine = dataclasses.replace(theirs, noise_addition_transform=noise_addition_transform(noise, sensitivity=gradient.sensitivity()))
x, y = np.random.default_rng(0).normal(size=(40, 4)).astype("f"), np.ones(40, "f")
state, update = mine.noise_addition_transform.init(params), jax.jit(mine.noise_addition_transform.update)
stream, out, steps = an.NoiseStream(plan, 5, an.Key.from_seed_insecure(1)), np.empty(5, "f"), 0
flat = lambda tree: np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)])
for examples in noise.batches():
    sums = gradient(params, x[examples], y[examples])
    noisy, state = update(sums, state)
    stream.add_to_sum(flat(sums).astype("d"), out)
    assert np.array_equal(flat(noisy), out) and np.abs(out).max() > 0
    params = jax.tree.map(lambda p, n: p - 0.01 * n, params, noisy)
    steps += 1
assert steps == 8
"""


def test_jax_privacy_takes_the_transformation():
    pytest.importorskip("jax_privacy")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ,
    )
    assert done.returncode == 0, done.stderr
