"""`make_private`: the bits of the longer way, from a loop that differs from a plain one in few lines."""

import collections
import copy
import warnings

import pytest
from conftest import STEPS, small_plan

torch = pytest.importorskip("torch")
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch_run import CLIP, data, key, loss, plan, small_model, sums_of

import antinoise as an
from antinoise.torch import CorrelatedNoise, clipped_sum_, make_private
from antinoise.torch.held_sums import drop_sums, held_sum

Pair = collections.namedtuple("Pair", "x y")


def optimizer_of(model):
    return torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)


def private(plan, model=None, dataset=None, **how):
    model = model or small_model()
    optimizer = optimizer_of(model)
    dataset = TensorDataset(*data()) if dataset is None else dataset
    how = dict(plan=plan, key=key()) | how
    return model, optimizer, make_private(model, optimizer, dataset, **how)


def of_each(model):
    return lambda x, y: loss(model(x), y, reduction="none")


@pytest.mark.parametrize("norms", ["ghost", "per_example"])
@pytest.mark.parametrize("setting", ["cyclic", "poisson"])
def test_it_makes_the_bits_of_the_longer_way(setting, norms):
    plan = small_plan(dim=100, clip_norm=CLIP, setting=setting, mechanism=None, epochs=2)
    longer = small_model()
    by_hand = optimizer_of(longer)
    noise = CorrelatedNoise(longer, plan, key()).attach(by_hand)
    for x, y in noise.loader(TensorDataset(*data())):
        wanted = clipped_sum_(longer, loss, x, y, plan.clip_norm, norms=norms)
        by_hand.step()
        by_hand.zero_grad()
    model, optimizer, run = private(plan, norms=norms)
    assert run.epochs == range(2) and len(run.loader) == 12
    for _ in run.epochs:
        for x, y in run.loader:
            found = run.backward(of_each(model), x, y)
            optimizer.step()
            optimizer.zero_grad()
    with pytest.raises(RuntimeError, match="All 24 steps of the plan have been made: no batch is left"):
        next(iter(run.loader))
    assert run.epochs == range(2, 2) and run.noise.step == noise.step == plan.steps and found == wanted
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), longer.parameters()))
    assert run.statement == plan.statement


@pytest.mark.parametrize(
    "optimizer, given, wanted",
    [
        (lambda p: torch.optim.SGD(p, lr=0.5), None, "last-iterate"),
        (lambda p: torch.optim.SGD(p, lr=0.5, momentum=0.8, nesterov=True), None, "last-iterate:0.8"),
        (lambda p: torch.optim.SGD(p, lr=0.5, momentum=0.8), "prefix", "prefix"),
        (
            lambda p: torch.optim.SGD([dict(params=[q], momentum=i / 10) for i, q in enumerate(p)]),
            None,
            "prefix",
        ),
        (torch.optim.AdamW, None, "prefix"),
    ],
)
def test_the_workload_is_the_optimizers(optimizer, given, wanted):
    model = small_model()
    asked = dict(epsilon=4, delta=1e-5, batch_size=20, epochs=2, setting="cyclic", workload=given)
    run = make_private(model, optimizer(list(model.parameters())), TensorDataset(*data()), **asked)
    assert run.plan.workload == wanted


def test_it_plans_by_itself():
    asked = dict(epsilon=4, delta=1e-5, batch_size=20, epochs=2, clip_norm=CLIP, setting="cyclic")
    _, _, run = private(None, **asked)
    assert run.plan == an.plan(240, dim=93, workload="last-iterate:0.9", **asked)
    # What a DataLoader says is kept.
    del asked["batch_size"]
    _, _, again = private(
        None, dataset=DataLoader(TensorDataset(*data()), batch_size=20, shuffle=True), **asked
    )
    assert again.plan == run.plan
    assert all(map(torch.equal, next(iter(run.loader)), next(iter(again.loader))))
    ranks = torch.utils.data.DistributedSampler(TensorDataset(*data()), 1, 0)
    dealt = DataLoader(TensorDataset(*data()), batch_size=20, sampler=ranks)
    assert private(None, dataset=dealt, **asked)[2].plan == run.plan
    _, _, auto = private(None, **(asked | dict(batch_size=20, setting="auto")))
    assert auto.plan == an.plan(
        240, dim=93, **(asked | dict(batch_size=20, setting="poisson", workload="last-iterate:0.9"))
    )


BATCHES = {
    "tensors": (lambda x, y: (x, y), lambda model: of_each(model)),
    "a tuple": (lambda x, y: ((x, y),), lambda model: lambda pair: of_each(model)(*pair)),
    "a named tuple": (lambda x, y: (Pair(x, y),), lambda model: lambda p: of_each(model)(p.x, p.y)),
    "a dict": (lambda x, y: ({"x": x, "y": y},), lambda model: lambda b: of_each(model)(b["x"], b["y"])),
    "nested": (
        lambda x, y: ({"in": [x[:, :2], (x[:, 2:],)]}, y),
        lambda model: lambda b, y: of_each(model)(torch.cat([b["in"][0], b["in"][1][0]], 1), y),
    ),
}


@pytest.mark.parametrize("microbatch_size", [None, 7])
@pytest.mark.parametrize("norms", ["ghost", "per_example"])
@pytest.mark.parametrize("structure", BATCHES)
def test_batches_of_any_structure(plan, structure, norms, microbatch_size):
    (x, y), plain = data(), small_model()
    clipped_sum_(plain, loss, x[:20], y[:20], CLIP, norms=norms, microbatch_size=microbatch_size)
    model, _, run = private(plan, norms=norms, microbatch_size=microbatch_size)
    make, losses = BATCHES[structure]
    run.backward(losses(model), *make(x[:20], y[:20]))
    assert torch.equal(sums_of(model), sums_of(plain))


def test_a_batch_encoding_keeps_its_class(plan):
    transformers = pytest.importorskip("transformers")
    (x, y), plain = data(), small_model()
    clipped_sum_(plain, loss, x[:20], y[:20], CLIP)
    model, _, run = private(plan)
    batch = transformers.BatchEncoding({"x": x[:20], "y": y[:20]})
    run.backward(lambda b: of_each(model)(b.x, b["y"]), batch)
    assert torch.equal(sums_of(model), sums_of(plain))


def of_class(kind):
    """Data whose batches are of this kind, and the losses of a batch."""
    rows = list(TensorDataset(*data()))
    if kind == "a tensor":
        return (
            [torch.cat([x, y[None]]) for x, y in rows],
            None,
            lambda each, b: each(b[:, :6].contiguous(), b[:, 6].long()),
        )
    if kind == "a dict":
        return [{"x": x, "y": y} for x, y in rows], None, lambda each, b: each(b["x"], b["y"])
    if kind == "a named tuple":
        return [Pair(x, y) for x, y in rows], None, lambda each, b: each(b.x, b.y)
    if kind == "a BatchEncoding":
        made = pytest.importorskip("transformers").BatchEncoding

        def collate(rows):
            x, y = zip(*rows, strict=True)
            return made({"x": torch.stack(x), "y": torch.stack(y)})

        return rows, collate, lambda each, b: each(b.x, b["y"])
    return rows, None, lambda each, b: each(*b)


def trained_on(plan, kind):
    rows, collate, losses = of_class(kind)
    model, optimizer, run = private(plan, dataset=rows, loader=dict(collate_fn=collate))
    for _ in run.epochs:
        for batch in run.loader:
            run.backward(lambda batch: losses(of_each(model), batch), batch)
            optimizer.step()
            optimizer.zero_grad()
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()])


@pytest.mark.parametrize("kind", ["a tensor", "a list", "a named tuple", "a dict", "a BatchEncoding"])
@pytest.mark.parametrize("setting", ["cyclic", "poisson"])
def test_a_loop_over_batches_of_any_structure(setting, kind):
    plan = small_plan(
        dim=100, clip_norm=CLIP, setting=setting, mechanism="identity", batch_size=3, steps=60, epochs=None
    )
    assert setting == "cyclic" or 0 in [len(batch) for batch in an.Batches(plan, key())]
    assert torch.equal(trained_on(plan, kind), trained_on(plan, "tensors"))


SIZES = dict(vocab_size=30, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=12)
TRANSFORMERS = {
    "Llama": SIZES,
    "Mistral": SIZES | dict(num_key_value_heads=1),
    "Qwen2": SIZES | dict(num_key_value_heads=1, tie_word_embeddings=True),
    "Phi": SIZES,
    # Its table of tokens scales what it looks up.
    "Gemma": SIZES | dict(num_key_value_heads=1, head_dim=4),
    # Its head is its table of tokens.
    "GPT2": dict(
        vocab_size=30, n_embd=8, n_layer=2, n_head=2, n_positions=16, bos_token_id=0, eos_token_id=0
    ),
}


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_transformers_go_without_gradients_of_each_example(name):
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(1)
    config = getattr(transformers, f"{name}Config")(**TRANSFORMERS[name])
    model = getattr(transformers, {"GPT2": "GPT2LMHeadModel"}.get(name, f"{name}ForCausalLM"))(config).eval()
    ids = torch.randint(1, 30, (24, 10))
    mask = (torch.arange(10) < torch.randint(4, 11, (24, 1))).long()
    rows = [{"ids": i, "mask": m} for i, m in zip(ids, mask, strict=True)]
    plan = an.plan(24, 12, steps=2, epsilon=4, delta=1e-3, dim=10_000, clip_norm=0.5, mechanism="identity")

    def losses(batch):
        logits = model(input_ids=batch["ids"], attention_mask=batch["mask"]).logits[:, :-1]
        each = nn.functional.cross_entropy(logits.transpose(1, 2), batch["ids"][:, 1:], reduction="none")
        return (each * batch["mask"][:, 1:]).sum(1)

    _, _, run = private(plan, model, rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run.backward(losses, next(iter(run.loader)))
    found = sums_of(model)
    drop_sums(model.parameters())
    run.noise.detach()
    _, _, slow = private(plan, model, rows, norms="per_example", microbatch_size=1)
    slow.backward(losses, next(iter(slow.loader)))
    assert found.norm() > 1 and torch.allclose(found, sums_of(model), rtol=1e-4, atol=1e-6)


def test_losses_that_mix_examples_are_refused(plan):
    (x, y), mixing = (
        data(),
        {
            "by its mean": lambda each: each - each.mean(),
            "by a weight": lambda each: each / each.sum().detach(),
            "by its order": lambda each: each + each.roll(1),
        },
    )
    for name, mixed in mixing.items():
        model, _, run = private(plan, norms="ghost", run=name)
        with pytest.raises(ValueError, match="whose examples change each other's"):
            run.backward(lambda x, y: mixed(of_each(model)(x, y)), x[:20], y[:20])
        assert held_sum(model[0].weight) is None, name
        # Examples taken one by one cannot mix.
        model, _, run = private(plan, run=f"{name} again")
        with pytest.warns(UserWarning, match="whose examples change each other's"):
            run.backward(lambda x, y: mixed(of_each(model)(x, y)), x[:20], y[:20])
        assert held_sum(model[0].weight).examples == 20


def test_what_is_wrong_is_refused(plan):
    (x, y), (model, optimizer, run) = data(), private(plan)
    each = of_each(model)
    with pytest.raises(ValueError, match=r"losses are of shape \(\) for \d+ examples but must be one number"):
        run.backward(lambda x, y: loss(model(x), y), x[:20], y[:20])
    with pytest.raises(TypeError, match="losses is a Tensor but must be a function"):
        run.backward(each(x[:20], y[:20]))
    with pytest.raises(ValueError, match=r"batch is one of tensors of \[19, 20\] examples"):
        run.backward(each, x[:20], y[:19])
    with pytest.raises(ValueError, match="batch is one with a str but must be made of tensors"):
        run.backward(lambda b: each(b["x"], y), {"x": "text"})
    # A batch from elsewhere, or one that is used again.
    run.backward(each, x[:20], y[:20])
    with pytest.raises(RuntimeError, match="Step 0 has no batch of its own"):
        optimizer.step()
    batches = iter(run.loader)
    first = next(batches)
    with pytest.raises(RuntimeError, match="is asked for where step 0 comes next"):
        next(batches)  # the step was never made
    batches = iter(run.loader)
    run.backward(each, *next(batches))
    optimizer.step()
    run.backward(each, *first)
    with pytest.raises(RuntimeError, match="Step 1 has no batch of its own"):
        optimizer.step()
    # Another optimizer, before its step and at it.
    with pytest.raises(RuntimeError, match="another noise is attached to an optimizer of these parameters"):
        private(plan, model, run="other")
    other = torch.optim.Adam(model.parameters())
    run.backward(each, *next(batches))
    with pytest.raises(RuntimeError, match="this Adam steps while clipped sums of its parameters wait"):
        other.step()
    optimizer.step()
    with pytest.warns(UserWarning, match="this Adam applies a noisy mean that another optimizer applies too"):
        other.step()
    assert run.noise.step == 2


def test_noise_that_was_never_attached_is_noticed(plan):
    model = small_model()
    optimizer, noise = optimizer_of(model), CorrelatedNoise(model, plan, key())
    x, y = next(iter(noise.loader(TensorDataset(*data()))))
    clipped_sum_(model, loss, x, y, CLIP)
    with pytest.raises(
        RuntimeError, match="wait for noise, which is attached to another optimizer, or to none"
    ):
        optimizer.step()
    noise.attach(optimizer)
    optimizer.step()
    assert noise.step == 1
    with pytest.raises(
        ValueError, match="data set of the loader is of 7 examples but must be of the plan's 240"
    ):
        noise.batch_sampler(TensorDataset(torch.zeros(7)))


class Branching(nn.Module):
    """Modules without a fast path, and control flow that depends on data."""

    def __init__(self):
        super().__init__()
        self.scale, self.act, self.last = nn.Parameter(torch.ones(6)), nn.PReLU(), nn.Linear(6, 3)

    def forward(self, x):
        out = self.last(self.act(x * self.scale))
        return out * 2 if out.sum().item() > 0 else out


def test_modules_without_a_fast_path_are_named():
    torch.manual_seed(1)
    model, (x, y) = Branching(), data()
    plan = small_plan(dim=100, clip_norm=CLIP)
    _, _, run = private(plan, model)
    with pytest.warns(UserWarning) as warned:
        run.backward(of_each(model), x[:6], y[:6])
    texts = [str(warning.message) for warning in warned]
    assert "model is a Branching, act is a PReLU but must be one of Linear" in texts[0]
    assert (
        "examples are taken one by one, which is slower: the model cannot be run by torch.func.vmap"
        in texts[1]
    )
    assert {warning.filename for warning in warned} == {__file__}
    found = sums_of(model)
    drop_sums(model.parameters())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clipped_sum_(model, loss, x[:6], y[:6], CLIP, norms="per_example", microbatch_size=1)
    assert torch.equal(found, sums_of(model))


def test_portions_of_sampled_batches_have_one_shape():
    """As `torch.compile` and accelerators need; the sum is that of portions of any shape."""
    plan = small_plan(dim=100, clip_norm=CLIP, setting="poisson", mechanism=None)
    model, optimizer, run = private(plan, microbatch_size=8)
    shapes, sizes = set(), set()

    def losses(x, y):
        shapes.add(tuple(x.shape))
        return loss(model(x), y, reduction="none")

    for x, y in run.loader:
        run.backward(losses, x, y)
        found = sums_of(model)
        drop_sums(model.parameters())
        run.backward(of_each(model), x, y)
        assert torch.allclose(found, sums_of(model))
        optimizer.step()
        sizes.add(len(x))
    assert len(sizes) > 3 and max(sizes) > 20
    # Two examples are tried once.
    assert shapes == {(8, 6), (2, 6)}


def test_batches_that_are_cut_are_one_portion_of_one_shape():
    how = dict(epsilon=0.5, delta=1e-3, batch_size=24, epochs=2, setting="poisson", key=key())
    model = small_model()
    optimizer = optimizer_of(model)
    run = make_private(model, optimizer, TensorDataset(*data()), max_batch_size=60, **how)
    assert run.plan.max_batch_size == 60 and run.plan.sampler["kind"] == "truncated-poisson"
    shapes, sizes = set(), set()

    def losses(x, y):
        shapes.add(tuple(x.shape))
        return loss(model(x), y, reduction="none")

    for _ in run.epochs:
        for x, y in run.loader:
            run.backward(losses, x, y)
            optimizer.step()
            sizes.add(len(x))
    assert max(sizes) <= 60 and len(sizes) > 3
    # Two examples are tried once.
    assert shapes == {(60, 6), (2, 6)}
    with pytest.raises(ValueError, match="max_batch_size is given but must be left out where plan is given"):
        make_private(small_model(), optimizer, TensorDataset(*data()), plan=run.plan, max_batch_size=60)


@pytest.mark.parametrize(
    "examples, size", [(100, 50), (64, 64), (65, 33), (129, 43), (1, 1), (0, 1), (20, 20)]
)
def test_the_default_portion_divides_a_batch_evenly(examples, size, monkeypatch):
    from antinoise.torch import clipping

    assert clipping.equal_portion(examples) == size
    seen, model, (x, y) = [], small_model(), data()
    model.register_forward_pre_hook(lambda module, args: seen.append(len(args[0])))
    clipped_sum_(model, loss, x[:examples], y[:examples], CLIP, norms="ghost")
    # Two passes of two examples are the check of independence.
    assert set(seen) - {2} == ({size} if examples else set()) and sum(seen) - 4 * (size > 1) <= max(
        examples + max(0, -(-examples // size) - 1), 0
    )
    drop_sums(model.parameters())


@pytest.mark.parametrize("steps", [STEPS // 2, STEPS // 2 + 5])
def test_a_resumption_continues_within_its_epoch(plan, steps):
    model, optimizer, run = private(plan)
    saved = None
    for _ in run.epochs:
        for x, y in run.loader:
            run.backward(of_each(model), x, y)
            optimizer.step()
            if run.noise.step == steps:
                saved = copy.deepcopy((model.state_dict(), optimizer.state_dict())), run.noise.state_dict()
    (weights, moments), state = saved
    other, again, resumed = private(plan, key=None)
    other.load_state_dict(weights)
    again.load_state_dict(moments)
    resumed.noise.load_state_dict(state)
    assert resumed.epochs == range(1, 2)
    batches = []
    for _ in resumed.epochs:
        for x, y in resumed.loader:
            resumed.backward(of_each(other), x, y)
            again.step()
            batches.append(x)
    assert len(batches) == STEPS - steps and resumed.noise.step == STEPS
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), other.parameters()))


def test_a_broken_epoch_is_continued_without_its_unfinished_sum(plan):
    model, optimizer, run = private(plan)
    for x, y in run.loader:
        run.backward(of_each(model), x, y)
        if run.noise.step == 3:
            break
        optimizer.step()
    assert held_sum(model[0].weight).examples == 20
    sizes = []
    for x, y in run.loader:
        assert held_sum(model[0].weight) is None
        run.backward(of_each(model), x, y)
        optimizer.step()
        sizes.append(len(x))
    assert sizes == [20] * 9 and run.epochs == range(1, 2)
