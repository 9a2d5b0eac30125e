"""A step's noise protects one sum: a second sum is refused, whichever stream of the process it is for."""

import numpy as np
import pytest
from conftest import STEPS, small_plan

import antinoise as an

DIM = 5000
USED = "the noise of step {} is in a noisy sum of this process: with another sum under the same noise"


@pytest.fixture(params=["grid", "plain"])
def either(request):
    return small_plan(arithmetic=request.param)


def sums(seed):
    return np.random.default_rng(seed).normal(size=DIM)


def noisy(noise, sum):
    out = np.full(len(noise), np.nan, np.float32)
    noise.add_to_sum(sum, out)
    return out


def refused(noise, sum, step):
    out = np.full(len(noise), np.nan, np.float32)
    with pytest.raises(RuntimeError, match=USED.format(step)):
        noise.add_to_sum(sum, out)
    assert not out.any() and noise.step == step


def test_a_used_step_takes_no_second_sum(either):
    noise = an.NoiseStream(either, DIM, an.Key.from_os())
    first = [noisy(noise, sums(step)) for step in range(3)]
    noise.seek(0)
    refused(noise, sums(7), 0)
    nudged = sums(0)
    nudged[1234] += 0.5
    refused(noise, nudged, 0)
    # A run that repeats its steps continues at the step it had reached.
    assert all((noisy(noise, sums(step)) == out).all() for step, out in enumerate(first))
    fourth = noisy(noise, sums(3))
    assert noise.step == 4 and np.isfinite(fourth).all()


def test_a_name_that_nobody_types_by_mistake_lifts_it(either):
    noise = an.NoiseStream(either, DIM, an.Key.from_os())
    for step in range(4):
        noisy(noise, sums(step))
    noise.seek(2, reuse_noise_unprotected=True)
    noisy(noise, sums(7))
    noise.seek(2)
    refused(noise, sums(2), 2)
    noise.seek(1)
    refused(noise, sums(7), 1)


def test_one_file_that_is_resumed_twice_takes_one_sum(either, tmp_path):
    noise, path = an.NoiseStream(either, DIM, an.Key.from_os()), tmp_path / "noise"
    noisy(noise, sums(0))
    noise.save(path)
    first, second = (an.NoiseStream.resume(path, either, DIM) for _ in range(2))
    out = noisy(first, sums(1))
    for other in (noise, second):
        refused(other, sums(2), 1)
        assert (noisy(other, sums(1)) == out).all()


def test_shards_that_share_a_coordinate_take_one_sum(either, key_file):
    def shard(*ranges):
        return an.NoiseStream(
            either, DIM, an.Key.from_file(key_file), run=f"shards {either.arithmetic}", shard=list(ranges)
        )

    noisy(shard((0, 1000), (3000, 3500)), np.ones(1500))
    refused(shard((3499, DIM)), np.ones(1501), 0)
    # Adjacent parts are one sum.
    noisy(shard((1000, 3000), (3500, DIM)), np.ones(3500))
    # Another run name gives other noise.
    noisy(an.NoiseStream(either, DIM, an.Key.from_file(key_file), run=f"others {either.arithmetic}"), sums(1))


def test_a_row_is_handed_out_once(either):
    noise, row = an.NoiseStream(either, DIM, an.Key.from_os()), np.zeros(DIM, np.float32)
    noise.next_into(row)
    if either.arithmetic == "grid":
        noise.next_points_into(np.zeros(DIM, np.int32))
    else:
        noise.add_next_into(np.ones(DIM, np.float32))
    noisy(noise, sums(2))
    noise.seek(0)
    before = row.copy()
    for use in (lambda: noise.next_into(row), lambda: noise.add_to_sum(sums(0), row)):
        with pytest.raises(
            RuntimeError, match="the noise of step 0 was handed out in this process, to be added to something"
        ):
            use()
        assert noise.step == 0
    noise.seek(2)
    with pytest.raises(
        RuntimeError,
        match="the noise of step 2 is in a noisy sum of this process: with anything else",
    ):
        noise.next_into(row)
    noise.seek(0, reuse_noise_unprotected=True)
    noise.next_into(row)
    assert (row == before).all() and before.any()


def test_a_gradient_that_noise_was_added_to_is_a_sum(plain):
    noise, gradient = an.NoiseStream(plain, DIM, an.Key.from_os()), np.ones(DIM, np.float32)
    noise.add_next_into(gradient, 0.5)
    noise.seek(0)
    other = np.full(DIM, 2, np.float32)
    with pytest.raises(RuntimeError, match=USED.format(0)):
        noise.add_next_into(other, 0.5)
    assert not other.any() and noise.step == 0
    again = np.ones(DIM, np.float32)
    noise.add_next_into(again, 0.5)
    assert (again == gradient).all()


@pytest.mark.parametrize("wild", [np.nan, np.inf, -np.inf, 1e300])
def test_wild_sums_are_refused_before_their_step_is_used(either, wild):
    noise, calm = (an.NoiseStream(either, DIM, an.Key.from_seed_insecure(1)) for _ in range(2))
    for step in range(3):
        sum, out = sums(step), np.full(DIM, np.nan, np.float32)
        sum[step * 2000] = wild
        with pytest.raises(
            ValueError,
            match=(
                "sum is not finite, or beyond what a noisy sum can hold, but must be a sum of clipped gradients"
            ),
        ):
            noise.add_to_sum(sum, out)
        assert not out.any() and noise.step == step
        # The step's noise was not used: the step can still be made, with another sum.
        assert (noisy(noise, sums(step)) == noisy(calm, sums(step))).all()


def test_steps_that_are_in_use_are_many(plain):
    noise = an.NoiseStream(plain, 3, an.Key.from_os())
    for step in range(STEPS):
        noisy(noise, np.full(3, float(step)))
    found = 0
    for step in range(STEPS):
        noise.seek(step)
        refused(noise, np.full(3, -1.0), step)
        found += 1
    assert found == STEPS
