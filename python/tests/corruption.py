"""Damage to what is saved, and the one law of it: a damaged file is refused, or the run resumes with the same
bits."""

import random
from collections import Counter

BLOCK = 4096
# Of each kind of state; of a file of fewer blocks, as many as it has.
FLIPS, CUTS, BLOCKS, SWAPS = 200, 50, 15, 12
# What wrong states raise, as the pages say.
REFUSED = (ValueError, RuntimeError)


def damages(content, others):
    """Kinds of damage to a file, and what it is then: single bits, cuts, blocks of zeros, and blocks that
    changed places, within the file or with one of `others`: the same of other steps, runs and keys."""
    rng, made = random.Random(7), []
    # None twice.
    flips = rng.sample(range(8 * len(content)), FLIPS)
    made += [("flip", content[: at // 8] + bytes([content[at // 8] ^ 1 << at % 8]) + content[at // 8 + 1 :]) for at in flips]
    made += [("cut", content[:at]) for at in rng.sample(range(len(content)), CUTS)]
    blocks = range(0, len(content), BLOCK)
    zeroed = [content[:at] + bytes(len(content[at : at + BLOCK])) + content[at + BLOCK :] for at in blocks]
    made += [("zeros", file) for file in rng.sample(zeroed, min(BLOCKS, len(zeroed)))]
    swapped = 0
    while swapped < SWAPS:
        size = rng.choice([64, 512, BLOCK])
        size = min(size, len(content) // 4)
        a, b = sorted(rng.sample(range(0, len(content) - size, size), 2))
        if swapped % 2:
            other = others[swapped // 2 % len(others)]
            file = content[:a] + other[a : a + size] + content[a + size :]
        else:
            file = content[:a] + content[b : b + size] + content[a + size : b] + content[a : a + size] + content[b + size :]
        if file != content:
            made.append(("swap", file))
            swapped += 1
    return made


def survey(content, others, load, resume, expected):
    """How many of each kind of damage were refused, where `load` reads a file (whose reader may refuse in its
    own words) and `resume` continues with what was read, as `expected` or not at all."""
    assert resume(load(content)) == expected
    refused, tried = Counter(), Counter()
    for kind, file in damages(content, others):
        tried[kind] += 1
        try:
            state = load(file)
        except Exception:
            refused[kind] += 1
            continue
        try:
            found = resume(state)
        except REFUSED:
            refused[kind] += 1
            continue
        assert found == expected, f"{kind} number {tried[kind]} went on with other bits"
    assert tried == {"flip": FLIPS, "cut": CUTS, "zeros": min(BLOCKS, -(-len(content) // BLOCK)), "swap": SWAPS}
    return refused


def refuses_all(path, others, read):
    """Checks that `read` refuses the file at `path` wherever a byte of it is damaged, and takes it as it
    is."""
    content = path.read_bytes()

    def load(damaged):
        path.write_bytes(damaged)
        return damaged == content

    def resume(same):
        read()
        return same

    found = survey(content, [other.read_bytes() for other in others], load, resume, True)
    assert found["flip"] == FLIPS and found["cut"] == CUTS and found["swap"] == SWAPS and found["zeros"] > 0
    path.write_bytes(content)
