"""Many notes of one kind become a few, and a count."""

import re
from collections.abc import Callable
from typing import Final

SHOWN: Final = 3

_NAME = re.compile(r"\S*/\S+|\b[0-9a-f]{12,64}\b")
_NUMBER = re.compile(r"\d[\d,.:TZ-]*")


def kind_of(message: str) -> str:
    """Return what is left of a sentence without names of stores, paths, ids, numbers and times."""
    return _NUMBER.sub("N", _NAME.sub("NAME", message))


class Folded:
    """Tells the first notes of a kind at once; ``end`` says how many more of each there were.

    Notes are of one kind when they differ in names of stores, paths, ids, numbers and times only.
    """

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._seen: set[str] = set()
        self._counts: dict[str, int] = {}
        self._first: dict[str, str] = {}

    def tell(self, message: str) -> None:
        """Tell a note, once, if not enough of its kind have been told."""
        if message in self._seen:
            return
        self._seen.add(message)
        kind = kind_of(message)
        self._counts[kind] = self._counts.get(kind, 0) + 1
        self._first.setdefault(kind, message)
        if self._counts[kind] <= SHOWN:
            self._write(message)

    def end(self) -> None:
        """Say how many were not told, and begin anew."""
        for kind, count in self._counts.items():
            if count > SHOWN:
                self._write(
                    f"{count - SHOWN:,} more like this (all with --json): {self._first[kind]}"
                )
        self._counts.clear()
        self._first.clear()
