"""Read a range of offsets to its end, and say how much of it held records."""

from collections.abc import Iterator, Sequence

from snapstore.kafka.reader import PartitionReader
from snapstore.model.changelog import ChangelogRecord, TailReport

_BATCH = 2_000
"""More take more memory and are no quicker."""


class KafkaTail:
    """The records at offsets from the reader's position to before ``stop``, once."""

    def __init__(self, reader: PartitionReader, stop: int) -> None:
        self._reader = reader
        self._start = reader.position
        self._stop = stop
        self._records = 0

    def __iter__(self) -> Iterator[Sequence[ChangelogRecord]]:
        reader = self._reader
        while reader.position < self._stop:
            # One more than is left: the end of the log is announced as a message.
            limit = min(_BATCH, self._stop - reader.position + 1)
            batch = reader.fetch(limit)
            if batch and batch[-1].offset >= self._stop:
                batch = [record for record in batch if record.offset < self._stop]
            if batch:
                self._records += len(batch)
                yield batch

    @property
    def report(self) -> TailReport:
        """What was read up to now: complete once the iteration has ended."""
        reached = min(self._reader.position, self._stop)
        return TailReport(start=self._start, stop=reached, records=self._records)
