"""Common parts of the scripts that fine-tune: text as sequences of characters, the plans that are compared,
and the search for a learning rate."""

import random
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import TensorDataset

import antinoise as an

# One number for each ASCII character: the characters that occur in the private text are not revealed.
ALPHABET = 128
WAYS = {
    "correlated": {"setting": "cyclic", "mechanism": "blt:4"},
    "independent, amplified": {"setting": "poisson", "mechanism": "identity"},
}
CLIP_NORM, DELTA = 1.0, 1e-5


def text_of(path: Path | None) -> str:
    """The text of a file or, without one, a short generated text."""
    if path is not None:
        return path.read_text(encoding="ascii", errors="replace").replace("\ufffd", "?")
    drawn = random.Random(0)
    return " ".join(
        drawn.choice(["to", "be", "or", "not", "that", "is", "the", "question"]) for _ in range(20_000)
    )


def sequences(text: str, length: int) -> Tensor:
    """A text cut into rows of `length` + 1 characters that do not overlap."""
    numbers = torch.frombuffer(bytearray(text, "ascii"), dtype=torch.uint8).long()
    return numbers[: len(numbers) // (length + 1) * (length + 1)].view(-1, length + 1)


def parts(
    text: str, length: int, examples: int, held_out: int, capitals: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Public rows, from the first half of a text; and from its second half private rows, rows by which
    learning rates are chosen, and test rows. With `capitals` the second half is in capitals, unlike the text
    that the model knows."""
    half = len(text) // 2
    rest = sequences(text[half:].upper() if capitals else text[half:], length)
    if len(rest) < examples + 2 * held_out:
        raise ValueError(
            f"text is of {len(text)} characters but must be of {2 * (length + 1) * (examples + 2 * held_out)}"
        )
    public = torch.frombuffer(bytearray(text[:half], "ascii"), dtype=torch.uint8)
    private, choose, test = rest[: examples + 2 * held_out].split([examples, held_out, held_out])
    return public, private, choose, test


def asked(rows: Tensor) -> TensorDataset:
    """A data set whose targets are all characters of a row but the first."""
    return TensorDataset(rows[:, :-1].contiguous(), rows[:, 1:].contiguous())


def drawn(text: Tensor, length: int, count: int) -> Tensor:
    """Random rows of public text."""
    return text[torch.randint(len(text) - length, (count, 1)) + torch.arange(length + 1)].long()


def plan_of(way: str, examples: int, batch: int, steps: int, epsilon: float, dim: int) -> an.Plan:
    how: Any = WAYS[way]
    return an.plan(
        examples, batch, steps=steps, epsilon=epsilon, delta=DELTA, clip_norm=CLIP_NORM, dim=dim, **how
    )


def noise_of(plan: an.Plan) -> float:
    """The noise that a plan predicts: the root mean square, over all steps, of the noise accumulated so
    far."""
    return next(c["rms_loss"] for c in plan.candidates if c["chosen"])


def best_rate(
    losses: Callable[[float], float], first: float, most: int = 5
) -> tuple[float, dict[float, float]]:
    """The learning rate of smallest loss: doubles and halves until neither neighbour is better, or `most`
    rates are tried.
    """
    found = {first: losses(first)}
    while len(found) < most:
        best = min(found, key=found.__getitem__)
        left = [rate for rate in (2 * best, best / 2) if rate not in found]
        if not left:
            break
        found[left[0]] = losses(left[0])
    return min(found, key=found.__getitem__), found


def with_error(values: list[float]) -> str:
    """Mean and standard error."""
    mean = statistics.mean(values)
    return (
        f"{mean:.4f} ± {statistics.stdev(values) / len(values) ** 0.5:.4f}"
        if len(values) > 1
        else f"{mean:.4f}"
    )
