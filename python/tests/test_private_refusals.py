"""`make_private` refuses arguments before a plan is designed, and leaves optimizer and key as they were."""

import pytest
from conftest import small_plan

torch = pytest.importorskip("torch")
from test_private import of_each, optimizer_of, private
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, WeightedRandomSampler
from torch_run import CLIP, data, key, plan, small_model

import antinoise as an
from antinoise.torch import make_private, planning

ASKED = dict(epsilon=4, delta=1e-5, batch_size=20, epochs=2)


def test_arguments_that_fit_no_plan_are_refused(plan):
    short = TensorDataset(*(t[:239] for t in data()))
    asked = dict(epsilon=4, delta=1e-5, batch_size=20, epochs=2)
    for how, message in (
        (
            dict(plan=plan, dataset=short),
            "data set of the loader is of 239 examples but must be of the plan's 240",
        ),
        (dict(plan=plan, epsilon=3), "epsilon is given but must be left out where plan is given"),
        (dict(plan=plan, setting="cyclic"), "setting is given but must be left out where plan is given"),
        (dict(plan=plan, clip_norm=0.5), "clip_norm is 0.5 but must be left out, or the plan's, 0.7"),
        (dict(plan=None, **(asked | dict(epsilon=None))), "epsilon is absent but must be given"),
        (dict(plan=None, **(asked | dict(epochs=None))), "epochs"),
    ):
        with pytest.raises(ValueError, match=message):
            private(how.pop("plan"), **how)
    model = small_model()
    with pytest.raises(ValueError, match="parameters of the optimizer are others"):
        make_private(model, torch.optim.SGD(model[0].parameters(), lr=1.0), TensorDataset(*data()), plan=plan)
    # A refused argument of the loader leaves the optimizer as it was, and the key unused.
    model = small_model()
    optimizer, examples = optimizer_of(model), TensorDataset(*data())
    with pytest.raises(ValueError, match="batch_size is given but must be left out"):
        make_private(model, optimizer, examples, plan=plan, key=key(), loader=dict(batch_size=3))
    assert make_private(model, optimizer, examples, plan=plan, key=key()).noise.serves(optimizer)
    with pytest.warns(UserWarning, match=r"delta is 0.1 but should be well below 1 / examples = 4.17e-3"):
        an.plan(240, 20, epochs=1, epsilon=1.0, delta=0.1, mechanism="identity")


class Stream(IterableDataset):
    """Examples without numbers, of a known length."""

    def __iter__(self):
        return iter(TensorDataset(*data()))

    def __len__(self):
        return 240


class Endless(Dataset):
    """Examples by number, of no known length."""

    def __getitem__(self, i):
        return torch.zeros(6), 0


def closed():
    rows = (row for row in [1, 2])
    rows.close()
    return rows


@pytest.mark.parametrize(
    "dataset, message",
    [
        (
            lambda: Endless(),
            "data set of the loader is a Endless but must be one with a length, whose examples have numbers",
        ),
        (lambda: Stream(), "data set of the loader is a Stream but must be one with a length"),
        (lambda: DataLoader(Stream(), batch_size=20), "data set of the loader is a Stream but must be one"),
        (lambda: iter([1, 2]), "data set of the loader is a list_iterator but must be one"),
        (closed, "data set of the loader is a generator but must be one"),
        (lambda: {1, 2}, "data set of the loader is a set but must be one"),
        (
            lambda: DataLoader(TensorDataset(*data()), 20, sampler=WeightedRandomSampler([1.0] * 240, 240)),
            "sampler of the loader is WeightedRandomSampler but must be left out, and batch_size given: the plan"
            " samples, and its batches would replace those of the sampler",
        ),
        (
            lambda: DataLoader(TensorDataset(*data()), batch_sampler=[[0, 1], [2, 3]]),
            "sampler of the loader is list but must be left out",
        ),
        (
            lambda: DataLoader(TensorDataset(*data()), batch_size=None),
            "batch_size of the loader is None but must be given",
        ),
    ],
)
def test_data_that_cannot_be_drawn_from_are_refused(dataset, message, plan, monkeypatch):
    monkeypatch.setattr(planning, "plan", None)  # nothing is planned
    for how in (dict(plan=plan), dict(plan=None, **ASKED)):
        model = small_model()
        with pytest.raises(ValueError, match=message):
            private(how.pop("plan"), model, dataset(), **how)


def test_batches_that_no_plan_has_are_refused():
    with pytest.raises(ValueError, match="batch_size is 241 but must be from 1 to examples = 240"):
        private(None, **(ASKED | dict(batch_size=241)))
    with pytest.raises(ValueError, match="batch_size of the loader is 10 but must be the plan's, 20"):
        private(None, dataset=DataLoader(TensorDataset(*data()), batch_size=10), **ASKED)
    with pytest.raises(
        ValueError, match="loader is given but must be left out where dataset is a DataLoader"
    ):
        private(None, dataset=DataLoader(TensorDataset(*data()), 20), loader=dict(num_workers=1), **ASKED)
    with pytest.warns(UserWarning, match="delta is 0.1 but should be well below 1 / examples = 4.17e-3"):
        private(None, **(ASKED | dict(delta=0.1, setting="cyclic")))


def test_optimizers_of_other_parameters_are_refused(plan, monkeypatch):
    model, other = small_model(), torch.nn.Parameter(torch.zeros(2))
    found = "parameters of the optimizer are others than the model's trainable ones"
    must_be = "but must be these, all of them$"
    monkeypatch.setattr(planning, "plan", None)
    for held, message in (
        (model[0].parameters(), rf"{found} \(without 2.weight, 2.bias\) {must_be}"),
        ([*model.parameters(), other], rf"{found} \(with 1 others\) {must_be}"),
        (
            [model[0].weight, other],
            rf"{found} \(without 0.bias, 2.weight, 2.bias and with 1 others\) {must_be}",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            make_private(model, torch.optim.SGD(held, lr=1.0), TensorDataset(*data()), **ASKED)
    # A parameter that is not trained has no noise.
    optimizer = optimizer_of(model)
    model[0].bias.requires_grad_(False)
    with pytest.raises(ValueError, match=rf"{found} \(with 1 others\) {must_be}"):
        make_private(model, optimizer, TensorDataset(*data()), **ASKED)


def test_a_model_without_trained_parameters_is_refused(plan):
    model = small_model()
    optimizer = optimizer_of(model)
    model.requires_grad_(False)
    for how in (dict(plan=plan), ASKED):
        with pytest.raises(ValueError, match="model is one without trainable parameters but must have some"):
            make_private(model, optimizer, TensorDataset(*data()), **how)


def test_an_optimizer_is_made_private_once(plan, monkeypatch):
    model, optimizer, run = private(plan)
    monkeypatch.setattr(planning, "plan", None)
    for how in (dict(plan=plan, run="second"), dict(run="second", **ASKED)):
        with pytest.raises(
            RuntimeError, match="another noise is attached to an optimizer of these parameters"
        ):
            make_private(model, optimizer, TensorDataset(*data()), **how)
    x, y = next(iter(run.loader))
    run.backward(of_each(model), x, y)
    optimizer.step()
    assert run.noise.step == 1
