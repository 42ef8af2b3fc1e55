"""The fixture application: a real Kafka Streams application with one store of each kind."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tests.support.jars import BROKER_VERSION, SHORT_LIVED, java
from tests.support.processes import ChildProcess
from tests.support.streams_report import (
    AnyEvent,
    Closed,
    Dump,
    RestoreEnd,
    RestoreStart,
    StateChange,
    StreamsException,
    read_dump,
    read_events,
)

ALL_STORES = (
    "plain",
    "table",
    "versioned",
    "mem",
    "window",
    "session",
    "count",
    "join",
    "global",
)
Until = Literal["forever", "caughtUp", "running"]


class Run:
    """One life of the application, seen through what it reports."""

    def __init__(self, command: list[str], directory: Path, *, dumps: bool = True) -> None:
        self.directory = directory
        self._dump = directory / "dump"
        self._report = directory / "report"
        self._ready = directory / "ready"
        paths = [f"report={self._report}", f"readyFile={self._ready}"]
        if dumps:
            paths.append(f"dump={self._dump}")
        self.process = ChildProcess([*command, *paths], directory / "output")

    def wait_ready(self, timeout: float = 300) -> None:
        """RUNNING (or caught up, where that was asked for), and the dump is written."""
        self._wait_for(self._ready.exists, "ready", timeout)

    def wait_for_state(self, state: str, timeout: float = 300) -> None:
        self._wait_for(lambda: state in self.states(), state, timeout)

    def close(self) -> Closed:
        """SIGTERM and a clean close."""
        self.process.terminate()
        return self._closed()

    def crash(self) -> None:
        """SIGKILL: nothing is flushed, no offset is written."""
        assert self.process.running, self.process.tail()
        self.process.kill()

    def wait(self, timeout: float = 400) -> Closed:
        """For a run that ends by itself."""
        code = self.process.wait(timeout)
        assert code == 0, f"exit {code}, {self.exceptions()}\n{self.process.tail()}"
        return self._closed()

    def events(self) -> list[AnyEvent]:
        return list(read_events(self._report))

    def states(self) -> list[str]:
        return [event.state for event in self.events() if isinstance(event, StateChange)]

    def exceptions(self) -> list[str]:
        return [event.what for event in self.events() if isinstance(event, StreamsException)]

    def restore_starts(self) -> list[RestoreStart]:
        return [event for event in self.events() if isinstance(event, RestoreStart)]

    def restored(self) -> dict[tuple[str, int], int]:
        """Records restored by (store, partition), of every restoration that came to its end."""
        totals: dict[tuple[str, int], int] = {}
        for event in self.events():
            if isinstance(event, RestoreEnd):
                key = (event.store, event.partition)
                totals[key] = totals.get(key, 0) + event.restored
        return totals

    def dump(self) -> Dump:
        return read_dump(self._dump)

    def _wait_for(self, condition: Callable[[], bool], what: str, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        while not condition():
            assert self.process.running, f"ended before {what}\n{self.process.tail()}"
            assert time.monotonic() < deadline, f"not {what} in {timeout} s\n{self.process.tail()}"
            time.sleep(0.05)

    def _closed(self) -> Closed:
        closed = [event for event in self.events() if isinstance(event, Closed)]
        assert closed, self.process.tail()
        return closed[-1]


@dataclass(frozen=True, kw_only=True)
class StreamsApp:
    """How to start the application; each start makes a Run with files of its own."""

    bootstrap: str
    application: str
    topic: str
    state_dir: Path
    work_dir: Path
    version: str = BROKER_VERSION
    guarantee: Literal["at_least_once", "exactly_once_v2"] = "at_least_once"
    stores: tuple[str, ...] = ALL_STORES
    keys: int = 100
    memtable: int | None = None
    config: Mapping[str, str] = field(default_factory=dict)
    java_options: tuple[str, ...] = SHORT_LIVED
    dumps: bool = True
    runs: list[Run] = field(default_factory=list)

    @property
    def directory(self) -> Path:
        """Where its tasks are: STATE_DIR/APPLICATION."""
        return self.state_dir / self.application

    def changelog(self, store: str) -> str:
        return f"{self.application}-{store}-changelog"

    def start(self, until: Until = "forever") -> Run:
        directory = self.work_dir / f"run-{len(self.runs)}"
        directory.mkdir(parents=True)
        run = Run(self._command(until), directory, dumps=self.dumps)
        self.runs.append(run)
        return run

    def run(self, until: Until = "caughtUp") -> Run:
        """Start, let it end by itself and close cleanly."""
        run = self.start(until)
        run.wait()
        return run

    def _command(self, until: Until) -> list[str]:
        values: dict[str, object] = {
            "bootstrap": self.bootstrap,
            "appId": self.application,
            "topic": self.topic,
            "stateDir": self.state_dir,
            "guarantee": self.guarantee,
            "stores": ",".join(self.stores),
            "keys": self.keys,
            "until": until,
        }
        if self.memtable is not None:
            values["memtable"] = self.memtable
        values |= self.config
        arguments = [f"{name}={value}" for name, value in values.items()]
        return java(
            self.version, "FixtureApplication", "run", *arguments, options=self.java_options
        )
