"""A Flower strategy wrapper that passes only noisy means to the wrapped strategy."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterable, Mapping
from logging import INFO, WARNING
from pathlib import Path

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, MessageType, MetricRecord, RecordDict
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Strategy
from numpy.typing import NDArray

from .. import Key, Ledger, NoiseStream, Plan
from .._antinoise import _draw_cohort, _similar_names
from .._once import NotCopied
from .._relied import relied
from .._sums import check_terms
from .._weights import sum_of_weights
from .rounds import NoisySum, Round, RoundReport, trained_models
from .server_optimizer import ServerOptimizer, ServerState
from .shown import messages_to
from .updates import Model, sum_of_clipped
from .users import RECORD, QueryUsers, users_listed

log: Callable[..., None] = relied("flwr", "flwr.supercore", "log")

ASSUMED = (
    "Assumed in addition: nodes name users rightly; who takes part in which step may be known, and does not"
    " follow from users' data; the files of ledger and noise are not put back to an earlier state; reports of"
    " rounds are seen only by the operator of the server."
)


def refuse_others(path: Path) -> None:
    """Refuses a file that users other than its owner may read or write."""
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        raise ValueError(f"mode of {path} is {mode:04o} but must be 0600, its owner's alone")


class CorrelatedNoise(NotCopied, Strategy):
    """Wraps a strategy so that it sees one reply per round: the model moved by the noisy mean of users'
    clipped updates. Its further use of that model costs no privacy.

    Each round draws the plan's cohort by the key from the users who may take part, and charges them in the
    ledger before it asks them; after a failure it asks the same cohort again. Each user's update is clipped
    to the plan's clip norm; the updates are summed in double precision, in the order of users' names, the
    step's noise is added, and the result is divided by the plan's expected batch size, however many users
    reply. Clients' metrics are dropped, since they are not private. With the same key, users, updates and
    `optimizer`, a run has the same bits as in Rust.

    The step counter is in the ledger file, which outlives the server; the noise's state is in a second file
    (`ledger.db.noise`). Both are **as secret as the key**. A step's noisy sum is kept until the next one:
    if the server dies before it saved the new model, a restart from the previous model gets the same bits
    again, and no user is asked.

    Args:
        strategy: The strategy to wrap.
        plan: A plan of `antinoise.plan(setting="federated")`.
        key: The secret of the run. It may be None once the ledger has begun: the run continues with its own
            key.
        ledger: Path of the ledger, an SQLite file of mode 0600.
        run: Name of the run; each run needs a new pair of key and name.
        optimizer: Moves the model along the noisy mean, with momentum, a learning-rate schedule and others,
            before the wrapped strategy sees it. Its state is in a third file (`ledger.db.optimizer`).
            Default: the model minus the mean update, for a strategy with an optimizer of its own.
        users: Returns the node of each user, by the user's name. Default: `QueryUsers()`. See also
            `one_user_per_node`.
        timeout: Seconds that a round waits for enough eligible users, before it is refused.
        evaluation_is_public: Let the wrapped strategy evaluate on clients. The caller says that the
            evaluation data need no protection.
        threads: Number of threads that make noise.
        zero_beyond: Bound on the entries of an update: an update with a larger one adds nothing, as if it
            were zero. Default: no bound.
        any_arrays: Accept arrays other than the ledger's last two models. Users stay protected, but later
            noise cancels noise that such a model lacks, so that it is less accurate.

    Raises:
        ValueError: The plan does not protect users, the ledger is another run's or damaged, or a key is
            missing.
    """

    def __init__(
        self,
        strategy: Strategy,
        plan: Plan,
        key: Key | None,
        *,
        ledger: str | os.PathLike[str] = "ledger.db",
        run: str | None = None,
        optimizer: ServerOptimizer | None = None,
        users: Callable[[Grid], Mapping[str, int]] | None = None,
        timeout: float = 60.0,
        evaluation_is_public: bool = False,
        threads: int | None = None,
        zero_beyond: float | None = None,
        any_arrays: bool = False,
    ) -> None:
        check_terms(plan, 0, plan.batch_size)
        if zero_beyond is not None and not zero_beyond > 0:
            raise ValueError(f"zero_beyond is {zero_beyond} but must be above 0, or None")
        self._zero_beyond = zero_beyond
        self._strategy, self._plan, self._key, self._run, self._threads = strategy, plan, key, run, threads
        self._users, self._timeout, self._evaluate = users or QueryUsers(), timeout, evaluation_is_public
        self._any_arrays = any_arrays
        self._noise_file = Path(f"{os.fspath(ledger)}.noise")
        state_file = Path(f"{os.fspath(ledger)}.optimizer")
        self._server = (
            None if optimizer is None else ServerState(optimizer, plan, state_file, any_arrays=any_arrays)
        )
        self._ledger = Ledger(ledger, plan, run)
        self._stream: NoiseStream | None = None
        self._round: Round | None = None
        self._unsure = False
        # Number of users whose names were compared with each other.
        self._compared = 0
        # The last noisy sum: the earlier process may have ended before its caller saved the new model.
        last = self._ledger.last_noisy_sum()
        self._pending = None if last is None else NoisySum(*last)
        self.reports: list[RoundReport] = []
        if self._ledger.bound("layout") is not None:
            self._ledger.close()
            must_be = "one of this version: its noise has the other sign, and cancels none of ours"
            raise ValueError(f"ledger {os.fspath(ledger)} is of an earlier version but must be {must_be}")
        if key is None and self._ledger.bound("arrays") is None:
            self._ledger.close()
            raise ValueError("key is None but must be a key: the ledger has not begun")

    @property
    def step(self) -> int:
        """The plan's next step, counted from 0. It does not depend on Flower's round numbers."""
        return self._ledger.step

    @property
    def statement(self) -> str:
        """The plan's privacy statement and the assumptions about the federation."""
        return f"{self._plan.statement}\n{ASSUMED}\n"

    def rounds_left(self, arrays: ArrayRecord) -> int:
        """The value of `num_rounds` for `start`: the plan's remaining steps, plus one if the last noisy sum
        must be passed on again.

        Args:
            arrays: The model that `start` begins with.
        """
        return self._plan.steps - self.step + (self._passed_on_again(Model(arrays)) is not None)

    def _passed_on_again(self, model: Model) -> NoisySum | None:
        """The last noisy sum, if it was made from this model and came to no other."""
        pending = self._pending
        return pending if pending is not None and pending.base == model.digest() else None

    @property
    def ledger(self) -> Ledger:
        """The ledger of participations and of the last noisy sum."""
        return self._ledger

    def close(self) -> None:
        """Closes the ledger, so that another strategy object can continue the run."""
        self._stream = self._round = None
        self._unsure = True
        self._ledger.close()

    def summary(self) -> None:
        log(
            INFO,
            "\t├──> Correlated noise: (%.4f, %g)-differential privacy of users",
            self._plan.epsilon,
            self._plan.delta,
        )
        log(
            INFO,
            "\t│\t└── Step %d of %d, cohort %d, ledger %s",
            self.step,
            self._plan.steps,
            self._plan.batch_size,
            self._ledger.path,
        )
        self._strategy.summary()

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        if self._unsure:
            raise RuntimeError(
                "an earlier round failed half way, or the strategy is closed: make another one from its"
                " ledger"
            )
        self._round, model = None, Model(arrays)
        self._begin_or_resume(model)
        if self._server is not None and not np.isfinite(model.weights()).all():
            raise ValueError(
                "arrays have numbers that are not finite in single precision, in which the optimizer computes"
            )
        if (again := self._passed_on_again(model)) is not None:
            log(
                INFO,
                "Step %d was finished before, from this model: its noisy sum is handed on again",
                again.step,
            )
            self._messages(server_round, arrays, config, grid, {})
            self._round = Round(model, again=again)
            return []
        if self.step == self._plan.steps:
            raise RuntimeError(f"all {self._plan.steps} steps of this plan have been made")
        self._check_arrays(model)
        charged = self._ledger.charged()
        asked = self._by_node(self._again(charged, grid) if charged else self._sampled(grid))
        messages = self._messages(server_round, arrays, config, grid, asked)
        if not charged:
            self._ledger.charge([user for users in asked.values() for user in users])
        self._round = Round(model, asked)
        return messages

    def _begin_or_resume(self, model: Model) -> None:
        layout = self._ledger.bound("arrays")
        if layout not in (None, model.layout()):
            raise ValueError(f"arrays are {model.layout()} but must be the ledger's, {layout}")
        if self._stream is not None:
            return
        if layout is None:
            assert self._key is not None
            self._check_unused(model)
            stream = NoiseStream(self._plan, model.dim, self._key, run=self._run, threads=self._threads)
            # The noise is saved first: until the ledger has begun, another start replaces it.
            stream.save(self._noise_file)
            if self._server is not None:
                self._server.begin(model.dim, stream.token)
            self._ledger.rebind("model", self._model_next(model, stream))
            self._ledger.rebind("optimizer", repr(self._server))
            self._ledger.bind("arrays", model.layout())
        else:
            self._ledger.bind("optimizer", repr(self._server))
            refuse_others(self._noise_file)
            stream = self._saved(model)
            if stream.step > self.step:
                got = f"{self.step}, while {self._noise_file} is at {stream.step}"
                raise ValueError(
                    f"step of the ledger is {got}, but must be no earlier: an old copy would add"
                    " noise that was used"
                )
            # The saved noise is behind by the noisy sums made before the last server died. A noisy sum that
            # is not in the ledger was not passed on.
            stream.seek(self.step, reuse_noise_unprotected=True)
        # Noise of another key would not cancel the noise of earlier noisy sums.
        self._ledger.bind("token", stream.token)
        if self._server is not None and layout is not None:
            again = self._passed_on_again(model)
            self._server.load(self.step if again is None else again.step, model.dim, stream.token)
        self._stream, self._key = stream, None

    def _model_next(self, model: Model, stream: NoiseStream) -> str:
        """The ledger's digest of the next step and of the model that it starts from."""
        return f"{self.step} {sum_of_weights(stream, model.weights()):032x}"

    def _check_arrays(self, model: Model) -> None:
        """Refuses a model other than the last step's result or its starting point."""
        assert self._stream is not None
        held = self._ledger.bound("model")
        if (
            self.step > 0
            and not self._any_arrays
            and held not in (None, self._model_next(model, self._stream))
        ):
            must_be = (
                f"the model that the round of step {self.step - 1} made, or the one that it started from;"
                " any_arrays=True accepts others"
            )
            raise ValueError(
                f"arrays for step {self.step} are of a model other than the ledger's but must be {must_be}"
            )

    def _saved(self, model: Model) -> NoiseStream:
        return NoiseStream.resume(
            self._noise_file, self._plan, model.dim, run=self._run, threads=self._threads
        )

    def _check_unused(self, model: Model) -> None:
        """Refuses to begin a run over an existing noise file: the noise of a lost ledger was used
        already, and the noise of another run would be lost.
        """
        if not self._noise_file.exists():
            return
        try:
            got = f"at step {self._saved(model).step}"
        except ValueError:
            got = "of another run"
        if got != "at step 0":
            must_be = (
                "absent where a ledger begins: continue with the ledger that it belongs to, or begin"
                " elsewhere with a new run or key"
            )
            raise ValueError(f"{self._noise_file} is {got} but must be {must_be}")

    def _sampled(self, grid: Grid) -> dict[str, int]:
        """The step's cohort, drawn from the users who may take part: the node of each."""
        assert self._stream is not None
        cohort = self._plan.batch_size
        nodes, eligible = self._connected(grid, self._ledger.eligible, cohort)
        if len(nodes) > self._compared:
            self._compared = len(nodes)
            if warning := _similar_names(nodes):
                log(WARNING, "Of the connected users, %s", warning)
        if len(eligible) < cohort:
            raise RuntimeError(
                f"Of {len(nodes)} connected users {len(eligible)} may take part in step {self.step}, which"
                f" needs a cohort of {cohort}: start again when more are connected or eligible, or with a"
                " larger timeout."
            )
        return {user: nodes[user] for user in _draw_cohort(self._stream, self.step, sorted(eligible), cohort)}

    def _again(self, charged: list[str], grid: Grid) -> dict[str, int]:
        """The connected users of the cohort that was charged for this step before a failure: the node of
        each. Those who are absent count as users without a reply.
        """
        nodes, there = self._connected(
            grid, lambda nodes: [user for user in charged if user in nodes], len(charged)
        )
        if not there:
            raise RuntimeError(
                f"None of the {len(charged)} users who were charged for step {self.step} is connected: start"
                " again when they are, or with a larger timeout."
            )
        log(
            INFO,
            "Step %d: its cohort of %d was charged before; %d are asked again",
            self.step,
            len(charged),
            len(there),
        )
        return {user: nodes[user] for user in there}

    def _connected(
        self, grid: Grid, chosen: Callable[[Mapping[str, int]], list[str]], wanted: int
    ) -> tuple[Mapping[str, int], list[str]]:
        """The nodes of connected users, and those `chosen` among the users, once they are `wanted` or the
        time is over.
        """
        deadline = time.monotonic() + self._timeout
        while True:
            nodes = self._users(grid)
            found = chosen(nodes)
            if len(found) >= wanted or time.monotonic() >= deadline:
                return nodes, found
            time.sleep(min(1.0, self._timeout))

    @staticmethod
    def _by_node(nodes: Mapping[str, int]) -> dict[int, list[str]]:
        """The users of each node."""
        users: dict[int, list[str]] = {}
        for user, node in nodes.items():
            users.setdefault(node, []).append(user)
        return users

    def _messages(
        self,
        server_round: int,
        arrays: ArrayRecord,
        config: ConfigRecord,
        grid: Grid,
        asked: dict[int, list[str]],
    ) -> list[Message]:
        """The wrapped strategy's training messages to these nodes, each with its list of users."""
        messages = messages_to(asked, self._strategy, server_round, arrays, config, grid)
        made = []
        for message in messages:
            about = message.metadata
            content = RecordDict({**message.content, RECORD: users_listed(asked[about.dst_node_id])})
            made.append(
                Message(
                    content, about.dst_node_id, about.message_type, ttl=about.ttl, group_id=about.group_id
                )
            )
        return made

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        if (now := self._round) is None:
            raise RuntimeError("aggregate_train was called before configure_train")
        self._round = None
        made = now.again or self._noisy_sum(now, replies)
        noisy_sum = np.frombuffer(made.noisy_sum, np.float32)
        if self._server is None:
            private = now.model.moved(noisy_sum.astype(np.float64) / self._plan.expected_batch_size)
        else:
            private = now.model.replaced(self._server.moved(made.step, now.model.weights(), noisy_sum))
        done = self._strategy.aggregate_train(server_round, [self._as_reply(private)])
        assert self._stream is not None
        following = now.model if done[0] is None else Model(done[0])
        self._ledger.rebind("model", self._model_next(following, self._stream))
        self._pending = None
        return done

    def _noisy_sum(self, now: Round, replies: Iterable[Message]) -> NoisySum:
        total = self._sum(now, replies)
        assert self._stream is not None
        # A failure from here to the end leaves it unknown whether the noisy sum was written. The ledger
        # knows: a new strategy made from it continues.
        self._unsure = True
        row = np.empty(now.model.dim, np.float32)
        step = self._stream.step
        self._stream.add_to_sum(total, row)
        made = NoisySum(step, now.model.digest(), row.tobytes())
        self._ledger.record_noisy_sum(made.step, made.base, made.noisy_sum)
        self._stream.save(self._noise_file)
        self._pending = made
        self._unsure = False
        return made

    def _sum(self, now: Round, replies: Iterable[Message]) -> NDArray[np.float64]:
        trained: dict[str, ArrayRecord | None] = dict.fromkeys(
            sorted(user for users in now.asked.values() for user in users)
        )
        for reply in replies:
            # A user counts once, however often and from wherever replies come.
            users = now.asked.pop(reply.metadata.src_node_id, [])
            if reply.has_content():
                trained |= trained_models(users, reply.content.array_records)
        total, fates = sum_of_clipped(
            now.model,
            list(trained.values()),
            self._plan.clip_norm,
            self._zero_beyond,
            lambda reason: log(WARNING, "An update was dropped: %s", reason),
        )
        report = RoundReport(
            self.step, len(trained), **{str(fate): fates.count(fate) for fate in fates if fate is not None}
        )
        log(INFO, "Step %d: %s", report.step, report)
        self.reports.append(report)
        return total

    def _as_reply(self, private: ArrayRecord) -> Message:
        """The single reply that the wrapped strategy sees."""
        arrays = getattr(self._strategy, "arrayrecord_key", "arrays")
        weight = getattr(self._strategy, "weighted_by_key", "num-examples")
        return Message(
            RecordDict({arrays: private, "metrics": MetricRecord({weight: 1})}), 0, MessageType.TRAIN
        )

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        return self._strategy.configure_evaluate(server_round, arrays, config, grid) if self._evaluate else []

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        return self._strategy.aggregate_evaluate(server_round, replies) if self._evaluate else None
