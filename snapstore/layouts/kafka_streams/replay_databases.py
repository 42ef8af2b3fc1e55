"""The databases of a store that is brought forward, and the offset that each of them notes."""

from collections.abc import Iterable, Mapping, Sequence

from snapstore.layouts.kafka_streams.family import FAMILY, offset_entry, read_family, status_entry
from snapstore.layouts.kafka_streams.names import FROM_4_3, GLOBAL
from snapstore.model.changelog import ChangelogRecord
from snapstore.model.records import FAMILIES, StoreFormat
from snapstore.ports import Pair, ReplaySubject, StoreWriter

_NOTHING = -1


class Databases:
    """Writes data and offset together. ``applied`` is by database, -1 where nothing is.

    A database with the family `offsets` goes by its own offset, any other one by the store's.
    """

    def __init__(self, writer: StoreWriter, subject: ReplaySubject) -> None:
        self.writer = writer
        self.subject = subject
        position = subject.position
        self._position = _NOTHING if position is None else _sure(position.applied_offset)
        self._keep_offsets: dict[str, bool] = {}
        self._outdated: dict[str, Sequence[str]] = {}
        self.applied: dict[str, int] = {}
        statuses = set()
        for name in writer.databases:
            self._keep_offsets[name] = FAMILY in writer.families(name)
            content = (
                read_family(writer.entries(name, FAMILY), name)
                if self._keep_offsets[name]
                else None
            )
            if content is None:
                self.applied[name] = self._position
                continue
            statuses.add(content.status)
            self.applied[name] = self._own(content.offsets.get(subject.changelog))
        # A transactional store has no status, and neither shall its new segments have one.
        self._mark_closed = not statuses or "closed" in statuses

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self.applied))

    def create(self, name: str, families: Sequence[str]) -> None:
        """Make a database that has applied what the others have: there was nothing for it."""
        self.writer.create(name, families)
        self._keep_offsets[name] = FAMILY in families
        if self._keep_offsets[name] and self._mark_closed:
            self.writer.write(name, {FAMILY: [status_entry("closed")]})
        self.applied[name] = _NOTHING

    def drop(self, name: str) -> None:
        self.writer.drop(name)
        del self.applied[name], self._keep_offsets[name]
        self._outdated.pop(name, None)

    def outdated(self, name: str, older: Sequence[str]) -> Sequence[str]:
        """Return those families of an older format that hold entries still: mostly none."""
        if name not in self._outdated:
            self._outdated[name] = tuple(
                family
                for family in older
                if next(self.writer.scan_from(name, family, b""), None) is not None
            )
        return self._outdated[name]

    def fresh(self, name: str, records: Sequence[ChangelogRecord]) -> Sequence[ChangelogRecord]:
        """Return the records that the database has not applied yet."""
        applied = self.applied[name]
        if not records or records[0].offset > applied:
            return records
        return [record for record in records if record.offset > applied]

    def write(
        self,
        name: str,
        pairs: Mapping[str, Iterable[Pair]],
        reached: int,
        *,
        emptied: Mapping[str, Sequence[bytes]] | None = None,
    ) -> None:
        """Write pairs, and that the database has applied all before ``reached``."""
        applied = max(self.applied[name], reached - 1)
        noted: dict[str, Iterable[Pair]] = {}
        if self._keep_offsets[name] and applied >= 0:
            offset = applied + 1 if self._is_global else applied
            noted = {FAMILY: [offset_entry(self.subject.changelog, offset)]}
        self.writer.write(name, {**pairs, **noted}, emptied=emptied)
        self.applied[name] = applied

    def _own(self, offset: int | None) -> int:
        if offset is None:
            return _NOTHING
        return offset - 1 if self._is_global else _sure(offset)

    @property
    def _is_global(self) -> bool:
        return self.subject.location.store.task == GLOBAL


def new_database(form: StoreFormat, generation: str) -> tuple[str, ...]:
    """Return the families of a new database."""
    offsets = (FAMILY,) if generation == FROM_4_3 else ()
    return tuple(sorted({"default", FAMILIES[form], *offsets}))


def _sure(applied_offset: int) -> int:
    """Offset 0 is also noted where nothing was applied (KAFKA-8755)."""
    return _NOTHING if applied_offset == 0 else applied_offset
