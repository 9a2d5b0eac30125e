"""Names of other libraries that this package relies on, and that they do not promise to keep."""

from __future__ import annotations

from importlib import import_module, metadata
from typing import Any

TESTED = {
    "torch": "2.6 to 2.15",
    "opacus": "1.6",
    "lightning": "2.5 to 2.6",
    "transformers": "5.3 to 5.23",
    "jax": "0.10",
    "flwr": "1.41",
}
"""Of each library, the versions that the tests ran with."""

_MISSING = object()


def relied(library: str, owner: Any, name: str) -> Any:
    """`owner.name`, where `owner` is an object of `library` or the name of one of its modules.

    Raises `RuntimeError` where it is missing: in another version it may be called otherwise, and what it
    guards would pass unseen.
    """
    found = getattr(_module(owner) if isinstance(owner, str) else owner, name, _MISSING)
    if found is _MISSING:
        where = owner if isinstance(owner, str) else getattr(owner, "__qualname__", type(owner).__qualname__)
        raise RuntimeError(
            f"{library} {_version(library)} has no {where}.{name}, which antinoise relies on: install one of the versions of {library} that it is "
            f"tested with, {TESTED[library]}"
        )
    return found


def _module(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        return None


def _version(library: str) -> str:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return "of unknown version"
