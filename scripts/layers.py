#!/usr/bin/env python3
"""Checks the modules of each crate: no module uses itself through others, and none uses a layer above its
own.

    python3 scripts/layers.py              all crates
    python3 scripts/layers.py --self-test  shows that planted faults are found

A crate declares its layers in the first page of its lib.rs, from the ground up; a directory counts as one:

    //! ```layers
    //! error, number: what these are
    //! simd: uses the lines above
    //! ```

A file may use the modules on lines above its own and, inside its directory, any module that does not use it.
No file may use what its own mod.rs or lib.rs defines, since these use their files. Tests may use everything.

Uses are found by `use` and by paths that start with crate, super or self; a name that a mod.rs or lib.rs
re-exports counts as a use of the module that defines it.
"""

import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def without_comments(text):
    """The code with comments, strings and characters blanked."""
    parts = r'//[^\n]*|/\*.*?\*/|r(#*)".*?"\1|b?"(?:\\.|[^"\\])*"|b?\'(?:\\.[^\']*|[^\'\\])\''
    return re.sub(parts, " ", text, flags=re.S)


def without_tests(code):
    """The code without its #[cfg(test)] modules; and the names of such modules that are files."""
    files = re.findall(r"#\[cfg\((?:all\()?test\b[^\]]*\]\s*(?:pub\s+)?mod\s+(\w+)\s*;", code)
    while found := re.search(r"#\[cfg\((?:all\()?test\b[^\]]*\]\s*mod\s+\w+\s*\{", code):
        depth, end = 1, found.end()
        while depth:
            depth += {"{": 1, "}": -1}.get(code[end], 0)
            end += 1
        code = code[: found.start()] + code[end:]
    return code, files


def flatten(tree):
    """The paths of a use tree, each with the name that it introduces."""
    tree = tree.strip()
    if "{" not in tree:
        path, _, name = tree.partition(" as ")
        segments = [part.strip() for part in path.split("::") if part.strip()]
        if segments[-1:] == ["self"] and len(segments) > 1:
            segments.pop()
        return [(segments, name.strip() or segments[-1])] if segments else []
    head, rest = tree.split("{", 1)
    rest, parts, depth, part = rest.rsplit("}", 1)[0], [], 0, ""
    for c in rest:
        depth += {"{": 1, "}": -1}.get(c, 0)
        parts, part = (parts + [part], "") if c == "," and not depth else (parts, part + c)
    parts.append(part)
    return [found for part in parts if part.strip() for found in flatten(head + part)]


class Crate:
    """The modules of one crate by path, () being lib.rs or main.rs, and what each uses."""

    def __init__(self, src):
        self.layers, self.code, tests = None, {}, set()
        for file in sorted(src.rglob("*.rs")):
            path = file.relative_to(src).with_suffix("").parts
            path = path[:-1] if path[-1] in ("mod", "lib", "main") else path
            text = file.read_text()
            if not path:
                self.layers = declared(text) or self.layers
            code, files = without_tests(without_comments(text))
            # A program next to its library (main.rs) is one more part of the root.
            self.code[path] = self.code.get(path, "") + code
            tests.update(path + (name,) for name in files)
        for path in [p for p in self.code if any(p[: len(t)] == t for t in tests)]:
            del self.code[path]
        use = re.compile(r"\b(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);")
        self.uses, self.passed_on = {}, {}
        for path, code in self.code.items():
            found = [
                (flat, bool(m[1])) for m in use.finditer(code) for flat in flatten(" ".join(m[2].split()))
            ]
            self.passed_on[path] = {name: segments for (segments, name), public in found if public}
            inline = re.findall(r"\b(?:crate|super|self)(?:\s*::\s*\w+)+", use.sub(" ", code))
            self.uses[path] = [s for (s, _), _ in found] + [re.sub(r"\s", "", p).split("::") for p in inline]

    def resolve(self, path, segments, seen=()):
        """The module that defines what `segments` names in module `path`; none for other crates."""
        head, at = segments[0], path
        if head == "crate":
            at, segments = (), segments[1:]
        elif head == "self":
            segments = segments[1:]
        elif head != "super" and path + (head,) not in self.code:
            return None
        for i, segment in enumerate(segments):
            if segment == "super":
                at = at[:-1]
            elif at + (segment,) in self.code:
                at += (segment,)
            elif segment in self.passed_on[at] and (at, segment) not in seen:
                further = self.passed_on[at][segment] + segments[i + 1 :]
                return self.resolve(at, further, (*seen, (at, segment))) or at
            else:
                break
        return at

    def arrows(self):
        """A pair (user, used) for every two modules of which the first uses the second."""
        found = {
            (path, self.resolve(path, uses)) for path, all_uses in self.uses.items() for uses in all_uses
        }
        return {(a, b) for a, b in found if b is not None and a != b}

    def faults(self):
        """Sentences about each fault."""
        arrows = self.arrows()
        faults = ["its first page declares no layers"] if self.layers is None else self.wrong_layers(arrows)
        circles = sorted(sorted(circle) for circle in strongly_connected(arrows))
        return faults + ["circle: " + ", ".join(map(named, circle)) for circle in circles]

    def wrong_layers(self, arrows):
        layer = {name: i for i, names in enumerate(self.layers) for name in names}
        tops = {path[0] for path in self.code if path}
        faults = [f"{name} is in no layer" for name in sorted(tops - set(layer))]
        faults += [f"{name} is in a layer but nowhere else" for name in sorted(set(layer) - tops)]
        for a, b in sorted(arrows):
            below = b and (a[0] == b[0] or layer.get(b[0], -1) < layer.get(a[0], -1)) if a else True
            if not below or b == a[: len(b)]:
                faults.append(f"{named(a)} uses {named(b)}, which is not below it")
        return faults


def named(path):
    return "::".join(path) or "lib"


def declared(text):
    found = re.search(r"^//! ```layers\n(.*?)^//! ```$", text, flags=re.S | re.M)
    lines = found[1].splitlines() if found else []
    return [re.split(r",\s*", line[3:].split(":")[0].strip()) for line in lines] or None


def strongly_connected(arrows):
    """The sets of modules that use each other, directly or through others."""
    onward = {}
    for a, b in arrows:
        onward.setdefault(a, set()).add(b)

    def reached(start):
        seen, waiting = set(), [start]
        while waiting:
            for b in onward.get(waiting.pop(), ()):
                if b not in seen:
                    seen.add(b)
                    waiting.append(b)
        return seen

    reach = {a: reached(a) for a in onward}
    return {frozenset(b for b in reach[a] if a in reach.get(b, ())) for a in reach if a in reach[a]}


def self_test():
    """Every kind of fault, planted, is found; the same crate without it has none."""
    sound = {
        "lib.rs": (
            "//! ```layers\n//! low: ground\n//! mid, side\n//! top: last\n//! ```\nmod low; mod mid;\npub"
            " use low::Low;"
        ),
        "low.rs": "pub struct Low; #[cfg(test)] mod tests { use crate::top::Top; }",
        "mid/mod.rs": "mod a; mod b; pub(crate) use a::A;",
        "mid/a.rs": "use crate::Low; // use crate::top::Top;\npub struct A;",
        "mid/b.rs": 'use super::A; const S: &str = "crate::top";',
        "side.rs": "use crate::low::{self, Low};",
        "top.rs": "use crate::{mid::{A as B}, side}; pub struct Top;",
        "main.rs": "fn main() { sound::run() }",
    }
    planted = [
        ("low.rs", "use crate::top::Top;", "low uses top"),
        ("low.rs", "fn f() { crate::mid::f() }", "low uses mid"),
        ("side.rs", "use crate::mid::A;", "side uses mid::a"),
        ("low.rs", "use crate::{side::*, Low};", "low uses side"),
        ("mid/a.rs", "use super::b::B;", "circle: mid::a, mid::b"),
        ("mid/a.rs", "use super::OfTheModule;", "mid::a uses mid"),
        ("mid/b.rs", "use crate::OfTheCrate;", "mid::b uses lib"),
        ("new.rs", "", "new is in no layer"),
    ]
    cases = [(sound, None)] + [(sound | {f: sound.get(f, "") + code}, fault) for f, code, fault in planted]
    cases.append((sound | {"lib.rs": "mod low; mod mid;"}, "declares no layers"))
    for files, fault in cases:
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                (Path(folder) / name).parent.mkdir(exist_ok=True)
                (Path(folder) / name).write_text(text)
            found = Crate(Path(folder)).faults()
        if fault is None and found or fault and not any(fault in text for text in found):
            sys.exit(f"layers.py does not work: expected {fault}, found {found}")
    print(f"layers.py finds what {len(cases) - 1} planted faults break")


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    faults = [
        f"{crate.name}: {fault}"
        for crate in sorted((ROOT / "crates").iterdir())
        for fault in Crate(crate / "src").faults()
    ]
    if faults:
        sys.exit("\n".join(faults))
    return None


if __name__ == "__main__":
    main()
