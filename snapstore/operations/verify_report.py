"""What a verification has found."""

from typing import Literal

import msgspec

DamageKind = Literal["entry", "manifest", "missing", "size", "archived", "corrupt", "unopenable"]


class Damage(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong, and everything that it spoils.

    ``blob`` is None where an entry, a manifest or a whole store is meant; ``files`` are names
    relative to the task directory.
    """

    kind: DamageKind
    reason: str
    snapshots: tuple[str, ...]
    stores: tuple[str, ...]
    blob: str | None = None
    files: tuple[str, ...] = ()
    storage_class: str | None = None


class VerifyReport(msgspec.Struct, frozen=True, kw_only=True):
    """How much was looked at, and the damage. ``read_bytes`` were read and hashed.

    ``notes`` are sentences on snapshots that are whole and that no replay will go on from.
    ``read_up_to`` is the blob after which the next sample begins; None where none was read so.
    """

    snapshots: int
    blobs: int
    read_blobs: int
    read_bytes: int
    opened_stores: int
    scanned_entries: int
    damage: tuple[Damage, ...]
    notes: tuple[str, ...] = ()
    read_up_to: str | None = None

    @property
    def sound(self) -> bool:
        return not self.damage
