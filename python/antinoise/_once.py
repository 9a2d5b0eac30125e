"""Objects that must not exist twice: they refuse copying and pickling."""

from __future__ import annotations

from typing import Any, NoReturn


class NotCopied:
    """Refuses copying and pickling."""

    def _refuse_copy(self) -> NoReturn:
        what = type(self).__name__
        raise TypeError(f"a {what} cannot be pickled or copied: two of them would use the same noise twice")

    def __copy__(self) -> NoReturn:
        self._refuse_copy()

    def __deepcopy__(self, memo: Any) -> NoReturn:
        self._refuse_copy()

    def __reduce__(self) -> NoReturn:
        self._refuse_copy()
