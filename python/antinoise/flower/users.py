"""Which users there are, and at which nodes: what servers and clients tell each other of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from flwr.app import ConfigRecord, Message, MessageType, RecordDict
from flwr.serverapp import Grid

from .ledger import checked_names

# The record that lists users, in questions and answers.
RECORD = "antinoise.users"
_FIELD = "users"


def user_record(user: str) -> str:
    """The name of the ArrayRecord in a node's reply that holds what `user` trained. A node that was asked for
    one user may name it as it likes."""
    return f"antinoise.user.{user}"


def asked_users(message: Message) -> list[str]:
    """For clients: the users whose updates this message asks for, which are for one ArrayRecord each."""
    return _listed(message)


def held_users(question: Message, users: Sequence[str]) -> Message:
    """For clients: the answer, in `@app.query("users")`, of a node that holds these users' data. A user's
    name must stay the same for as long as the run: by it the ledger knows who took part."""
    return Message(RecordDict({RECORD: users_listed(users)}), reply_to=question)


def users_listed(users: Iterable[str]) -> ConfigRecord:
    """A record that lists users."""
    return ConfigRecord({_FIELD: checked_names(users)})


def _listed(message: Message) -> list[str]:
    """The users that a message lists; none if it is of another form."""
    if message.has_error() or RECORD not in message.content.config_records:
        return []
    users = message.content.config_records[RECORD].get(_FIELD)
    return [user for user in users if isinstance(user, str) and user] if isinstance(users, list) else []


class AskedUsers:
    """Asks every node once which users it holds, by a message of type `query.users`. A node that does not
    answer in time holds none, until it is asked again in the next round. A user at several nodes is the first
    one's."""

    def __init__(self, *, timeout: float = 60.0) -> None:
        self._timeout = timeout
        self._answers: dict[int, list[str]] = {}

    def __call__(self, grid: Grid) -> Mapping[str, int]:
        nodes = sorted(grid.get_node_ids())
        questions = [
            Message(RecordDict({RECORD: ConfigRecord()}), node, f"{MessageType.QUERY}.users") for node in nodes if node not in self._answers
        ]
        if questions:
            for answer in grid.send_and_receive(questions, timeout=self._timeout):
                if not answer.has_error():
                    self._answers[answer.metadata.src_node_id] = _listed(answer)
        found: dict[str, int] = {}
        for node in nodes:
            for user in self._answers.get(node, []):
                found.setdefault(user, node)
        return found


def nodes_are_users(grid: Grid) -> Mapping[str, int]:
    """Takes each node for one user. Only for nodes that keep their number for the whole run: a device that
    registers anew, as all do when a simulation is started again, would be another user, and its owner could
    take part more often than the plan allows."""
    return {str(node): node for node in grid.get_node_ids()}
