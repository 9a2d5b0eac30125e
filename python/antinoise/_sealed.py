"""Files that end in a digest of all that is before it: whoever reads one learns first whether it is whole.

The end is 16 bytes of a mark and 32 of SHA-256. `torch.load`, which reads a zip file by its directory, reads
past it. It finds damage, not malice: against that, the noise's own entries have a digest that is keyed.
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
    """A file for its owner alone that takes the place of `path`, with a digest at its end, if what is done
    with it succeeds."""
    place = Path(path)
    # Such files are made with mode 0600.
    with NamedTemporaryFile(dir=place.parent, prefix=f".{place.name}.", delete=False) as file:
        try:
            yield file  # type: ignore[misc]
            seal(file)  # type: ignore[arg-type]
            os.replace(file.name, place)
        except BaseException:
            os.unlink(file.name)
            raise


def seal(file: BinaryIO) -> None:
    """Ends a file, which is open for both reading and writing, with the digest of its content; it is on the
    disk when this returns."""
    file.flush()
    size = file.seek(0, os.SEEK_END)
    digest = _digest(file, size)
    file.seek(size)
    file.write(_MARK + digest)
    file.flush()
    os.fsync(file.fileno())


def check_sealed(path: str | os.PathLike[str]) -> None:
    """Refuses a file that `seal` did not end, or of which anything was altered since, with a RuntimeError."""
    with open(path, "rb") as file:
        size = max(file.seek(0, os.SEEK_END) - _END, 0)
        wanted = _MARK + _digest(file, size)
        if file.read() == wanted:
            return
    raise RuntimeError(f"{os.fspath(path)} is not the file that was saved: it was cut, altered or written by another program. Use another checkpoint")


def content_of(path: str | os.PathLike[str]) -> bytes:
    """The content of such a file, once it is known to be whole."""
    check_sealed(path)
    return Path(path).read_bytes()[:-_END]


def _digest(file: BinaryIO, size: int) -> bytes:
    """That of the first `size` bytes."""
    found = hashlib.sha256()
    file.seek(0)
    while size > 0 and (portion := file.read(min(size, _PORTION))):
        found.update(portion)
        size -= len(portion)
    return found.digest()
