"""Clipped sums of any batch, and the plan's batches epoch by epoch."""

import os
import stat

import pytest
from conftest import small_plan

torch = pytest.importorskip("torch")
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, SequentialSampler, TensorDataset

import antinoise as an
from antinoise.torch import clipped_sum_, norms
from antinoise.torch.checkpoint import save_private
from antinoise.torch.data.epochs import EpochSampler
from antinoise.torch.data.loaders import planned_loader
from antinoise.torch.held_sums import held_sum

CLIP = 0.7
loss = nn.functional.cross_entropy


def small_model(*more):
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(6, 9), nn.Tanh(), *more, nn.Linear(9, 3))


def data(count=240):
    generator = torch.Generator().manual_seed(2)
    return torch.randn(count, 6, generator=generator), torch.randint(0, 3, (count,), generator=generator)


def key():
    return an.Key.from_seed_insecure(5)


def sums_of(model):
    return torch.cat([held_sum(p).total.reshape(-1) for p in model.parameters() if p.requires_grad])


def of_mapping(model, batch):
    return loss(model(batch["x"]), batch["y"])


@pytest.mark.parametrize("microbatch_size, tolerance", [(1, 1e-6), (7, 1e-13), (64, 1e-13)])
def test_a_sum_of_any_batch_is_that_of_a_pair(microbatch_size, tolerance):
    x, y = data()
    x[3], x[4, 0] = float("nan"), float("inf")
    pair, mapping = small_model(), small_model()
    for model in (pair, mapping):
        model[0].bias.requires_grad_(False)
    wanted = clipped_sum_(
        pair, loss, x[:20], y[:20], CLIP, microbatch_size=microbatch_size, norms="per_example"
    )
    found = clipped_sum_(
        mapping, of_mapping, {"x": x[:20], "y": y[:20]}, CLIP, microbatch_size=microbatch_size
    )
    assert sums_of(pair).abs().max() > 0.1 and held_sum(mapping[0].weight).examples == 20
    assert torch.allclose(sums_of(pair), sums_of(mapping), rtol=tolerance, atol=tolerance)
    assert found.isnan() and wanted.isnan() and held_sum(mapping[0].bias) is None


def test_examples_one_by_one_need_no_vmap():
    def decides(model, pair):
        return loss(model(pair[0]), pair[1]) * (2.0 if pair[0].sum().item() > 0 else 1.0)

    x, y = data(8)
    model, each = small_model(), []
    value = clipped_sum_(model, decides, (x, y), 1e3)
    for a, b in zip(x, y, strict=True):
        each.append(torch.autograd.grad(decides(model, (a[None], b[None])), list(model.parameters())))
    wanted = sum(torch.cat([g.reshape(-1).double() for g in gradient]) for gradient in each)
    assert torch.allclose(sums_of(model), wanted, rtol=1e-12, atol=1e-12) and value.item() > 0
    with pytest.raises(RuntimeError, match="vmap"):
        clipped_sum_(model, decides, (x, y), 1e3, microbatch_size=8)


def test_one_example_moves_the_sum_by_the_clip_norm_at_most():
    (x, y), whole = data(40), small_model()
    clipped_sum_(whole, of_mapping, {"x": 30 * x, "y": y}, CLIP)
    for left_out in range(0, 40, 8):
        fewer, kept = small_model(), [i for i in range(40) if i != left_out]
        clipped_sum_(fewer, of_mapping, {"x": 30 * x[kept], "y": y[kept]}, CLIP)
        assert 0.5 * CLIP < (sums_of(whole) - sums_of(fewer)).norm() <= CLIP * (1 + 2**-20)


def test_no_examples_and_portions():
    (x, y), parts, whole = data(), small_model(), small_model()
    for part in (slice(0, 8), slice(8, 8), slice(8, 20)):
        clipped_sum_(parts, of_mapping, {"x": x[part], "y": y[part]}, CLIP)
    clipped_sum_(whole, of_mapping, {"x": x[:20], "y": y[:20]}, CLIP)
    assert (
        torch.allclose(sums_of(whole), sums_of(parts), rtol=1e-12)
        and held_sum(parts[0].weight).examples == 20
    )


def test_what_is_wrong_is_named():
    x, y = data()
    for how, message in (
        (dict(clip_norm=0.0), "clip_norm is 0.0 but must be a finite number above 0"),
        (dict(microbatch_size=0), "microbatch_size is 0 but must be at least 1"),
        (
            dict(batch={"x": x, "y": y[1:]}),
            r"batch is one of tensors of \[239, 240\] examples but must be made of tensors",
        ),
        (dict(batch={"x": x, "y": 3}), "batch is one with a int but must be made of tensors"),
        (dict(batch={}), r"batch is one of tensors of \[\] examples but must be made of tensors"),
        (dict(model=small_model(nn.BatchNorm1d(9))), "2 is a BatchNorm1d but must treat examples apart"),
    ):
        with pytest.raises(ValueError, match=message):
            given = dict(model=small_model(), batch={"x": x, "y": y}, clip_norm=CLIP) | how
            model, batch, clip_norm = (given.pop(name) for name in ("model", "batch", "clip_norm"))
            clipped_sum_(model, of_mapping, batch, clip_norm, **given)
    with pytest.raises(
        ValueError, match="x is a tuple but must be a tensor: .* takes inputs of any structure"
    ):
        clipped_sum_(small_model(), loss, (x, x), y, CLIP)
    with pytest.raises(TypeError, match=r"takes \(model, loss, x, y, clip_norm\) or"):
        clipped_sum_(small_model(), loss, x)


def epochs(plan, step=lambda: 0, on_start=lambda: None):
    sampler = EpochSampler(plan, on_start)
    sampler.follow(plan, an.NoiseStream(plan, 100, key()), step)
    return sampler


def stepwise(batches, at, first=0):
    """The batches drawn if each batch is followed by its step."""
    found, at[0] = [], first
    for batch in batches:
        found.append(batch)
        at[0] += 1
    return found


def test_a_pass_is_an_epoch_from_the_step_that_comes_next():
    plan, at, started = small_plan(), [0], []
    batches = [batch.tolist() for batch in an.Batches(plan, key())]
    sampler = epochs(plan, lambda: at[0], lambda: started.append(at[0]))
    assert len(sampler) == 12
    for first, wanted in (
        (0, batches[:12]),
        (0, batches[:12]),
        (5, batches[5:12]),
        (12, batches[12:]),
        (23, batches[23:]),
    ):
        at[0] = first
        assert stepwise(iter(sampler), at, first) == wanted
    assert started == [0, 0, 5, 12, 23]
    at[0] = 24
    with pytest.raises(RuntimeError, match="All 24 steps of the plan have been made"):
        list(sampler)
    with pytest.raises(
        RuntimeError, match="There is no noise yet whose batches these are: it is made before they are drawn"
    ):
        list(EpochSampler(plan, lambda: None))
    odd = small_plan(setting="poisson", mechanism="identity", epochs=None, steps=30)
    at[0] = 24
    assert (
        len(epochs(odd, lambda: at[0])) == 12 and len(stepwise(iter(epochs(odd, lambda: at[0])), at, 24)) == 6
    )


def test_an_empty_batch_looks_like_others():
    plan = small_plan(setting="poisson", mechanism="identity", batch_size=3, epochs=None, steps=160)
    at = [0]
    sampler, sizes = epochs(plan, lambda: at[0]), [len(batch) for batch in an.Batches(plan, key())]
    x, y = data()
    rows = [{"x": a, "pair": (b, "word")} for a, b in zip(x, y, strict=True)]

    def collate(rows):
        return {
            "x": torch.stack([row["x"] for row in rows]),
            "pair": [torch.stack([row["pair"][0] for row in rows])],
        }

    loader = planned_loader(DataLoader(rows, batch_size=3, collate_fn=collate), plan, sampler)
    batches = stepwise(loader, at) + stepwise(loader, at, len(sampler))
    assert [len(batch["x"]) for batch in batches] == sizes and 0 in sizes
    empty = next(batch for batch in batches if not len(batch["x"]))
    assert empty["x"].shape == (0, 6) and empty["pair"][0].dtype == torch.int64
    with pytest.raises(
        ValueError, match="batch is one with a str but must be made of tensors, for an empty one to be made"
    ):
        stepwise(
            planned_loader(DataLoader(rows, batch_size=3, collate_fn=lambda rows: ["word"]), plan, sampler),
            at,
        )


def test_a_loader_keeps_what_is_not_the_plans():
    plan, rows = small_plan(), TensorDataset(*data())
    sampler = epochs(plan)
    how = dict(
        num_workers=1,
        timeout=7,
        worker_init_fn=print,
        prefetch_factor=3,
        persistent_workers=True,
        multiprocessing_context="spawn",
    )
    loader = DataLoader(rows, batch_size=20, shuffle=True, **how)
    made = planned_loader(loader, plan, sampler)
    assert made.batch_sampler is sampler and made.dataset is rows and made.collate_fn is loader.collate_fn
    assert all(getattr(made, name) == getattr(loader, name) for name in how)
    assert planned_loader(
        DataLoader(rows, batch_sampler=BatchSampler(SequentialSampler(rows), 20, False)), plan, sampler
    )
    for batches, message in (
        (dict(batch_size=None), "batch_size of the loader is None but must be given"),
        (dict(batch_sampler=[[1, 2]]), "sampler of the loader is list but must be left out, and batch_size"),
    ):
        with pytest.raises(ValueError, match=message):
            planned_loader(DataLoader(rows, **batches), plan, sampler)


def test_a_secret_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "state"
    save_private({"a": 1}, path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(TypeError):
        save_private(an.Key.from_os(), path)
    assert torch.load(path) == {"a": 1} and os.listdir(tmp_path) == ["state"]


def test_large_models_are_taken_some_examples_at_a_time(monkeypatch):
    (x, y), whole, some = data(20), small_model(), small_model()
    x[3] = float("nan")
    clipped_sum_(whole, of_mapping, {"x": x, "y": y}, CLIP, microbatch_size=20)
    monkeypatch.setattr(
        norms, "some_at_a_time", lambda count, *_: (slice(i, min(i + 3, count)) for i in range(0, count, 3))
    )
    clipped_sum_(some, of_mapping, {"x": x, "y": y}, CLIP, microbatch_size=20)
    assert sums_of(whole).abs().max() > 0.1 and torch.allclose(
        sums_of(whole), sums_of(some), rtol=1e-13, atol=1e-13
    )
