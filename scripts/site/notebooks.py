"""Pages that begin with a framework as notebooks, whose code is the script that the tests run."""

import json
import re

FENCE = re.compile(r"^```python\n(.*?)^```\n", flags=re.M | re.S)
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\([^)]*\)")
PICTURE = re.compile(r"^!\[[^\]]*\]\([^)]*\)\n", flags=re.M)
BUTTON = '<a class="md-content__button" href="{name}" title="This page as a notebook of Jupyter" download>notebook</a>\n'


def notebook(markdown):
    """The notebook of a page, as JSON: scripts are its code, all else is text without links and pictures."""
    cells = []
    for place, part in enumerate(FENCE.split(markdown)):
        if place % 2:
            cells.append(
                {"cell_type": "code", "execution_count": None, "outputs": [], "source": part.rstrip()}
            )
        else:
            text = LINK.sub(r"\1", PICTURE.sub("", part)).strip("\n")
            cells.append({"cell_type": "markdown", "source": text})
        cells[-1] |= {"id": f"cell-{place}", "metadata": {}}
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    whole = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1)
