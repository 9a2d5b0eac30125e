"""What processes of one run exchange: keys, states by coordinate, tokens."""

import numpy as np
import pytest
from conftest import STEPS, small_plan

import antinoise as an

DIM = 3000
HALVES = [(0, 1100)], [(1500, DIM), (1100, 1500)]


def key():
    return an.Key.from_seed_insecure(1)


def stream(plan, shard=None):
    return an.NoiseStream(plan, DIM, key(), shard=shard, state_in_memory=True)


def rows(noise, count):
    made = np.empty((count, len(noise)), np.float32)
    for row in made:
        noise.next_into(row)
    return made


def noise_state(noise):
    words, run_key = np.empty((noise.state_words, len(noise)), np.int32), np.zeros(32, np.uint8)
    steps, sum_of_words = noise.state(words, run_key)
    assert sum_of_words == noise.sum_of_words("state", words)
    assert words.size == 0 or sum_of_words != noise.sum_of_words("weights", words)
    return steps, words, run_key, sum_of_words


@pytest.mark.parametrize("kind", ["grid", "plain"])
@pytest.mark.parametrize("mechanism", ["identity", "blt:2", "banded-toeplitz:8", "banded-inverse:4"])
def test_one_process_goes_on_with_the_states_of_two(kind, mechanism):
    plan = small_plan(arithmetic=kind, mechanism=mechanism)
    whole = rows(stream(plan), STEPS)
    halves = [stream(plan, shard) for shard in HALVES]
    for half in halves:
        rows(half, 7)
    states = [noise_state(half) for half in halves]
    assert (
        states[0][0] == states[1][0]
        and states[0][0][0] == 7
        and (states[0][2] == states[1][2]).all()
        and states[0][2].any()
    )
    # The second shard is in another order.
    words = np.concatenate([states[0][1], states[1][1][:, 1500:], states[1][1][:, :1500]], axis=1)
    total = (states[0][3] + states[1][3]) % 2**128
    commitment = halves[0].state_commitment(states[0][0], total, extra=b"weights")
    saved = an.SavedState(np.ascontiguousarray(words), states[0][0], states[0][2], plan, DIM)
    assert saved.sum == total and commitment == halves[1].state_commitment(
        states[0][0], total, extra=b"weights"
    )
    resumed = saved.resume(commitment, extra=b"weights")
    with pytest.raises(ValueError, match="call of resume is a second one"):
        saved.resume(commitment, extra=b"weights")
    # Each part is verified by the total.
    for shard, (steps, words, run_key, mine) in zip(HALVES, states):
        part = an.SavedState(words, steps, run_key, plan, DIM, shard=shard)
        assert part.sum == mine and part.resume(commitment, total=total, extra=b"weights").step == 7
    assert resumed.token == halves[0].token and (rows(resumed, STEPS - 7) == whole[7:]).all()
    # The object that the state was read from continues as well.
    assert (rows(halves[0], STEPS - 7) == whole[7:, :1100]).all()


def test_a_state_that_does_not_fit_is_refused(plan):
    noise = stream(plan)
    rows(noise, 2)
    steps, words, run_key, total = noise_state(noise)
    commitment = noise.state_commitment(steps, total, extra=b"more")

    def resumed(
        words=words,
        steps=steps,
        run_key=run_key,
        commitment=commitment,
        plan=plan,
        extra=b"more",
        total=None,
        **how,
    ):
        return an.SavedState(words, steps, run_key, plan, DIM, **how).resume(
            commitment, extra=extra, total=total
        )

    assert resumed().step == 2
    altered = words.copy()
    altered[0, 17] ^= 1 << 20
    swapped = words.copy()
    swapped[:, [3, 4]] = swapped[:, [4, 3]]
    for wrong in (
        dict(steps=(3, steps[1])),
        dict(run_key=np.arange(32, dtype=np.uint8)),
        dict(plan=small_plan(epsilon=3)),
        dict(words=altered),
        dict(words=swapped),
        dict(words=np.zeros_like(words)),
        dict(words=np.roll(words, 1, axis=0)),
        dict(total=(total + 1) % 2**128),
        dict(extra=b""),
        dict(commitment=bytes(32)),
        dict(commitment=commitment[:31]),
        dict(commitment=b""),
    ):
        with pytest.raises(RuntimeError, match="the state is not the one that was saved"):
            resumed(**wrong)
    for wrong, message in (
        (dict(words=words[:, 1:].copy()), "words' length is"),
        (dict(words=words.astype(np.int64)), "words is of dtype int64 but must be of dtype int32"),
        (dict(steps=(2, 1)), "step up to which the noise of the state was made is 1"),
        (dict(steps=(25, 25)), "step of the state is 25"),
        (dict(run_key=np.zeros(32, np.uint8)), "run_key is one byte over and over"),
        (dict(run_key=np.arange(31, dtype=np.uint8)), "run_key is 31 bytes but must be 32"),
    ):
        with pytest.raises(ValueError, match=message):
            resumed(**wrong)
    # The state holds the run's own key: the name is a label on which no bit depends.
    assert resumed(run="other").run == "other"
    for wrong, message in (
        (words[1:], "words' length"),
        (words.T, "words is an array of shape"),
        ([words], "words is"),
    ):
        with pytest.raises(ValueError, match=message):
            noise.state(wrong, run_key)
    with pytest.raises(ValueError, match="run_key is 33 bytes but must be 32"):
        noise.state(words, np.zeros(33, np.uint8))


def test_batches_follow_the_noise(plan):
    noise, batches = stream(plan), an.Batches(plan, key())
    of_noise = an.Batches.of_noise(plan, noise)
    assert all((a == b).all() for a, b in zip(batches, of_noise)) and len(batches) == len(of_noise) == STEPS
    assert batches.token == of_noise.token == noise.token
    others = [an.Batches(plan, key(), run="other").token, an.Batches(plan, an.Key.from_os()).token]
    assert len({noise.token, *others}) == 3
    with pytest.raises(
        ValueError, match="plan is another one but must be the plan from which the noise was made"
    ):
        an.Batches.of_noise(small_plan(epsilon=3), noise)


def test_a_key_is_handed_over_by_one_exchange(plan):
    sent, rooms = [], []

    def send(room):
        rooms.append(room)
        sent.append(room.copy())

    def receive(room):
        assert not room.any()
        rooms.append(room)
        room[:] = sent[0]

    first = key()
    assert an.Key.broadcast(send, first) is first
    second = an.Key.broadcast(receive)
    assert not any(room.any() for room in rooms) and len(rooms) == 2
    assert an.Batches(plan, second).token == an.Batches(plan, first).token
    with pytest.raises(ValueError, match="bytes of the exchange is one byte over and over"):
        an.Key.broadcast(lambda room: None)
    with pytest.raises(LookupError):
        an.Key.broadcast(lambda room: {}["lost"])

    def freeze(room):
        rooms.append(room)
        room.setflags(write=False)

    assert an.Key.broadcast(freeze, first) is first and not rooms[-1].any()
    # The first key was already used for this run.
    an.NoiseStream(plan, DIM, first)
    with pytest.raises(ValueError, match="run is"):
        an.NoiseStream(plan, DIM, first)


def test_whole_points_make_the_noisy_sum(plan):
    added, alone = (an.NoiseStream(plan, DIM, key()) for _ in range(2))
    sum, row, points = (
        np.random.default_rng(3).normal(size=DIM),
        np.empty(DIM, np.float32),
        np.empty(DIM, np.int32),
    )
    for _ in range(3):
        added.add_to_sum(sum, row)
        alone.next_points_into(points)
        whole = np.rint(sum / plan.grid_spacing).astype(np.int64) + points
        assert points.any() and (row == (whole * plan.grid_spacing).astype(np.float32)).all()
    plain = small_plan(arithmetic="plain")
    assert plain.grid_spacing is None
    for noise, out, message in (
        (an.NoiseStream(plain, DIM, key()), points, "arithmetic of the plan is plain but must be grid"),
        (alone, points.astype(np.int64), "out is of dtype int64 but must be of dtype int32"),
        (alone, points[1:], "out's length is 2999"),
    ):
        with pytest.raises(ValueError, match=message):
            noise.next_points_into(out)
