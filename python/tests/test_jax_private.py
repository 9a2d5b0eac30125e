"""`make_private` of JAX: the bits of the longer way, and refusals before a plan is designed."""

import numpy as np
import pytest
from conftest import STEPS, small_plan

jax = pytest.importorskip("jax")
import optax

import antinoise as an
from antinoise.jax import Noise, PrivateRun, clipped_sum, make_private, private

CLIP = 0.7
ASKED = dict(epsilon=4, delta=1e-5, batch_size=20, epochs=2, clip_norm=CLIP)


def key():
    return an.Key.from_seed_insecure(5)


def data():
    made = np.random.default_rng(2)
    return made.normal(size=(240, 6)).astype(np.float32), made.integers(0, 3, 240)


def params():
    made = np.random.default_rng(1)
    return {"in": jax.numpy.asarray(made.normal(size=(6, 9)), "float32"), "out": jax.numpy.zeros((9, 3))}


def loss(params, x, y):
    logits = jax.numpy.tanh(x @ params["in"]) @ params["out"]
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()


def of_mapping(params, batch):
    return loss(params, batch["x"], batch["y"])


def step(params, mean):
    return jax.tree.map(lambda p, g: p - 0.5 * g, params, mean)


def equal(a, b):
    return all(np.array_equal(x, y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))


def longer(plan, steps=STEPS):
    (x, y), now, noise = data(), params(), Noise(params(), plan, key())
    for _, examples in zip(range(steps), noise.batches(), strict=False):
        one = lambda params, example: loss(params, example[0][None], example[1][None])  # noqa: E731
        sums = clipped_sum(one, now, (x[examples], y[examples]), plan.clip_norm)
        now = step(now, noise.noisy_mean(sums))
    return now


def test_a_run_resumes_with_its_own_data_and_the_same_bits(tmp_path):
    (x, y), now = data(), params()
    run = make_private(loss, params(), data(), key=key(), run="s", **ASKED)
    for examples, _ in zip(run.batches(), range(9)):
        now = step(now, run.gradient(now, x[examples], y[examples]))
    run.save(tmp_path, now)
    with pytest.raises(RuntimeError, match="^data are not as when the noise of step 9 was saved"):
        Noise.resume(tmp_path, now, run.plan, data=(x + 1, y), run="s")
    later = PrivateRun(loss, Noise.resume(tmp_path, now, run.plan, data=(x, y), run="s"), data=(x, y))
    for examples in later.batches():
        now = step(now, later.gradient(now, x[examples], y[examples]))
    whole = make_private(loss, params(), data(), key=key(), run="s", **ASKED)
    then = params()
    for examples in whole.batches():
        then = step(then, whole.gradient(then, x[examples], y[examples]))
    assert later.noise.step == run.plan.steps and equal(now, then)


@pytest.mark.parametrize("form", ["arguments", "a mapping"])
@pytest.mark.parametrize("setting", [None, "poisson"])
def test_it_makes_the_bits_of_the_longer_way(setting, form):
    (x, y), now, how = data(), params(), ASKED | (dict(setting=setting) if setting else {})
    run = make_private(loss if form == "arguments" else of_mapping, params(), data(), key=key(), **how)
    assert run.plan == an.plan(240, dim=81, **how) and run.statement == run.plan.statement
    for examples in run.batches():
        batch = (x[examples], y[examples])
        batch = batch if form == "arguments" else ({"x": batch[0], "y": batch[1]},)
        now = step(now, run.gradient(now, *batch))
    assert run.noise.step == run.plan.steps and equal(now, longer(run.plan))
    with pytest.raises(RuntimeError, match="all 24 steps of this stream have been made"):
        run.gradient(now, *batch)


def test_a_run_is_resumed(tmp_path):
    (x, y), now, plan = data(), params(), small_plan(dim=100, clip_norm=CLIP)
    run = make_private(loss, now, data(), plan=plan, key=key())
    for examples in run.batches():
        now = step(now, run.gradient(now, x[examples], y[examples]))
        if run.noise.step == 9:
            break
    run.noise.save(tmp_path / "noise", now)
    again = PrivateRun(loss, Noise.resume(tmp_path / "noise", now, plan))
    for examples in again.batches():
        now = step(now, again.gradient(now, x[examples], y[examples]))
    assert again.noise.step == STEPS and equal(now, longer(plan))


def test_each_step_has_its_own_batch():
    (x, y), run = data(), make_private(loss, params(), data(), plan=small_plan(dim=100), key=key())
    with pytest.raises(RuntimeError, match="Step 0 has no batch of its own"):
        run.gradient(params(), x[:20], y[:20])
    first = next(run.batches())
    with pytest.raises(ValueError, match="batch of step 0 is of 19 examples but must be the plan's, of 20"):
        run.gradient(params(), x[first[:19]], y[first[:19]])
    run.gradient(params(), x[first], y[first])
    with pytest.raises(RuntimeError, match="Step 1 has no batch of its own"):
        run.gradient(params(), x[first], y[first])


@pytest.mark.parametrize(
    "how, message",
    [
        (dict(epsilon=3), "epsilon is given but must be left out where plan is given"),
        (dict(setting="cyclic"), "setting is given but must be left out where plan is given"),
        (dict(clip_norm=0.5), "clip_norm is 0.5 but must be left out, or the plan's, 0.7"),
        (
            dict(plan=None, **(ASKED | dict(delta=None))),
            "delta is absent but must be given, unless a plan is",
        ),
        (
            dict(plan=None, **(ASKED | dict(batch_size=241))),
            "batch_size is 241 but must be from 1 to examples",
        ),
        (dict(plan=None, params={}, **ASKED), "params is a tree without numbers but must have some"),
        (dict(data=np.zeros((239, 2))), "data is of 239 examples but must be of the plan's 240"),
        (dict(data=(np.zeros(3), np.zeros(4))), r"data is of \[3, 4\] examples but must be a tree of arrays"),
        (dict(data=(i for i in range(3))), "data is a generator but must be a tree of arrays"),
        (dict(data=240), "data is a int but must be a tree of arrays"),
    ],
)
def test_what_is_wrong_is_refused(how, message):
    how = dict(plan=small_plan(dim=100, clip_norm=CLIP), params=params(), data=data()) | how
    with pytest.raises(ValueError, match=message):
        make_private(loss, how.pop("params"), how.pop("data"), **how)


def test_several_processes_need_a_key(monkeypatch):
    monkeypatch.setattr(private.jax, "process_count", lambda: 2)
    with pytest.raises(ValueError, match="key is None but must be given where several processes train"):
        make_private(loss, params(), data(), plan=small_plan(dim=100))


CUT = ASKED | dict(examples=240, dim=81, setting="poisson", mechanism="identity", max_batch_size="auto")


def private_run(loss_of_one, **how):
    return make_private(loss_of_one, params(), data(), plan=an.plan(**(CUT | how)), key=key(), clip_norm=CLIP)


@pytest.mark.parametrize("setting", ["poisson", "cyclic"])
def test_padded_batches_have_one_shape_and_compile_once(setting):
    (x, y), now, traces, shapes, sizes = data(), params(), [], set(), set()
    how = {} if setting == "poisson" else dict(setting=setting, max_batch_size=None, batch_size=33)

    def counted(params, x, y):
        traces.append("loss")
        return loss(params, x, y)

    @jax.jit
    def jitted(params, x, mask):
        traces.append("step")
        return jax.numpy.where(mask[:, None], x, 0.0).sum() * params["out"].sum()

    run = private_run(counted, **how)
    for examples in run.batches(padded=True):
        mask = examples >= 0
        shapes.add(examples.shape)
        sizes.add(int(mask.sum()))
        jitted(now, x[examples], mask)
        # Whatever padding holds, it adds nothing.
        rows = np.where(mask[:, None], x[examples], np.float32(np.nan))
        now = step(now, run.gradient(now, rows, y[examples], mask=mask))
    assert shapes == {(run.plan.max_batch_size,)} and len(sizes) > 1 and sorted(traces) == ["loss", "step"]
    again, plain = params(), private_run(loss, **how)
    for examples in plain.batches():
        again = step(again, plain.gradient(again, x[examples], y[examples]))
    assert equal(now, again)


def test_a_size_that_costs_next_to_nothing_is_found():
    cut, whole, uncut = (an.plan(**(CUT | dict(max_batch_size=size))) for size in ("auto", 240, None))
    assert 40 < cut.max_batch_size < 70 and uncut.max_batch_size is None and whole.max_batch_size == 240
    assert cut.noise_multiplier < 1.01 * uncut.noise_multiplier
    assert cut.sampler == dict(kind="truncated-poisson", groups=1, max_batch_size=cut.max_batch_size)
    assert an.Plan.from_toml(cut.to_toml()) == cut and "at random (truncated)" in cut.statement
    sizes = [len(batch) for batch in an.Batches(cut, key())]
    assert max(sizes) <= cut.max_batch_size and cut.batch_sizes(0) == (0, cut.max_batch_size)


def test_masks_and_sizes_that_are_wrong_are_refused():
    (x, y), run = data(), private_run(loss, max_batch_size=None)
    with pytest.raises(ValueError, match="padded is True but must be left out where batches have no largest"):
        run.batches(padded=True)
    for mask in (np.ones(19, bool), np.ones(20), np.ones((20, 1), bool)):
        with pytest.raises(ValueError, match="mask is of .* but must be of booleans, shape"):
            run.gradient(params(), x[:20], y[:20], mask=mask)
    for size, message in ((21, "is 21 but must be from"), ("most", "most.* but must be auto or a whole")):
        with pytest.raises(ValueError, match=f"max_batch_size .*{message}"):
            an.plan(**(CUT | dict(max_batch_size=size)))
    with pytest.raises(ValueError, match="max_batch_size is auto but must be left out"):
        make_private(loss, params(), data(), max_batch_size="auto", **ASKED)
