"""Noise and noisy means for JAX, compared with streams of NumPy, on four CPU devices of one machine."""

import copy
import os
import pickle
import socket
import subprocess
import sys

import numpy as np
import pytest
from conftest import small_plan

# Before JAX: the module sets the variables that choose JAX's devices.
from jax_run import DIM, LAYOUTS, PLAIN, PLAN, X, Y, flat, jax, jnp, key, loss, noise_of, rows, same, tree

optax = pytest.importorskip("optax")

import antinoise as an
from antinoise.jax import ClippedSum, Noise, add_noise, clipped_sum, noise_addition_transform
from antinoise.jax.layout import Layout, ranges_of

UNEVEN = small_plan(dim=DIM, examples=250)  # a batch size that single precision does not hold


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
