"""Damage to saved files, and its law: a damaged file is refused, or the run resumes with the same bits."""

import random
from collections import Counter

BLOCK = 4096
# Number of cases of each kind of damage.
FLIPS, CUTS, BLOCKS, SWAPS = 200, 50, 15, 12
# The documented errors for wrong states.
REFUSED = (ValueError, RuntimeError)


def block_of(content):
    """The size of a block: of a file system, or a sixteenth of a shorter file."""
    return min(BLOCK, max(1, len(content) // 16))


def damages(content, others):
    """Kinds of damage and the damaged bytes: flipped bits, cuts, blocks of zeros, and blocks exchanged
    within the file or with one of `others` (the same file of other steps, runs and keys).
    """
    rng, made = random.Random(7), []
    # No case occurs twice.
    flips = rng.sample(range(8 * len(content)), FLIPS)
    made += [
        ("flip", content[: at // 8] + bytes([content[at // 8] ^ 1 << at % 8]) + content[at // 8 + 1 :])
        for at in flips
    ]
    made += [("cut", content[:at]) for at in rng.sample(range(len(content)), CUTS)]
    block = block_of(content)
    zeroed = [
        content[:at] + bytes(len(content[at : at + block])) + content[at + block :]
        for at in range(0, len(content), block)
    ]
    made += [("zeros", file) for file in rng.sample(zeroed, min(BLOCKS, len(zeroed)))]
    swapped = attempt = 0
    while swapped < SWAPS:
        size = rng.choice([64, 512, BLOCK])
        size = min(size, len(content) // 4)
        a, b = sorted(rng.sample(range(0, len(content) - size, size), 2))
        attempt += 1
        if attempt % 2:
            other = others[attempt // 2 % len(others)]
            file = content[:a] + other[a : a + size] + content[a + size :]
        else:
            file = (
                content[:a]
                + content[b : b + size]
                + content[a + size : b]
                + content[a : a + size]
                + content[b + size :]
            )
        if file != content:
            made.append(("swap", file))
            swapped += 1
    return made


def survey(content, others, load, resume, expected):
    """Counts the refusals of each kind of damage. `load` reads a file (its reader may raise its own
    errors), and `resume` must continue with the content as `expected`, or refuse.
    """
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
    assert tried == {
        "flip": FLIPS,
        "cut": CUTS,
        "zeros": min(BLOCKS, -(-len(content) // block_of(content))),
        "swap": SWAPS,
    }
    return refused


def refuses_all(path, others, read):
    """Checks that `read` accepts the file at `path` and refuses it with any byte damaged."""
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
