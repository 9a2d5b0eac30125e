"""Rounds of a comparison: in each, every variant runs once, in random order, so that other work on the
machine affects all alike.
"""

import json
import random
import time
from collections.abc import Callable


def seconds(
    steps: dict[str, Callable[[], object]],
    rounds: int,
    warm: int = 2,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Seconds of each variant in each round, by `clock`: `time.process_time` is that of all threads, without
    other work on the machine. The first `warm` rounds fill memory and compile, and do not count.
    """
    found: dict[str, list[float]] = {name: [] for name in steps}
    for at in range(warm + rounds):
        for name in random.sample(list(steps), len(steps)):
            start = clock()
            steps[name]()
            if at >= warm:
                found[name].append(clock() - start)
    return found


def as_json(
    title: str,
    setting: str,
    ours: str,
    times: dict[str, list[float]],
    values: tuple[str, dict[str, float]] | None = None,
) -> str:
    """A line for scripts/benchmarks.py: processor seconds of each round and, of variants that answer with a
    number to be as small as it can be, its name and the numbers.
    """
    found = {"title": title, "setting": setting, "ours": ours, "seconds": times}
    if values:
        found |= {"value": values[0], "values": values[1]}
    return json.dumps(found)
