"""Checkpoints of noise in JAX: a run resumes with the same bits, or is refused."""

import json

import numpy as np
import pytest
from corruption import refuses_all

# Before JAX: the module sets the variables that choose JAX's devices.
from jax_run import LAYOUTS, PLAIN, PLAN, X, Y, flat, jax, jnp, key, noise_of, rows, same

import antinoise as an
from antinoise._sealed import content_of, new_sealed
from antinoise.jax import Noise


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
