"""The Trainer of Hugging Face on several processes: the bits of one process, in exact mode."""

import os
import stat

import pytest
from conftest import small_plan

torch = pytest.importorskip("torch")
os.environ["HF_HUB_OFFLINE"] = "1"
transformers = pytest.importorskip("transformers")
pytest.importorskip("peft")
from hf_run import CLIP, data, flat, gpt2, key, trained, trainer
from ranks import on_ranks, preload, refused

import antinoise as an

pytestmark = pytest.mark.filterwarnings("ignore")
preload("transformers.trainer", "peft", "accelerate")


def plan_of(**how):
    """A plan whose batches two processes do not share evenly."""
    return small_plan(
        **(dict(examples=49, batch_size=9, epochs=None, steps=10, dim=200, clip_norm=CLIP) | how)
    )


def made(folder, plan=None, how=None, **arguments):
    """Exact sums, as many examples as the plan has."""
    plan = plan or plan_of()
    world = int(os.environ.get("WORLD_SIZE", "1"))
    batch = dict(per_device_train_batch_size=-(-plan.batch_size // world))
    return trainer(plan, folder, rows=data(49), how=dict(exact=True) | (how or {}), **(batch | arguments))


def launched():
    """The environment that a launcher gives each process."""
    rank = str(torch.distributed.get_rank())
    os.environ.update(
        RANK=rank, LOCAL_RANK=rank, WORLD_SIZE="2", LOCAL_WORLD_SIZE="2", ACCELERATE_USE_CPU="true"
    )


def kept(found, folder):
    torch.save(
        (found.seen, flat(trained(found.model)), found.noise.step), folder / str(torch.distributed.get_rank())
    )


def run(folder):
    launched()
    # The key is rank 0's.
    found = made(
        folder / "run",
        how=dict(key=key() if torch.distributed.get_rank() == 0 else None),
        save_strategy="steps",
        save_steps=4,
    )
    found.train()
    assert isinstance(found.model_wrapped, torch.nn.parallel.DistributedDataParallel)
    kept(found, folder)


def resumed(path, folder):
    launched()
    found = made(folder / "again")
    found.train(resume_from_checkpoint=str(path))
    kept(found, folder)


def test_processes_have_the_bits_of_one(tmp_path):
    on_ranks(2, run, tmp_path)
    one = made(tmp_path / "one")
    one.train()
    assert one.noise.step == len(one.seen) == 10 and not torch.equal(
        flat(trained(one.model)), flat(trained(gpt2()))
    )
    path = tmp_path / "run" / "checkpoint-4"
    assert stat.S_IMODE((path / "noise.pt").stat().st_mode) == 0o600
    for skipped in (0, 4):
        for rank in range(2):
            seen, parameters, step = torch.load(tmp_path / str(rank))
            assert step == 10 and all(
                torch.equal(a, b) for a, b in zip(seen, one.seen[skipped:], strict=True)
            )
            assert torch.equal(parameters, flat(trained(one.model)))
        if skipped == 0:
            on_ranks(2, resumed, path, tmp_path)
    alone = made(tmp_path / "alone")
    alone.train(resume_from_checkpoint=str(path))
    assert torch.equal(flat(trained(alone.model)), flat(trained(one.model)))


def refusals(folder):
    launched()
    rank, plan = torch.distributed.get_rank(), plan_of()
    refused(
        "max_grad_norm is 1.0 but must be 0: the plan clips", lambda: made(folder, max_grad_norm=float(rank))
    )
    whole = made(folder, per_device_train_batch_size=9)
    refused("batch_size of the loader is 9 but must be 5, a process's share of the plan's, 9", whole.train)
    few = plan_of(batch_size=1, steps=49)
    refused(
        "batch_size of the plan is 1 but must be at least the number of processes", lambda: made(folder, few)
    )
    own = made(folder, how=dict(key=an.Key.from_seed_insecure(rank)))
    refused("key is .* on rank 1 but must be .*, as on rank 0", own.train)
    other = made(folder, plan_of(epsilon=3) if rank else plan)
    refused("plan is .* on rank 1 but must be .*, as on rank 0", other.train)
    found = made(folder)
    refused(
        "checkpoint is one without noise.pt",
        lambda: found.train(resume_from_checkpoint=str(checkpoint_without_noise(folder))),
    )
    found = made(folder)
    next(iter(found.create_optimizer().param_groups))["lr"] = 1.0
    drawn = next(iter(found._sampler))
    rows = found.data_collator([data(49)[i] for i in drawn[rank:]])
    rows.pop("length")
    found.training_step(found.model, rows)
    refused("batch of step 0 is of 8 examples but must be the plan's, of 9", found.optimizer.step)
    assert found.noise.step == 0 and torch.equal(flat(trained(found.model)), flat(trained(gpt2())))


def checkpoint_without_noise(folder):
    """A checkpoint as the Trainer of Hugging Face itself saves it."""
    place = folder / "bare"
    if torch.distributed.get_rank() == 0:
        place.mkdir()
        gpt2().save_pretrained(place)
        state = transformers.TrainerState(train_batch_size=5, logging_steps=1, save_steps=500, eval_steps=500)
        state.save_to_json(str(place / "trainer_state.json"))
    torch.distributed.barrier()
    return place


def test_what_would_void_the_claim_is_refused_on_all_ranks(tmp_path):
    on_ranks(2, refusals, tmp_path)
