"""Play the application: write to a store as Kafka Streams 4.4 does, and keep it open."""

import hashlib
import struct
from collections.abc import Iterable
from pathlib import Path

from rocksdict import DBCompactionStyle, Options, Rdict, WriteBatch, WriteOptions

from snapstore.errors import SourceDamagedError
from snapstore.model.digest import entries_digest

_FAMILY = "keyValueWithTimestamp"
_OFFSETS = "offsets"
_STATUS = b"status"
_OPEN = struct.pack(">q", 1)
_BATCH = 1000
_FIRST_TIMESTAMP_MS = 1_700_000_000_000


class OpenStore:
    """A store of timestamped values, open for writing; its changelog is only counted.

    The write-ahead log is off and the offset is flushed with the data, as Kafka Streams 4.3 does.
    """

    def __init__(self, folder: Path, changelog: str, partition: int) -> None:
        names = ("default", _FAMILY, _OFFSETS)
        self._rdict = Rdict(str(folder), _options(), {name: _options() for name in names})
        self._changelog = f"{changelog}-{partition}".encode()
        self._unlogged = WriteOptions()
        # A property, whatever the stubs of the driver say.
        self._unlogged.disable_wal = True  # type: ignore[method-assign,assignment]
        offsets = self._rdict.get_column_family(_OFFSETS)
        noted = offsets.get(self._changelog)
        offsets.put(_STATUS, _OPEN, self._unlogged)
        offsets.close()
        if noted is None:
            raise SourceDamagedError(f"{folder} notes no offset of {changelog}:{partition}")
        self.applied_offset: int = struct.unpack(">q", noted)[0]

    def process(self, records: int) -> None:
        """Apply so many records of the changelog, and flush."""
        data = self._rdict.get_column_family_handle(_FAMILY)
        offsets = self._rdict.get_column_family_handle(_OFFSETS)
        last = self.applied_offset + records
        while self.applied_offset < last:
            batch = WriteBatch(raw_mode=True)
            for _ in range(min(_BATCH, last - self.applied_offset)):
                self.applied_offset += 1
                batch.put(*_record(self.applied_offset), data)
            batch.put(self._changelog, struct.pack(">q", self.applied_offset), offsets)
            self._rdict.write(batch, self._unlogged)
        self._flush()

    def digest(self) -> str:
        """Return the hash over every key and value, read from the open store."""
        family = self._rdict.get_column_family(_FAMILY)
        pairs = family.iter()
        pairs.seek_to_first()

        def walk() -> Iterable[tuple[bytes, bytes]]:
            while pairs.valid():
                yield pairs.key(), pairs.value()
                pairs.next()
            pairs.status()

        found = entries_digest(walk())
        family.close()
        return found

    def crash(self) -> None:
        """End without a clean close: the status on disk stays open."""
        self._rdict.close()

    def _flush(self) -> None:
        """Flush the data first, then the offset: it must never be ahead."""
        for name in (_FAMILY, _OFFSETS):
            family = self._rdict.get_column_family(name)
            family.flush()
            family.close()


def _record(number: int) -> tuple[bytes, bytes]:
    """Return key and value of a record: 8 bytes of timestamp before a value of 96 bytes."""
    value = hashlib.sha512(str(number).encode()).digest() + hashlib.md5(b"%d" % number).digest() * 2
    return b"order-%010d" % number, struct.pack(">q", _FIRST_TIMESTAMP_MS + number) + value


def _options() -> Options:
    options = Options(raw_mode=True)
    options.set_atomic_flush(True)
    options.set_write_buffer_size(64 << 20)
    options.set_compaction_style(DBCompactionStyle.universal())
    return options
