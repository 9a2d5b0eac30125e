"""The ledger's chain of digests: each part's content when it was last written. `crates/ledger/src/chain.rs`
computes the same.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_BEGINNING = "antinoise ledger"


@dataclass
class Users:
    """An unordered set of users: its size, and the exclusive or of the digests of their names."""

    count: int = 0
    sum: int = 0

    def add(self, user: str) -> None:
        """Adds a user."""
        self.count += 1
        self.sum ^= int.from_bytes(hashlib.sha256(user.encode()).digest(), "big")

    def with_others(self, users: Iterable[str]) -> Users:
        """The set with further users."""
        found = Users(self.count, self.sum)
        for user in users:
            found.add(user)
        return found

    def content(self) -> str:
        """The set's text in the chain."""
        return f"{self.count} {self.sum:064x}"


def add(database: sqlite3.Connection, part: str, step: int, content: str) -> None:
    """Adds a link to the chain, within the transaction of the change."""
    last = database.execute("SELECT number, token FROM chain ORDER BY number DESC LIMIT 1").fetchone()
    number, before = (-1, _BEGINNING) if last is None else last
    database.execute(
        "INSERT INTO chain VALUES (?, ?, ?, ?, ?)",
        (number + 1, part, step, content, _token(before, part, step, content)),
    )


def damage(database: sqlite3.Connection, following: int, users: Mapping[int, Users]) -> str | None:
    """Describes the first part that is not as it was written; None if all parts are.

    Args:
        database: The ledger.
        following: The next step.
        users: The users of each step.
    """
    held: dict[tuple[str, int], str] = {}
    before = _BEGINNING
    links = database.execute("SELECT number, part, step, content, token FROM chain ORDER BY number")
    for wanted, (number, part, step, content, token) in enumerate(links):
        before = _token(before, part, step, content)
        if number != wanted or token != before:
            return f"link {wanted} of its chain of digests"
        held[part, step] = content
    missing = [step for part, step in held if part == "releases" and step >= following]
    if missing:
        return f"{len(missing)} rounds are missing: it had released step {max(missing)}"
    if held.pop(("run", 0), None) != run(database):
        return "what it belongs to, in the table run"
    for step in sorted({*users, *range(following + 1)}):
        found = users.get(step, Users()).content()
        if held.pop(("participations", step), Users().content()) != found:
            return f"who took part in step {step}"
    for step, base, noisy_sum in database.execute("SELECT step, base, noisy_sum FROM releases ORDER BY step"):
        written = held.pop(("releases", step), "")
        if noisy_sum is None:
            same = step + 1 < following and written.partition(" ")[1:] == (" ", base)
        else:
            same = step + 1 == following and written == release(base, noisy_sum)
        if not same:
            return f"the release of step {step}"
    return next((f"links of {part} of step {step}" for part, step in sorted(held)), None)


def run(database: sqlite3.Connection) -> str:
    """The content of the table `run`, as text."""
    digest = hashlib.sha256()
    for row in database.execute("SELECT name, value FROM run ORDER BY name"):
        for text in row:
            digest.update(f"{len(text.encode())}:{text}".encode())
    return digest.hexdigest()


def release(base: str, noisy_sum: bytes) -> str:
    """A release's text in the chain. The next release replaces the sum; its digest stays in the chain."""
    return f"{hashlib.sha256(noisy_sum).hexdigest()} {base}"


def _token(before: str, part: str, step: int, content: str) -> str:
    return hashlib.sha256(f"{before}\n{part}\n{step}\n{content}".encode()).hexdigest()
