"""Marks of what is to be deleted: names of blobs that are dead, snapshots that were removed."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from snapstore.errors import IntegrityError, ObjectExistsError, ObjectNotFoundError
from snapstore.ports import ObjectStat, ObjectStorage
from snapstore.repository import encoding, keys

_NAMES_PER_RECORD = 20_000
_LIMIT_BYTES = 16 << 20


class _Mark(msgspec.Struct, frozen=True, kw_only=True):
    format: int
    run: str
    marked_at: datetime


class _Swept(msgspec.Struct, frozen=True, kw_only=True):
    format: int
    names: tuple[str, ...]


class SweptRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Names whose blobs were gone at ``stored_at`` (by the storage's clock)."""

    key: str
    names: frozenset[str]
    stored_at: datetime


class Marks:
    """The marks of one repository. Every ``modified_at`` is by the storage's own clock.

    A name stays dead after its blob is gone, for as long as a sweeper may still be at work that saw
    the blob: a name that came to life again meanwhile would lose its new blob. When it was gone is
    kept in records, each a list of names.
    """

    def __init__(self, storage: ObjectStorage) -> None:
        self._storage = storage

    def condemned(self) -> dict[str, ObjectStat]:
        """Return the condemned names, each with its mark. Keys that are no marks are left out."""
        return keys.parsed(self._storage.list(keys.CONDEMNED), keys.parse_condemned, [])

    def removed(self) -> dict[str, ObjectStat]:
        """Return the ids of snapshots that were taken out on purpose, each with its mark."""
        return keys.parsed(self._storage.list(keys.REMOVED), keys.parse_removed, [])

    def condemn(self, name: str, *, run: str, now: datetime) -> bool:
        """Mark a blob; False when it was marked already."""
        return self._put(keys.condemned(name), run, now)

    def remove(self, snapshot_id: str, *, run: str, now: datetime) -> bool:
        """Say that a snapshot is taken out on purpose; False when that was said already."""
        return self._put(keys.removed(snapshot_id), run, now)

    def records(self, unread: list[str]) -> tuple[SweptRecord, ...]:
        """Return which names were found gone, and when.

        The keys of records that cannot be read go to ``unread``: what they name stays dead, and is
        noted anew by the next sweep.
        """
        found = []
        for stat in self._storage.list(keys.SWEPT):
            try:
                body = self._storage.get(stat.key, limit_bytes=_LIMIT_BYTES)
                names = encoding.decode(body, _Swept, what=stat.key).names
            except ObjectNotFoundError:
                continue
            except IntegrityError:
                unread.append(stat.key)
                continue
            if not all(keys.is_blob_name(name) for name in names):
                unread.append(stat.key)
                continue
            found.append(
                SweptRecord(key=stat.key, names=frozenset(names), stored_at=stat.modified_at)
            )
        return tuple(found)

    def record(self, names: Sequence[str], *, run: str, now: datetime) -> None:
        """Note that these blobs are gone now."""
        for number, first in enumerate(range(0, len(names), _NAMES_PER_RECORD)):
            part = tuple(names[first : first + _NAMES_PER_RECORD])
            body = encoding.encode(_Swept(format=encoding.FORMAT, names=part))
            self._storage.put(keys.swept(now, run, number), body, if_absent=True)

    def _put(self, key: str, run: str, now: datetime) -> bool:
        body = encoding.encode(_Mark(format=encoding.FORMAT, run=run, marked_at=now))
        try:
            self._storage.put(key, body, if_absent=True)
        except ObjectExistsError:
            return False
        return True
