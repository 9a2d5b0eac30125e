"""Noise: the command line's bits, into any kind of memory, refused where it would be wrong."""

import array
import contextlib
import json

import numpy as np
import pytest
from conftest import STEPS, small_plan

import antinoise as an

DIM = 5000


def stream(plan, dim=DIM, **how):
    return an.NoiseStream(plan, dim, an.Key.from_seed_insecure(1), **how)


def rows(noise, count):
    made = np.empty((count, len(noise)), np.float32)
    for row in made:
        noise.next_into(row)
    return made


def same(a, b):
    return a.shape == b.shape and (a.view(np.uint32) == b.view(np.uint32)).all()


@pytest.mark.parametrize("kind", ["grid", "plain"])
def test_bits_are_those_of_the_command_line(kind, tmp_path, key_file, antinoise):
    plan, path, out = small_plan(arithmetic=kind), tmp_path / "plan.toml", tmp_path / "noise.npy"
    plan.save(path)
    asked = ["--plan", path, "--dim", DIM, "--key-file", key_file, "--out", out, "--run", "third"]
    made = antinoise("noise", *asked, "--json")
    assert made.returncode == 0, made.stderr
    noise = an.NoiseStream(plan, DIM, an.Key.from_file(key_file), run="third")
    assert noise.description == json.loads(made.stdout)["description"]
    assert same(rows(noise, STEPS), np.load(out))
    other = an.NoiseStream(plan, DIM, an.Key.from_file(key_file))
    assert not same(rows(other, STEPS), np.load(out))


def test_threads_memory_and_look_ahead_change_no_bit(plan):
    whole = rows(stream(plan), STEPS)
    for how in (
        dict(threads=1),
        dict(threads=3),
        dict(memory=0),
        dict(look_ahead=1),
        dict(look_ahead=5, threads=2),
    ):
        assert same(rows(stream(plan, **how), STEPS), whole), how
    assert (
        stream(plan).placement["state"] == "stored"
        and stream(plan, memory=0).placement["state"] == "replayed"
    )


def test_shards_are_parts_of_the_whole(plan):
    whole = rows(stream(plan), 5)
    part = stream(plan, shard=[(4000, 5000), (7, 13), (100, 101)])
    assert same(rows(part, 5), np.concatenate([whole[:, 4000:], whole[:, 7:13], whole[:, 100:101]], axis=1))
    key = an.Key.from_seed_insecure(1)
    halves = [an.NoiseStream(plan, DIM, key, shard=[half]) for half in [(0, 2500), (2500, DIM)]]
    assert same(np.hstack([rows(half, 5) for half in halves]), whole)


def test_a_noisy_sum_is_the_sum_and_the_noise(plan, plain):
    sums = np.random.default_rng(1).normal(size=DIM)
    out, noise = np.empty(DIM, np.float32), rows(stream(plain), 1)[0]
    stream(plain).add_to_sum(sums, out)
    assert same(out, (sums + noise.astype(np.float64)).astype(np.float32))
    stream(plan).add_to_sum(sums, out)
    spacing = float(
        next(line for line in plan.to_toml().splitlines() if line.startswith("spacing")).split("=")[1]
    )
    assert (out.astype(np.float64) % spacing == 0).all()
    on_grid = rows(stream(plan), 1)[0].astype(np.float64)
    assert np.abs(out - on_grid - sums).max() <= spacing * 0.5 + 1e-5
    zeros = np.empty(DIM, np.float32)
    stream(plan).add_to_sum(np.zeros(DIM), zeros)
    assert same(zeros, rows(stream(plan), 1)[0])


def test_noise_is_added_with_a_scale(plain):
    noise, gradient = rows(stream(plain), 1)[0], np.ones(DIM, np.float32)
    stream(plain).add_next_into(gradient, 0.5)
    assert np.allclose(gradient, 1 + 0.5 * noise, rtol=1e-6, atol=1e-5)
    default = np.zeros(DIM, np.float32)
    stream(plain).add_next_into(default)
    assert same(default, noise)


def test_a_row_may_lie_in_several_places(plan, plain):
    row = rows(stream(plan), 1)[0]
    matrix, vector, rest = (
        np.empty((40, 50), np.float32),
        array.array("f", bytes(4 * 1000)),
        bytearray(4 * 2000),
    )
    stream(plan).next_into([matrix, vector, memoryview(rest).cast("f")])
    assert same(np.concatenate([matrix.ravel(), np.array(vector), np.frombuffer(rest, np.float32)]), row)
    sums = np.random.default_rng(2).normal(size=DIM)
    whole, parts = np.empty(DIM, np.float32), [np.empty(n, np.float32) for n in (1, 4000, 999)]
    stream(plan).add_to_sum(sums, whole)
    stream(plan).add_to_sum((sums[:17], sums[17:]), tuple(parts))
    assert same(np.concatenate(parts), whole)
    gradient, parts = np.ones(DIM, np.float32), [np.ones(2500, np.float32) for _ in range(2)]
    stream(plain).add_next_into(gradient, 2.0)
    stream(plain).add_next_into(parts, 2.0)
    assert same(np.concatenate(parts), gradient)
    one = np.empty(DIM, np.float32)
    stream(plan).next_into([one])
    assert same(one, row)


def test_seeking_and_resuming_make_the_same_bits(plan, tmp_path):
    whole, noise, told = rows(stream(plan), STEPS), stream(plan), []
    noise.seek(17, progress=lambda at, of: told.append((at, of)))
    assert noise.step == 17 and same(rows(noise, STEPS - 17), whole[17:])
    assert told[-1] == (17, 17) and [at for at, _ in told] == sorted(at for at, _ in told)
    # Rows that were handed out are computed a second time only if an argument allows it by name.
    noise.seek(3, reuse_noise_unprotected=True)
    assert same(rows(noise, 2), whole[3:5])
    path = tmp_path / "noise.safetensors"
    noise.save(path)
    assert path.stat().st_mode & 0o777 == 0o600
    resumed = an.NoiseStream.resume(path, plan, DIM)
    assert resumed.step == 5 and same(rows(resumed, STEPS - 5), whole[5:])
    noise.save(path)  # over the last one
    for wrong in (
        lambda: an.NoiseStream.resume(path, small_plan(epsilon=3), DIM),
        # Another plan: the same noise would be used for other data.
        lambda: an.NoiseStream.resume(path, small_plan(examples=480, batch_size=40), DIM),
        lambda: an.NoiseStream.resume(path, plan, DIM - 1),
        lambda: an.NoiseStream.resume(path, plan, DIM, run="other"),
        lambda: an.NoiseStream.resume(path, plan, DIM, shard=[(0, 5)]),
    ):
        with pytest.raises(ValueError, match="not a checkpoint of this stream"):
            wrong()


def test_no_step_after_the_last(plan):
    noise, row = stream(plan), np.zeros(DIM, np.float32)
    noise.seek(STEPS)
    for again in (
        lambda: noise.next_into(row),
        lambda: noise.add_to_sum(np.zeros(DIM), row),
        lambda: noise.next_into([row[:5], row[5:]]),
    ):
        with pytest.raises(RuntimeError, match="all 24 steps of this stream have been made"):
            again()
    assert not row.any()
    with pytest.raises(ValueError, match="step is 25 but must be from 0 to steps = 24"):
        noise.seek(STEPS + 1)


def tensor_on_a_device():
    class Tensor:
        data_ptr = lambda self: 1  # noqa: E731
        detach = lambda self: self  # noqa: E731

        def numpy(self):
            raise TypeError("can't convert cuda:0 device type tensor to numpy")

    return Tensor()


@pytest.mark.parametrize(
    "out, message",
    [
        (np.empty(DIM), "out is of dtype float64 but must be of dtype float32"),
        (np.empty(DIM, ">f4"), "out is of dtype >f4 but must be of dtype float32"),
        (
            np.empty((DIM, 2), np.float32)[:, 0],
            "out is an array of shape [5000] and strides [8] but must be contiguous",
        ),
        (
            np.empty((50, 100), np.float32).T,
            "out is an array of shape [100, 50] and strides [4, 400] but must be contiguous",
        ),
        (np.empty(3, np.float32), "out's length is 3 but must be the shard's 5000"),
        (
            [np.empty(3, np.float32)] * 2,
            "out is arrays that share memory but must be arrays that do not overlap",
        ),
        ([np.empty(3, np.float32), np.empty(4)], "out is of dtype float64"),
        (np.frombuffer(bytes(4 * DIM), np.float32), "out is The given array is not writeable but must be"),
        (
            np.frombuffer(bytearray(4 * DIM + 1), np.uint8)[1:].view(np.float32),
            "out is an unaligned array but must be",
        ),
        ("row", "out is <class 'str'> but must be a NumPy array"),
        ([1.0, 2.0], "out is <class 'float'> but must be a NumPy array"),
        (tensor_on_a_device(), "out is can't convert cuda:0 device type tensor to numpy but must be"),
    ],
)
def test_a_place_that_is_not_a_row_is_refused(plan, out, message):
    noise = stream(plan)
    with pytest.raises(ValueError) as caught:
        noise.next_into(out)
    assert str(caught.value).startswith(message)
    assert noise.step == 0


def test_sum_and_noisy_sum_are_apart(plan):
    memory, noise = np.zeros(DIM), stream(plan)
    with pytest.raises(ValueError, match="out is arrays that share memory"):
        noise.add_to_sum(memory, memory.view(np.float32)[:DIM])
    for wrong, message in (
        (memory.astype(np.float32), "sum is of dtype float32 but must be of dtype float64"),
        (memory[1:], "sum's length is 4999 but must be the shard's 5000"),
    ):
        with pytest.raises(ValueError, match=message):
            noise.add_to_sum(wrong, np.empty(DIM, np.float32))
    with pytest.raises(ValueError, match="arithmetic of the plan is grid but must be plain"):
        noise.add_next_into(np.empty(DIM, np.float32))


@pytest.mark.parametrize(
    "how, message",
    [
        (dict(dim=0), "dim is 0 but must be"),
        (dict(dim=5001), "dim is 5001 but must be from 1 to the plan's dim = 5000"),
        (dict(shard=[(0, 5001)]), "shard is 0..5001 but must be within 0..5000"),
        (dict(shard=[(0, 9), (8, 10)]), "shard is 0..9 and 8..10 but must be ranges that do not overlap"),
        (dict(threads=0), "threads is 0 but must be"),
        (dict(look_ahead=0), "look_ahead is 0 but must be at least 1"),
        (dict(run=""), 'run is "" but must be a name'),
    ],
)
def test_what_is_wrong_is_named(plan, how, message):
    with pytest.raises(ValueError) as caught:
        stream(plan, **how)
    assert str(caught.value).startswith(message)


def test_a_tensor_whose_numbers_are_copied_is_refused(plan):
    class Copied:
        def __init__(self):
            self.own, self.other = np.zeros(DIM, np.float32), np.zeros(DIM, np.float32)

        data_ptr = lambda self: self.own.ctypes.data  # noqa: E731
        detach = lambda self: self  # noqa: E731
        numpy = lambda self: self.other  # noqa: E731

    with pytest.raises(ValueError, match="Copied'> but must be a NumPy array"):
        stream(plan).next_into(Copied())


def test_a_key_makes_noise_once(plan, key_file):
    key = an.Key.from_os()
    first = an.NoiseStream(plan, DIM, key)
    batches = an.Batches(plan, key)
    for again in (
        lambda: an.NoiseStream(plan, DIM, key),
        lambda: an.NoiseStream(plan, DIM, key, shard=[(4999, 5000)]),
        lambda: an.NoiseStream(plan, DIM - 1, key),
        lambda: an.NoiseStream(small_plan(epsilon=3), DIM, key),
        lambda: an.Batches(small_plan(epsilon=3), key),
    ):
        with pytest.raises(ValueError, match='run is "0" but must be a name that is new to this key'):
            again()
    second = an.NoiseStream(plan, DIM, key, run="1")
    assert not same(rows(first, 1), rows(second, 1)) and len(batches) == STEPS
    # A failed construction does not use up the run's name.
    fresh = an.Key.from_os()
    with contextlib.suppress(ValueError):
        an.NoiseStream(plan, DIM, fresh, threads=0)
    an.NoiseStream(plan, DIM, fresh)
