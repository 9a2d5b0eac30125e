"""The Trainer of Hugging Face: losses whose norms need no gradients, and losses that are taken one by one."""

import copy
import warnings

import hf_run
import pytest
from conftest import small_plan

# Before transformers: the module sets the variable that keeps it offline.
from hf_run import CLIP, data, gpt2, model_of, plan_of_data, torch, trained, trainer
from torch import nn

from antinoise.hf import PrivateTrainer
from antinoise.torch import clipping
from antinoise.torch.held_sums import held_sum

pytestmark = pytest.mark.filterwarnings("ignore")


def first_sums(plan, folder, **how):
    """The clipped sums of the first step, and the warnings of norms."""
    made = trainer(plan, folder, max_steps=1, **how)
    sums = []
    made.optimizer.register_step_pre_hook(
        lambda *_: sums.extend(held_sum(p).total.reshape(-1).clone() for p in trained(made.model))
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made.train()
    return torch.cat(sums), [str(w.message) for w in caught if "norms" in str(w.message)]


def classes(kind=int):
    return [row | {"labels": torch.tensor(kind(i % 2))} for i, row in enumerate(data())]


def is_loss(outputs, labels, num_items_in_batch=None):
    """A loss that is no mean over rows."""
    return (
        nn.functional.cross_entropy(outputs.logits[:, :-1].mT, labels[:, 1:]) + outputs.logits.square().mean()
    )


LOSSES = {
    "LoRA": lambda: (gpt2(), data(), {}, {}),
    "whole": lambda: (model_of("GPT2", task="LMHeadModel"), data(), {}, {}),
    "classes": lambda: (model_of("Bert", task="ForSequenceClassification", num_labels=2), classes(), {}, {}),
    "a number": lambda: (
        model_of("Bert", task="ForSequenceClassification", num_labels=1),
        classes(float),
        {},
        {},
    ),
    "masked tokens": lambda: (model_of("Bert", task="ForMaskedLM"), data(), {}, {}),
    "both directions": lambda: (model_of("T5", task="ForConditionalGeneration"), data(), {}, {}),
    "smoothed": lambda: (gpt2(), data(), {}, dict(label_smoothing_factor=0.1)),
    "a loss of the user": lambda: (gpt2(), data(), dict(compute_loss_func=is_loss), {}),
}


@pytest.mark.parametrize("name", LOSSES)
def test_norms_without_gradients_are_the_default(name, tmp_path, monkeypatch):
    model, rows, how, arguments = LOSSES[name]()
    dim = sum(p.numel() for p in trained(model))
    plan = small_plan(examples=48, batch_size=8, dim=dim, clip_norm=CLIP)
    given = dict(rows=rows, **arguments)
    wanted, said = first_sums(
        plan, tmp_path, model=copy.deepcopy(model), how=how | dict(norms="per_example"), **given
    )
    assert not said
    with monkeypatch.context() as without:
        without.setattr(
            clipping, "per_example_sums", lambda *_: pytest.fail("gradients of examples are made")
        )
        found, said = first_sums(plan, tmp_path, model=model, how=how, **given)
    assert not said
    assert (found - wanted).norm() <= 1e-5 * wanted.norm() and wanted.norm() > 0.1 * CLIP


class Halved(PrivateTrainer):
    """Its loss depends on how many examples it gets, which does not show for one."""

    def compute_loss(self, model, inputs, **how):
        return super().compute_loss(model, inputs) / len(inputs["input_ids"])


class Totalled(PrivateTrainer):
    """Its loss is a number for the batch."""

    def compute_loss(self, model, inputs, **how):
        return model(**inputs).logits.square().mean()


@pytest.mark.parametrize(
    "kind, message",
    [
        (Halved, "is different for an example among others than for the example alone"),
        (Totalled, "is one number for 2 examples"),
    ],
)
def test_losses_that_are_not_known_of_each_example_are_taken_one_by_one(kind, message, tmp_path, monkeypatch):
    plan = plan_of_data()
    plain, _ = first_sums(plan, tmp_path, model=gpt2(), how=dict(norms="per_example"))
    monkeypatch.setattr(hf_run, "PrivateTrainer", kind)
    wanted, said = first_sums(plan, tmp_path, model=gpt2(), how=dict(norms="per_example"))
    assert not said
    found, said = first_sums(plan, tmp_path, model=gpt2())
    assert len(said) == 1 and message in said[0] and torch.equal(found, wanted)
    assert torch.equal(plain, wanted) == (kind is Halved)
    with pytest.raises(ValueError, match=message):
        first_sums(plan, tmp_path, model=gpt2(), how=dict(norms="ghost"))


class Tokens(nn.Module):
    """Predicts each token from itself; `part` makes the loss, or changes the model."""

    def __init__(self, part):
        super().__init__()
        self.table, self.part, self.last = nn.Embedding(30, 6), part(), nn.Linear(6, 30)

    def forward(self, input_ids=None, labels=None, **_):
        return self.part(self, torch.tanh(self.table(input_ids)), labels)


class OfRows(nn.Module):
    """The loss is over the rows with labels alone."""

    def forward(self, model, hidden, labels):
        logits, kept = model.last(hidden), labels != -100
        return {"loss": nn.functional.cross_entropy(logits[kept], labels[kept]), "logits": logits}


class Gate(nn.Module):
    """Weights of experts, and how evenly all tokens use them."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Parameter(torch.randn(6, 3))
        self.experts = nn.Parameter(0.3 * torch.randn(3, 6, 6))

    def forward(self, x):
        shares = (x @ self.gate).softmax(-1)
        used = shares.mean(dim=(0, 1))
        return torch.einsum("...e,eij,...i->...j", shares, self.experts, x), 3 * (used * used).sum()


class Balanced(nn.Module):
    """The loss has a term of all examples together, which is one number."""

    def __init__(self):
        super().__init__()
        self.inner = Gate()

    def forward(self, model, hidden, labels):
        hidden, balance = self.inner(hidden)
        logits = model.last(hidden)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten()) + 0.1 * balance
        return {"loss": loss, "logits": logits}


class FromFirst(nn.Module):
    """Begins at the mean of the first examples."""

    def __init__(self):
        super().__init__()
        self.register_buffer("begun", torch.zeros((), dtype=torch.long))
        self.shift = nn.Parameter(torch.zeros(6))

    def forward(self, model, hidden, labels):
        if self.begun == 0:
            self.shift.data.copy_(-hidden.mean((0, 1)))
            self.begun += 1
        logits = model.last(hidden + self.shift)
        return {
            "loss": nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten()),
            "logits": logits,
        }


def with_states(outputs, labels, num_items_in_batch=None):
    """A loss that looks at an output that most models leave out."""
    loss = nn.functional.cross_entropy(outputs.logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
    return loss if outputs.hidden_states is None else loss + outputs.hidden_states[-1].square().mean()


def two_labels():
    """As many rows with labels in each example, which look like rows of one example after the other."""
    first = torch.arange(10) < 2
    return [row | {"labels": torch.where(first, row["input_ids"], -100)} for row in data()]


TOGETHER = {
    "rows with labels": (lambda: Tokens(OfRows), {}, "one by one"),
    "as many rows": (
        lambda: Tokens(OfRows),
        dict(train_dataset=two_labels()),
        "chooses rows by their content",
    ),
    "a term of all examples": (lambda: Tokens(Balanced), {}, "one by one"),
    "states": (
        lambda: model_of("GPT2", task="LMHeadModel", output_hidden_states=True),
        dict(compute_loss_func=with_states),
        None,
    ),
}


@pytest.mark.parametrize("name", TOGETHER)
def test_losses_that_look_at_more_than_an_example_have_the_sums_of_each_alone(name, tmp_path):
    of, how, message = TOGETHER[name]

    def made():
        torch.manual_seed(1)
        return of()

    dim = sum(p.numel() for p in made().parameters())
    plan = small_plan(examples=48, batch_size=8, dim=dim, clip_norm=CLIP)
    wanted, _ = first_sums(plan, tmp_path, model=made(), how=how | dict(norms="per_example"))
    found, said = first_sums(plan, tmp_path, model=made(), how=how)
    assert [message in text for text in said] == [True] * (message is not None)
    assert (found - wanted).norm() <= 1e-5 * wanted.norm() and wanted.norm() > 0.1 * CLIP


@pytest.mark.parametrize("norms", ["auto", "per_example", "ghost"])
def test_a_model_that_begins_at_its_first_examples_is_refused(norms, tmp_path):
    model = Tokens(FromFirst)
    plan = small_plan(
        examples=48, batch_size=8, dim=sum(p.numel() for p in model.parameters()), clip_norm=CLIP
    )
    with pytest.raises(ValueError, match="is changed by the forward pass but must be left as it was"):
        first_sums(plan, tmp_path, model=model, how=dict(norms=norms))
