"""An independent reader of topics, to compare stores with: it knows nothing of snapstore."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

_BATCH = 10_000
_POLL = 0.1  # `consume` waits that long even when only a full batch is lacking
_SILENCE = 120


@dataclass(frozen=True)
class TopicRecord:
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: tuple[tuple[str, bytes | None], ...]
    leader_epoch: int | None


@dataclass(frozen=True)
class Bounds:
    """The first offset that is still there, and the one that the next record will get."""

    start: int
    end: int


def read_partition(
    bootstrap: str,
    topic: str,
    partition: int = 0,
    *,
    start: int | None = None,
    stop: int | None = None,
    committed: bool = True,
) -> list[TopicRecord]:
    """Every record from `start` (default: the first) up to before `stop` (default: the end)."""
    consumer = _consumer(bootstrap, committed)
    try:
        first = _bounds(consumer, topic, partition).start if start is None else start
        consumer.assign([TopicPartition(topic, partition, first)])
        return list(_read_until(consumer, stop))
    finally:
        consumer.close()


def bounds(bootstrap: str, topic: str, partition: int = 0, *, committed: bool = True) -> Bounds:
    """`committed`: the end is the last stable offset, where open transactions begin."""
    consumer = _consumer(bootstrap, committed)
    try:
        return _bounds(consumer, topic, partition)
    finally:
        consumer.close()


def fold(records: Iterable[TopicRecord]) -> dict[bytes, TopicRecord]:
    """The newest record of each key; a tombstone takes the key away."""
    newest: dict[bytes, TopicRecord] = {}
    for record in records:
        assert record.key is not None, f"no key at offset {record.offset}"
        if record.value is None:
            newest.pop(record.key, None)
        else:
            newest[record.key] = record
    return newest


def _consumer(bootstrap: str, committed: bool) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "independent-reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            "fetch.queue.backoff.ms": 2,
            "log_level": 3,
        }
    )


def _bounds(consumer: Consumer, topic: str, partition: int) -> Bounds:
    watermarks = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=120)
    assert watermarks is not None, f"no answer for {topic}-{partition}"
    return Bounds(*watermarks)


def _read_until(consumer: Consumer, stop: int | None) -> Iterator[TopicRecord]:
    silent_until = time.monotonic() + _SILENCE
    while time.monotonic() < silent_until:
        for message in consumer.consume(_BATCH, timeout=_POLL):
            silent_until = time.monotonic() + _SILENCE
            error = message.error()
            if error is not None:
                if error.code() == KafkaError._PARTITION_EOF:
                    return
                raise KafkaException(error)
            record = to_record(message)
            if stop is not None and record.offset >= stop:
                return
            yield record
    raise AssertionError(f"the broker sent nothing for {_SILENCE} s")


def to_record(message: Message) -> TopicRecord:
    offset = message.offset()
    assert offset is not None
    _, timestamp = message.timestamp()
    return TopicRecord(
        offset=offset,
        key=message.key(),
        value=message.value(),
        timestamp=timestamp,
        headers=_headers(message),
        leader_epoch=message.leader_epoch(),
    )


def _headers(message: Message) -> tuple[tuple[str, bytes | None], ...]:
    headers = message.headers() or []
    pairs = headers.items() if isinstance(headers, dict) else headers
    return tuple((name, _bytes(value)) for name, value in pairs)


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
