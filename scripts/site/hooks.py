"""Hooks of MkDocs: pages for the files outside docs/ that pages link to, and Markdown as GitHub reads it.

A link from docs/ to `../crates/plan/src/lib.rs` works on GitHub. On the site it leads to a page `source/...`
that shows this file. Markdown files become pages whose links are followed in the same way.
"""

import posixpath
import re
from pathlib import Path

import notebooks
import reference
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "examples/README.md"]
LANGUAGES = {".rs": "rust", ".py": "python", ".pyi": "python", ".toml": "toml", ".sh": "sh"}
LINK = re.compile(r"(?P<before>\]\(\s*|^\[[^\]\n]+\]:\s+)(?P<target>[^)\s#]+)(?=[)\s#]|$)", flags=re.M)
DEFINITION = re.compile(r"^\[([^\]\n]+)\]:\s+(\S+)", flags=re.M)
CODE = re.compile(
    r"^(?P<fence> *(?:`{3,}|~{3,})).*?^(?P=fence)`*~*$|(?P<ticks>`+)(?:(?!\n\n).)+?(?P=ticks)", re.M | re.S
)
ITEM = re.compile(r"( *)([-*+]|\d+[.)])( +)(?=\S)")
FENCE = re.compile(r" *(`{3,}|~{3,})")


def on_files(files, config):
    """Adds references, notebooks, and pages of files outside docs/."""
    pages = [file for file in files if file.src_uri.endswith(".md") and file.inclusion.is_included()]
    for path, text in reference.pages():
        files.append(File.generated(config, path, content=text))
    for page in pages:
        if page.src_uri.startswith(notebooks.NAMES):
            text = notebooks.notebook(page.content_string)
            files.append(File.generated(config, notebook_of(page), content=text))
    wanted = [*PAGES, *(str(path.relative_to(ROOT)) for path in ROOT.glob("crates/*/README.md"))]
    wanted += [path for page in pages for path in outside(page.content_string, "docs/" + page.src_uri)]
    shown = set()
    while wanted:
        path = wanted.pop()
        if path not in shown:
            shown.add(path)
            text = text_of(path)
            files.append(File.generated(config, page_of(path), content=text))
            if path.endswith(".md"):
                wanted += outside(text, path)
    return files


def on_page_content(html, page, config, files):
    """A button for the notebook of a page."""
    if not page.file.src_uri.startswith(notebooks.NAMES):
        return html
    return notebooks.BUTTON.format(name=notebook_of(page.file)) + html


def notebook_of(page):
    return page.src_uri.removesuffix(".md") + ".ipynb"


def on_post_build(config):
    """Adds the documentation of the crates; removes what only serves the theme's own developers."""
    reference.copy_rustdoc(config.site_dir)
    for path in Path(config.site_dir).rglob("*.map"):
        path.unlink()


def on_page_markdown(markdown, page, config, files):
    """Links of the site, and lists and tables that Python-Markdown reads as GitHub does."""
    here = page.file.src_uri
    if here.startswith("reference/"):
        return markdown
    if here.startswith("source/"):
        page.meta.setdefault("search", {}).setdefault("boost", 0.3)

    def link(match):
        target = resolved(match["target"], origin_of(here))
        if target is None:
            return match[0]
        return match["before"] + posixpath.relpath(page_of(target), posixpath.dirname(here) or ".")

    return blocks(inline(outside_code(LINK, link, markdown)))


def inline(markdown):
    """Links by reference with their targets: Python-Markdown finds no `code` in the names of references."""
    targets = dict(DEFINITION.findall(markdown))
    named = "|".join(map(re.escape, targets))
    if not named:
        return markdown
    return outside_code(
        re.compile(rf"\[({named})\](?![\[(:])"), lambda match: f"[{match[1]}]({targets[match[1]]})", markdown
    )


def outside_code(pattern, replace, markdown):
    """Replaces matches that do not lie in code."""
    spans = [match.span() for match in CODE.finditer(markdown)]
    code = lambda match: any(begin <= match.start() < end for begin, end in spans)  # noqa: E731
    return pattern.sub(lambda match: match[0] if code(match) else replace(match), markdown)


def origin_of(page):
    """The file of the repository that a page shows."""
    return page.removeprefix("source/") if page.startswith("source/") else "docs/" + page


def page_of(path):
    """The page, or the other file of the site, that shows a file of the repository."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return "source/" + (path if path.endswith(".md") else path + ".md")


def resolved(target, origin):
    """The file of the repository that a link names, or None for a link to elsewhere."""
    if re.match(r"[a-z]+:|/", target):
        return None
    path = posixpath.normpath(posixpath.join(posixpath.dirname(origin), target))
    if not (ROOT / path).exists():
        raise PluginError(f"{origin} links to {target}, which is not in the repository")
    readme = posixpath.join(path, "README.md")
    return readme if (ROOT / path).is_dir() and (ROOT / readme).exists() else path


def outside(markdown, origin):
    """The files outside docs/ that a text links to."""
    found = []
    outside_code(LINK, lambda match: found.append(resolved(match["target"], origin)) or match[0], markdown)
    return [path for path in found if path and not path.startswith("docs/")]


def text_of(path):
    """The Markdown of the page of a file: itself, its code, or the names in its folder."""
    whole = ROOT / path
    if path.endswith(".md"):
        return whole.read_text()
    names = sorted(entry.name for entry in whole.iterdir()) if whole.is_dir() else None
    code = whole.read_text() if names is None else "\n".join(names)
    fence = "`" * (3 + max(map(len, re.findall("`+", code)), default=0))
    head = "---\nsearch:\n  exclude: true\n---\n"
    return f"{head}# {path}\n\n{fence}{LANGUAGES.get(whole.suffix, 'text')}\n{code.rstrip()}\n{fence}\n"


def blocks(markdown):
    """Text whose lists are indented by four spaces a level, and begin after an empty line, like tables."""
    lines, starts, fence, before = [], [], None, ""
    for line in markdown.split("\n"):
        indent = len(line) - len(line.lstrip(" "))
        if not line.strip():
            lines.append("")
            before = ""
            continue
        if fence is None and (not before or ITEM.match(line)):
            starts = [start for start in starts if start <= indent]
        level = "    " * len(starts)
        inner = starts[-1] if starts else 0
        item = ITEM.match(line) if fence is None and indent - inner < 4 else None
        opens = fence is None and FENCE.match(line)
        if item:
            if before and not (starts or ITEM.match(before)):
                lines.append("")
            text = line[item.end() :]
            lines.append(f"{level}{item[2]} {text}")
            starts.append(item.end())
        else:
            table = fence is None and line.lstrip().startswith("|")
            if table and before and not before.lstrip().startswith("|"):
                lines.append("")
            lines.append(level + line[min(indent, inner) :])
        if opens:
            fence = opens[1]
        elif fence is not None and line.strip() == fence:
            fence = None
        before = line
    return "\n".join(lines)
