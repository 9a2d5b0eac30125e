#!/usr/bin/env python3
"""Federated training of 1,000 users on Flower's simulation: kills, restarts, and correlated
compared with independent noise.

    python scripts/python/flower_users.py [--rounds 200] [--users 1000] [--seeds 3]

Run it with a Python that has antinoise and flwr[simulation]. Users have a few examples each of a logistic
regression; five nodes hold 200 of them each, so that a node is not a user. For each seed one run has the
noise that the plan chooses and one has independent noise, at the same epsilon; the server of the first run is
killed twice (SIGKILL), at any point after a third and after two thirds of the rounds, and started again.

Printed are the participation in each run's ledger (users, smallest separation, largest number of steps of a
user), the test loss before and after, and the number of noise steps used, which must be one for each round in
spite of kills.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

os.environ |= {"FLWR_TELEMETRY_ENABLED": "0", "RAY_USAGE_STATS_ENABLED": "0", "OMP_NUM_THREADS": "1"}

import numpy as np

import antinoise as an

NODES, DIM, EXAMPLES, COHORT, MIN_SEP, MOST = 5, 40, 20, 20, 40, 5
MECHANISMS = {"correlated": None, "independent": "identity"}


def plan_of(mechanism: str, users: int, rounds: int) -> an.Plan:
    return an.plan(
        examples=users,
        batch_size=COHORT,
        steps=rounds,
        epsilon=1,
        delta=1e-5,
        setting="federated",
        min_sep=MIN_SEP,
        max_participations=min(MOST, (rounds - 1) // MIN_SEP + 1),
        clip_norm=0.25,
        dim=DIM,
        mechanism=MECHANISMS[mechanism],
    )


def data_of(seed: int, user: int, examples: int = EXAMPLES) -> tuple[Any, Any]:
    """A user's data: examples of one model common to all users, around a user's own centre."""
    truth = np.random.default_rng(seed).normal(size=DIM)
    made = np.random.default_rng([seed, user])
    x = made.normal(size=(examples, DIM)) + 0.3 * made.normal(size=DIM)
    return x, (made.uniform(size=examples) < 1 / (1 + np.exp(-x @ truth))).astype(float)


def loss(model: Any, x: Any, y: Any) -> float:
    margins = (2 * y - 1) * (x @ model)
    return float(np.logaddexp(0, -margins).mean())


def clients(seed: int, users: int) -> Any:
    from flwr.app import Array, ArrayRecord, Context, Message, RecordDict
    from flwr.clientapp import ClientApp

    from antinoise.flower import reply_with_users, requested_users, user_record_key

    app = ClientApp()

    @app.query("users")
    def query(message: Message, context: Context) -> Message:
        node = int(context.node_config["partition-id"])
        return reply_with_users(message, [f"user-{user}" for user in range(users) if user % NODES == node])

    @app.train()
    def train(message: Message, context: Context) -> Message:
        start, records = message.content["arrays"]["model"].numpy().astype(float), RecordDict()
        for user in requested_users(message):
            model, (x, y) = start.copy(), data_of(seed, int(user.removeprefix("user-")))
            for _ in range(5):
                model += 0.1 * x.T @ (y - 1 / (1 + np.exp(-x @ model))) / len(x)
            records[user_record_key(user)] = ArrayRecord({"model": Array(model.astype(np.float32))})
        return Message(records, reply_to=message)

    return app


def serve(folder: Path, mechanism: str, seed: int, users: int, rounds: int) -> None:
    """Runs one server until the run is done or the server is killed."""
    from flwr.app import Array, ArrayRecord, Context, MetricRecord
    from flwr.serverapp import Grid, ServerApp
    from flwr.serverapp.strategy import FedAvg
    from flwr.simulation import run_simulation

    from antinoise.flower import CorrelatedNoise

    app, saved = ServerApp(), folder / "model.npy"
    x, y = data_of(seed, users, 5_000)

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        model = np.load(saved) if saved.exists() else np.zeros(DIM, np.float32)
        arrays = ArrayRecord({"model": Array(model)})
        plan = plan_of(mechanism, users, rounds)
        strategy = CorrelatedNoise(
            FedAvg(fraction_evaluate=0.0), plan, an.Key.from_os(), ledger=folder / "ledger.db", timeout=30
        )

        def save(_: int, arrays: ArrayRecord) -> MetricRecord:
            model = arrays["model"].numpy()
            np.save(folder / "new.npy", model)
            os.replace(folder / "new.npy", saved)
            (folder / "progress.json").write_text(
                json.dumps({"step": strategy.step, "loss": loss(model, x, y)})
            )
            return MetricRecord({})

        strategy.start(
            grid=grid, initial_arrays=arrays, num_rounds=strategy.rounds_left(arrays), evaluate_fn=save
        )
        (folder / "done").touch()

    cores = {"client_resources": {"num_cpus": 1, "num_gpus": 0.0}}
    run_simulation(app, clients(seed, users), num_supernodes=NODES, backend_config=cores)  # type: ignore[arg-type]


def progress(folder: Path) -> dict[str, float]:
    try:
        return dict(json.loads((folder / "progress.json").read_text()))
    except (FileNotFoundError, json.JSONDecodeError):
        return {"step": 0}


def run(folder: Path, mechanism: str, seed: int, options: argparse.Namespace, kills: list[int]) -> int:
    """Serves until the run is done; the server is killed after each of the steps `kills`. Returns the number
    of killed servers.
    """
    folder.mkdir()
    died = 0
    while not (folder / "done").exists():
        numbers = map(str, (seed, options.users, options.rounds))
        command = [sys.executable, "-W", "ignore", __file__, "--serve", str(folder), mechanism, *numbers]
        with (folder / "log").open("a") as log:
            server = subprocess.Popen(command, stdout=log, stderr=log)
        while server.poll() is None:
            time.sleep(0.05)
            if died < len(kills) and progress(folder)["step"] >= kills[died]:
                server.send_signal(signal.SIGKILL)
        if server.returncode == -signal.SIGKILL and died < len(kills):
            died += 1
        elif not (folder / "done").exists():
            raise RuntimeError(f"the server failed: {(folder / 'log').read_text()[-3000:]}")
    return died


def check(folder: Path, mechanism: str, options: argparse.Namespace) -> str:
    """Compares the contents of the ledger with the plan, and describes them."""
    from antinoise.flower import Ledger

    ledger, steps = (
        Ledger(folder / "ledger.db", plan_of(mechanism, options.users, options.rounds)),
        defaultdict(list),
    )
    for user, step in ledger.participations():
        steps[user].append(step)
    apart = min(b - a for found in steps.values() for a, b in zip(found, found[1:], strict=False))
    most = max(map(len, steps.values()))
    assert apart >= MIN_SEP and most <= MOST and ledger.step == options.rounds
    made, counted = ledger.step, sum(map(len, steps.values()))
    ledger.close()
    return (
        f"{made} noisy sums, {len(steps)} users, {counted} participations, at least {apart} apart, at most"
        f" {most} of one user"
    )


def compare(options: argparse.Namespace) -> None:
    found: dict[str, list[float]] = {mechanism: [] for mechanism in MECHANISMS}
    for mechanism in MECHANISMS:
        plan = plan_of(mechanism, options.users, options.rounds)
        print(
            f"{mechanism}: {plan.strategy}, epsilon {plan.epsilon:.4f}, {plan.participation}, noise"
            f" {plan.noise_std:.3f}"
        )
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(options.seeds):
            for mechanism in MECHANISMS:
                kills = (
                    [options.rounds // 3, 2 * options.rounds // 3]
                    if seed == 0 and mechanism == "correlated"
                    else []
                )
                at, start = Path(folder) / f"{mechanism}-{seed}", time.perf_counter()
                died = run(at, mechanism, seed, options, kills)
                assert died == len(kills)
                found[mechanism].append(progress(at)["loss"])
                line = (
                    f"seed {seed}, {mechanism}: {died} kills, test loss {found[mechanism][-1]:.4f},"
                    f" {time.perf_counter() - start:.0f} s"
                )
                print(f"{line}; {check(at, mechanism, options)}", flush=True)
    print(f"test loss of the first model {np.log(2):.4f}")
    for mechanism, losses in found.items():
        print(f"{mechanism}: {np.mean(losses):.4f} (of {', '.join(f'{value:.4f}' for value in losses)})")
    assert max(found["correlated"]) < min(found["independent"])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--users", type=int, default=1_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--serve", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        folder, mechanism, *numbers = options.serve
        serve(Path(folder), mechanism, *map(int, numbers))
    else:
        compare(options)


if __name__ == "__main__":
    main()
