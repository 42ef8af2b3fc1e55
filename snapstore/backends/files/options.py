"""Settings of the files backend, and what they make of a name."""

from fnmatch import fnmatchcase
from typing import Literal

import msgspec

from snapstore.model.units import Bytes

Treatment = Literal["ignored", "mutable", "immutable"]


class FilesOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which files are what, and how hard to try.

    Patterns are shell globs; one with a slash is compared with the name relative to the store's
    folder, one without with the last part. ``immutable``: files that are complete once they have
    their name, and only ever removed. ``mutable`` goes before ``immutable``; a file that neither
    fits is mutable. ``ignore`` goes before both: files and folders that are no state (locks, logs).
    ``max_attempts``: how often the folder is looked at while it keeps changing. ``retry_seconds``:
    the first pause in between, doubled each time up to a second, with jitter. ``staging_dir``:
    where copies of mutable files are made meanwhile (default: the system's temporary folder).
    ``min_free_bytes``: they leave that much free there.
    """

    immutable: tuple[str, ...] = ()
    mutable: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    max_attempts: int = 12
    retry_seconds: float = 0.01
    staging_dir: str | None = None
    min_free_bytes: Bytes = 64 << 20

    def __post_init__(self) -> None:
        if self.max_attempts < 1:
            raise ValueError("max_attempts must be at least 1")
        if self.retry_seconds < 0 or self.min_free_bytes < 0:
            raise ValueError("retry_seconds and min_free_bytes must not be negative")
        if "" in (*self.immutable, *self.mutable, *self.ignore):
            raise ValueError("a pattern is empty")

    def treatment(self, name: str) -> Treatment:
        """Return what is to be made of a file, by its name relative to the store's folder."""
        if _fits(name, self.ignore):
            return "ignored"
        if _fits(name, self.immutable) and not _fits(name, self.mutable):
            return "immutable"
        return "mutable"


def _fits(name: str, patterns: tuple[str, ...]) -> bool:
    last = name.rpartition("/")[2]
    return any(fnmatchcase(name if "/" in each else last, each) for each in patterns)
