"""What the scripts that fine-tune have in common: text as sequences of characters, the plans that are
compared, the search for a rate."""

import random
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import TensorDataset

import antinoise as an

# One number for each character of ASCII: which characters the private text has is nobody's to know.
ALPHABET = 128
WAYS = {
    "correlated": {"setting": "cyclic", "mechanism": "blt:4"},
    "independent, amplified": {"setting": "poisson", "mechanism": "identity"},
}
CLIP_NORM, DELTA = 1.0, 1e-5


def text_of(path: Path | None) -> str:
    """A file's, or a little text that is made up."""
    if path is not None:
        return path.read_text(encoding="ascii", errors="replace").replace("\ufffd", "?")
    drawn = random.Random(0)
    return " ".join(
        drawn.choice(["to", "be", "or", "not", "that", "is", "the", "question"]) for _ in range(20_000)
    )


def sequences(text: str, length: int) -> Tensor:
    """All of a text in rows of `length` + 1 characters, none of which is in two rows."""
    numbers = torch.frombuffer(bytearray(text, "ascii"), dtype=torch.uint8).long()
    return numbers[: len(numbers) // (length + 1) * (length + 1)].view(-1, length + 1)


def parts(
    text: str, length: int, examples: int, held_out: int, capitals: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The first half, which is public; of the second half, private examples, those that rates are chosen by,
    and those that are tested. With `capitals` the second half is in them: text that is written otherwise than
    what the model knows."""
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
    """Each example is asked for each of its characters but the first."""
    return TensorDataset(rows[:, :-1].contiguous(), rows[:, 1:].contiguous())


def drawn(text: Tensor, length: int, count: int) -> Tensor:
    """Rows of public text, from anywhere."""
    return text[torch.randint(len(text) - length, (count, 1)) + torch.arange(length + 1)].long()


def plan_of(way: str, examples: int, batch: int, steps: int, epsilon: float, dim: int) -> an.Plan:
    how: Any = WAYS[way]
    return an.plan(
        examples, batch, steps=steps, epsilon=epsilon, delta=DELTA, clip_norm=CLIP_NORM, dim=dim, **how
    )


def noise_of(plan: an.Plan) -> float:
    """The plan's own measure of its noise: the root of the mean square of what the noise adds up to, over all
    steps."""
    return next(c["rms_loss"] for c in plan.candidates if c["chosen"])


def best_rate(
    losses: Callable[[float], float], first: float, most: int = 5
) -> tuple[float, dict[float, float]]:
    """Doubles and halves until neither neighbour is better, or `most` rates are tried."""
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
