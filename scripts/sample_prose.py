#!/usr/bin/env python3
"""Draws doc comments, messages and help texts at random, for a reader who does not know the code.

    python3 scripts/sample_prose.py comments 100 --seed 1     doc comments and docstrings
    python3 scripts/sample_prose.py messages 40 --seed 1      strings of five words or more, without SQL and tests
    python3 scripts/sample_prose.py help 30 --seed 1          help texts of the command line

Each is printed with its place and the line of code that follows it. CONTRIBUTING.md says what the reader is
asked."""

import argparse
import random
import re
import subprocess
from pathlib import Path

import prose

ROOT = Path(__file__).resolve().parents[1]
SOURCES = r"(crates/\w+/src|python/antinoise)/.*\.(rs|pyi?)"
HELP = r"crates/cli/src/(arguments|commands)/.*\.rs"


def sources(pattern):
    """Each tracked source file that matches, without Rust's unit tests, and its text."""
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in names.split():
        if re.fullmatch(pattern, name) and not re.search(r"(^|/)tests?(_\w+)?(\.rs|/)", name):
            text = (ROOT / name).read_text()
            yield name, text.split("#[cfg(test)]\nmod ", 1)[0] if name.endswith(".rs") else text


def is_doc(piece):
    return piece.kind == "docstring" or re.search(r"//[/!] ?$", piece.lines[0].prefix) is not None


def is_message(piece):
    words = " ".join(line.text for line in piece.lines).strip('"').split()
    return piece.kind == "string" and len(words) >= 5 and not words[0].isupper()


def is_help(piece):
    return is_doc(piece) and piece.lines[0].prefix.lstrip().startswith("/// ")


KINDS = {"comments": (SOURCES, is_doc), "messages": (SOURCES, is_message), "help": (HELP, is_help)}


def candidates(kind):
    pattern, wanted = KINDS[kind]
    for name, text in sources(pattern):
        lines = text.split("\n")
        pieces = prose.rust_pieces(text) if name.endswith(".rs") else prose.python_pieces(text)
        for piece in filter(wanted, pieces):
            after = next((line.strip() for line in lines[piece.lines[-1].number :] if line.strip()), "")
            # An option's comment is its help; that of a function is for readers of the code.
            if kind != "help" or re.match(r"#\[(arg|command)|pub(\(crate\))? \w+:|[A-Z]\w*[(,{]", after):
                yield name, piece, after


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    found = list(candidates(options.kind))
    drawn = random.Random(options.seed).sample(found, min(options.count, len(found)))
    print(f"{len(drawn)} of {len(found)} {options.kind}, seed {options.seed}")
    for number, (name, piece, after) in enumerate(drawn, 1):
        print(f"\n{number}. {name}:{piece.lines[0].number}")
        print("\n".join(f"    {line.text}" for line in piece.lines))
        print(f"    > {after}")


if __name__ == "__main__":
    main()
