"""Write changelog records into a table as the recovery of Faust does."""

from collections.abc import Sequence

from snapstore.errors import NotReplayableError
from snapstore.model.changelog import ChangelogRecord
from snapstore.model.faust_records import (
    FAMILY,
    OFFSET_KEY,
    decode_offset,
    encode_offset,
    read_pair,
)
from snapstore.ports import Pair, ReplaySubject, StoreWriter


class FaustReplay:
    """Implements StoreReplay: data and offset in one batch.

    Raises NotReplayableError for a topic that is not compacted: it is that of a set table, whose
    records are operations on a value.
    """

    def __init__(self, writer: StoreWriter, subject: ReplaySubject) -> None:
        self._writer = writer
        self._database = subject.location.root
        if not subject.state.compacted:
            raise NotReplayableError(
                f"{subject.changelog} is not compacted, so its records are not entries of a table",
                hint="let the application replay",
                changelog=str(subject.changelog),
            )
        self._made = self._database in writer.databases
        noted = writer.get(self._database, FAMILY, OFFSET_KEY) if self._made else None
        self._reached = 0 if noted is None else decode_offset(noted) + 1

    def apply(self, records: Sequence[ChangelogRecord], reached: int) -> None:
        if reached <= self._reached:
            return
        pairs: list[Pair] = [
            read_pair(record) for record in records if record.offset >= self._reached
        ]
        if not self._made:
            self._writer.create(self._database, [FAMILY])
            self._made = True
        pairs.append((OFFSET_KEY, encode_offset(reached - 1)))
        self._writer.write(self._database, {FAMILY: pairs})
        self._reached = reached
