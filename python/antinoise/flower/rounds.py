"""A round of users: who was asked, what they answered, and its noisy sum."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from flwr.app import ArrayRecord

from .updates import Model
from .users import user_record_key


@dataclass(frozen=True)
class NoisySum:
    """A step's result: the noisy sum (bytes of float32), and a digest of the model that its updates started
    from.
    """

    step: int
    base: str
    noisy_sum: bytes


@dataclass
class RoundReport:
    """Counts of a step's users by the fate of their updates. **Not private**: for the server's operator,
    not for publication.
    """

    step: int
    requested: int
    aggregated: int = 0
    not_finite: int = 0
    malformed: int = 0
    zeroed: int = 0

    @property
    def missing(self) -> int:
        """Users without a reply."""
        return self.requested - self.aggregated - self.not_finite - self.zeroed - self.malformed


@dataclass
class Round:
    """A round in progress: the model it starts from and the users asked at each node, or an earlier noisy sum
    (`again`) that is passed on once more.
    """

    model: Model
    asked: dict[int, list[str]] = field(default_factory=dict)
    again: NoisySum | None = None


def trained_models(users: list[str], records: Mapping[str, ArrayRecord]) -> dict[str, ArrayRecord]:
    """The models in a node's reply, by the user among `users` for whom it trained them."""
    named = {user: records[user_record_key(user)] for user in users if user_record_key(user) in records}
    if (
        not named
        and len(users) == 1
        and len(records) == 1
        and not any(name.startswith(user_record_key("")) for name in records)
    ):
        return {users[0]: next(iter(records.values()))}
    return named
