"""A real Quix Streams application: its environment, its input, and what it has processed.

Quix Streams wants an older confluent-kafka than this project, so it gets an environment of its own,
made once and kept in a cache.
"""

import fcntl
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from tests.support.broker import Broker
from tests.support.jars import CACHE, PROJECT
from tests.support.processes import ChildProcess
from tests.support.topic import bounds

QUIX = "quixstreams==3.28.1"
PARTITIONS = 2

_PROGRAM = PROJECT / "tests" / "python_engines" / "quix_application.py"
_FIRST_TIMESTAMP_MS = 1_700_000_000_000
_MS_BETWEEN_RECORDS = 50
_KEYS = 40

# The group's coordinator is being elected: nobody has committed anything yet.
_NOT_YET = {
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
}


def quix_python() -> Path:
    """Return a Python that has Quix Streams; installs it on first use, whoever asks at once."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    folder = CACHE.parent / QUIX.replace("==", "-") / f"python-{version}"
    folder.mkdir(parents=True, exist_ok=True)
    python, installed = folder / "bin" / "python", folder / "installed"
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not installed.exists():
            subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
            pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            subprocess.run([*pip, QUIX], check=True, stdin=subprocess.DEVNULL)
            installed.touch()
    return python


class QuixApplication:
    """One consumer group on one input topic, with two stores for each of two partitions."""

    def __init__(
        self, broker: Broker, folder: Path, name: str, guarantee: str = "at-least-once"
    ) -> None:
        self.broker = broker
        self.group = f"group-{name}"
        self.input = f"input-{name}"
        self.state_dir = folder / "state"
        self._guarantee = guarantee
        self._folder = folder
        self._report = folder / "recovered.json"
        self._process: ChildProcess | None = None
        folder.mkdir(parents=True, exist_ok=True)
        # Its records are of long ago: by default the broker would delete them at once.
        broker.create_topic(self.input, PARTITIONS, config={"retention.ms": "-1"})

    def start(self) -> None:
        command = [str(quix_python()), str(_PROGRAM), self.broker.bootstrap, self.group]
        command += [self.input, str(self.state_dir), self._guarantee, str(self._report)]
        self._process = ChildProcess(command, self._folder / "application.log")

    def kill(self) -> None:
        """SIGKILL: a crash."""
        if self._process is not None:
            self._process.kill()

    def stop(self) -> Mapping[str, int]:
        """SIGTERM; returns how many records it had recovered, by changelog partition."""
        assert self._process is not None
        code = self._process.terminate(180)
        assert code == 0, f"exit {code}\n{self._process.tail()}"
        return msgspec.json.decode(self._report.read_bytes(), type=dict[str, int])

    def wait_until_processed(
        self, partition_count: int | None = None, timeout: float = 300
    ) -> None:
        """Wait until it has committed everything of its input (or so many of each partition)."""
        deadline = time.monotonic() + timeout
        ends = [
            partition_count or bounds(self.broker.bootstrap, self.input, number).end
            for number in range(PARTITIONS)
        ]
        while any(at < end for at, end in zip(self.committed(), ends, strict=True)):
            assert self._process is not None
            assert self._process.running, self._process.tail()
            assert time.monotonic() < deadline, f"{self.committed()}\n{self._process.tail()}"
            time.sleep(0.1)

    def committed(self) -> list[int]:
        """Return what it reads next of each partition of its input."""
        consumer = Consumer({"bootstrap.servers": self.broker.bootstrap, "group.id": self.group})
        try:
            asked = [TopicPartition(self.input, number) for number in range(PARTITIONS)]
            return [max(0, each.offset) for each in consumer.committed(asked, timeout=120)]
        except KafkaException as error:
            if error.args[0].code() in _NOT_YET:
                return [0] * PARTITIONS
            raise
        finally:
            consumer.close()

    def changelog_of(self, store: str) -> str:
        return f"changelog__{self.group}--{self.input}--{store}"


class Feeder:
    """Writes records to the input while the block runs, evenly over partitions and keys."""

    def __init__(self, application: QuixApplication, *, first: int, per_second: int) -> None:
        self.written = first
        self._topic = application.input
        self._pause = 1 / per_second
        self._producer = Producer({"bootstrap.servers": application.broker.bootstrap})
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopped.set()
        self._thread.join()
        self._producer.flush(120)

    def _run(self) -> None:
        while not self._stopped.wait(self._pause):
            _produce(self._producer, self._topic, self.written)
            self._producer.poll(0)
            self.written += 1


def feed(application: QuixApplication, first: int, count: int) -> None:
    """Write that many records to the input."""
    producer = Producer({"bootstrap.servers": application.broker.bootstrap})
    for number in range(first, first + count):
        _produce(producer, application.input, number)
    assert producer.flush(120) == 0


def feed_nothing(application: QuixApplication) -> None:
    """Write a record to each partition that the application passes over: it changes no store."""
    producer = Producer({"bootstrap.servers": application.broker.bootstrap})
    for partition in range(PARTITIONS):
        producer.produce(application.input, key=b"nothing", value=b"-1", partition=partition)
    assert producer.flush(120) == 0


def _produce(producer: Producer, topic: str, number: int) -> None:
    partition = number % PARTITIONS
    producer.produce(
        topic,
        key=b"key-%03d" % (number // PARTITIONS * 7919 % _KEYS),
        value=b"%d" % (number % 100),
        partition=partition,
        timestamp=_FIRST_TIMESTAMP_MS + number * _MS_BETWEEN_RECORDS,
    )


if __name__ == "__main__":
    quix_python()
