"""The audit of plain PyTorch, compared with the batches and the noise that Rust makes of the same key,
which `antinoise audit` tests.

With the key, the noise is subtracted from each noisy sum, which must leave the clipped sum of the plan's
batch; parameters must follow from noisy sums; an interruption and shards must change no bit. Each planted
fault is found by its own row of the audit.
"""

import json

import numpy as np
import pytest
from conftest import small_plan

torch = pytest.importorskip("torch")
from torch import nn

import antinoise as an
from antinoise.torch import CorrelatedNoise, clipped_sum_

FEATURES, CLASSES, CLIP, RATE, MOMENTUM = 4, 3, 0.7, 0.5, 0.9
DIM = (FEATURES + 1) * CLASSES
PLANS = {
    "cyclic": dict(),
    "cyclic, plain": dict(mechanism="banded-toeplitz:5", arithmetic="plain"),
    "dense": dict(mechanism="dense"),
    "tree": dict(mechanism="honaker-full"),
    "poisson": dict(setting="poisson", mechanism="identity"),
    "groups": dict(setting="poisson", mechanism="banded-toeplitz:4"),
    "b-min-sep": dict(setting="b-min-sep", mechanism="banded-toeplitz:4"),
    "truncated": dict(setting="poisson", mechanism="banded-toeplitz:4", max_batch_size="auto"),
    "shuffled": dict(setting="shuffled", mechanism="blt:2"),
    "single": dict(setting="single", epochs=1),
}


def flat(tensors):
    return torch.cat([t.detach().reshape(-1) for t in tensors]).numpy().astype(np.float64)


def clipped(parameters, x, y, batch, clip_norm=CLIP):
    """The sum of clipped gradients of logistic regression, by its definition."""
    weights, biases = (
        parameters[: FEATURES * CLASSES].reshape(CLASSES, FEATURES),
        parameters[FEATURES * CLASSES :],
    )
    total = np.zeros(DIM)
    for i in batch:
        scores = np.exp(weights @ x[i] + biases)
        slope = scores / scores.sum() - np.eye(CLASSES)[y[i]]
        gradient = np.concatenate([np.outer(slope, x[i]).reshape(-1), slope])
        total += gradient * min(1, (1 - 2**-20) * clip_norm / np.linalg.norm(gradient))
    return total


class Training:
    """Logistic regression as in docs/python-torch.md; sabotages override its methods."""

    how = {}

    def __init__(self, plan, key):
        """`key` makes the key anew: one object would refuse to make its noise twice."""
        generator = torch.Generator().manual_seed(2)
        self.x, self.y = (
            torch.randn(240, FEATURES, generator=generator),
            torch.randint(0, CLASSES, (240,), generator=generator),
        )
        self.plan, self.key, self.seen = plan, key, []
        self.begin(key())

    def begin(self, key):
        self.model = nn.Linear(FEATURES, CLASSES)
        with torch.no_grad():
            for p in self.model.parameters():
                p.zero_()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=RATE, momentum=MOMENTUM)
        self.noise = CorrelatedNoise(self.model, self.plan, key, reuse_noise_unprotected=True, **self.how)

    def batches(self):
        return self.noise.batch_sampler()

    def put_sum(self, batch):
        clipped_sum_(self.model, nn.functional.cross_entropy, self.x[batch], self.y[batch], CLIP)

    def step(self):
        self.optimizer.step()
        return flat(p.grad for p in self.model.parameters()) * self.plan.expected_batch_size

    def interrupt(self):
        state = dict(
            model=self.model.state_dict(),
            optimizer=self.optimizer.state_dict(),
            noise=self.noise.state_dict(),
        )
        self.begin(None)
        self.restore(state)

    def restore(self, state):
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.noise.load_state_dict(state["noise"])

    def run(self, interrupted=None):
        """Records each step's batch, noisy sum (the optimizer's gradient times the expected batch size) and
        parameters."""
        while len(self.seen) < self.plan.steps:
            self.noise.attach(self.optimizer)
            for batch in self.batches():
                self.put_sum(batch)
                noisy_sum = self.step()
                self.optimizer.zero_grad()
                self.seen.append((batch, noisy_sum, flat(self.model.parameters())))
                if len(self.seen) == interrupted:
                    self.interrupt()
                    break
        return self.seen


class OwnSums(Training):
    """Sums are made by the caller and passed in .grad."""

    how = dict(sums_in_grad=True, trust_float32_sums=True)
    clip_norm = CLIP

    def put_sum(self, batch):
        self.put(
            clipped(flat(self.model.parameters()), self.x.numpy(), self.y.numpy(), batch, self.clip_norm)
        )

    def put(self, total):
        parts = torch.from_numpy(total).float().split([p.numel() for p in self.model.parameters()])
        for p, part in zip(self.model.parameters(), parts):
            p.grad = part.reshape(p.shape).clone()


class TwiceTheClipNorm(OwnSums):
    clip_norm = 2 * CLIP


class MomentumBeforeNoise(OwnSums):
    velocity = np.zeros(DIM)

    def put(self, total):
        self.velocity = MOMENTUM * self.velocity + total
        super().put(self.velocity)


class OptimizerWithoutNoise(Training):
    def step(self):
        before = flat(self.model.parameters())
        batch = next(iter(an.Batches(self.plan, self.key())))  # any sum at all
        noisy_sum = super().step()
        with torch.no_grad():
            moved = (
                before
                - RATE
                * clipped(before, self.x.numpy(), self.y.numpy(), batch)
                / self.plan.expected_batch_size
            )
            nn.utils.vector_to_parameters(torch.from_numpy(moved).float(), self.model.parameters())
        return noisy_sum


class BatchesOfAnotherRun(Training):
    how = dict(external_batches=True)

    def batches(self):
        return [b.tolist() for b in an.Batches(self.plan, self.key(), run="another")][len(self.seen) :]


class NoiseOfAnotherRun(Training):
    how = dict(external_batches=True, run="another")

    def batches(self):
        return [b.tolist() for b in an.Batches(self.plan, self.key())][len(self.seen) :]


class PastLost(Training):
    how = dict(external_batches=True)
    batches = NoiseOfAnotherRun.batches

    def restore(self, state):
        self.noise = CorrelatedNoise(
            self.model, self.plan, self.key(), reuse_noise_unprotected=True, **self.how
        )
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])


class MomentumLost(Training):
    def restore(self, state):
        super().restore(state | dict(optimizer=self.optimizer.state_dict()))


def shards(plan, key):
    """The rows of three streams that share the coordinates, concatenated."""
    cuts = [0, 4, 9, DIM]
    streams = [an.NoiseStream(plan, DIM, key(), shard=[(a, b)]) for a, b in zip(cuts, cuts[1:])]
    return rows_of(plan, streams)


def shards_with_shared_counters(plan, key):
    return rows_of(plan, [an.NoiseStream(plan, DIM, key(), shard=[(0, size)]) for size in (4, 5, 6)])


def rows_of(plan, streams):
    rows = [[np.empty(size, np.float32) for size in sizes] for sizes in [[4, 5, DIM - 9]] * plan.steps]
    for place, stream in enumerate(streams):
        # The audit's trainings already used the same noise.
        stream.seek(0, reuse_noise_unprotected=True)
        for row in rows:
            stream.next_into(row[place])
    return np.array([np.concatenate(row) for row in rows])


class Audit:
    """What Rust's command line makes of a plan and a key file, and the rows of the audit that fail."""

    def __init__(self, plan, folder, key_file, antinoise):
        """`key` makes a new key object on each call: one object would refuse to make its noise twice."""
        self.plan, self.key_file = plan, key_file
        plan.save(folder / "plan.toml")
        of_key = ["--plan", folder / "plan.toml", "--key-file", key_file]
        self.batches = json.loads(antinoise("batches", *of_key, "--json").stdout)["batches"]
        made = antinoise("noise", *of_key, "--dim", DIM, "--out", folder / "noise.npy")
        assert made.returncode == 0, made.stderr
        self.noise = np.load(folder / "noise.npy")
        assert len(self.batches) == len(self.noise) == plan.steps > 3

    def key(self):
        return an.Key.from_file(self.key_file)

    def rejects(self, training, shards=shards):
        seen = training(self.plan, self.key).run()
        again = training(self.plan, self.key).run(interrupted=self.plan.steps // 2)
        differ = [
            a[0] != b[0] or (a[1] != b[1]).any() or (a[2] != b[2]).any()
            for a, b in zip(seen, again, strict=True)
        ]
        rows = {
            "batches": [batch for batch, _, _ in seen] != self.batches,
            "noisy sum": not self.noisy_sums(training(self.plan, self.key), seen),
            "optimizer": any(not self.optimized(run) for run in (seen, again)),
            "resumption": any(differ),
            "shards": (shards(self.plan, self.key) != self.noise).any(),
        }
        return {name for name, rejected in rows.items() if rejected}

    def noisy_sums(self, data, seen):
        """Noisy sums minus Rust's noise are the clipped sums of Rust's batches, up to a point of the grid and
        single precision.
        """
        parameters, far = np.zeros(DIM), 0.0
        for (_, noisy_sum, after), noise, batch in zip(
            seen, self.noise.astype(np.float64), self.batches, strict=True
        ):
            found = noisy_sum - noise - clipped(parameters, data.x.numpy(), data.y.numpy(), batch)
            far = max(far, np.abs(found / ((self.plan.grid_spacing or 0) + 1e-5 * (1 + np.abs(noise)))).max())
            parameters = after
        return far <= 1

    def optimized(self, seen):
        """Parameters follow from noisy sums by SGD with momentum."""
        velocity, parameters, far = np.zeros(DIM), np.zeros(DIM), 0.0
        for _, noisy_sum, after in seen:
            velocity = MOMENTUM * velocity + noisy_sum / self.plan.expected_batch_size
            far = max(
                far,
                np.abs(parameters - RATE * velocity - after).max()
                / (1 + np.abs(after).max() + np.abs(velocity).max()),
            )
            parameters = after
        return far <= 1e-5


@pytest.fixture(scope="module", params=PLANS)
def audit(request, tmp_path_factory, antinoise):
    plan, folder = (
        small_plan(dim=100, clip_norm=CLIP, **PLANS[request.param]),
        tmp_path_factory.mktemp("audit"),
    )
    (folder / "key").write_bytes(bytes(range(32)))
    (folder / "key").chmod(0o600)
    return Audit(plan, folder, folder / "key", antinoise)


def test_the_torch_path_is_accepted_under_every_sampler(audit):
    assert audit.rejects(Training) == set() == audit.rejects(OwnSums)


@pytest.mark.parametrize(
    "fault, row",
    [
        (TwiceTheClipNorm, "noisy sum"),
        (MomentumBeforeNoise, "noisy sum"),
        (NoiseOfAnotherRun, "noisy sum"),
        (BatchesOfAnotherRun, "batches"),
        (OptimizerWithoutNoise, "optimizer"),
        (PastLost, "resumption"),
        (MomentumLost, "optimizer"),
    ],
)
def test_every_fault_is_rejected(fault, row, audit):
    if audit.plan.accountant != "gdp" and "external_batches" in fault.how:
        with pytest.raises(ValueError, match="batch of step .* but must be the plan's"):
            audit.rejects(fault)
    else:
        assert row in audit.rejects(fault)


def test_shared_counters_are_rejected(audit):
    assert audit.rejects(Training, shards_with_shared_counters) == {"shards"}
