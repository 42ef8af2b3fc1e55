"""Settings of the RocksDB backend."""

import msgspec

from snapstore.model.units import Bytes


class RocksDBOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How hard to try, and what to leave free.

    ``max_attempts``: how often one database is tried while it keeps changing. ``retry_seconds``:
    the first pause between two tries, doubled each time up to a second, with jitter.
    ``min_free_bytes``: a capture gives up rather than leave less than this on a disk; files that
    the application has deleted stay allocated while they are held. ``staging_dir``: where the
    folders of links and, if need be, copies are made (default: links in memory where there is some,
    copies in the system's temporary folder).
    ``copy_tables``: copy tables instead of holding them open, even where they could be held.
    """

    max_attempts: int = 12
    retry_seconds: float = 0.01
    min_free_bytes: Bytes = 64 << 20
    staging_dir: str | None = None
    copy_tables: bool = False

    def __post_init__(self) -> None:
        if self.max_attempts < 1:
            raise ValueError("max_attempts must be at least 1")
        if self.retry_seconds < 0 or self.min_free_bytes < 0:
            raise ValueError("retry_seconds and min_free_bytes must not be negative")
