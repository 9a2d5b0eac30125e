"""Each sampler's law, through `Batches`: participations in each step, alone and jointly, compared with the
sampler's definition.

Over n runs with separate keys, the tests count how often an example takes part in a step, and how often
each two (example, step) pairs occur together. The law gives the probability p of each event; a share k / n
as far from p or farther has probability at most 2 exp(-n KL(k / n, p)). Each count is tested at ALPHA over
the number of counts (Bonferroni). The runs' numbers are their seeds; with other seeds, a correct sampler
fails in one of 10^6 of these tests.
"""

import re
from math import comb

import numpy as np
import pytest
from conftest import small_plan

import antinoise as an

ALPHA = 1e-6
EXAMPLES, SIZE, STEPS, RUNS = 12, 3, 12, 10_000
# Maximum size of truncated batches: one in 18 is cut, for which a plan needs a delta near 1.
MOST = 5


def plan_of(kind):
    if kind in ("poisson", "block-cyclic poisson"):
        how = dict(
            setting="poisson",
            mechanism="identity" if kind == "poisson" else "banded-toeplitz:3",
            epochs=None,
            steps=STEPS,
        )
    elif kind == "truncated poisson":
        how = dict(setting="poisson", mechanism="identity", epochs=None, steps=STEPS)
        how |= dict(max_batch_size=MOST, epsilon=0.1, delta=0.9)
    elif kind == "shuffled":
        how = dict(setting="shuffled", mechanism="identity")
    elif kind == "b-min-sep":
        how = dict(setting="b-min-sep", mechanism="banded-toeplitz:3", epochs=None, steps=STEPS)
    else:
        how = dict(mechanism="banded-toeplitz:3")
    plan = small_plan(**(dict(examples=EXAMPLES, batch_size=SIZE, epochs=3, dim=5) | how))
    if kind == "balls in bins":
        plan = an.Plan.from_toml(
            re.sub(r'kind = "cyclic"\ngroups', 'kind = "balls-in-bins"\nbins', plan.to_toml())
        )
    return plan


def spread(of_group, groups):
    """Joint probabilities of (step, example) pairs from those of (group, example) pairs, where step t
    belongs to group t mod groups.
    """
    at = np.arange(STEPS) % groups
    return of_group.reshape(groups, EXAMPLES, groups, EXAMPLES)[at][:, :, at]


def grouped(groups):
    """A uniform order, split into groups."""
    sizes = np.diff([g * EXAMPLES // groups for g in range(groups + 1)])
    same, eye = np.eye(groups), np.eye(EXAMPLES)
    alone = same * sizes / EXAMPLES
    two = (np.outer(sizes, sizes) - np.diag(sizes)) / (EXAMPLES * (EXAMPLES - 1))
    return (
        alone[:, None, :, None] * eye[None, :, None, :] + two[:, None, :, None] * (1 - eye)[None, :, None, :]
    )


def coins(groups):
    """Each example of the step's group takes part with one probability, independently at each step."""
    q = SIZE * groups / EXAMPLES
    same = np.eye(STEPS)[:, None, :, None] * np.eye(EXAMPLES)[None, :, None, :]
    return spread(grouped(groups), groups) * np.where(same == 1, q, q * q)


def cut_coins():
    """Poisson batches, of which MOST examples are kept, uniformly at random."""
    q = SIZE / EXAMPLES

    def kept(others, taken):
        """The probability that `taken` given examples are drawn and kept, with `others` further examples."""
        found = 0.0
        for k in range(others + 1):
            drawn = comb(others, k) * q ** (k + taken) * (1 - q) ** (others - k)
            found += drawn * comb(min(k + taken, MOST), taken) / comb(k + taken, taken)
        return found

    alone, two = kept(EXAMPLES - 1, 1), kept(EXAMPLES - 2, 2)
    eye, same = np.eye(EXAMPLES)[None, :, None, :], np.eye(STEPS)[:, None, :, None]
    return same * (alone * eye + two * (1 - eye)) + (1 - same) * alone**2


def shuffled(groups):
    """A uniform order of each epoch, split into groups."""
    epoch = np.arange(STEPS) // groups
    same = (epoch[:, None] == epoch[None, :])[:, None, :, None]
    return np.where(same, spread(grouped(groups), groups), 1 / groups**2)


def bins(count):
    same, eye = np.eye(count), np.eye(EXAMPLES)
    return spread(
        same[:, None, :, None] / count * eye[None, :, None, :] + (1 - eye)[None, :, None, :] / count**2, count
    )


def waits(apart):
    """Each example independently: a wait, then a coin per step, and a pause after each participation."""
    q = SIZE / (EXAMPLES - (apart - 1) * SIZE)
    first = np.array([1 - (apart - 1) * SIZE / EXAMPLES] + [SIZE / EXAMPLES] * (apart - 1))

    def chances(free):
        """The probability of taking part at each step; `free` is the step from which coins are tossed."""
        found, free = np.zeros(STEPS), np.concatenate([free, np.zeros(2 * STEPS)])
        tossing = 0.0
        for step in range(STEPS):
            tossing += free[step]
            found[step] = tossing * q
            tossing -= found[step]
            free[step + apart] += found[step]
        return found

    alone = chances(first)
    joint = np.zeros((STEPS, STEPS))
    for step in range(STEPS):
        then = np.zeros(STEPS)
        then[step + apart :] = chances(np.ones(1))[: max(STEPS - step - apart, 0)]
        joint[step] = alone[step] * then
    joint += joint.T + np.diag(alone)
    eye = np.eye(EXAMPLES)
    return (
        joint[:, None, :, None] * eye[None, :, None, :]
        + np.outer(alone, alone)[:, None, :, None] * (1 - eye)[None, :, None, :]
    )


LAWS = {
    "cyclic": lambda: spread(grouped(4), 4),
    "poisson": lambda: coins(1),
    "block-cyclic poisson": lambda: coins(3),
    "truncated poisson": cut_coins,
    "shuffled": lambda: shuffled(4),
    "balls in bins": lambda: bins(4),
    "b-min-sep": lambda: waits(3),
}


def drawn(plan, runs=RUNS):
    """Whether each example is in each batch, over many runs."""
    found = np.zeros((runs, STEPS, EXAMPLES), np.float32)
    for run in range(runs):
        batches = an.Batches(plan, an.Key.from_seed_insecure(run))
        for step in range(STEPS):
            found[run, step, batches.at(step)] = 1
    return found


def departures(found, law):
    """The (step, example) pairs whose joint count departs from the law, and the number of counts tested."""
    runs, p = len(found), law.reshape(STEPS * EXAMPLES, -1)
    flat = found.reshape(runs, -1)
    upper = np.triu_indices(len(p))
    share, p = ((flat.T @ flat) / runs)[upper].astype(float), p[upper].round(15)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = [np.where(a > 0, a * np.log(a / b), 0.0) for a, b in ((share, p), (1 - share, 1 - p))]
    far = 2 * np.exp(-runs * sum(terms)) < ALPHA / len(p)
    return int(far.sum()), len(p)


@pytest.mark.filterwarnings("ignore:delta is 0.9")
@pytest.mark.parametrize("kind", LAWS)
def test_the_law_is_the_definition(kind):
    plan, law = plan_of(kind), LAWS[kind]()
    assert (
        plan.steps == STEPS
        and (plan.examples, plan.batch_size) == (EXAMPLES, SIZE)
        and plan.sampler["kind"] in kind.replace(" ", "-")
    )
    size = np.einsum("tete->t", law)
    assert np.all(size < SIZE) if kind == "truncated poisson" else np.allclose(size, SIZE)
    assert np.all((law >= 0) & (law <= 1))
    found = drawn(plan)
    if kind == "truncated poisson":
        # The mean of 120,000 sizes: six standard errors of it are less than what is cut.
        assert (
            found.sum(2).max() == MOST and abs(found.sum(2).mean() - size.mean()) < 0.025 < SIZE - size.mean()
        )
    assert found.size >= 1e6 and departures(found, law) == (0, 144 * 145 // 2)
    # Wrong laws must be found: batches one step early, thinned batches, or half of a run from another run.
    others = np.roll(found, 1, 0)
    mixed = np.concatenate([found[:, : STEPS // 2], others[:, STEPS // 2 :]], 1)
    thinned = found * (np.random.default_rng(0).random(found.shape) < 0.93)
    twice = found.copy()
    twice[:, 1] = twice[:, 0]
    steps_depend = kind not in ("poisson", "truncated poisson")
    for wrong in (thinned, twice, mixed) if steps_depend else (thinned, twice):
        assert departures(wrong, law)[0] > 0


def test_a_stream_is_its_examples_in_their_order():
    plan = small_plan(examples=EXAMPLES, batch_size=SIZE, epochs=1, setting="stream", dim=5)
    for run in range(200):
        found = np.concatenate([*an.Batches(plan, an.Key.from_seed_insecure(run))])
        assert np.array_equal(found, np.arange(EXAMPLES))


@pytest.mark.filterwarnings("ignore:delta is 0.9")
@pytest.mark.parametrize("kind", LAWS)
def test_batches_of_a_resumed_run_are_those_of_the_whole_run(kind, tmp_path):
    """The law thus also holds after a resume."""
    plan, cuts = plan_of(kind), np.random.default_rng(1)
    for run in range(100):
        whole = [batch.tolist() for batch in an.Batches(plan, an.Key.from_seed_insecure(run))]
        stream, row, cut = (
            an.NoiseStream(plan, 5, an.Key.from_seed_insecure(run)),
            np.empty(5, np.float32),
            cuts.integers(0, STEPS),
        )
        for _ in range(cut):
            stream.add_to_sum(np.zeros(5), row)
        stream.save(tmp_path / str(run))
        del stream
        resumed = an.Batches.of_noise(plan, an.NoiseStream.resume(tmp_path / str(run), plan, 5))
        assert [resumed.at(step).tolist() for step in range(STEPS)] == whole
