"""The memory that a private step needs beyond plain training, by buffer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .distributed.share import Share


@dataclass(frozen=True)
class Buffer:
    """Memory of one kind."""

    name: str
    bytes: int
    device: str
    """Where it is."""
    lives: str
    """When it is there."""


@dataclass(frozen=True)
class StepMemory:
    """The buffers of a private step in this process. `str` lists them.

    The model, its activations and the optimizer's state are as in plain training, where `.grad` is there
    from the backward pass to the step.
    """

    buffers: tuple[Buffer, ...]

    @property
    def bytes(self) -> dict[str, int]:
        """Bytes by name of the buffer."""
        return {buffer.name: buffer.bytes for buffer in self.buffers}

    def __str__(self) -> str:
        width = max(len(buffer.name) for buffer in self.buffers)
        return "\n".join(
            f"{b.name:<{width}}  {b.bytes / 2**20:>10.1f} MiB  {b.device}, {b.lives}" for b in self.buffers
        )


def memory_of(parts: Sequence[Share], bytes_of_means: int, bytes_of_state: int, ahead: bool) -> StepMemory:
    """The memory of a step.

    Args:
        parts: The parameters of this process and its shares of them.
        bytes_of_means: Bytes of the parameters, which the noisy means have too.
        bytes_of_state: Bytes of the noise's state.
        ahead: Whether the next row of noise is made ahead.
    """
    host, shares = "in the host's memory", [part for part in parts if part.size]
    devices = ", ".join(sorted({str(part.device) for part in shares})) or "cpu"
    own = sum(part.size_of_share for part in shares)
    to_host = 0 if ahead else sum(part.size_of_share for part in shares if part.device.type != "cpu")
    made = [
        Buffer("sums", 8 * sum(part.size for part in shares), devices, "from clipping to the step"),
        Buffer("sums on their way", 8 * to_host, host, "while noise is added"),
        Buffer("noise made ahead", 4 * own if ahead else 0, host, "always"),
        Buffer("state of the noise", bytes_of_state, host, "always"),
        Buffer("noisy means", bytes_of_means, devices, "in .grad, each in the stead of its sum"),
    ]
    return StepMemory(tuple(buffer for buffer in made if buffer.bytes))
