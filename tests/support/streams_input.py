"""Input for the fixture application, generated from a seed, at once or as a load that goes on."""

import time
from dataclasses import dataclass
from pathlib import Path

from tests.support.jars import BROKER_VERSION, java
from tests.support.processes import ChildProcess
from tests.support.streams_report import Generated, read_events


@dataclass(frozen=True, kw_only=True)
class InputShape:
    """What to write to the input topic. `start_ts` None means an hour ago."""

    records: int = 1000
    keys: int = 100
    partitions: int = 2
    value_size: int = 50
    delete_pct: int = 5
    seed: int = 1
    start_ts: int | None = None
    step_ms: int = 10
    jitter_ms: int = 0
    rate: int = 0

    def arguments(self) -> list[str]:
        values = {
            "records": self.records,
            "keys": self.keys,
            "partitions": self.partitions,
            "valueSize": self.value_size,
            "deletePct": self.delete_pct,
            "seed": self.seed,
            "stepMs": self.step_ms,
            "jitterMs": self.jitter_ms,
            "rate": self.rate,
        }
        if self.start_ts is not None:
            values["startTs"] = self.start_ts
        return [f"{name}={value}" for name, value in values.items()]


class Load:
    """A generator at work; `stop` ends it early, `wait` lets it write all its records."""

    def __init__(self, bootstrap: str, topic: str, shape: InputShape, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._stop_file = directory / "stop"
        target = [f"bootstrap={bootstrap}", f"topic={topic}", f"stopFile={self._stop_file}"]
        command = java(BROKER_VERSION, "FixtureApplication", "gen", *target, *shape.arguments())
        self.process = ChildProcess(command, directory / "output")

    def stop(self) -> Generated:
        self._stop_file.touch()
        return self.wait()

    def wait(self, timeout: float = 400) -> Generated:
        code = self.process.wait(timeout)
        done = [e for e in read_events(self.process.log) if isinstance(e, Generated)]
        assert code == 0, self.process.tail()
        assert done, self.process.tail()
        return done[-1]


def hours_ago(hours: float) -> int:
    """A record time: milliseconds since the epoch."""
    return int((time.time() - hours * 3600) * 1000)
