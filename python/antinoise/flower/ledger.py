"""The ledger of participations and releases, written to disk before a release leaves the server."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from .. import Plan
from . import chain
from .chain import Users

# "anti", and the version of the tables below.
_APPLICATION, _VERSION = 0x616E7469, 2
_TABLES = """
CREATE TABLE run (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE participations (user TEXT NOT NULL, step INTEGER NOT NULL, PRIMARY KEY (user, step)) WITHOUT ROWID;
CREATE TABLE releases (step INTEGER PRIMARY KEY, base TEXT NOT NULL, noisy_sum BLOB);
CREATE TABLE chain (number INTEGER PRIMARY KEY, part TEXT NOT NULL, step INTEGER NOT NULL, content TEXT NOT NULL, token TEXT NOT NULL);
"""


@dataclass(frozen=True)
class Release:
    """A step's result: the noisy sum (bytes of float32), and a digest of the model that its updates started
    from.
    """

    step: int
    base: str
    noisy_sum: bytes


def limits_of(plan: Plan) -> tuple[int, int]:
    """The minimum separation of a user's steps and the maximum number of them, which the plan's sensitivity
    assumes.
    """
    kind, _, numbers = plan.participation.partition(":")
    if plan.unit != "user" or plan.sampler["kind"] != "external" or kind != "min-sep":
        got = f"{plan.participation} of units {plan.unit}"
        raise ValueError(
            f'participation of the plan is {got} but must be that of users, from an.plan(setting="federated")'
        )
    min_sep, most = numbers.split(",")
    return int(min_sep), int(most)


def checked_names(users: Iterable[str]) -> list[str]:
    """The users as a list; refuses a name that is not a string or not valid UTF-8."""
    found = list(users)
    for user in found:
        try:
            user.encode()
        except (UnicodeEncodeError, AttributeError):
            raise ValueError(
                f"name of a user is {user!a} but must be a string that UTF-8 can write"
            ) from None
    return found


def refuse_others(path: Path) -> None:
    """Refuses a file that users other than its owner may read or write."""
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        raise ValueError(f"mode of {path} is {mode:04o} but must be 0600, its owner's alone")


class Ledger:
    """The SQLite file of a run: which users took part in which step, and the last release.

    It belongs to one plan and run, and to one process at a time; only its owner can read it. Each change is
    on the disk before the call returns.
    """

    def __init__(self, path: str | os.PathLike[str], plan: Plan, run: str | None = None) -> None:
        self.path = Path(path)
        self._min_sep, self._most = limits_of(plan)
        self._database = self._opened()
        try:
            self._bind(plan, run)
            rows = self._database.execute(
                "SELECT user, COUNT(*), MAX(step) FROM participations GROUP BY user"
            )
            self._past: dict[str, tuple[int, int]] = {user: (count, last) for user, count, last in rows}
            self._charged = self._checked()
        except BaseException:
            self._database.close()
            raise

    def _checked(self) -> Users:
        """Refuses tables that contradict the chain of digests; returns the users charged for the next
        step."""
        users: defaultdict[int, Users] = defaultdict(Users)
        try:
            for user, step in self._database.execute("SELECT user, step FROM participations"):
                users[step].add(user)
            what = chain.damage(self._database, self.step, users)
        except (sqlite3.DatabaseError, TypeError, ValueError, AttributeError) as error:
            what = str(error)
        if what is not None:
            raise ValueError(f"ledger {self.path} is damaged ({what}) but must be as it was written")
        return users[self.step]

    def _refuse_written_ahead(self, database: sqlite3.Connection) -> None:
        # SQLite is asked: opening and closing the file here would drop the lock of another connection of this
        # process (POSIX).
        if database.execute("PRAGMA journal_mode").fetchone()[0] == "wal":
            must_be = "in journal mode DELETE, as this program writes it: rounds that another program wrote ahead, into a file next to it, may be missing"
            raise ValueError(f"ledger {self.path} is in journal mode WAL but must be {must_be}")

    def _opened(self) -> sqlite3.Connection:
        try:
            os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            refuse_others(self.path)
        # A server may run in another thread than the strategy's constructor, but only one thread at a time.
        database = sqlite3.connect(self.path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            # The lock is held until the connection ends, also if the process is killed.
            database.execute("PRAGMA locking_mode = EXCLUSIVE")
            database.execute("PRAGMA synchronous = EXTRA")
            database.execute("BEGIN EXCLUSIVE")
            self._refuse_written_ahead(database)
            self._create_or_check(database)
            database.execute("COMMIT")
        except sqlite3.OperationalError as error:
            database.close()
            raise ValueError(
                f"ledger {self.path} is {error} but must be free: one server at a time may use it"
            ) from None
        except sqlite3.DatabaseError:
            database.close()
            raise ValueError(f"ledger {self.path} is another file but must be a ledger") from None
        except BaseException:
            database.close()
            raise
        return database

    def _create_or_check(self, database: sqlite3.Connection) -> None:
        application, version, tables = (
            database.execute(f"SELECT * FROM {what}").fetchone()[0]
            for what in (
                "pragma_application_id",
                "pragma_user_version",
                "(SELECT COUNT(*) FROM sqlite_master)",
            )
        )
        if (application, version, tables) == (0, 0, 0):
            for statement in _TABLES.split(";"):
                database.execute(statement)
            database.execute(f"PRAGMA application_id = {_APPLICATION}")
            database.execute(f"PRAGMA user_version = {_VERSION}")
        elif application != _APPLICATION:
            raise ValueError(f"ledger {self.path} is another database but must be a ledger")
        elif version != _VERSION:
            raise ValueError(f"version of {self.path} is {version} but must be {_VERSION}")
        # A trigger could remove a participation that was just written.
        found = {sql for (sql,) in database.execute("SELECT COALESCE(sql, '') FROM sqlite_master")}
        if found != {statement.strip() for statement in _TABLES.split(";")} - {""}:
            raise ValueError(f"ledger {self.path} is damaged (other tables) but must be as it was written")

    def _bind(self, plan: Plan, run: str | None) -> None:
        self.bind("plan", plan.digest)
        self.bind("run", "0" if run is None else run)

    def bind(self, name: str, value: str) -> None:
        """Binds the ledger to a value, or refuses another value than the bound one."""
        if (held := self.bound(name)) is None:
            self.rebind(name, value)
        elif held != value:
            raise ValueError(
                f"{name} is {value} but must be the ledger's, {held}: {self.path} is of another run"
            )

    def rebind(self, name: str, value: str) -> None:
        """Replaces the value that the ledger is bound to."""
        with self._change():
            self._database.execute("INSERT OR REPLACE INTO run VALUES (?, ?)", (name, value))
            chain.add(self._database, "run", 0, chain.run(self._database))

    def bound(self, name: str) -> str | None:
        """The bound value, if any."""
        row = self._database.execute("SELECT value FROM run WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    @property
    def step(self) -> int:
        """The next step; all earlier steps are released."""
        last = self._database.execute("SELECT MAX(step) FROM releases").fetchone()[0]
        return 0 if last is None else int(last) + 1

    def eligible(self, users: Iterable[str]) -> list[str]:
        """The users among these who may take part in the next step."""
        step = self.step
        return [user for user in checked_names(users) if self._may(user, step)]

    def _may(self, user: str, step: int) -> bool:
        count, last = self._past.get(user, (0, -self._min_sep))
        return count < self._most and step - last >= self._min_sep

    def charge(self, users: Sequence[str]) -> None:
        """Records that these users take part in the next step. Records none of them if one may not."""
        step = self.step
        checked_names(users)
        refused = [user for user in users if not self._may(user, step)]
        if refused or len(set(users)) < len(users):
            must_be = f"users who took part less than {self._most} times, {self._min_sep} steps ago or longer, once each"
            raise ValueError(
                f"participants of step {step} are {refused or list(users)} but must be {must_be}"
            )
        charged = self._charged.with_others(users)
        with self._change():
            self._database.executemany(
                "INSERT INTO participations VALUES (?, ?)", [(user, step) for user in users]
            )
            chain.add(self._database, "participations", step, charged.content())
        self._charged = charged
        for user in users:
            self._past[user] = (self._past.get(user, (0, 0))[0] + 1, step)

    def release(self, release: Release) -> None:
        """Records the next step's release in place of the previous one."""
        if release.step != self.step:
            raise ValueError(f"step of a release is {release.step} but must be {self.step}, which comes next")
        with self._change():
            self._database.execute("UPDATE releases SET noisy_sum = NULL WHERE noisy_sum IS NOT NULL")
            self._database.execute(
                "INSERT INTO releases VALUES (?, ?, ?)", (release.step, release.base, release.noisy_sum)
            )
            chain.add(
                self._database, "releases", release.step, chain.release(release.base, release.noisy_sum)
            )
        self._charged = Users()

    @contextmanager
    def _change(self) -> Iterator[None]:
        """One transaction: a change of the file that is made completely or not at all."""
        self._database.execute("BEGIN")
        try:
            yield
            self._database.execute("COMMIT")
        except BaseException:
            self._database.execute("ROLLBACK")
            raise

    def last_release(self) -> Release | None:
        """The last step's release, if any."""
        row = self._database.execute(
            "SELECT step, base, noisy_sum FROM releases ORDER BY step DESC LIMIT 1"
        ).fetchone()
        return None if row is None else Release(*row)

    def participations(self) -> list[tuple[str, int]]:
        """All pairs of user and step, ordered by user, then step."""
        with closing(
            self._database.execute("SELECT user, step FROM participations ORDER BY user, step")
        ) as rows:
            return [(str(user), int(step)) for user, step in rows]

    def close(self) -> None:
        """Closes the file and releases its lock."""
        self._database.close()
