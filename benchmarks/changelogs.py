"""A Kafka Streams application whose changelog is written directly, which takes seconds.

The records are what its store would have logged: a key, 100 bytes, in batches of 16 KiB, as its own
producer makes them. The broker compacts nothing while it is measured.
"""

import os
import random
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import msgspec
from confluent_kafka import Producer

from benchmarks.lab import Lab
from tests.support.broker import Broker
from tests.support.jars import LONG_LIVED
from tests.support.streams_app import Run, StreamsApp
from tests.support.streams_input import InputShape
from tests.support.streams_lab import StreamsLab
from tests.support.streams_report import RestoreEnd, RestoreStart
from tests.support.topic import bounds

STORE = "plain"
_VALUE_BYTES = 100
_PATIENCE_S = 600
_SCATTER = 7_368_787
"""A prime: multiples of it modulo the number of keys come in no order."""


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """A start of the application: seconds until RUNNING, and what it read from its changelogs."""

    seconds: float
    begun_at: dict[int, int]
    restored: dict[int, int]
    milliseconds: dict[int, int]

    @property
    def records(self) -> int:
        return sum(self.restored.values())

    @property
    def records_per_second(self) -> float:
        """One thread restores all partitions side by side, so each takes about the whole time."""
        return self.records / (max(self.milliseconds.values()) / 1000)


@contextmanager
def application(lab: Lab, *, partitions: int) -> Iterator[StreamsApp]:
    """Run a broker; yield an application that has started once, taken a few records and closed."""
    folder = lab.folder("streams")
    with ExitStack() as stack:
        broker = Broker(folder / "broker", {"log.cleaner.backoff.ms": str(24 * 3600 * 1000)})
        stack.enter_context(broker)
        streams = stack.enter_context(closing(StreamsLab(broker, folder / "lab")))
        app = streams.app(
            streams.new_topic(), stores=(STORE,), java_options=LONG_LIVED, dumps=False
        )
        streams.fill(app.topic, InputShape(records=1000, partitions=partitions, delete_pct=0))
        app.run("caughtUp")
        yield app


def write_changelog(app: StreamsApp, partition: int, *, records: int, keys: int, seed: int) -> None:
    """Append records with keys in no order; each key comes once before one comes again."""
    topic = app.changelog(STORE)
    before = bounds(app.bootstrap, topic, partition).end
    content = random.Random(seed).randbytes(1 << 20)
    producer = Producer(
        {
            "bootstrap.servers": app.bootstrap,
            "enable.idempotence": True,
            "batch.size": 16_384,
            "linger.ms": 50,
            "log_level": 3,
        }
    )
    for number in range(records):
        key = b"key-%08d" % (number * _SCATTER % keys)
        at = (number * 97) % (len(content) - _VALUE_BYTES)
        value = content[at : at + _VALUE_BYTES]
        while True:
            try:
                producer.produce(topic, value, key, partition)
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(_PATIENCE_S) == 0, f"{topic} was not written"
    written = bounds(app.bootstrap, topic, partition).end - before
    assert written == records, f"{written} of {records} records in {topic}"


def start(app: StreamsApp) -> Start:
    """Start the application, let it become RUNNING, and close it."""
    os.sync()
    began = time.monotonic()
    run = app.start("forever")
    run.wait_for_state("RUNNING", _PATIENCE_S)
    seconds = time.monotonic() - began
    assert run.close().clean, run.process.tail()
    return _told(run, seconds)


def store_folder(state_dir: Path, app: StreamsApp, partition: int) -> Path:
    return state_dir / app.application / f"0_{partition}" / "rocksdb" / STORE


def _told(run: Run, seconds: float) -> Start:
    begun = [event for event in run.events() if isinstance(event, RestoreStart)]
    ended = [event for event in run.events() if isinstance(event, RestoreEnd)]
    return Start(
        seconds=seconds,
        begun_at={event.partition: event.start_offset for event in begun},
        restored={event.partition: event.restored for event in ended},
        milliseconds={event.partition: event.ms for event in ended},
    )
