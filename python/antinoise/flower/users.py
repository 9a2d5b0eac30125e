"""Users and their nodes: the messages of server and clients about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from flwr.app import ConfigRecord, Message, MessageType, RecordDict
from flwr.serverapp import Grid

# Name of the record that lists users, in queries and replies.
RECORD = "antinoise.users"
_FIELD = "users"


def user_record_key(user: str) -> str:
    """Name of the ArrayRecord with the model trained for `user`, in a node's reply. A node that was asked
    for a single user may use any name.
    """
    return f"antinoise.user.{user}"


def requested_users(message: Message) -> list[str]:
    """Returns to a client the users whose updates a training message asks for. Each update is returned in
    a separate ArrayRecord (`user_record_key`).
    """
    return _listed(message)


def reply_with_users(question: Message, users: Sequence[str]) -> Message:
    """Returns a client's reply in `@app.query("users")`.

    Args:
        question: The query's message.
        users: Names of the users whose data this node holds. A user must keep the same name for the whole
            run: the ledger counts participations by name.
    """
    return Message(RecordDict({RECORD: users_listed(users)}), reply_to=question)


def checked_names(users: Iterable[str]) -> list[str]:
    """The users as a list; refuses a name that is not a string or not valid UTF-8."""
    found = list(users)
    for user in found:
        try:
            user.encode()
        except (UnicodeEncodeError, AttributeError):
            raise ValueError(
                f"name of a user is {user!a} but must be a string that can be encoded in UTF-8"
            ) from None
    return found


def users_listed(users: Iterable[str]) -> ConfigRecord:
    """A record that lists users."""
    return ConfigRecord({_FIELD: checked_names(users)})


def _listed(message: Message) -> list[str]:
    """The users that a message lists; none if the message has another form."""
    if message.has_error() or RECORD not in message.content.config_records:
        return []
    users = message.content.config_records[RECORD].get(_FIELD)
    return [user for user in users if isinstance(user, str) and user] if isinstance(users, list) else []


class QueryUsers:
    """Asks every node once which users it holds, by a message of type `query.users`.

    A node that does not reply in time counts as a node without users, and is asked again in the next round. A
    user at several nodes belongs to the one with the lowest number.

    Args:
        timeout: Seconds to wait for replies.
    """

    def __init__(self, *, timeout: float = 60.0) -> None:
        self._timeout = timeout
        self._answers: dict[int, list[str]] = {}

    def __call__(self, grid: Grid) -> Mapping[str, int]:
        nodes = sorted(grid.get_node_ids())
        questions = [
            Message(RecordDict({RECORD: ConfigRecord()}), node, f"{MessageType.QUERY}.users")
            for node in nodes
            if node not in self._answers
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


def one_user_per_node(grid: Grid) -> Mapping[str, int]:
    """Counts each node as one user.

    Use it only if nodes keep their number for the whole run. A device that registers anew, as all do when a
    simulation restarts, counts as another user, and its owner could take part more often than the plan
    allows.
    """
    return {str(node): node for node in grid.get_node_ids()}
