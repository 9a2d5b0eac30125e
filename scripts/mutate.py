#!/usr/bin/env python3
"""Mutants of Python files: a seeded sample of small faults, each put into an installed package by itself, and
the tests that should notice it.

    scripts/mutate.py --package SITE-PACKAGES/antinoise --count 20 --seed 1 torch/noise.py torch/sums.py -- COMMAND...

Files are named within the package. COMMAND must succeed without a mutant, and takes so long that half as much
again, and a minute, is a hang. One line for each mutant, killed or survived; the file is as it was when that
line is printed.
"""
import argparse
import ast
import os
import pathlib
import random
import subprocess
import sys
import time

COMPARED = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
            ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In}
COMPUTED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult}


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


def mutants_of(path: pathlib.Path) -> list[tuple[pathlib.Path, int, int, str, int]]:
    """Where each mutation begins and ends in the bytes of the file, its text and its line."""
    source = path.read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    tree = ast.parse(source)
    # What is in braces of a formatted text has no place of its own before Python 3.12.
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    found = []
    for node in ast.walk(tree):
        if id(node) in inside:
            continue
        for text in mutations(node):
            begin, end = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
            found.append((path, begin, end, text, node.lineno))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--package", type=pathlib.Path, required=True)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--minutes", type=float, default=60.0, help="no mutant begins after so many")
    given = sys.argv[1:]
    if "--" not in given[:-1]:
        parser.error("the command comes after --")
    options = parser.parse_args(given[: given.index("--")])
    command = given[given.index("--") + 1 :]
    # A mutant must not be taken for what was compiled before.
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    begun = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    most = 1.5 * (time.monotonic() - begun) + 60
    everything = [mutant for name in options.files for mutant in mutants_of(options.package / name)]
    drawn = random.Random(options.seed).sample(everything, min(options.count, len(everything)))
    killed = tried = 0
    for path, begin, end, text, line in drawn:
        if time.monotonic() - begun > 60 * options.minutes:
            break
        source = path.read_bytes()
        path.write_bytes(source[:begin] + text.encode() + source[end:])
        try:
            done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=most)
            notices = done.returncode != 0
        except subprocess.TimeoutExpired:
            notices = True
        finally:
            path.write_bytes(source)
        tried, killed = tried + 1, killed + notices
        was = source[begin:end].decode().replace("\n", " ")
        print(f"{'killed' if notices else 'SURVIVED'} {path.relative_to(options.package)}:{line}: {was} -> {text}", flush=True)
    print(f"{killed} killed and {tried - killed} survived, of {tried} of {len(everything)}")


if __name__ == "__main__":
    main()
