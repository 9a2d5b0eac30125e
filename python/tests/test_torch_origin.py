"""A state resumes only with the weights, the data and the optimizer that it was saved with: an error names
what changed, and no noisy sum is made."""

import pytest
from conftest import STEPS

torch = pytest.importorskip("torch")
from torch.utils.data import DataLoader, Dataset, TensorDataset
from torch_run import CLIP, data, key, loss, plan, small_model

from antinoise.torch import CorrelatedNoise, clipped_sum_
from antinoise.torch.origin import LOOKED_AT, digest_of_data

SAVED_AT = 7


class Run:
    def __init__(
        self,
        plan,
        state=None,
        *,
        noise_first=True,
        dataset=None,
        lr=0.5,
        optimizer=torch.optim.SGD,
        momentum=0.9,
        **how,
    ):
        self.model = small_model()
        self.optimizer = optimizer(self.model.parameters(), lr=lr, momentum=momentum)
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, 3, 0.7)
        self.noise = CorrelatedNoise(self.model, plan, None if state else key(), **how).attach(self.optimizer)
        self.sampler, self.dataset = self.noise.batch_sampler(), dataset or TensorDataset(*data())
        self.sampler.dataset = self.dataset
        for name in (
            ("noise", "model", "optimizer", "schedule")
            if noise_first
            else ("schedule", "optimizer", "model", "noise")
        ):
            if state:
                getattr(self, name).load_state_dict(state[name])

    def steps(self, last):
        for a, b in DataLoader(self.dataset, batch_sampler=self.sampler):
            if self.noise.step == last:
                break
            clipped_sum_(self.model, loss, a, b, CLIP)
            self.optimizer.step()
            self.schedule.step()
            self.optimizer.zero_grad()
        return self

    def state(self):
        parts = ("noise", "model", "optimizer", "schedule")
        torch.save({name: getattr(self, name).state_dict() for name in parts}, "state.pt")
        return torch.load("state.pt", weights_only=True)


@pytest.fixture
def saved(plan, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Run(plan).steps(SAVED_AT).state()


def refused(run, what):
    before = [p.detach().clone() for p in run.model.parameters()]
    with pytest.raises(
        RuntimeError,
        match=(f"^{what} are not as when the state of step {SAVED_AT} was saved: another sum would be added"),
    ):
        run.steps(STEPS)
    assert run.noise.step == SAVED_AT and all(
        torch.equal(p, old) for p, old in zip(run.model.parameters(), before)
    )


@pytest.mark.parametrize("noise_first", [True, False])
def test_a_run_that_changes_nothing_goes_on(plan, saved, noise_first):
    whole, resumed = Run(plan).steps(STEPS), Run(plan, saved, noise_first=noise_first).steps(STEPS)
    assert all(torch.equal(p, q) for p, q in zip(whole.model.parameters(), resumed.model.parameters()))


@pytest.mark.parametrize("bit", [1e-7, 1.0])
def test_other_weights_are_refused(plan, saved, bit):
    run = Run(plan, saved)
    with torch.no_grad():
        run.model[2].weight[1, 4] *= 1 + bit
    refused(run, "weights")
    # They may be loaded after the noise.
    run.model.load_state_dict(saved["model"])
    assert run.steps(STEPS).noise.step == STEPS


def test_swapped_weights_are_refused(plan, saved):
    run = Run(plan, saved)
    with torch.no_grad():
        run.model[0].weight[[0, 1]] = run.model[0].weight[[1, 0]]
    refused(run, "weights")


def test_another_learning_rate_is_refused(plan, saved):
    run = Run(plan, saved)
    run.optimizer.param_groups[0]["lr"] *= 2
    refused(run, "learning rate")


def test_another_momentum_or_optimizer_is_refused(plan, saved):
    run = Run(plan, saved)
    run.optimizer.param_groups[0]["momentum"] = 0.8
    refused(run, "optimizer")
    refused(Run(plan, saved, optimizer=Other), "optimizer")


def test_other_data_are_refused(plan, saved):
    x, y = data()
    x[239, 5] += 1e-3
    refused(Run(plan, saved, dataset=TensorDataset(x, y)), "data set")


def test_all_that_differs_is_named(plan, saved):
    x, y = data()
    run = Run(plan, saved | {"model": small_model().state_dict()}, dataset=TensorDataset(x, 2 - y))
    run.optimizer.param_groups[0]["lr"] *= 2
    refused(run, "weights and learning rate and data set")


def test_a_name_that_nobody_types_by_mistake_lets_it_through(plan, saved):
    run = Run(plan, saved, reuse_noise_unprotected=True)
    run.optimizer.param_groups[0]["lr"] *= 2
    assert run.steps(SAVED_AT + 2).noise.step == SAVED_AT + 2


class Other(torch.optim.SGD):
    """The same numbers in another class."""


class Rows(Dataset):
    """Dictionaries, one of which is changed; noise in them is drawn at each read."""

    def __init__(self, count, changed=None, augmented=False):
        self.count, self.changed, self.augmented = count, changed, augmented

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        image = torch.full((3,), float(i)) + (torch.rand(3) if self.augmented else 0)
        return {"image": image, "text": f"row {i}" + "!" * (i == self.changed), "of": [i, None, b"x"]}


@pytest.mark.parametrize(
    "count, least, most", [(LOOKED_AT, LOOKED_AT, LOOKED_AT), (10 * LOOKED_AT, 0.8 * LOOKED_AT, LOOKED_AT)]
)
def test_examples_of_other_data_sets_are_looked_at(count, least, most):
    whole = digest_of_data(Rows(count), "token")
    assert torch.equal(whole, digest_of_data(Rows(count), "token"))
    found = sum(
        not torch.equal(whole, digest_of_data(Rows(count, changed), "token")) for changed in range(count)
    )
    assert least <= found <= most
    # Random values are not compared; the dataset's length is.
    random = [digest_of_data(Rows(count, changed, augmented=True), "token") for changed in (None, 3)]
    assert torch.equal(*random) and not torch.equal(random[0], whole)
    assert not torch.equal(random[0], digest_of_data(Rows(count + 1, augmented=True), "token"))
