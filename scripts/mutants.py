#!/usr/bin/env python3
"""Mutation tests of Rust: all mutants are compiled in one build, and an environment variable chooses the one
that runs.

    scripts/mutants.py draw DRAWN.json [--count N]      about N mutants of each package, every n-th of `cargo mutants --list`
    scripts/mutants.py plant DRAWN.json --tree TREE     writes them into TREE, a copy of this repository, and builds its tests
    scripts/mutants.py test DRAWN.json --tree TREE [--minutes M] [--only N,N]      one line for each mutant, in TREE/found.jsonl

`plant` numbers the mutants, replaces `a < b` by `if mutant::on(7) { a <= b } else { a < b }`, and leaves out
mutants that do not compile and mutants of vectorised code, which would make every test slow. `test` runs
every test by itself and notes which mutants it reaches; then, for each mutant, the tests that reach it, the
fastest first, until one fails. A mutant that no test reaches survives. Tests that take longer than --longest
decide nothing. Needs tree_sitter and tree_sitter_rust of PyPI.
"""

import argparse
import collections
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import time

import tree_sitter
import tree_sitter_rust

ROOT = pathlib.Path(__file__).resolve().parents[1]

RUNTIME = r"""//! Which mutant runs.
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

static WHICH: AtomicU32 = AtomicU32::new(u32::MAX);
static SEEN: [AtomicBool; 8192] = [const { AtomicBool::new(false) }; 8192];

/// Whether this mutant runs.
#[inline]
pub fn on(mutant: u32) -> bool {
    let which = WHICH.load(Relaxed);
    which == mutant || which > u32::MAX - 2 && slow(which, mutant)
}

#[cold]
fn slow(mut which: u32, mutant: u32) -> bool {
    let trace = std::env::var_os("MUTANT_TRACE");
    if which == u32::MAX {
        let given = std::env::var("MUTANT").ok().and_then(|mutant| mutant.parse().ok());
        which = given.unwrap_or(if trace.is_some() { u32::MAX - 1 } else { 0 });
        WHICH.store(which, Relaxed);
    }
    if which == u32::MAX - 1 && !SEEN[mutant as usize].swap(true, Relaxed) {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(trace.unwrap());
        file.unwrap().write_all(format!("{mutant}\n").as_bytes()).unwrap();
    }
    which == mutant
}
"""
# Names of items whose values are computed at compile time, where no mutant can be chosen.
CONSTANT = {
    "const_item",
    "static_item",
    "array_type",
    "const_block",
    "enum_variant",
    "generic_type",
    "attribute_item",
}
# By package: the files that mutants are drawn from, and the tests that decide in addition to the library's
# own.
DRAWN_OF = {
    "accounting": "crates/accounting/src/**/*.rs",
    "mechanism": "crates/mechanism/src/sensitivity/**/*.rs",
    "plan": (
        "crates/plan/src/verified.rs crates/plan/src/schedule.rs crates/plan/src/sampler.rs crates/plan/src/batches.rs "
        "crates/plan/src/participations.rs crates/plan/src/monte_carlo.rs"
    ),
    "noise": "crates/noise/src/key/*.rs crates/noise/src/stream.rs crates/noise/src/used_steps.rs",
    "train": "crates/train/src/clip/**/*.rs",
    "release": (
        "crates/release/src/events/freeze.rs crates/release/src/events/neighbours.rs "
        "crates/release/src/events/problems.rs crates/release/src/publish.rs"
    ),
    "ledger": "crates/ledger/src/**/*.rs",
}
TESTS = {
    "accounting": "allocated b_min_sep bounds changed curves fixed_size gdp others sampled truncated",
    "mechanism": "each_epoch extremes figures forms last_iterate laws order past queries rows running trees",
    "plan": "altered b_min_sep bins by_step claims given observed owners rounding sampled sampler_laws truncated",
    "noise": "checkpoint corruption key_file keys range stream",
    "train": "checkpoints clipping groups sensitivity users",
    "release": "bad_input streams values copies left_out users ledger damage checks moved segments",
    "ledger": "damage laws federation stored",
}
# Features without which some of the tests are not built.
FEATURES = {"train": "antinoise-train/parquet,antinoise-train/candle", "release": "antinoise-release/parquet"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["draw", "plant", "test"])
    parser.add_argument("drawn", type=pathlib.Path)
    parser.add_argument("--tree", type=pathlib.Path, help="the copy that the mutants are written into")
    parser.add_argument("--count", type=int, default=50, help="about how many mutants of a package are drawn")
    parser.add_argument(
        "--minutes", type=float, default=600.0, help="minutes after which no further mutant begins"
    )
    parser.add_argument("--only", help="numbers of mutants, with commas")
    parser.add_argument("--packages", default=",".join(TESTS), help="without antinoise-, with commas")
    parser.add_argument(
        "--longest", type=float, default=120.0, help="maximum seconds of a test that can kill a mutant"
    )
    options = parser.parse_args()
    if options.what == "draw":
        options.drawn.write_text(json.dumps(draw(options.packages.split(","), options.count)))
    elif options.what == "plant":
        plant(options.tree, json.loads(options.drawn.read_text()))
    else:
        test(options, json.loads(options.drawn.read_text()))


def draw(packages: list[str], count: int) -> list[dict]:
    """Every n-th mutant of each package, in an order in which all packages advance alike, wherever the run
    ends."""
    drawn = []
    for package in packages:
        files = DRAWN_OF[package].split()
        if absent := [name for name in files if not any(ROOT.glob(name))]:
            sys.exit(f"DRAWN_OF[{package!r}] names {absent}, which match no file")
        options = [f"--package=antinoise-{package}", *(f"--file={name}" for name in files)]
        command = ["cargo", "mutants", "--list", "--json", *options]
        listed = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
        step = -(-len(listed) // count)
        part = listed[step // 2 :: step]
        random.Random(7).shuffle(part)
        print(f"{package}: {len(part)} of {len(listed)}")
        drawn += [(place / len(part), mutant) for place, mutant in enumerate(part)]
    return [mutant for _, mutant in sorted(drawn, key=lambda row: row[0])]


# ---- planting ----


def unplantable(node: tree_sitter.Node | None) -> bool:
    """Whether the node is computed at compile time, or is vectorised code, which is always inlined."""
    while node is not None:
        if node.type in CONSTANT:
            return True
        if node.type == "function_item":
            if any(c.type == "function_modifiers" and b"const" in c.text for c in node.children):
                return True
            before = node.prev_named_sibling
            return before is not None and before.type == "attribute_item" and b"inline(always)" in before.text
        node = node.parent
    return False


class File:
    """One file with its mutants: the numbers of the mutants by the node that they replace."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self.lines = [0]
        for line in source.splitlines(keepends=True):
            self.lines.append(self.lines[-1] + len(line))
        self.tree = tree_sitter.Parser(tree_sitter.Language(tree_sitter_rust.language())).parse(source)
        self.replaced: dict[tuple[int, int], list[tuple[int, str]]] = collections.defaultdict(list)
        self.inserted: dict[int, list[str]] = collections.defaultdict(list)

    def at(self, place: dict) -> int:
        line = self.lines[place["line"] - 1]
        text = self.source[line : self.lines[place["line"]]].decode()
        return line + len(text[: place["column"] - 1].encode())

    def add(self, number: int, mutant: dict) -> bool:
        begin, end = self.at(mutant["span"]["start"]), self.at(mutant["span"]["end"])
        node = self.tree.root_node.descendant_for_byte_range(begin, end)
        if node is None or unplantable(node):
            return False
        on, text, genre = f"antinoise_input::mutant::on({number})", mutant["replacement"], mutant["genre"]
        if genre == "FnValue":
            if text == "()":
                self.inserted[begin].append(f"if {on} {{ return; }} ")
            else:
                self.inserted[begin].append(f"if {on} {{ return {text}; }} ")
            return True
        if genre in ("BinaryOperator", "UnaryOperator"):
            parent = node.parent
            kinds = ("binary_expression", "compound_assignment_expr", "unary_expression")
            if parent is None or parent.type not in kinds or (node.start_byte, node.end_byte) != (begin, end):
                return False
            whole = (
                self.source[parent.start_byte : begin] + text.encode() + self.source[end : parent.end_byte]
            )
            self.replaced[parent.start_byte, parent.end_byte].append((number, whole.decode()))
            return True
        if genre == "MatchArmGuard":
            self.replaced[begin, end].append((number, text))
            return True
        if genre == "MatchArm" and node.type == "match_arm":
            guard = node.child_by_field_name("pattern").child_by_field_name("condition")
            pattern = node.child_by_field_name("pattern")
            if guard is None:
                self.inserted[pattern.end_byte].append(f" if !{on}")
            else:
                self.inserted[guard.start_byte].append(f"!{on} && ")
            return guard is None or guard.type != "let_condition"
        return False

    def text(self) -> bytes:
        ranges = sorted(self.replaced, key=lambda r: (r[0], -r[1]))
        self.index, self.ranges = 0, ranges
        return self.between(0, len(self.source))

    def between(self, begin: int, end: int) -> bytes:
        """The new text of the bytes from begin to end."""
        out, at = b"", begin
        while True:
            inside = self.index < len(self.ranges) and self.ranges[self.index][0] < end
            stop = self.ranges[self.index][0] if inside else end
            for mark in sorted(m for m in self.inserted if at <= m < stop or inside and m == stop):
                out += self.source[at:mark] + "".join(self.inserted.pop(mark)).encode()
                at = mark
            out += self.source[at:stop]
            if not inside:
                return out
            here = self.ranges[self.index]
            self.index += 1
            arms = "".join(
                f"if antinoise_input::mutant::on({n}) {{ {text} }} else " for n, text in self.replaced[here]
            )
            out += b"(" + arms.encode() + b"{ " + self.between(*here) + b" })"
            at = here[1]


def plant(tree: pathlib.Path, drawn: list[dict]) -> None:
    """Writes the mutants of `drawn` that compile; the others are named in left.json."""
    left: dict[int, str] = {}
    originals = {name: (tree / name).read_bytes() for name in {m["file"] for m in drawn}}
    home = tree / "crates/input/src"
    lib = (home / "lib.rs").read_text()
    if "pub mod mutant;" not in lib:
        (home / "lib.rs").write_text(lib + "\n#[doc(hidden)]\npub mod mutant;\n")
        (home / "mutant.rs").write_text(RUNTIME)
    while True:
        files = {name: File(source) for name, source in originals.items()}
        for number, mutant in enumerate(drawn, 1):
            if number not in left and not files[mutant["file"]].add(number, mutant):
                left[number] = "that cannot be planted"
        for name, file in files.items():
            text = file.text()
            if (tree / name).read_bytes() != text:
                (tree / name).write_bytes(text)
        done = subprocess.run(build(drawn), cwd=tree, stdout=subprocess.PIPE, text=True)
        wrong = not_compiling(tree, done.stdout)
        print(f"{len(left)} left out, {len(wrong)} do not compile", flush=True)
        if done.returncode == 0:
            break
        if not wrong - left.keys():
            sys.exit("errors that no mutant explains:\n" + done.stdout[-3000:])
        left.update(dict.fromkeys(wrong, "that do not compile"))
    (tree / "binaries.json").unlink(missing_ok=True)
    (tree / "left.json").write_text(json.dumps(left))


def not_compiling(tree: pathlib.Path, messages: str) -> set[int]:
    """The mutants whose text contains the place of a compiler's error."""
    wrong = set()
    for line in messages.splitlines():
        message = json.loads(line)
        if message.get("reason") != "compiler-message" or message["message"]["level"] != "error":
            continue
        for span in message["message"]["spans"]:
            if not span["is_primary"]:
                continue
            source = (tree / span["file_name"]).read_bytes()
            before = source[: span["byte_end"]]
            # The mutant that contains the error: the last one that begins before it.
            found = re.findall(rb"mutant::on\((\d+)\)", before)
            wrong.update(int(n) for n in found[-1:])
    return wrong


# ---- testing ----


def build(drawn: list[dict]) -> list[str]:
    """The command that builds the deciding tests of the packages that mutants were drawn from."""
    packages = sorted({mutant["package"].removeprefix("antinoise-") for mutant in drawn})
    names = sorted({name for package in packages for name in TESTS[package].split()})
    return [
        "cargo",
        "test",
        "--release",
        *[f"--package=antinoise-{package}" for package in packages],
        *[f"--features={FEATURES[package]}" for package in packages if package in FEATURES],
        "--lib",
        *[f"--test={name}" for name in names],
        "--no-run",
        "--message-format=json",
    ]


def binaries(tree: pathlib.Path, drawn: list[dict]) -> dict[str, list[tuple[str, str]]]:
    """The built tests that can kill mutants, by package."""
    listed = tree / "binaries.json"
    if listed.exists():
        return json.loads(listed.read_text())
    done = subprocess.run(build(drawn), cwd=tree, stdout=subprocess.PIPE, text=True, check=True)
    found = collections.defaultdict(list)
    for line in done.stdout.splitlines():
        message = json.loads(line)
        if (
            message.get("reason") != "compiler-artifact"
            or not message["executable"]
            or not message["profile"]["test"]
        ):
            continue
        package = pathlib.Path(message["manifest_path"]).parent.name
        target = message["target"]
        if package in TESTS and ("lib" in target["kind"] or target["name"] in TESTS[package].split()):
            found[package].append((target["name"], message["executable"]))
    listed.write_text(json.dumps(found))
    return found


def run(tree: pathlib.Path, package: str, program: str, test: str, most: float, **more: str) -> bool:
    """Whether the test succeeds."""
    environment = {
        **os.environ,
        "PROPTEST_MAX_SHRINK_ITERS": "0",
        "PROPTEST_FAILURE_PERSISTENCE": "off",
        **more,
    }
    try:
        done = subprocess.run(
            [program, "--exact", test],
            cwd=tree / "crates" / package,
            env=environment,
            timeout=most,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        return done.returncode == 0
    except subprocess.TimeoutExpired:
        return False


def reached(tree: pathlib.Path, package: str, drawn: list[dict], longest: float) -> list[dict]:
    """Every test of `package`, with its duration in seconds and the mutants that it reaches."""
    notes = tree / f"reached-{package}.json"
    known = json.loads(notes.read_text()) if notes.exists() else []
    have = {(row["program"], row["test"]) for row in known}
    for name, program in binaries(tree, drawn)[package]:
        here = tree / "crates" / package
        listed = subprocess.run(
            [program, "--list"], stdout=subprocess.PIPE, text=True, check=True, cwd=here
        ).stdout
        for test in re.findall(r"^(.*): test$", listed, re.M):
            if (program, test) in have:
                continue
            trace = tree / f"trace-{package}"
            trace.unlink(missing_ok=True)
            begun = time.monotonic()
            fine = run(tree, package, program, test, longest, MUTANT_TRACE=str(trace.resolve()))
            seconds = time.monotonic() - begun
            numbers = sorted({int(n) for n in trace.read_text().split()}) if trace.exists() else []
            known.append(
                dict(name=name, program=program, test=test, seconds=seconds, reached=numbers, fine=fine)
            )
            notes.write_text(json.dumps(known))
            if not fine:
                print(f"left out: {package} {name} {test}, after {seconds:.0f} s", flush=True)
    return sorted((row for row in known if row["fine"]), key=lambda row: row["seconds"])


def test(options: argparse.Namespace, drawn: list[dict]) -> None:
    tree, begun = options.tree.resolve(), time.monotonic()
    left = {int(n) for n in json.loads((tree / "left.json").read_text())}
    file = tree / "found.jsonl"
    known = {row["number"] for row in rows_of(file)}
    only = {int(n) for n in options.only.split(",")} if options.only else None
    with file.open("a") as out:
        for package in options.packages.split(","):
            tests = reached(tree, package, drawn, options.longest)
            for number, mutant in enumerate(drawn, 1):
                wanted = number not in known if only is None else number in only
                if mutant["package"] != f"antinoise-{package}" or number in left or not wanted:
                    continue
                if time.monotonic() - begun > 60 * options.minutes:
                    break
                row = tested(tree, package, number, [row for row in tests if number in row["reached"]])
                print(
                    json.dumps(dict(number=number, mutant=mutant["name"], package=package, **row)),
                    file=out,
                    flush=True,
                )
            say(package, drawn, tree)


def rows_of(file: pathlib.Path) -> list[dict]:
    """The last result of each mutant."""
    rows = map(json.loads, file.read_text().splitlines()) if file.exists() else []
    return list({row["number"]: row for row in rows}.values())


def say(package: str, drawn: list[dict], tree: pathlib.Path) -> None:
    """Prints one line about the mutants of a package, and one for each survivor."""
    reasons = json.loads((tree / "left.json").read_text())
    left = collections.Counter(
        reasons[n] for n in reasons if drawn[int(n) - 1]["package"] == f"antinoise-{package}"
    )
    rows = [row for row in rows_of(tree / "found.jsonl") if row["package"] == package]
    survived = [row for row in rows if not row["killed"]]
    without = ", ".join(f"{count} {why}" for why, count in left.items())
    print(
        f"{package}: {len(rows) - len(survived)} killed, {len(survived)} survived of {len(rows)}; left out:"
        f" {without or 'none'}"
    )
    for row in survived:
        print(f"  survived ({row['tests']} tests reach it): {row['mutant']}", flush=True)


def tested(tree: pathlib.Path, package: str, number: int, tests: list[dict]) -> dict:
    """The first test, of those that reach the mutant, that fails with it; and the seconds until then."""
    begun, killer = time.monotonic(), None
    for row in tests:
        if not run(tree, package, row["program"], row["test"], 60 + 10 * row["seconds"], MUTANT=str(number)):
            killer = f"{row['name']}::{row['test']}"
            break
    return dict(tests=len(tests), seconds=round(time.monotonic() - begun, 1), killed=killer)


if __name__ == "__main__":
    main()
