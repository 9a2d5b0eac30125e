"""The cost of checking a saved state compared with copying it: nanoseconds per word of 4 bytes, medians of
alternating rounds.

    python scripts/python/state_cost.py        of 10^6 coordinates, on one thread
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import numpy as np

import antinoise as an

DIM, ROUNDS = 1_000_000, 9


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    plan = an.plan(
        examples=2_400, batch_size=100, epochs=2, epsilon=4, delta=1e-6, dim=DIM, mechanism="blt:4"
    )
    noise = an.NoiseStream(plan, DIM, an.Key.from_os(), threads=1, state_in_memory=True)
    noise.next_into(np.empty(DIM, np.float32))
    words, run_key = np.zeros((noise.state_words, DIM), np.int32), np.zeros(32, np.uint8)
    times = []
    for _ in range(ROUNDS):
        both = seconds(lambda: noise.state(words, run_key))
        check = seconds(lambda: noise.sum_of_words("state", words))
        times.append((check, both - check))
    check, copy = (1e9 * median(column) / words.size for column in zip(*times))
    print(f"{words.size} words: the keyed sum {check:.2f} ns a word, the copy {copy:.2f} ns a word")


if __name__ == "__main__":
    main()
