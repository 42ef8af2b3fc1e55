"""The offset that a store of Quix Streams notes in itself, atomically with its data."""

from collections.abc import Sequence

from snapstore.errors import UnknownOffsetError
from snapstore.model.identity import StoreId
from snapstore.model.quix_records import METADATA, OFFSET_KEY, decode_offset, encode_number
from snapstore.model.snapshot import Description
from snapstore.ports import FamilyNote, Note, StoreView


def read_offset(view: StoreView) -> int | None:
    """Return the applied offset, inclusive; None where none is noted.

    Raises SourceDamagedError when it is not one.
    """
    (database,) = view.databases
    if METADATA not in view.families(database):
        return None
    noted = view.entries(database, METADATA).get(OFFSET_KEY)
    return None if noted is None else decode_offset(noted)


def require_offset(store: StoreId, view: StoreView) -> int:
    """Return the applied offset; raises UnknownOffsetError saying why there is none."""
    offset = read_offset(view)
    if offset is not None:
        return offset
    (database,) = view.databases
    if METADATA not in view.families(database):
        raise UnknownOffsetError(
            f"{store} has no column family {METADATA}: it is not a store of Quix Streams",
            store=str(store),
            families=list(view.families(database)),
        )
    raise UnknownOffsetError(
        f"{store} notes no changelog offset",
        hint="it has no changelog (use_changelog_topics=False, then configure stores.NAME.changelog"
        ": none), or its application has committed nothing yet",
        store=str(store),
    )


def plan_notes(restored: Sequence[Description], views: Sequence[StoreView]) -> tuple[Note, ...]:
    """Return what the restored databases do not say by themselves."""
    notes = []
    for description, view in zip(restored, views, strict=True):
        if not description.positions:
            continue
        (database,) = view.databases
        (position,) = description.positions
        if read_offset(view) != position.position.applied_offset:
            entries = {OFFSET_KEY: encode_number(position.position.applied_offset)}
            notes.append(FamilyNote(database=database, family=METADATA, entries=entries))
    return tuple(notes)
