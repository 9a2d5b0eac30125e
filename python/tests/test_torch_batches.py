"""Batches in PyTorch: each step has its own, and none is used twice."""

import pytest
from conftest import STEPS

torch = pytest.importorskip("torch")
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402
from torch_run import CLIP, data, key, loss, made, plan, small_model, sums_of  # noqa: E402, F401

import antinoise as an  # noqa: E402
from antinoise.torch import BatchSampler, CollateEmpty, CorrelatedNoise, clipped_sum_  # noqa: E402
from antinoise.torch.sums import held_sum  # noqa: E402


def test_batches_are_the_plans(plan):
    batches, sampled = BatchSampler(plan, key()), an.Batches(plan, key())
    assert len(batches) == STEPS and list(batches) == [batch.tolist() for batch in sampled]
    assert list(BatchSampler(plan, key(), start=20)) == list(batches)[20:]
    with pytest.raises(ValueError, match="start is 25 but must be from 0 to 24"):
        BatchSampler(plan, key(), start=25)


def test_batches_belong_to_the_noise(plan):
    (x, y), (model, optimizer, noise) = data(), made(plan, batches_from_elsewhere=False)

    def step():
        clipped_sum_(model, loss, x[:20], y[:20], CLIP)
        optimizer.step()

    with pytest.raises(ValueError, match="batch of step 0 is from elsewhere but must be drawn from batch_sampler"):
        step()
    drawn = noise.batch_sampler()
    with pytest.raises(ValueError, match="batch of step 0 is from elsewhere"):
        step()
    assert drawn.token == an.Batches(plan, key()).token == noise.token
    for at, batch in enumerate(drawn):
        assert batch == an.Batches(plan, key()).at(at).tolist()
        if at == 2:
            break
        step()
    state = noise.state_dict()
    # Each pass begins where the noise stands, and goes on with the run that is resumed.
    assert next(iter(drawn)) == batch and len(drawn) == STEPS - 2
    other = CorrelatedNoise(small_model(), plan)
    followed = other.batch_sampler()
    assert next(iter(followed)) != an.Batches(plan, key()).at(0).tolist()
    other.load_state_dict(state)
    assert followed.token == drawn.token and next(iter(followed)) == batch
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    noise.detach()
    with pytest.raises(ValueError, match="batches are of another run or key but must be those of the noise"):
        noise.attach(optimizer, BatchSampler(plan, an.Key.from_seed_insecure(6)))
    noise.attach(optimizer, BatchSampler(plan, key(), start=2))
    with pytest.raises(ValueError, match="batches are of another run or key"):
        noise.load_state_dict(CorrelatedNoise(small_model(), plan).state_dict())
    assert noise.step == 2


def used(indices):
    """The least distance of two steps of an example."""
    last, least = {}, STEPS
    for step, batch in enumerate(indices):
        for example in batch:
            least, last[example] = min(least, step - last.get(example, -STEPS)), step
    return least


class Numbered(torch.utils.data.Dataset):
    def __len__(self):
        return 240

    def __getitem__(self, i):
        return data()[0][i], data()[1][i], i


@pytest.mark.parametrize("workers", [0, 2])
def test_a_batch_that_is_dropped_moves_no_other(plan, workers):
    def train(drop, again):
        model, optimizer, noise = made(plan, batches_from_elsewhere=False)
        loader = DataLoader(Numbered(), batch_sampler=noise.batch_sampler(), num_workers=workers)
        batches, found = iter(loader), []
        while noise.step < STEPS:
            x, y, numbers = next(batches)
            if drop is not None and noise.step == drop:
                drop, batches = None, iter(loader) if again else batches
                continue
            clipped_sum_(model, loss, x, y, CLIP)
            optimizer.step()
            found.append(numbers.tolist())
        return found

    whole = train(None, again=False)
    assert used(whole) == 12 and sorted(sum(whole[:12], [])) == list(range(240))
    # What was dropped is drawn again by another pass.
    assert train(15, again=True) == whole
    with pytest.raises(ValueError, match="batches before step 15 are drawn and dropped but must be used each in its step"):
        train(15, again=False)


def test_one_pass_over_batches_is_the_last(plan):
    model, optimizer, noise = made(plan, batches_from_elsewhere=False)
    loader = DataLoader(TensorDataset(*data()), batch_sampler=noise.batch_sampler(), num_workers=2)

    def step(batches):
        x, y = next(batches)
        clipped_sum_(model, loss, x, y, CLIP)
        optimizer.step()

    first, second = iter(loader), iter(loader)
    with pytest.raises(ValueError, match="pass is an earlier one, or of another run, but must be the last that was begun"):
        step(first)
    step(second)
    # Batches of another key wait in this loader.
    third, other = iter(loader), CorrelatedNoise(small_model(), plan, batches_from_elsewhere=True)
    other.add_()
    noise.load_state_dict(other.state_dict())
    assert noise.step == 1
    with pytest.raises(ValueError, match="pass is an earlier one, or of another run"):
        step(third)
    batches = BatchSampler(plan, key())
    model, optimizer, noise = made(plan, batches_from_elsewhere=False)
    noise.detach()
    noise.attach(optimizer, batches)
    loader = DataLoader(TensorDataset(*data()), batch_sampler=batches, num_workers=2)
    step(iter(loader))
    with pytest.raises(ValueError, match="batch of step 1 is that of 0 in its pass but must be its own"):
        step(iter(loader))


def test_an_empty_batch_is_a_batch(plan):
    collate, model = CollateEmpty(TensorDataset(*data())), small_model()
    x, y = collate([])
    assert (x.shape, y.shape) == ((0, 6), (0,)) and collate([(x, y)] * 2)[0].shape == (2, 0, 6)
    clipped_sum_(model, loss, x, y, CLIP)
    assert not sums_of(model).any() and held_sum(next(model.parameters())).examples == 0
