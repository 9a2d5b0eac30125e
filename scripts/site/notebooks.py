#!/usr/bin/env python3
"""Pages that are notebooks: their code is a script that the tests run, and the site has them for Jupyter.

    target/python/tables/bin/python scripts/site/notebooks.py docs/notebook-flights.md

runs the code of a page, with a Python that has what the page needs. What it prints replaces what the page
says that it prints, and its pictures are written to docs/figures.
"""

import contextlib
import io
import json
import os
import re
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
NAMES = ("start-", "notebook-")
# Code, and what it prints.
CELL = re.compile(
    r"^```python\n(.*?)^```\n(?:(\nIt prints, for example:\n\n```text\n)(.*?)^```\n)?", flags=re.M | re.S
)
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\([^)]*\)")
PICTURE = re.compile(r"^!\[[^\]]*\]\([^)]*\)\n", flags=re.M)
DRAWN = re.compile(r'savefig\("(.*?\.svg)"\)')
BUTTON = '<a class="md-content__button" href="{name}" title="This page as a notebook of Jupyter" download>notebook</a>\n'


def script(markdown):
    """The code of a page."""
    return "\n".join(code for code, _, _ in CELL.findall(markdown))


def notebook(markdown):
    """The notebook of a page, as JSON: text without links and pictures, and code with what it prints and
    draws.
    """
    cells, end = [], 0
    for match in CELL.finditer(markdown):
        cells += [text_cell(markdown[end : match.start()]), code_cell(match[1], match[3])]
        end = match.end()
    cells.append(text_cell(markdown[end:]))
    cells = [cell | {"id": f"cell-{place}", "metadata": {}} for place, cell in enumerate(cells)]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    whole = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1)


def text_cell(markdown):
    text = LINK.sub(r"\1", PICTURE.sub("", markdown)).strip("\n")
    return {"cell_type": "markdown", "source": text}


def code_cell(code, printed):
    outputs = [{"output_type": "stream", "name": "stdout", "text": printed}] if printed else []
    for name in DRAWN.findall(code):
        picture = {"image/svg+xml": (DOCS / "figures" / name).read_text()}
        outputs.append({"output_type": "display_data", "data": picture, "metadata": {}})
    return {"cell_type": "code", "execution_count": None, "outputs": outputs, "source": code.rstrip()}


def rerun(page):
    """Runs a page and puts what it prints and draws into it."""
    names = {"__name__": "__main__"}

    def run(match):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(match[1], names)
        return f"```python\n{match[1]}```\n" + (f"{match[2]}{printed.getvalue()}```\n" if match[2] else "")

    markdown = page.read_text()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        page.write_text(CELL.sub(run, markdown))
        for name in DRAWN.findall(markdown):
            (DOCS / "figures" / name).write_text(Path(name).read_text())


if __name__ == "__main__":
    with contextlib.suppress(ImportError):
        import matplotlib as mpl

        # Text as text, and the same names in each file.
        mpl.rcParams.update(
            {"svg.fonttype": "none", "svg.hashsalt": "antinoise", "font.family": "sans-serif"}
        )
    os.environ.setdefault("MPLBACKEND", "svg")
    for name in sys.argv[1:]:
        rerun(Path(name).resolve())
