"""Pins: snapshots to be kept regardless of retention."""

from datetime import datetime

import msgspec

from snapstore.errors import ObjectExistsError
from snapstore.ports import ObjectStorage
from snapstore.repository import encoding, keys


class _Pin(msgspec.Struct, frozen=True, kw_only=True):
    format: int
    pinned_at: datetime
    reason: str


class Pins:
    """The pins of one repository: an object of that name is one, whatever it holds."""

    def __init__(self, storage: ObjectStorage) -> None:
        self._storage = storage

    def add(self, snapshot_id: str, *, pinned_at: datetime, reason: str = "") -> bool:
        """Pin a snapshot; False when it was pinned already."""
        body = encoding.encode(_Pin(format=encoding.FORMAT, pinned_at=pinned_at, reason=reason))
        try:
            self._storage.put(keys.pin(snapshot_id), body, if_absent=True)
        except ObjectExistsError:
            return False
        return True

    def remove(self, snapshot_id: str) -> None:
        """Unpin a snapshot; one that is not pinned is no error."""
        self._storage.delete([keys.pin(snapshot_id)])

    def all(self) -> frozenset[str]:
        """Return the ids of all pinned snapshots."""
        return frozenset(keys.parsed(self._storage.list(keys.PINS), keys.parse_pin, []))
