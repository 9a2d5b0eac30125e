#!/usr/bin/env python3
"""Checks the built site: every link leads somewhere, nothing is loaded from another host, no list, table or
code block of a page got lost on the way from Markdown, and the reference has all of the Python package.

    python3 scripts/site/links.py [SITE]       target/site by default

What `cargo doc` wrote (rust/) is left to rustdoc's own lints. Blocks are counted in the page and in what
markdown-it-py, which reads Markdown as GitHub does, makes of its source.
"""

import re
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import reference
from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "target" / "site"
BLOCKS = ["ul", "ol", "li", "table", "tr", "pre", "h1", "h2", "h3", "h4", "em", "strong", "code", "img", "a"]
LOADS = {"script": "src", "img": "src", "iframe": "src", "link": "href", "source": "src", "object": "data"}
# Links that the theme adds to a page.
NOT_BLOCKS = {"md-content__button", "headerlink"}
# What a link element with this relation names is not loaded.
NOT_LOADED = {"canonical", "prev", "next"}
FROM_ELSEWHERE = re.compile(r"url\(\s*['\"]?(https?:[^)'\"]*)|@import\s+['\"](https?:[^'\"]*)")
# What scripts/site.sh build compiles, and pages alone lack.
COMPILED = "assets/planner-wasm.js"


class Page(HTMLParser):
    """The links, anchors, loaded files and blocks of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors, self.loads, self.blocks = [], set(), [], Counter()
        self.article = 0
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.anchors |= {attributes[name] for name in ("id", "name") if attributes.get(name)}
        if tag == "a" and attributes.get("href"):
            self.links.append(attributes["href"])
        loaded = attributes.get(LOADS.get(tag))
        if loaded and attributes.get("rel") not in NOT_LOADED:
            self.loads.append(loaded)
        if tag == "article":
            self.article += 1
        elif self.article and not (NOT_BLOCKS & set((attributes.get("class") or "").split())):
            self.blocks[tag] += 1

    def handle_endtag(self, tag):
        if tag == "article":
            self.article -= 1


def faults_of_links(path, pages, site):
    """What is wrong with the links of a page, and with what it loads."""
    name, page = path.relative_to(site), pages[path]
    for target in page.links + page.loads:
        parts = urlsplit(target)
        if parts.scheme or parts.netloc:
            if target in page.loads and parts.scheme != "data":
                yield f"{name} loads {target}"
            continue
        # Links of 404.html begin at the root of the site.
        file = (path.parent / unquote(parts.path.lstrip("/"))).resolve() if parts.path else path
        file = file / "index.html" if file.is_dir() else file
        if not file.is_file() and file != site / COMPILED:
            yield f"{name} links to {target}, which does not exist"
        elif parts.fragment and file in pages and unquote(parts.fragment) not in pages[file].anchors:
            yield f"{name} links to {target}, where there is no such heading"


def faults_of_styles(path, site):
    """What a style sheet loads from other hosts."""
    for target in FROM_ELSEWHERE.findall(path.read_text()):
        yield f"{path.relative_to(site)} loads {''.join(target)}"


def faults_of_blocks(name, page, source):
    """Blocks of the Markdown that a page lacks, or has in addition."""
    text = MarkdownIt("commonmark").enable("table").render(source.read_text())
    expected = Page(f"<article>{text}</article>").blocks
    for tag in BLOCKS:
        if page.blocks[tag] != expected[tag]:
            yield f"{name} has {page.blocks[tag]} of <{tag}>, but {source.relative_to(ROOT)} has {expected[tag]}"


def faults_of_reference(pages, site):
    """Names of the Python package that its reference lacks."""
    for module in reference.MODULES:
        page = pages[site / "reference" / f"{module}.html"]
        for name in reference.names(module):
            if f"{module}.{name}" not in page.anchors and name != "__version__":
                yield f"the reference of {module} lacks {name}"


def source_of(name):
    """The Markdown of a page, or None if it is generated."""
    name = name.with_suffix(".md")
    name = name.with_name("README.md") if name.name == "index.md" else name
    source = ROOT / name.relative_to("source") if name.parts[0] == "source" else ROOT / "docs" / name
    return source if source.is_file() else None


def main():
    site = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else SITE
    found = (path for path in sorted(site.rglob("*.html")) if site / "rust" not in path.parents)
    pages = {path: Page(path.read_text()) for path in found}
    wrong, compared = [], 0
    for path, page in pages.items():
        wrong += faults_of_links(path, pages, site)
        name = path.relative_to(site)
        source = source_of(name)
        if source:
            compared += 1
            wrong += faults_of_blocks(name, page, source)
    for path in site.rglob("*.css"):
        wrong += faults_of_styles(path, site)
    wrong += faults_of_reference(pages, site)
    for fault in wrong:
        print(fault, file=sys.stderr)
    links = sum(len(page.links) for page in pages.values())
    print(f"{len(pages)} pages, {links} links, {compared} compared with Markdown: {len(wrong)} problems")
    raise SystemExit(1 if wrong or not compared else 0)


if __name__ == "__main__":
    main()
