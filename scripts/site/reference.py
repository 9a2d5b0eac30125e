"""Pages that are made when the site is built: the references of Python, of the command line and of Rust."""

import ast
import os
import re
import shutil
from pathlib import Path

import commands

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
PROGRAM = Path(os.environ.get("ANTINOISE_PROGRAM", TARGET / "release" / "antinoise"))
RUSTDOC = TARGET / "doc"
MODULES = [
    "antinoise",
    *(
        f"antinoise.{name}"
        for name in ["torch", "opacus", "lightning", "hf", "sft", "jax", "flower", "types"]
    ),
]


def pages():
    """(path, Markdown) of each page."""
    if not PROGRAM.exists():
        raise FileNotFoundError(
            f"{PROGRAM} is absent: cargo build --release makes it, or ANTINOISE_PROGRAM names another"
        )
    yield "reference/commands.md", commands.page(PROGRAM)
    for module in MODULES:
        yield f"reference/{module}.md", f"# {module}\n\n::: {module}\n"
    yield "reference/rust.md", rust()


def names(module):
    """What a module of the package offers: `__all__`, or else its functions and classes."""
    path = ROOT / "python" / Path(*module.split("."))
    tree = ast.parse((path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text())
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return ast.literal_eval(node.value)
    defined = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    return [name for name in defined if not name.startswith("_")]


def rust():
    """The crates, their pages and, where `cargo doc` has written it, their documentation."""
    built = RUSTDOC.exists()
    text = "# Crates\n\nA crate uses only crates on lower lines ([picture](../crates.md)). "
    text += "Links lead to the documentation of" if built else "`cargo doc --open` shows the documentation of"
    text += " a crate's items.\n\n| crate | what it is |\n|---|---|\n"
    for manifest in sorted(ROOT.glob("crates/*/Cargo.toml")):
        keys = (re.search(rf'^{key} = "(.*)"', manifest.read_text(), re.M) for key in ("name", "description"))
        name, what = (key[1] for key in keys)
        readme = manifest.with_name("README.md").relative_to(ROOT)
        shown = f"[`{name}`](../source/{readme})" if (ROOT / readme).exists() else f"`{name}`"
        start = f"{name.replace('-', '_')}/index.html"
        items = f' (<a href="../rust/{start}">items</a>)' if (RUSTDOC / start).exists() else ""
        text += f"| {shown}{items} | {what} |\n"
    return text + "\n[Examples](../source/examples/README.md) lists their examples and measuring tools.\n"


def copy_rustdoc(site):
    """Takes what `cargo doc` has written into the site."""
    if RUSTDOC.exists():
        shutil.copytree(RUSTDOC, Path(site) / "rust", ignore=shutil.ignore_patterns(".lock"))
