"""Batches in PyTorch: each step has its own, handed out once. For any loop, participations follow the plan
or the run is refused.
"""

import copy
import random

import numpy as np
import pytest
from conftest import STEPS, small_plan

torch = pytest.importorskip("torch")
from torch.utils.data import DataLoader, TensorDataset
from torch_run import CLIP, data, key, loss, made, plan, small_model, sums_of

import antinoise as an
from antinoise.torch import (
    BatchSampler,
    CollateEmpty,
    CorrelatedNoise,
    add_clipped_sums,
    clipped_sum_,
)
from antinoise.torch.held_sums import held_sum


def test_batches_are_the_plans(plan):
    batches, sampled = BatchSampler(plan, key()), an.Batches(plan, key())
    assert len(batches) == STEPS and list(batches) == [batch.tolist() for batch in sampled]
    assert list(BatchSampler(plan, key(), start=20)) == list(batches)[20:]
    with pytest.raises(ValueError, match="start is 25 but must be from 0 to 24"):
        BatchSampler(plan, key(), start=25)


def test_batches_belong_to_the_noise(plan):
    (x, y), (model, optimizer, noise) = data(), made(plan, external_batches=False)

    def step():
        clipped_sum_(model, loss, x[:20], y[:20], CLIP)
        optimizer.step()

    with pytest.raises(
        RuntimeError, match="The batch of step 0 is not from this noise: take batches from noise.loader"
    ):
        step()
    drawn = noise.batch_sampler()
    with pytest.raises(
        RuntimeError, match="Step 0 has no batch of its own: no batch was handed out since the last step"
    ):
        step()
    assert drawn.token == an.Batches(plan, key()).token == noise.token
    for at, batch in enumerate(drawn):
        assert batch == an.Batches(plan, key()).at(at).tolist()
        if at == 2:
            break
        step()
    state = noise.state_dict()
    # Each pass begins at the noise's next step, also in a resumed run.
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


class Numbered(torch.utils.data.Dataset):
    """A dataset that returns each example with its number."""

    def __init__(self):
        self.data = data()

    def __len__(self):
        return 240

    def __getitem__(self, i):
        return self.data[0][i], self.data[1][i], i


class Loop:
    """A training loop by hand, and the examples of its noisy sums."""

    def __init__(self, plan, workers=0, state=None, raw=False):
        self.model, self.optimizer, self.noise = made(plan, external_batches=False)
        if raw:
            self.loader = DataLoader(
                Numbered(), batch_sampler=self.noise.batch_sampler(), num_workers=workers
            )
        else:
            self.loader = self.noise.loader(Numbered(), num_workers=workers)
        self.used = []
        if state:
            noise, self.used, model, optimizer = state
            self.model.load_state_dict(model)
            self.optimizer.load_state_dict(optimizer)
            self.noise.load_state_dict(noise)
        self.batches = iter(self.loader)

    def step(self, batch):
        x, y, numbers = batch
        clipped_sum_(self.model, loss, x, y, CLIP)
        self.optimizer.step()
        self.used.append(numbers.tolist())

    def state(self):
        return (
            self.noise.state_dict(),
            list(self.used),
            copy.deepcopy(self.model.state_dict()),
            self.optimizer.state_dict(),
        )


def whole_of(plan):
    return [batch.tolist() for batch in an.Batches(plan, key())]


def schema_holds(used, apart=12, most=2):
    """Whether any two steps of an example are at least `apart` steps apart, and each example has at most
    `most` steps: computed by hand.
    """
    steps = {}
    for step, batch in enumerate(used):
        assert len(set(batch)) == len(batch)
        for example in batch:
            steps.setdefault(example, []).append(step)
    return all(len(of) <= most and all(b - a >= apart for a, b in zip(of, of[1:])) for of in steps.values())


DROPPED = "is asked for where step {} comes next, so that a batch would be dropped"


def test_a_warm_up_batch_moves_no_other(plan):
    """With a warm-up batch, six steps and a resume, an example would take part one step apart and three
    times.
    """
    loop = Loop(plan)
    next(loop.batches)
    with pytest.raises(RuntimeError, match=DROPPED.format(0)):
        loop.step(next(loop.batches))
    assert loop.noise.step == 0
    # A batch drawn in a pass of its own is handed out again.
    loop = Loop(plan)
    next(iter(loop.loader))
    for batch in loop.loader:
        loop.step(batch)
        if loop.noise.step == 6:
            break
    resumed = Loop(plan, state=loop.state())
    for batch in resumed.batches:
        resumed.step(batch)
    assert resumed.used == whole_of(plan) and schema_holds(resumed.used)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_batch_that_is_dropped_is_noticed(plan, workers):
    for at in (0, 15):
        loop = Loop(plan, workers)
        while loop.noise.step < at:
            loop.step(next(loop.batches))
        next(loop.batches)
        with pytest.raises(RuntimeError, match=DROPPED.format(at)):
            next(loop.batches)
        for batch in loop.loader:
            loop.step(batch)
        assert loop.used == whole_of(plan)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_batch_is_used_once(plan, workers):
    """Without the check, a batch could be used once for each batch that workers drew ahead."""
    loop = Loop(plan, workers)
    first = next(loop.batches)
    loop.step(first)
    for _ in range(5):
        with pytest.raises(
            RuntimeError, match="Step 1 has no batch of its own: no batch was handed out since the last step"
        ):
            loop.step(first)
    # If the next batch was handed out, the marks on the tensors show it.
    second = next(loop.batches)
    with pytest.raises(
        RuntimeError, match="The sums of step 1 are of the batch of step 0, which would be used twice"
    ):
        loop.step(first)
    loop.step(second)
    assert loop.used == whole_of(plan)[:2]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_list_of_batches_is_refused(plan, workers):
    with pytest.raises(RuntimeError, match=DROPPED.format(0)):
        list(Loop(plan, workers).loader)
    with pytest.raises(RuntimeError, match=DROPPED.format(0)):
        list(Loop(plan).noise.batch_sampler())


def test_a_loader_of_the_batches_alone_has_no_workers(plan):
    loop = Loop(plan, raw=True)
    for batch in loop.batches:
        loop.step(batch)
    assert loop.used == whole_of(plan)
    with pytest.raises(
        RuntimeError,
        match=(
            r"step 1 is asked for where step 0 comes next.* noise.loader\(dataset, num_workers=...\) makes"
            r" the loader"
        ),
    ):
        next(iter(Loop(plan, 2, raw=True).loader))


def test_a_batch_may_come_in_parts(plan):
    loop = Loop(plan)
    x, y, numbers = next(loop.batches)
    for part in (slice(0, 8), slice(8, 20)):
        clipped_sum_(loop.model, loss, x[part], y[part], CLIP)
    loop.optimizer.step()
    clipped_sum_(small_model(), loss, x, y, CLIP)  # another model's sums do not concern this run
    loop.step(next(loop.batches))
    assert loop.noise.step == 2


def test_one_pass_over_batches_is_the_last(plan):
    loop = Loop(plan, 2)
    first, second = iter(loop.loader), iter(loop.loader)
    loop.step(next(first))
    loop.step(next(second))
    over = "This pass over the batches is over: another one was begun, or the noise is of another state"
    with pytest.raises(RuntimeError, match=over):
        next(first)
    # Batches of another key wait in this pass.
    other = Loop(plan)
    other.model, other.optimizer, other.noise = made(plan, external_batches=False)
    for batch in other.noise.loader(Numbered()):
        other.step(batch)
        if other.noise.step == 3:
            break
    loop.noise.load_state_dict(other.noise.state_dict())
    with pytest.raises(RuntimeError, match=over):
        next(second)
    batches = BatchSampler(plan, key())
    model, optimizer, noise = made(plan, external_batches=False)
    early = iter(batches)
    next(early)
    noise.detach()
    noise.attach(optimizer, batches)
    clipped_sum_(model, loss, *[part[:20] for part in data()], CLIP)
    with pytest.raises(RuntimeError, match="Step 0 has no batch of its own"):
        optimizer.step()
    next(iter(batches))
    clipped_sum_(model, loss, *[part[:20] for part in data()], CLIP)
    optimizer.step()
    assert noise.step == 1


ACTIONS = {"draw": 8, "step": 8, "again": 2, "old": 2, "break": 1, "resume": 1, "list": 1}


@pytest.mark.parametrize("workers, sequences", [(0, 40), (2, 4)])
def test_whatever_a_loop_does_the_schema_holds_or_it_is_refused(plan, workers, sequences):
    """Random loops that draw, drop, step, use current or old batches again, break and resume: each noisy sum
    is of its own step's batch.
    """
    refused = made_steps = finished = 0
    for seed in range(sequences):
        chosen, loop, held, old = random.Random(seed), Loop(plan, workers), None, []
        for action in chosen.choices(list(ACTIONS), list(ACTIONS.values()), k=90):
            try:
                if action == "draw" and held is None or action == "draw" and chosen.random() < 0.2:
                    held = next(loop.batches, None)
                    finished += held is None
                    old += [] if held is None else [held]
                elif action == "step" and held is not None:
                    loop.step(held)
                    held = None if chosen.random() < 0.9 else held
                elif action in ("again", "old") and old:
                    loop.step(old[-1] if action == "again" else chosen.choice(old))
                elif action in ("break", "resume"):
                    loop = loop if action == "break" else Loop(plan, workers, loop.state())
                    loop.batches, held = iter(loop.loader), None
                elif action == "list" and loop.noise.step < STEPS - 1:
                    list(loop.loader)
                    raise AssertionError("a list of batches")
            except (RuntimeError, ValueError):
                refused += 1
                loop.noise.discard_sums()
        assert loop.used == whole_of(plan)[: loop.noise.step] and schema_holds(loop.used)
        made_steps += loop.noise.step
    assert refused > 3 * sequences and made_steps > 8 * sequences and (finished > 0 or workers > 0)


def test_the_guard_itself_refuses_what_a_sampler_gets_wrong(plan, monkeypatch):
    """For a sampler that forgets earlier participations, the recorded participations refuse the step."""
    loop = Loop(plan)
    for _ in range(5):
        loop.step(next(loop.batches))
    wrong = type("Wrong", (), {"at": lambda self, step: an.Batches(plan, key()).at(step % 5)})()
    monkeypatch.setattr(loop.noise._sampler, "_batches", wrong)
    batch = next(loop.batches)
    with pytest.raises(
        ValueError,
        match=(
            "batch of step 5 is with an example that took part too often, too few steps ago or in another"
            " group's step"
        ),
    ):
        loop.step(batch)
    assert loop.noise.step == 5


def test_participations_are_restored_and_held_against_the_batches(plan):
    loop = Loop(plan)
    for _ in range(13):
        loop.step(next(loop.batches))
    state, *others = loop.state()
    taken = state["participations"]
    assert (
        an.Participations.from_bytes(plan, taken.numpy().tobytes()).next_step == 13 and len(taken) == 8 * 241
    )
    for at, value in ((0, 12), (8, 1), (8 + 4, 5), (len(taken) - 8, 0)):
        altered = taken.clone()
        altered[at] = value + (altered[at] == value)
        with pytest.raises(RuntimeError, match="the state is not the one that was saved"):
            Loop(plan, state=(state | {"participations": altered}, *others))
        with pytest.raises(ValueError, match="participations"):
            loop.noise._examples.restored(altered, loop.noise._stream, 13)
    with pytest.raises(
        ValueError, match="participations is 8 bytes but must be the record of a run of this plan, 1928 bytes"
    ):
        loop.noise._examples.restored(taken[:8], loop.noise._stream, 13)
    # A run whose batches came from elsewhere cannot resume with the plan's batches.
    elsewhere = made(plan)[2]
    elsewhere.apply_()
    with pytest.raises(
        ValueError, match="participations of the state are not those of the 1 steps of its run"
    ):
        made(plan, external_batches=False)[2].load_state_dict(elsewhere.state_dict())


def test_batches_from_elsewhere_are_held_against_the_schema_where_they_are_named(plan):
    model, optimizer, noise = made(plan)
    batches = whole_of(plan)

    def step(noise, optimizer, model, examples):
        if examples is not None:
            noise.set_batch(examples)
        clipped_sum_(model, loss, *[part[batches[0]] for part in data()], CLIP)
        optimizer.step()

    for at in range(12):
        step(noise, optimizer, model, batches[at])
    for wrong, message in (
        (
            batches[3],
            (
                "batch of step 12 is with an example that took part too often, too few steps ago or in"
                " another group's step"
            ),
        ),
        (batches[0][:19] + batches[0][:1], "batch of step 12 is with an example twice"),
        (batches[0][:19], "batch of step 12 is of 20 examples but must be the plan's, of 19"),
        (
            batches[0][:19] + [240],
            "batch of step 12 is with a number that no example has but must be of example numbers below 240,",
        ),
        (batches[0][:19] + [-1], "batch is an array with a negative number"),
    ):
        with pytest.raises(ValueError, match=message):
            step(noise, optimizer, model, wrong)
    with pytest.raises(RuntimeError, match="Name those of all steps and processes, or of none"):
        step(noise, optimizer, model, None)
    other_model, other_optimizer, other = made(plan)
    other_model.load_state_dict(model.state_dict())
    other.load_state_dict(noise.state_dict())
    with pytest.raises(ValueError, match="took part too often"):
        step(other, other_optimizer, other_model, batches[11])
    step(other, other_optimizer, other_model, batches[0])
    assert other.step == 13
    model, optimizer, noise = made(plan)
    step(noise, optimizer, model, None)
    with pytest.raises(RuntimeError, match="Name those of all steps and processes, or of none"):
        step(noise, optimizer, model, batches[1])
    with pytest.raises(RuntimeError, match="this run draws the plan's batches: leave it out"):
        made(plan, external_batches=False)[2].set_batch([1])


def test_users_who_come_by_themselves_are_held_against_the_plan():
    plan = small_plan(dim=100, setting="federated", min_sep=6, max_participations=2)
    model, optimizer, noise = made(plan, sums_in_grad=True)

    def step(users):
        noise.set_batch(np.array(users))
        totals = {name: torch.ones(p.shape, dtype=torch.float64) for name, p in model.named_parameters()}
        add_clipped_sums(model, totals, len(users), plan.clip_norm, unit="user")
        optimizer.step()

    step([1, 2, 3])
    with pytest.raises(ValueError, match="at most 2 steps, any two of them at least 6 steps apart"):
        step([3, 4])
    for _ in range(5):
        step([])
    step([1])
    for _ in range(6):
        step([])
    with pytest.raises(ValueError, match="took part too often"):
        step([1])
    step([2])
    assert noise.step == 14


def test_what_the_plan_says_is_not_given(plan):
    noise, rows = made(plan, external_batches=False)[2], TensorDataset(*data())
    for name in ("batch_size", "shuffle", "sampler", "batch_sampler", "drop_last", "in_order"):
        with pytest.raises(
            ValueError,
            match=f"{name} is given but must be left out: the plan says which examples make a batch",
        ):
            noise.loader(rows, **{name: None})
    with pytest.raises(
        ValueError, match="data set of the loader is of 200 examples but must be of the plan's 240"
    ):
        noise.loader(torch.utils.data.Subset(rows, range(200)))


def test_sampled_batches_may_be_empty_in_a_loader():
    plan = small_plan(
        dim=100, clip_norm=CLIP, setting="poisson", mechanism="identity", batch_size=2, epochs=None, steps=30
    )
    model, optimizer, noise = made(plan, external_batches=False)
    sizes = []
    for x, y in noise.loader(TensorDataset(*data()), num_workers=1):
        clipped_sum_(model, loss, x, y, CLIP)
        optimizer.step()
        sizes.append(len(x))
    assert sizes == [len(batch) for batch in an.Batches(plan, key())] and 0 in sizes


def test_an_empty_batch_is_a_batch(plan):
    collate, model = CollateEmpty(TensorDataset(*data())), small_model()
    x, y = collate([])
    assert (x.shape, y.shape) == ((0, 6), (0,)) and collate([(x, y)] * 2)[0].shape == (2, 0, 6)
    clipped_sum_(model, loss, x, y, CLIP)
    assert not sums_of(model).any() and held_sum(next(model.parameters())).examples == 0


def test_truncated_batches_go_through_the_model_in_one_shape():
    """Batches of a plan with a maximum size are one portion of that size. The check that examples are
    independent takes two.
    """
    plan = small_plan(
        examples=240,
        delta=1e-3,
        setting="poisson",
        mechanism="identity",
        max_batch_size="auto",
        dim=100,
        clip_norm=CLIP,
    )
    size, (x, y) = plan.max_batch_size, data()
    model, optimizer, noise = made(plan, external_batches=False)
    shapes, sizes = set(), set()
    model.register_forward_pre_hook(lambda _, inputs: shapes.add(tuple(inputs[0].shape)))
    for xs, ys in noise.loader(TensorDataset(x, y)):
        sizes.add(len(xs))
        clipped_sum_(model, loss, xs, ys, CLIP, microbatch_size=size, norms="ghost")
        optimizer.step()
    assert noise.step == plan.steps and max(sizes) <= size < 240 and len(sizes) > 3
    assert shapes - {(2, 6)} == {(size, 6)}
