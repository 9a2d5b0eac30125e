#!/usr/bin/env python3
"""Measures the figures of docs/RESULTS.md, and writes that page.

    scripts/results.py                    every section but the long ones
    scripts/results.py max-loss dense       these sections; the others keep what they measured last
    scripts/results.py --all              every section, fashion-mnist among them (hours on small machines)

Each section runs `antinoise` (built first) and stores its output in docs/results/SECTION.json; the page is
written from all of these files. The sections are those of scripts/measured: for each its title, its first
sentence, what measures it and what writes its table. Needs only Python's standard library.
"""

import json
import sys

import prose
from measured import bands, optima, prefix_sums, privacy, training
from measured.program import ROOT, STORE

SECTIONS = {
    name: section
    for part in (prefix_sums, optima, bands, privacy, training)
    for name, section in part.SECTIONS.items()
}
LONG = ["fashion-mnist", "large"]


def write_page():
    page = [
        "# What was measured",
        "",
        (
            "Every figure here was printed by `antinoise` and is measured again by `scripts/results.py"
            " SECTION`. Seconds are those of one machine (2 cores) and can be compared only with each other."
            " Monograph: K. Pillutla et al., arXiv 2506.08201. Multi-epoch paper: C. Choquette-Choo et al.,"
            " arXiv 2211.06530. BandMF: R. McKenna, arXiv 2405.15913."
        ),
        "",
    ]
    for name, (title, text, _, show) in SECTIONS.items():
        stored = STORE / f"{name}.json"
        if stored.exists():
            page += [
                f"## {title}",
                "",
                f"{text} `scripts/results.py {name}`",
                "",
                show(json.loads(stored.read_text())),
                "",
            ]
    extra = STORE / "by-hand.md"
    if extra.exists():
        page.append(extra.read_text())
    path = ROOT / "docs" / "RESULTS.md"
    path.write_text(prose.wrap(path, "\n".join(page).rstrip() + "\n"))
    training.write_home()


def main():
    wanted = sys.argv[1:] or [name for name in SECTIONS if name not in LONG]
    wanted = list(SECTIONS) if wanted == ["--all"] else wanted
    unknown = [name for name in wanted if name not in SECTIONS and name != "page"]
    if unknown:
        raise SystemExit(f"section is {unknown[0]!r} but must be one of {', '.join(SECTIONS)}, page or --all")
    STORE.mkdir(parents=True, exist_ok=True)
    for name in wanted:
        if name != "page":
            (STORE / f"{name}.json").write_text(json.dumps(SECTIONS[name][2](), indent=1) + "\n")
    write_page()


main()
