"""The peak of the memory of a private step by ghost norms, counted by PyTorch's allocations."""

import gc

import pytest

torch = pytest.importorskip("torch")
from conftest import small_plan
from ghost_models import taken
from torch import nn
from torch.nn import functional
from torch.profiler import ProfilerActivity, profile
from torch.utils.data import TensorDataset
from torch_run import made as private

from antinoise.torch import clipped_sum_, make_private
from antinoise.torch.ghost.matrices import MadeTwice
from antinoise.torch.held_sums import drop_sums, held_sum

WIDTH, PLACES, EXAMPLES, CLASSES = 192, 96, 20, 40


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 768), nn.Linear(768, WIDTH)

    def forward(self, x):
        return x + self.down(functional.silu(self.up(self.norm(x))))


class Classes(nn.Module):
    """Logits of each example."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(CLASSES, WIDTH)
        self.blocks, self.head = nn.Sequential(*(Block() for _ in range(6))), nn.Linear(WIDTH, CLASSES)

    def forward(self, x):
        return self.head(self.blocks(self.table(x)).mean(1))


class Wide(nn.Module):
    """Logits of a model whose parameters need more memory than what its layers see."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(CLASSES, 640)
        self.layers = nn.Sequential(*(nn.Linear(640, 640) for _ in range(12)))
        self.head = nn.Linear(640, CLASSES)

    def forward(self, x):
        return self.head(self.layers(self.table(x[:, :16].contiguous())).mean(1))


loss = functional.cross_entropy


def model_and_batch(kind=Classes, examples=EXAMPLES):
    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(2)
    x, y = (
        torch.randint(0, CLASSES, shape, generator=generator) for shape in ((EXAMPLES, PLACES), (EXAMPLES,))
    )
    return kind(), x[:examples], y[:examples]


def plain(*of):
    model, x, y = model_and_batch(*of)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def step():
        loss(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def own(kept_bytes, *of):
    model, x, y = model_and_batch(*of)
    dim = sum(p.numel() for p in model.parameters())
    _, optimizer, _ = private(small_plan(batch_size=len(x), dim=dim, clip_norm=1.0), model)

    def step():
        clipped_sum_(model, loss, x, y, 1.0, norms="ghost", kept_bytes=kept_bytes)
        optimizer.step()
        optimizer.zero_grad()

    return step


def opacus(*of):
    from opacus import PrivacyEngine

    model, x, y = model_and_batch(*of)
    private, optimizer, criterion, _ = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
        criterion=nn.CrossEntropyLoss(),
        data_loader=torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=len(x)),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        grad_sample_mode="ghost",
        poisson_sampling=False,
    )

    def step():
        criterion(private(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def peak(step):
    """The peak of the bytes that three steps hold at once, beyond what was held before. They run on one
    thread, since every thread of a matrix product has a buffer of its own."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as found:
            for _ in range(3):
                step()
    finally:
        torch.set_num_threads(threads)
    events = [e for e in found.profiler.kineto_results.events() if e.name() == "[memory]"]
    held = most = 0
    for event in sorted(events, key=lambda e: e.start_ns()):
        held += event.nbytes()
        most = max(most, held)
    assert most > 0
    return most


def test_the_peak_of_a_step_is_bounded():
    bound = peak(plain())
    least, kept = peak(own(0)), peak(own(2**28))
    assert least <= 1.3 * bound, least / bound
    # The gradients that are kept: those of each example.
    assert 2 * bound < kept < 2**28
    pytest.importorskip("opacus")
    assert least <= peak(opacus())


def test_where_parameters_need_most_memory_a_step_needs_no_second_copy_of_the_sum():
    """The sum, in double precision, and the momentum: 12 bytes a parameter, where plain PyTorch has 8."""
    parameters = sum(p.numel() for p in Wide().parameters())
    assert 8 * parameters <= peak(plain(Wide, 3)) <= 8.5 * parameters
    # Gradients that are kept are freed while the sums grow.
    for kept_bytes in (0, 2**25):
        least = peak(own(kept_bytes, Wide, 3))
        assert least <= 12.5 * parameters, (kept_bytes, least / parameters)
    pytest.importorskip("opacus")
    assert least <= peak(opacus(Wide, 3))


def test_the_buffers_of_a_step_are_told_before_it():
    model, x, y = model_and_batch(Wide, 3)
    dim = sum(p.numel() for p in model.parameters())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run = make_private(
        model,
        optimizer,
        TensorDataset(x, y),
        plan=small_plan(examples=3, batch_size=1, dim=dim),
        prefetch=True,
    )
    state = 4 * run.noise._stream.state_words * dim
    assert run.memory.bytes == {
        "gradients of examples": 2**28,
        "sums": 8 * dim,
        "noise made ahead": 4 * dim,
        "state of the noise": state,
        "noisy means": 4 * dim,
    }
    lines = str(run.memory).splitlines()
    assert lines[1] == f"sums                   {8 * dim / 2**20:>10.1f} MiB  cpu, from clipping to the step"


def test_room_for_gradients_changes_no_sum():
    found = []
    for kept_bytes in (0, 2**21, 2**28):
        model, x, y = model_and_batch()
        clipped_sum_(model, loss, x, y, 0.5, norms="ghost", kept_bytes=kept_bytes)
        found.append(taken(model))
    assert all(torch.allclose(f, found[-1], rtol=1e-9, atol=1e-7) for f in found)


def test_gradients_that_differ_the_second_time_are_refused(monkeypatch):
    model, x, y = model_and_batch()
    plain = MadeTwice._made

    def longer(self):
        again = hasattr(self, "squares")
        for some, gradients in plain(self):
            yield some, gradients * (1 + 1e-6) if again else gradients

    monkeypatch.setattr(MadeTwice, "_made", longer)
    with pytest.raises(RuntimeError, match="differ when they are made a second time: nothing was added"):
        clipped_sum_(model, loss, x, y, 0.5, norms="ghost", kept_bytes=0)
    assert all(held_sum(p) is None for p in model.parameters())


def test_less_than_no_room_is_refused():
    model, x, y = model_and_batch()
    with pytest.raises(ValueError, match="kept_bytes is -1 but must be at least 0"):
        clipped_sum_(model, loss, x, y, 0.5, kept_bytes=-1)


class WithPlaces(Classes):
    """`Classes` with a parameter of its own, whose gradients are made for one example at a time."""

    def __init__(self):
        super().__init__()
        self.places = nn.Parameter(torch.zeros(PLACES, WIDTH))

    def forward(self, x):
        return self.head(self.blocks(self.table(x) + self.places).mean(1))


def live_bytes():
    storages = {}
    for of in gc.get_objects():
        if isinstance(of, torch.Tensor):
            storage = of.untyped_storage()
            storages[storage.data_ptr()] = storage.nbytes()
    return sum(storages.values())


@pytest.mark.filterwarnings("ignore:norms=")
def test_a_pass_that_is_given_up_leaves_nothing_in_memory():
    """Not even until Python collects cycles."""
    model, x, y = model_and_batch(WithPlaces)
    gc.collect()
    gc.disable()
    try:
        before = live_bytes()
        clipped_sum_(model, loss, x, y, 1.0, kept_bytes=0)
        drop_sums(model.parameters())
        left = live_bytes() - before
    finally:
        gc.enable()
    assert left < 4096, left
