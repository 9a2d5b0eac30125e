"""Files that end in a digest of their content, which shows whether they are complete before they are used.

A file ends in a mark (16 bytes) and a SHA-256 digest (32 bytes). `torch.load` finds a zip file's directory by
itself and ignores them. The digest detects damage, not attacks: against those, the noise's own entries have a
keyed digest.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import BinaryIO

_MARK = b"antinoise sha256"
_END = len(_MARK) + 32
_PORTION = 1 << 20


@contextmanager
def new_sealed(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A new file of mode 0600. If the block succeeds, the file gets a digest at its end and replaces
    `path`.
    """
    place = Path(path)
    # NamedTemporaryFile makes files with mode 0600.
    with NamedTemporaryFile(dir=place.parent, prefix=f".{place.name}.", delete=False) as file:
        try:
            yield file  # type: ignore[misc]
            seal(file)  # type: ignore[arg-type]
            os.replace(file.name, place)
        except BaseException:
            os.unlink(file.name)
            raise
    _flush_folder(place.parent)


def _flush_folder(folder: Path) -> None:
    """Flushes to disk which files a folder holds, so that a renamed file survives a power failure."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def seal(file: BinaryIO) -> None:
    """Appends the digest of its content to a file that is open for reading and writing, and flushes it to
    disk.
    """
    file.flush()
    size = file.seek(0, os.SEEK_END)
    digest = _digest(file, size)
    file.seek(size)
    file.write(_MARK + digest)
    file.flush()
    os.fsync(file.fileno())


def check_sealed(path: str | os.PathLike[str]) -> None:
    """Raises RuntimeError for a file that was not sealed, or that was altered afterwards."""
    with open(path, "rb") as file:
        size = max(file.seek(0, os.SEEK_END) - _END, 0)
        wanted = _MARK + _digest(file, size)
        if file.read() == wanted:
            return
    raise RuntimeError(
        f"{os.fspath(path)} is not the file that was saved: it was cut, altered or written by another"
        " program. Use another checkpoint"
    )


def content_of(path: str | os.PathLike[str]) -> bytes:
    """The content of a sealed file, after the digest was verified."""
    check_sealed(path)
    return Path(path).read_bytes()[:-_END]


def _digest(file: BinaryIO, size: int) -> bytes:
    """SHA-256 of the first `size` bytes; afterwards the file's position is `size`."""
    found = hashlib.sha256()
    file.seek(0)
    while size > 0 and (portion := file.read(min(size, _PORTION))):
        found.update(portion)
        size -= len(portion)
    return found.digest()
