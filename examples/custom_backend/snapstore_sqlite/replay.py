"""Write changelog records into a store as its application does: key and value as they are."""

from collections.abc import Sequence

from snapstore.errors import NotReplayableError
from snapstore.model.changelog import ChangelogRecord
from snapstore.ports import ReplaySubject, StoreWriter
from snapstore_sqlite.store import ENTRIES, OFFSETS


class SQLiteReplay:
    """Implements StoreReplay. Each batch is one transaction with the offset it reaches."""

    def __init__(self, writer: StoreWriter, subject: ReplaySubject) -> None:
        self._writer = writer
        self._database = subject.location.root
        self._changelog = str(subject.changelog).encode()
        self._made = bool(writer.databases)

    def apply(self, records: Sequence[ChangelogRecord], reached: int) -> None:
        if not self._made:
            self._writer.create(self._database, [ENTRIES, OFFSETS])
            self._made = True
        noted = self._writer.get(self._database, OFFSETS, self._changelog)
        first = 0 if noted is None else int(noted) + 1
        if reached <= first:
            return
        pairs = [(_key(record), record.value) for record in records if record.offset >= first]
        self._writer.write(
            self._database,
            {ENTRIES: pairs, OFFSETS: [(self._changelog, b"%d" % (reached - 1))]},
        )


def _key(record: ChangelogRecord) -> bytes:
    if record.key is None:
        raise NotReplayableError(
            f"the record at offset {record.offset} has no key", offset=record.offset
        )
    return record.key
