"""Everything that was ever written to some partitions, kept while it comes in."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.support.topic import TopicRecord, to_record

_BATCH = 10_000
_LONGEST_S = 300


@dataclass
class History:
    """The records of each partition from its first offset on, committed ones only.

    They are read soon after they were written, so compaction has taken none away.
    """

    bootstrap: str
    records: dict[tuple[str, int], list[TopicRecord]] = field(default_factory=dict)

    def follow(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Begin to read partitions that exist."""
        self.records |= {one: [] for one in partitions}
        self._consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "history",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "isolation.level": "read_committed",
                "fetch.queue.backoff.ms": 2,
                "log_level": 3,
            }
        )
        self._consumer.assign([TopicPartition(*one, 0) for one in self.records])

    def read(self) -> dict[tuple[str, int], int]:
        """Read what is there by now; returns how many records of each partition that is.

        The topics must hold no transaction markers.
        """
        ends = {one: self._end(one) for one in self.records}
        missing = {one for one, end in ends.items() if self._next(one) < end}
        deadline = time.monotonic() + _LONGEST_S
        while missing:
            assert time.monotonic() < deadline, f"nothing comes from {sorted(missing)}"
            for message in self._consumer.consume(_BATCH, timeout=0.1):
                if error := message.error():
                    raise KafkaException(error)
                one = (str(message.topic()), int(message.partition() or 0))
                record = to_record(message)
                assert record.offset == self._next(one), f"{one} has a gap before {record.offset}"
                self.records[one].append(record)
            missing = {one for one in missing if self._next(one) < ends[one]}
        return {one: len(records) for one, records in self.records.items()}

    def close(self) -> None:
        self._consumer.close()

    def _next(self, one: tuple[str, int]) -> int:
        return len(self.records[one])

    def _end(self, one: tuple[str, int]) -> int:
        watermarks = self._consumer.get_watermark_offsets(TopicPartition(*one), timeout=120)
        assert watermarks is not None, f"no answer for {one}"
        return int(watermarks[1])
