"""Against Kafka Streams itself: a lost disk, and the rate at which records are applied."""

import json
import shutil
import statistics
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.lab import BUCKET, Lab
from benchmarks.measure import Cost
from benchmarks.rows import Row, Table
from tests.support.broker import Broker
from tests.support.jars import LONG_LIVED, missing_tools
from tests.support.streams_app import Run, StreamsApp
from tests.support.streams_input import InputShape
from tests.support.streams_lab import StreamsLab
from tests.support.streams_progress import wait_until_logged
from tests.support.streams_report import RestoreEnd

_LOST_DISK = "a lost disk: restore from S3 and start until RUNNING, tail 1 %"
_REBUILD = "Kafka Streams' own rebuild until RUNNING"
_REPLAYS = (("replay, one partition", 1.0), ("replay, two partitions in two processes", 1.5))
_RESTORATION = "Kafka Streams' restoration"
_STORE = "plain"
_PATIENCE_S = 600
_SETTINGS = {"session.timeout.ms": "6000", "heartbeat.interval.ms": "1500"}


def measure_lost_disk(lab: Lab) -> tuple[list[Row], list[Table]]:
    """From an empty disk until RUNNING: everything from the changelog, or a snapshot and a tail."""
    if missing_tools():
        return lost_disk_unmeasured(_missing()), []
    records = lab.sizes.lost_disk_records
    turns = min(lab.turns, 3)
    with (
        _application(lab, records, value_size=1000, partitions=1) as (streams, app),
        lab.server() as server,
    ):
        env = {**server, "SNAPSTORE_KAFKA_BOOTSTRAP": app.bootstrap}
        snapstore = lab.tools.paths["snapstore"]
        place: list[str | Path] = ["-r", f"s3://{BUCKET}/streams"]
        state: list[str | Path] = ["--state-dir", app.state_dir]
        lab.quietly(env, snapstore, "init", "-q", *place)
        lab.quietly(env, snapstore, "snapshot", "-q", *place, *state)
        store_bytes = _bytes_below(app.directory)
        _advance(streams, app, InputShape(records=records // 100, seed=2, **_SHAPE_1000))
        rebuilds, restores, starts = [], [], []
        for _ in range(turns):
            shutil.rmtree(app.directory)
            rebuilds.append(_seconds_until_running(app))
            shutil.rmtree(app.directory)
            restored = lab.run(
                    env,
                    [
                        snapstore, "restore", "-q", *place, "--application", app.application,
                        "--target", app.state_dir,
                    ],
                )  # fmt: skip
            restores.append(restored)
            starts.append(_seconds_until_running(app))
    ours = [cost.wall_s + start for cost, start in zip(restores, starts, strict=True)]
    measured = statistics.median(rebuilds) / statistics.median(ours)
    note = (
        f"rebuild {statistics.median(rebuilds):.1f} s; restore "
        f"{statistics.median(cost.wall_s for cost in restores):.1f} s and start "
        f"{statistics.median(starts):.1f} s; {store_bytes / 1e9:.2f} GB of store, "
        f"{records} records of 1 kB in the changelog"
    )
    row = Row(
        work=_LOST_DISK,
        against=_REBUILD,
        figure="times quicker",
        limit=10.0,
        measured=measured,
        wanted="at least",
        note=note,
    )
    return [row], [Table(title="A lost disk: the restore alone", costs={"snapstore": restores})]


def measure_replay(lab: Lab) -> tuple[list[Row], list[Table]]:
    """Records a second into a store that has almost none of them yet."""
    if missing_tools():
        return replay_unmeasured(_missing()), []
    records = lab.sizes.replay_records
    turns = min(lab.turns, 3)
    first = InputShape(records=2000, seed=2, partitions=2, **_SHAPE_100)
    theirs: list[float] = []
    one: list[float] = []
    two: list[float] = []
    costs: list[Cost] = []
    with _application(lab, 2000, value_size=100, partitions=2) as (streams, app):
        early = lab.folder("early")
        shutil.copytree(app.state_dir, early, dirs_exist_ok=True)
        _advance(streams, app, replace(first, records=records, seed=3))
        env = {**lab.local_environment(), "SNAPSTORE_KAFKA_BOOTSTRAP": app.bootstrap}
        for _ in range(turns):
            shutil.rmtree(app.state_dir)
            shutil.copytree(early, app.state_dir)
            theirs.append(_restoration_rate(app))
            rates, cost = _replay(lab, env, early, ["0_0"])
            one.append(rates)
            costs.append(cost)
            two.append(_replay(lab, env, early, ["0_0", "0_1"])[0])
    base = statistics.median(theirs)
    rows = [
        Row(
            work=work,
            against=_RESTORATION,
            figure="records/s",
            limit=limit,
            measured=statistics.median(rates) / base,
            wanted="at least",
            note=f"{statistics.median(rates):,.0f}/s, whole program, against {base:,.0f}/s",
        )
        for work, limit, rates in ((*_REPLAYS[0], one), (*_REPLAYS[1], two))
    ]
    return rows, [Table(title="Replay of one partition", costs={"snapstore": costs})]


_SHAPE_1000 = {"partitions": 1, "keys": 1_000_000, "value_size": 1000, "delete_pct": 0}
_SHAPE_100 = {"keys": 1_000_000, "value_size": 100, "delete_pct": 0}


@contextmanager
def _application(
    lab: Lab, records: int, *, value_size: int, partitions: int
) -> Iterator[tuple[StreamsLab, StreamsApp]]:
    """Run a broker; yield an application that has taken so many records and was closed."""
    folder = lab.folder("streams")
    with ExitStack() as stack:
        broker = stack.enter_context(Broker(folder / "broker"))
        streams = stack.enter_context(closing(StreamsLab(broker, folder / "lab")))
        app = streams.app(
            streams.new_topic(),
            stores=(_STORE,),
            config=_SETTINGS,
            java_options=LONG_LIVED,
        )
        shape = InputShape(
            records=records,
            partitions=partitions,
            keys=1_000_000,
            value_size=value_size,
            delete_pct=0,
        )
        _advance(streams, app, shape)
        yield streams, app
    shutil.rmtree(folder)


def _advance(streams: StreamsLab, app: StreamsApp, shape: InputShape) -> None:
    """Write the records, and let the application take them all and close."""
    streams.load(app.topic, shape).wait(_PATIENCE_S)
    run = app.start("forever")
    run.wait_for_state("RUNNING", _PATIENCE_S)
    wait_until_logged(app, _PATIENCE_S)
    run.close()


def _seconds_until_running(app: StreamsApp) -> float:
    began = time.monotonic()
    run = app.start("forever")
    run.wait_for_state("RUNNING", _PATIENCE_S)
    seconds = time.monotonic() - began
    run.close()
    return seconds


def _restoration_rate(app: StreamsApp) -> float:
    """Let the application restore its first partition; records a second while it did."""
    run = app.start("forever")
    run.wait_for_state("RUNNING", _PATIENCE_S)
    run.close()
    ends = _restore_ends(run)
    records = sum(end.restored for end in ends)
    # One thread restores both partitions side by side, so each takes about the whole time.
    return records / (max(end.ms for end in ends) / 1000)


def _restore_ends(run: Run) -> list[RestoreEnd]:
    ends = [event for event in run.events() if isinstance(event, RestoreEnd) and event.restored]
    assert ends, "the application restored nothing"
    return ends


def _replay(lab: Lab, env: Mapping[str, str], early: Path, tasks: list[str]) -> tuple[float, Cost]:
    """Replay each task in a process and a state directory of its own, all at once."""
    folders = []
    for task in tasks:
        folder = lab.folder(f"replayed-{task}")
        shutil.copytree(early, folder, dirs_exist_ok=True)
        folders.append(folder)
    program = lab.tools.paths["snapstore"]
    commands: list[list[str | Path]] = [
        [program, "replay", "--json", folder, "--task", task]
        for folder, task in zip(folders, tasks, strict=True)
    ]
    began = time.perf_counter()
    others = [
        subprocess.Popen(
            [str(word) for word in command],
            env=dict(env),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for command in commands[1:]
    ]
    cost = lab.run(env, commands[0])
    documents = [_document((lab.work / "last.log").read_text())]
    for other in others:
        output, errors = other.communicate()
        if other.returncode:
            raise AssertionError(errors.decode())
        documents.append(_document(output.decode()))
    seconds = time.perf_counter() - began
    records = sum(document["records"] for document in documents)
    for folder in folders:
        shutil.rmtree(folder)
    return records / seconds, cost


def _document(output: str) -> Any:
    return json.loads(output[output.index('{"kind"') :].splitlines()[0])


def _bytes_below(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def lost_disk_unmeasured(why: str) -> list[Row]:
    """Return the target with the reason why nothing was measured."""
    return [_unmeasured(_LOST_DISK, _REBUILD, 10.0, why)]


def replay_unmeasured(why: str) -> list[Row]:
    """Return the targets with the reason why nothing was measured."""
    return [_unmeasured(work, _RESTORATION, limit, why) for work, limit in _REPLAYS]


def _missing() -> str:
    return f"missing: {', '.join(missing_tools())}"


def _unmeasured(work: str, against: str, limit: float, why: str) -> Row:
    return Row(
        work=work,
        against=against,
        figure="times",
        limit=limit,
        measured=None,
        wanted="at least",
        note=why,
    )
