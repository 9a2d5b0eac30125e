"""Batches of one shape in each framework on PyTorch: truncated Poisson batches are cut as the accountant
assumes, padding adds exactly nothing, and what is compiled is compiled once.
"""

import os
from math import comb

import numpy as np
import pytest
from conftest import small_plan

torch = pytest.importorskip("torch")
os.environ["HF_HUB_OFFLINE"] = "1"
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import antinoise as an
from antinoise.torch import CorrelatedNoise, clipped_sum_
from antinoise.torch.data.padding import Padded, zeros_like
from antinoise.torch.held_sums import held_sum

CLIP = 0.7
loss = nn.functional.cross_entropy


def key():
    return an.Key.from_seed_insecure(5)


def cut_plan(**how):
    how = dict(setting="poisson", mechanism="identity", max_batch_size="auto", delta=1e-3, dim=100) | how
    return small_plan(clip_norm=CLIP, **how)


def data(count=240):
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(count, 6, generator=generator)
    return TensorDataset(x, torch.randint(0, 3, (count,), generator=generator))


def small_model():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(6, 9), nn.Tanh(), nn.Linear(9, 3))


def weights(model):
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()])


def sums_of(model):
    return torch.cat([held_sum(p).total.reshape(-1) for p in model.parameters()])


@pytest.mark.parametrize("norms", ["ghost", "per_example"])
def test_a_padded_portion_has_the_sum_of_its_examples(norms):
    """What padding adds is exactly zero: the bits are those of the same portion with other examples'
    gradients replaced by zero.
    """
    (x, y), size = data()[:31], 40
    padded, alone = small_model(), small_model()
    clipped_sum_(padded, loss, x, y, CLIP, microbatch_size=size, norms=norms)
    rows = torch.cat([x, torch.full((size - 31, 6), torch.nan)])
    # Rows whose gradient is not finite add nothing: the same portion, filled with them instead of padding.
    clipped_sum_(alone, loss, rows, torch.cat([y, y[:9]]), CLIP, microbatch_size=size, norms=norms)
    assert held_sum(padded[0].weight).examples == 31 and sums_of(padded).abs().max() > 0.1
    assert torch.equal(sums_of(padded), sums_of(alone))


def test_a_compiled_model_is_compiled_for_one_shape():
    """With ghost norms and portions of the plan's largest batch, batches of many sizes are one shape: all
    graphs are compiled in the first step. With portions that follow the batch they are not. Before PyTorch
    2.14 nothing is compiled, and the model has the bits of one that was not to be.
    """
    graphs = []

    def backend(graph, inputs):
        graphs.append([tuple(given.shape) for given in inputs if isinstance(given, torch.Tensor)])
        return graph.forward

    def trained(size, steps, compile=torch.compile):
        torch._dynamo.reset()
        graphs.clear()
        plan, model, counts, sizes = cut_plan(), small_model(), [], []
        compiled = compile(model, backend=backend, dynamic=False)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        noise = CorrelatedNoise(model, plan, key()).attach(optimizer)
        for x, y in noise.loader(data()):
            sizes.append(len(x))
            clipped_sum_(compiled, loss, x, y, CLIP, microbatch_size=size or len(x), norms="ghost")
            optimizer.step()
            counts.append(len(graphs))
            if noise.step == steps:
                break
        return counts, sizes, model

    size = cut_plan().max_batch_size
    counts, sizes, model = trained(size, 24)
    assert len(set(sizes)) > 5 and counts == 24 * [counts[0]]
    assert weights(model).isfinite().all()
    if torch.__version__ < "2.14":
        plain = trained(size, 24, lambda model, **how: model)[2]
        assert counts[0] == 0 and torch.equal(weights(model), weights(plain))
        return
    assert counts[0] > 1 and (size, 6) in [shape for graph in graphs for shape in graph]
    counts, sizes, _ = trained(None, 5)
    assert len(set(sizes)) > 2 and counts[-1] > counts[0]


def batch_sizes(plan, runs):
    """The sizes of the batches of many runs, and how often each example was in one."""
    sizes, times = np.zeros(plan.examples + 1, int), np.zeros(plan.examples, int)
    for seed in range(runs):
        for batch in an.Batches(plan, an.Key.from_seed_insecure(seed)):
            assert len(np.unique(batch)) == len(batch)
            sizes[len(batch)] += 1
            times[batch] += 1
    return sizes, times


@pytest.mark.filterwarnings("ignore:delta is 0.5")
def test_cut_batches_have_the_law_that_is_accounted():
    """A batch that is run is a Poisson batch of rate B/N, of which at most the stated number are kept,
    uniformly at random: its size is min(Binomial(N, B/N), M), and each example is in it with probability
    E[size] / N. Chi-squared tests of 12,000 batches; each fails with probability 1e-6 where the law holds.
    """
    plan = cut_plan(max_batch_size=26, delta=0.5)  # so that many batches are cut
    rate, most, steps = plan.batch_size / plan.examples, 26, 500 * plan.steps
    assert plan.sampler == dict(kind="truncated-poisson", groups=1, max_batch_size=most) and rate == 20 / 240
    sizes, times = batch_sizes(plan, 500)
    of = np.array([comb(240, k) * rate**k * (1 - rate) ** (240 - k) for k in range(241)])
    wanted = np.concatenate([of[:most], [of[most:].sum()]]) * steps
    assert sizes.sum() == steps and not sizes[most + 1 :].any() and wanted[most] > 0.05 * steps
    common = wanted > 10
    rare = float(wanted[~common].sum()), int(sizes[: most + 1][~common].sum())
    found = ((sizes[: most + 1] - wanted) ** 2 / wanted)[common].sum() + (rare[1] - rare[0]) ** 2 / rare[0]
    # Quantiles of chi squared by Wilson and Hilferty's approximation, at 1e-6.
    limit = lambda k: k * (1 - 2 / (9 * k) + 4.753 * (2 / (9 * k)) ** 0.5) ** 3  # noqa: E731
    assert found < limit(common.sum())
    mean = (np.arange(most + 1) * wanted).sum() / 240
    # Numbers of times have variance of at most that of independent draws.
    assert ((times - mean) ** 2 / (mean * (1 - mean / steps))).sum() < limit(240)


def opacus_run(mode, plan, *, padded=False, rate=0.5, **how):
    from opacus_run import Run

    return Run(plan, mode, loader=DataLoader(data(), batch_size=plan.batch_size), padded=padded, **how)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", ["hooks", "functorch", "ew", "ghost"])
@pytest.mark.parametrize("physical", [None, 7])
def test_opacus_leaves_padding_out(mode, physical):
    pytest.importorskip("opacus")
    from opacus.utils.batch_memory_manager import BatchMemoryManager

    plan = cut_plan()
    padded, plain = opacus_run(mode, plan, padded=True), opacus_run(mode, plan)
    shapes = set()

    def steps(run, batches):
        for x, y in batches:
            if run is padded:
                shapes.add(len(x))
                # The rows of zeros are of large gradients: what they added would be seen.
                y = y.clone()
            run.step(x, y)
            yield run.engine.noise.step

    for run in (padded, plain):
        for _ in range(2):
            if physical is None:
                assert list(steps(run, run.loader))
            else:
                how = dict(data_loader=run.loader, max_physical_batch_size=physical, optimizer=run.optimizer)
                with BatchMemoryManager(**how) as portions:
                    assert list(steps(run, portions))
    size = plan.max_batch_size
    assert padded.engine.noise.step == plain.engine.noise.step == plan.steps == len(padded.seen)
    assert shapes == ({size} if physical is None else {physical, size % physical} - {0})
    # Gradients of single precision are rounded by the place of their row: a few points of the grid.
    most = 4 * plan.grid_spacing / plan.expected_batch_size
    assert torch.allclose(padded.seen[0], plain.seen[0], rtol=0, atol=most)
    assert torch.allclose(torch.stack(padded.seen), torch.stack(plain.seen), rtol=0, atol=1e-3)
    assert padded.seen[0].abs().max() > 1e-2


@pytest.mark.filterwarnings("ignore")
def test_opacus_refuses_what_is_not_the_padded_batch():
    pytest.importorskip("opacus")
    plan = cut_plan()
    run = opacus_run("hooks", plan, padded=True)
    x, y = next(iter(run.loader))
    assert len(x) == plan.max_batch_size and not x[len(an.Batches(plan, key()).at(0)) :].any()
    run.backward(torch.cat([x, x[:1]]), torch.cat([y, y[:1]]))
    with pytest.raises(
        ValueError, match=f"is of {len(x) + 1} rows but must be of {len(x)}, padding included"
    ):
        run.optimizer.step()
    assert run.engine.noise.step == 0
    for other, how, message in (
        (
            small_plan(setting="poisson", mechanism="identity", dim=100),
            {},
            "padded is True but must be left out",
        ),
        (
            plan,
            dict(mode="ghost_fsdp"),
            "padded is True but must be left out where grad_sample_mode is ghost",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            opacus_run(how.get("mode", "hooks"), other, padded=True)


@pytest.mark.filterwarnings("ignore")
def test_trainers_see_one_shape(tmp_path):
    """`PrivateTrainer`, `PrivateSFTTrainer` and Lightning with portions of the plan's largest batch."""
    pytest.importorskip("trl")
    pytest.importorskip("lightning")
    import datasets
    import hf_run
    import test_lightning
    import test_sft

    from antinoise.sft import PrivateSFTTrainer

    plan = cut_plan(examples=48, batch_size=8, epochs=None, steps=6, dim=2000)
    size, sizes = plan.max_batch_size, {len(batch) for batch in an.Batches(plan, key())}
    assert len(sizes) > 2 and size > 8

    def shapes_of(model):
        """The shapes of what the model's first layer is given in training."""
        found = set()
        embedding = model.get_input_embeddings()
        embedding.register_forward_pre_hook(lambda _, given: found.add(tuple(given[0].shape)))
        return found

    def moved(how, folder, portion):
        microbatch = dict(microbatch_size=portion, norms="ghost" if portion > 1 else "per_example")
        if how == "trainer":
            made = hf_run.trainer(plan, folder, how=microbatch, max_steps=6)
        else:
            words = [" ".join(test_sft.WORDS[(7 * i + j) % 26] for j in range(6)) for i in range(48)]
            given = dict(model=test_sft.gpt2(), args=test_sft.arguments(folder), plan=plan, key=key())
            given |= dict(train_dataset=datasets.Dataset.from_list([dict(text=text) for text in words]))
            made = PrivateSFTTrainer(**given, processing_class=test_sft.tokenizer(), **microbatch)
        before, shapes = hf_run.flat(hf_run.trained(made.model)), shapes_of(made.model)
        made.train()
        assert made.noise.step == 6
        return hf_run.flat(hf_run.trained(made.model)) - before, shapes

    for how in ("trainer", "sft"):
        whole, shapes = moved(how, tmp_path / f"{how} whole", size)
        single, _ = moved(how, tmp_path / f"{how} single", 1)
        assert torch.allclose(whole, single, rtol=0, atol=1e-3 * float(whole.abs().max()))
        assert {shape[0] for shape in shapes} - {1, 2} == {size} and len({shape[1:] for shape in shapes}) == 1

    class Padded(test_lightning.Classifier):
        def training_step(self, batch, _):
            return clipped_sum_(
                self.net, loss, *batch, CLIP, microbatch_size=plan.max_batch_size, norms="ghost"
            )

    plan, shapes = cut_plan(), set()
    module = Padded()
    module.net.register_forward_pre_hook(lambda _, given: shapes.add(tuple(given[0].shape)))
    test_lightning.fit(plan, module)
    assert shapes - {(2, 6)} == {(plan.max_batch_size, 6)} and len(module.seen) == plan.steps


def test_examples_of_zeros():
    named = {"x": torch.ones(2, 3), "n": 5, "a": np.ones(4, np.int32), "pair": (1.5, True)}
    found = zeros_like(named)
    assert not found["x"].any() and found["x"].shape == (2, 3) and found["n"] == 0
    assert found["a"].dtype == np.int32 and found["pair"] == (0.0, False)
    some = Padded([(torch.ones(3), 7)])
    assert some[-1][1] == 0 and not some[-1][0].any() and some[0][1] == 7 and len(some) == 1
    with pytest.raises(ValueError, match="example of the data set is one with a str but must be made of"):
        Padded([("text", 1)])[-1]
