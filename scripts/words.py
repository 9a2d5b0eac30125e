#!/usr/bin/env python3
"""Checks comments, documents and messages: no idiom of the list below, and no prose line over 110 columns.

    python3 scripts/words.py                 the paths in CHECKED
    python3 scripts/words.py PATH ...        these files and folders
    python3 scripts/words.py --all           every file of the repository, counted by folder
    python3 scripts/words.py --wrap PATH ... fills paragraphs that have a line over 110 columns
    python3 scripts/words.py --self-test     shows that planted faults are found, and that wrapping changes no code

Idioms are looked for in comments, docstrings, Markdown, and in strings of Rust and of the Python package.
Lines are measured in comments, docstrings and Markdown. Code blocks, code spans, tables and link targets are
exempt."""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import prose

ROOT = Path(__file__).resolve().parents[1]
# Paths that are free of these faults.
CHECKED = [
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "docs",
    "scripts",
    "examples",
    "crates",
    "fuzz",
    "python",
]
# Text by others, and text that is compared byte by byte.
EXEMPT = re.compile(r"(^|/)(golden|snapshots|corpus)/|^CHANGELOG\.md$|^docs/results/")

IDIOMS = {
    r"\bso many\b(?!(?: \w+)? (?:that|as)\b)": "name the number: `steps` steps",
    r"\btold\b(?! apart)": "reported, stated, known",
    r"\b(?:un|fore)told\b|\bforetells?\b": "predicted",
    r"\bwho(?:m|se)?ever\b": "anyone who, the caller, the operator",
    r"\b(?:go|goes|going|gone|went) on\b": "continues, resumes",
    r"\bof before\b": "previous, earlier",
    r"\bbeside\b": "next to, compared with, in addition to",
    r"\bC that runs\b": "the rounded strategy",
    r"\bpast(?:'s)? (?:share|adds)\b": "the history term",
    r"\bmade again\b|\bre-?made\b": "recomputed, generated again",
    r"\bmend(?:s|ed|ing)?\b": "fixes, repairs",
    r"\bthose in\b": "name them",
    r"\b(?:is|are) none of\b": "is not a, is not one of",
    r"\bis another but must\b": "say what happened and what to do",
    r"\b(?:is|are) no numbers?\b": "is not a number, is NaN",
    r"\bat the (?:most|least)\b": "at most, at least",
    r"\bthe (?:most|least) that\b": "the maximum, an upper bound on",
    r"\bof (?:its|their) own accord\b": "automatically",
}
IDIOM = re.compile("|".join(f"(?P<i{i}>{pattern})" for i, pattern in enumerate(IDIOMS)), re.I)


def files(paths):
    """The tracked and new files under these paths that hold prose."""
    command = ["git", "ls-files", "-co", "--exclude-standard", "-z", "--", *map(str, paths)]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    kept = [
        name
        for name in sorted(set(names))
        if name.endswith((".rs", ".py", ".md")) and not EXEMPT.search(name)
    ]
    return [ROOT / name for name in kept if (ROOT / name).is_file()]


def faults(path, text, with_strings=False):
    """(line, what is wrong) for each fault."""
    found = []
    for piece in prose.pieces_of(path, text, with_strings):
        for kind, lines in prose.blocks(piece):
            if kind != "code":
                found += idioms(lines)
                found += lengths(piece, lines) if piece.kind not in ("string", "pragma") else []
    return sorted(found)


def idioms(lines):
    """Idioms in lines that are joined first, so that an idiom across a line break is found."""
    text, starts = "", []
    for line in lines:
        starts.append((len(text), line.number))
        code = r"(`+)(?:(?!\1).)+?\1|\{[\w.]*(?::[^{}]*)?\}"
        text += re.sub(code, lambda span: "`" * len(span[0]), line.text).strip() + " "
    text = re.sub(r"\]\([^)\s]*\)", lambda target: "]" * len(target[0]), text)
    for found in IDIOM.finditer(text):
        number = max(number for start, number in starts if start <= found.start())
        instead = list(IDIOMS.values())[int(found.lastgroup[1:])]
        yield number, f"“{found[0]}”: {instead}"


def lengths(piece, lines):
    for line in lines:
        table = line.text.lstrip().startswith("|") or re.match(r"\s*\[[^\]]*\]:", line.text)
        if prose.is_long(line) and not table:
            yield line.number, f"{len(line.whole())} columns of prose, {prose.WIDTH} are allowed"


def is_package(path):
    """Whether strings of this Python file are messages to users."""
    return (ROOT / "python" / "antinoise") in path.parents


def check(paths):
    return [
        f"{path.relative_to(ROOT)}:{number}: {fault}"
        for path in files(paths)
        for number, fault in faults(path, path.read_text(), is_package(path))
    ]


def count():
    """Prints the number of faults by folder: idioms, and lines that are too long."""
    words, columns = Counter(), Counter()
    for line in check(["."]):
        name = "/".join(line.split(":")[0].split("/")[: 2 if line.startswith("crates") else 1])
        (columns if "columns of prose" in line else words)[name] += 1
    print(f"{'':24}{'idioms':>8}{'long lines':>12}")
    for name in sorted(words | columns):
        print(f"{name:24}{words[name]:>8}{columns[name]:>12}")
    print(f"{'all':24}{words.total():>8}{columns.total():>12}")


def wrap(paths):
    refused = []
    for path in files(paths):
        before = path.read_text()
        after = prose.wrap(path, before)
        if prose.code_of(path, before) != prose.code_of(path, after) or prose.wrap(path, after) != after:
            refused.append(
                f"{path.relative_to(ROOT)} is left as it is: wrapping would change more than line breaks"
            )
        elif after != before:
            path.write_text(after)
    if refused:
        sys.exit("\n".join(refused))


LONG = ("word " * 24).strip()
RUST_LINES = """\
//! {long}
//! - an item: {long}
//!   and [a link](https://example.org), `a span of code that is kept whole and is not broken at its spaces` {long}
//!
//! ```
//! let code = "{long}"; // {long}
//! ```
//! | a table | {long}
/// Short.
/// 1. {long}
fn f() -> &'static str {{
    // {long} 1. + x - {long}
    let lifetimes: &'static str = "// no comment {long}"; let c = '"'; let raw = r#"// no " comment {long}"#;
    /* {long} */
    // a  column   of a picture {long}
    "*/ {long}"
}}
"""
PYTHON_LINES = '''\
"""{long}

    python3 code.py {long}

{long}
"""
def f():
    """{long}"""
    return """{long}
    {long}"""  # noqa: {long}
# {long}
# {long}
'''
MARKDOWN_LINES = """\
# {long}
{long} # 1. {long}
* {long}
  {long}
    1. {long}

| {long} |
```sh
{long}
```
    {long}

[link]: {long}
"""


def self_test():
    """Every kind of fault, planted, is found; what is exempt is not; and wrapping changes no code."""
    planted = [
        ("a.rs", "/// After so many steps.", ["so many"]),
        ("a.rs", "/// After so\n/// many steps.", ["so many"]),
        ("a.rs", "/// So many that it fits; besides, told apart. `told` [x](told)", []),
        ("a.rs", "fn told() {} // beside", ["beside"]),
        ("a.rs", 'const S: &str = "{told} {told:?} is told \\\n whoever";', ["told", "whoever"]),
        (
            "a.rs",
            "/// ```\n/// let told = beside;\n/// ```\nfn f() { let c = '\"'; } // goes on",
            ["goes on"],
        ),
        ("a.rs", "/* /* */ */ fn f<'a>(x: &'a str) {} // of before", ["of before"]),
        ("a.rs", f"// {LONG}", ["columns"]),
        ("a.rs", f'const S: &str = "{LONG}";', []),
        ("a.rs", "// https://example.org/" + "x" * 120, []),
        ("a.rs", f"//! | {LONG} |", []),
        ("a.py", 'def f():\n    """Is made\n    again."""\n', ["made again"]),
        ("a.py", "x = 'told'  # mended", ["mended"]),
        ("a.py", f"x = 1\n# {LONG}\n", ["columns"]),
        ("a.md", f"Told.\n\n```\nwhoever {LONG}\n```\n{LONG}", ["told", "columns"]),
        ("a.md", "- x is none of\n  those in y\n", ["is none of", "those in"]),
    ]
    for name, text, expected in planted:
        found = [fault.lower() for _, fault in faults(Path(name), text)]
        if len(found) != len(expected) or any(
            e not in f for e, f in zip(sorted(expected), sorted(found, key=order))
        ):
            sys.exit(f"words.py does not work: {text!r} should give {expected}, gives {found}")
    templates = [("a.rs", RUST_LINES), ("a.py", PYTHON_LINES), ("a.md", MARKDOWN_LINES)]
    for name, template in templates:
        path, text = Path(name), template.format(long=LONG)
        after = prose.wrap(path, text)
        same = prose.code_of(path, after) == prose.code_of(path, text) and prose.wrap(path, after) == after
        left = len([fault for _, fault in faults(path, after) if "columns" in fault])
        if after == text or not same or left != {"a.rs": 1, "a.py": 0, "a.md": 1}[name]:
            sys.exit(f"words.py wraps {name} wrongly: {left} lines are too long in\n{after}")
    for before, after in [("fn f() {}", "fn f() { }}"), ('"a  b"', '"a b"'), ("// a b", "// a")]:
        if prose.code_of(Path("a.rs"), before) == prose.code_of(Path("a.rs"), after):
            sys.exit(f"words.py does not see that {before} became {after}")
    print(f"words.py finds {len(planted)} planted faults and exemptions, and wraps {len(templates)} files")


def order(fault):
    return fault.strip("“").split("”")[0] if fault.startswith("“") else "columns"


def main():
    paths = [Path(name).resolve() for name in sys.argv[1:] if not name.startswith("--")]
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if sys.argv[1:] == ["--all"]:
        return count()
    if "--wrap" in sys.argv[1:]:
        return wrap(paths or ["."])
    if found := check(paths or CHECKED):
        sys.exit("\n".join(found))
    return None


if __name__ == "__main__":
    main()
