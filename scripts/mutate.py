#!/usr/bin/env python3
"""Mutation tests of Python: a seeded sample of small faults, each put alone into an installed package and
tested.

    VENV/bin/python scripts/mutate.py --package SITE-PACKAGES/antinoise --count 20 --seed 1 torch/noise.py torch/held_sums.py -- TESTS...

Files are paths within the package; TESTS are arguments of pytest. The tests must succeed without a mutant;
that run records the lines that each test executes. A mutant is tested by the tests that execute its lines,
the fastest first, until one fails. Each run is a fork of a process that has imported torch. Lines executed in
processes that a test starts are not recorded: such tests are tried last, for every mutant. Prints one line
for each mutant (killed, survived, or executed by no test), after the file is restored.
"""

import argparse
import ast
import importlib
import json
import os
import pathlib
import random
import signal
import sys
import threading
import time
import typing

import pytest

COMPARED = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
COMPUTED = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
}


def mutations(node: ast.AST) -> list[str]:
    """The texts that `node` may be replaced by."""

    def with_(**fields: object) -> str:
        return ast.unparse(type(node)(**{**{name: getattr(node, name) for name in node._fields}, **fields}))

    match node:
        case ast.Compare(ops=[op]) if type(op) in COMPARED:
            return [f"({with_(ops=[COMPARED[type(op)]()])})"]
        case ast.BoolOp(op=op):
            return [f"({with_(op=ast.Or() if isinstance(op, ast.And) else ast.And())})"]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return [f"({ast.unparse(operand)})"]
        case ast.BinOp(op=op) if type(op) in COMPUTED:
            return [f"({with_(op=COMPUTED[type(op)]())})"]
        case ast.Constant(value=bool(value)):
            return [str(not value)]
        case ast.Constant(value=int(value)):
            return [str(value + 1)]
        case ast.Return(value=ast.expr()):
            return ["return None"]
        case ast.Raise() | ast.Expr(value=ast.Call()):
            return ["pass"]
    return []


def mutants_of(path: pathlib.Path) -> list[tuple[pathlib.Path, int, int, str, range]]:
    """The mutations of a file: first and last byte, new text, and lines of each."""
    source = path.read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    tree = ast.parse(source)
    # Before Python 3.12, expressions in an f-string have no positions of their own.
    inside = {
        id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)
    }
    found = []
    for node in ast.walk(tree):
        if id(node) in inside:
            continue
        for text in mutations(node):
            begin, end = (
                starts[node.lineno - 1] + node.col_offset,
                starts[node.end_lineno - 1] + node.end_col_offset,
            )
            found.append((path, begin, end, text, range(node.lineno, node.end_lineno + 1)))
    return found


class Reached:
    """A plugin of pytest that records, for each test, the executed lines of the package and the seconds it
    takes.
    """

    def __init__(self, package: pathlib.Path, out: pathlib.Path) -> None:
        self.package, self.out, self.rows = str(package) + os.sep, out, []
        self.lines: set[tuple[str, int]] = set()

    def trace(self, frame: typing.Any, event: str, _: object) -> typing.Any:
        name = frame.f_code.co_filename
        if not name.startswith(self.package):
            return None
        self.lines.add((name, frame.f_lineno))
        return self.trace

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> typing.Generator[None, object, object]:
        self.lines, begun = set(), time.monotonic()
        sys.settrace(self.trace)
        threading.settrace(self.trace)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)
            self.rows.append((item.nodeid, time.monotonic() - begun, sorted(self.lines)))

    def pytest_sessionfinish(self) -> None:
        self.out.write_text(json.dumps(self.rows))


def forked(arguments: list[str], plugins: list[object], most: float) -> bool:
    """Whether pytest succeeds in a process of its own, within `most` seconds."""
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for number in (0,) if plugins else (0, 1, 2):
            os.dup2(nowhere, number)
        os._exit(int(pytest.main([*arguments, "-x", "-q", "-p", "no:cacheprovider"], plugins=plugins)))
    begun = time.monotonic()
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status == 0
        if time.monotonic() - begun > most:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return False
        time.sleep(0.05)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--package", type=pathlib.Path, required=True)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of drawn mutants to skip")
    parser.add_argument("files", nargs="+")
    parser.add_argument(
        "--minutes", type=float, default=60.0, help="minutes after which no further mutant begins"
    )
    parser.add_argument(
        "--starting",
        nargs="*",
        default=[],
        help="files of tests that start processes, tried for every mutant",
    )
    parser.add_argument(
        "--reached",
        type=pathlib.Path,
        default=pathlib.Path("reached.json"),
        help="file that stores the lines that tests execute; if it exists, they are read from it",
    )
    given = sys.argv[1:]
    if "--" not in given[:-1]:
        parser.error("the tests come after --")
    options = parser.parse_args(given[: given.index("--")])
    tests = given[given.index("--") + 1 :]
    # A mutant must not be mistaken for a compiled file of an earlier version.
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    sys.dont_write_bytecode = True
    importlib.import_module("torch")
    package, begun = options.package.resolve(), time.monotonic()
    if not options.reached.exists() and not forked(tests, [Reached(package, options.reached)], 1e9):
        sys.exit("the tests fail without a mutant")
    rows = [
        (test, seconds, {tuple(line) for line in lines})
        for test, seconds, lines in json.loads(options.reached.read_text())
    ]
    rows.sort(key=lambda row: row[1])
    called = {line for _, _, lines in rows for line in lines}
    everything = [mutant for name in options.files for mutant in mutants_of(package / name)]
    drawn = random.Random(options.seed).sample(everything, min(options.count, len(everything)))
    killed = tried = 0
    for path, begin, end, text, lines in drawn[options.first :]:
        if time.monotonic() - begun > 60 * options.minutes:
            break
        at = {(str(path), line) for line in lines}
        # A line that no test executes runs when the module is imported, or never.
        able = [row for row in rows if not at & called or at & row[2]]
        source = path.read_bytes()
        path.write_bytes(source[:begin] + text.encode() + source[end:])
        try:
            notices = not forked([row[0] for row in able], [], 60 + 3 * sum(row[1] for row in able))
            notices = notices or any(not forked([file], [], 600) for file in options.starting)
        finally:
            path.write_bytes(source)
        tried, killed = tried + 1, killed + notices
        was = source[begin:end].decode().replace("\n", " ")
        print(
            f"{'killed' if notices else 'SURVIVED'} {path.relative_to(package)}:{lines[0]}: {was} -> {text}"
            f"{'' if at & called else ' (no test executes it)'}",
            flush=True,
        )
    print(f"{killed} killed and {tried - killed} survived, of {tried} of {len(everything)}")


if __name__ == "__main__":
    main()
