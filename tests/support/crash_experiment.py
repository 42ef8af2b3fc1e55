"""Kill a real application under load, and see what its next start makes of its directory.

The recipe under which window and session stores lose rows: an event time that spreads over two or
three live segments, memtables that are flushed often, and SIGKILL while the load goes on.
"""

import dataclasses
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from tests.support.streams_app import Run, StreamsApp
from tests.support.streams_input import InputShape, hours_ago
from tests.support.streams_lab import StreamsLab
from tests.support.streams_progress import wait_for_records

Order = Literal["inorder", "late"]
Kind = Literal["at_least_once", "transactional", "exactly_once"]

STORES = ("window", "session")
_DAY_MS = 24 * 3600 * 1000
_RETENTION_MS = 30 * _DAY_MS


@dataclass(frozen=True, kw_only=True)
class Difference:
    """How the rows of one store differ from those of a rebuild."""

    missing: int = 0
    stale: int = 0
    extra: int = 0

    def __bool__(self) -> bool:
        return bool(self.missing or self.stale or self.extra)


@dataclass(frozen=True, kw_only=True)
class Crash:
    """One experiment: how the application is run, and for how long before it is killed."""

    version: str
    kind: Kind
    order: Order
    stores: tuple[str, ...] = STORES
    seconds: float = 7
    memtable: int | None = 65536
    keys: int = 3000
    rate: int = 4000
    seed: int = 1

    @property
    def shape(self) -> InputShape:
        late = self.order == "late"
        # So that the event time spreads over two or three segments however much is written, and
        # at whatever time of the day: each segment is a day.
        stretch = 40_000 / (self.rate * (self.seconds + 3))
        return InputShape(
            records=50_000_000,
            keys=self.keys,
            rate=self.rate,
            seed=self.seed,
            start_ts=hours_ago(25) if late else _before_a_midnight(),
            step_ms=max(1, round((900 if late else 1800) * stretch)),
            jitter_ms=20 * 3600 * 1000 if late else 0,
        )

    def app(self, lab: StreamsLab, topic: str) -> StreamsApp:
        config = {"windowstore.changelog.additional.retention.ms": str(_RETENTION_MS)}
        if self.kind == "transactional":
            config["enable.transactional.statestores"] = "true"
        return lab.app(
            topic,
            version=self.version,
            guarantee="at_least_once" if self.kind == "at_least_once" else "exactly_once_v2",
            stores=self.stores,
            keys=self.keys,
            memtable=self.memtable,
            config=config,
        )


@dataclass(kw_only=True)
class Outcome:
    """What the starts made of the crashed directory, against a rebuild from the same changelogs."""

    as_it_is: Mapping[str, Difference]
    mended: Mapping[str, Difference]
    rows: Mapping[str, int]
    notes: list[str] = field(default_factory=list)

    @property
    def lost(self) -> int:
        return sum(each.missing for each in self.as_it_is.values())


def _before_a_midnight() -> int:
    """Seven hours before the midnight (UTC) that was 24 to 48 hours ago, in ms."""
    return hours_ago(0) // _DAY_MS * _DAY_MS - _DAY_MS - 7 * 3600 * 1000


Mend = Callable[[StreamsApp], None]
"""Makes the application's directory ready for its next start."""


def crash_twice(lab: StreamsLab, crash: Crash, mend: Mend) -> Outcome:
    """Kill, mend, start, kill two seconds after RUNNING, mend, start; and start a copy unmended.

    The copy is of the first crash. All is compared where the input has been consumed and nothing
    more comes, so every directory must hold what the changelogs hold.
    """
    topic = lab.new_topic()
    load = lab.load(topic, crash.shape)
    app = crash.app(lab, topic)
    kill_under_load(app, crash.seconds, round(crash.rate * crash.seconds / 4))
    copied = copy_of(app, "as-it-is")

    mend(app)
    kill_under_load(app, 2)
    load.stop()
    mend(app)
    mended = app.run("caughtUp")

    rebuilt = started_anew(app)
    as_it_is = copied.run("running")
    return Outcome(
        as_it_is=differences(as_it_is, rebuilt, crash.stores),
        mended=differences(mended, rebuilt, crash.stores),
        rows={store: len(rebuilt.dump().get(store, {})) for store in crash.stores},
    )


def kill_under_load(app: StreamsApp, seconds: float, records: int = 0) -> Run:
    """Start, and kill so long after RUNNING, and once so many records of a partition are in."""
    run = app.start()
    run.wait_for_state("RUNNING")
    time.sleep(seconds)
    wait_for_records(app, app.stores[0], records)
    run.crash()
    return run


def copy_of(app: StreamsApp, name: str) -> StreamsApp:
    """The same application on a copy of its directory."""
    home = app.work_dir.parent / name
    shutil.copytree(app.state_dir, home / "state")
    return dataclasses.replace(app, state_dir=home / "state", work_dir=home / "runs", runs=app.runs)


def started_anew(app: StreamsApp) -> Run:
    """Rebuild all stores from their changelogs alone; no input is left."""
    home = app.work_dir.parent / f"rebuilt-{len(app.runs)}"
    return dataclasses.replace(app, state_dir=home / "state", runs=app.runs).run("running")


def differences(run: Run, rebuilt: Run, stores: tuple[str, ...]) -> Mapping[str, Difference]:
    """Compare the dumps of two runs, store by store."""
    found, expected = run.dump(), rebuilt.dump()
    return {store: _difference(found.get(store, {}), expected.get(store, {})) for store in stores}


def _difference(found: Mapping[str, str], expected: Mapping[str, str]) -> Difference:
    return Difference(
        missing=len(expected.keys() - found.keys()),
        stale=sum(1 for key in expected.keys() & found.keys() if expected[key] != found[key]),
        extra=len(found.keys() - expected.keys()),
    )
