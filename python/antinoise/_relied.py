"""Attributes of other libraries that this package uses although they are not a stable API."""

from __future__ import annotations

from importlib import import_module, metadata
from typing import Any

TESTED = {
    "torch": "2.6 to 2.15",
    "opacus": "1.6",
    "lightning": "2.5 to 2.6",
    "transformers": "5.3 to 5.23",
    "trl": "1.16",
    "jax": "0.10",
    "flwr": "1.41",
}
"""The versions of each library that the tests ran with."""

_MISSING = object()


def relied(library: str, owner: Any, name: str) -> Any:
    """Returns `owner.name`.

    Args:
        library: Name of the library, a key of `TESTED`.
        owner: An object of the library, or the name of one of its modules.
        name: The attribute.

    Raises:
        RuntimeError: The attribute is missing. Another version of the library may have renamed it, and the
            check that uses it would silently pass.
    """
    found = getattr(_module(owner) if isinstance(owner, str) else owner, name, _MISSING)
    if found is _MISSING:
        where = owner if isinstance(owner, str) else getattr(owner, "__qualname__", type(owner).__qualname__)
        raise RuntimeError(
            f"{library} {_version(library)} has no {where}.{name}, which antinoise relies on: install one of"
            f" the versions of {library} that it is tested with, {TESTED[library]}"
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
