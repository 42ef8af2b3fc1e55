"""Against Kafka Streams itself: the rate at which records of a changelog get into a store."""

import json
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.changelogs import Start, application, start, store_folder, write_changelog
from benchmarks.entries import entries_digest
from benchmarks.lab import Lab
from benchmarks.measure import Cost
from benchmarks.rows import Row, Table
from tests.support.jars import missing_tools
from tests.support.streams_app import StreamsApp

_ONE = "replay, one partition"
_TWO = "replay, two partitions in two processes"
_LIMITS = {_ONE: 1.0, _TWO: 1.5}
_PEER = "Kafka Streams' restoration"
_ITSELF = "records/s from the first to the last"
_WHOLE = "records/s, whole program"
_PARTITIONS = 2


class _Replay(msgspec.Struct, frozen=True, kw_only=True):
    """One run: ``rate`` is what the programs themselves say, ``whole_rate`` has their start too.

    Of two programs the records of both count, over the longer of their times.
    """

    rate: float
    whole_rate: float
    cost: Cost


def measure_replay(lab: Lab) -> tuple[list[Row], list[Table]]:
    """Records a second into stores that have almost none of them yet."""
    if missing_tools():
        return replay_unmeasured(f"missing: {', '.join(missing_tools())}"), []
    records = lab.sizes.replay_records
    theirs: list[Start] = []
    ours: dict[str, list[_Replay]] = {_ONE: [], _TWO: []}
    with application(lab, partitions=_PARTITIONS) as app:
        replays = _Replays(lab, app)
        for partition in range(_PARTITIONS):
            write_changelog(app, partition, records=records, keys=records, seed=partition)

        def restoration() -> None:
            shutil.rmtree(app.state_dir)
            theirs.append(start(app))

        contenders: list[Callable[[], None]] = [
            restoration,
            lambda: ours[_ONE].append(replays.run(["0_0"])),
            lambda: ours[_TWO].append(replays.run(["0_0", "0_1"])),
        ]
        for number in range(min(lab.turns, 3)):
            first = number % len(contenders)
            for contender in contenders[first:] + contenders[:first]:
                contender()
        replays.require_equal()
    return _told(records, theirs, ours)


def replay_unmeasured(why: str) -> list[Row]:
    """Return the targets with the reason why nothing was measured."""
    return [_row(work, figure, None, why) for work in _LIMITS for figure in (_ITSELF, _WHOLE)]


class _Replays:
    """Brings restored copies of an early snapshot forward, each by a program of its own."""

    def __init__(self, lab: Lab, app: StreamsApp) -> None:
        """Take the snapshot: with Kafka, so that the replay can prove where it goes on."""
        self._lab = lab
        self._app = app
        self._env = {**lab.local_environment(), "SNAPSTORE_KAFKA_BOOTSTRAP": app.bootstrap}
        self._program = lab.tools.paths["snapstore"]
        self._place: list[str | Path] = ["-r", lab.folder("early")]
        lab.quietly(self._env, self._program, "init", "-q", *self._place)
        lab.quietly(
            self._env, self._program, "snapshot", "-q", *self._place, "--state-dir", app.state_dir
        )

    def run(self, tasks: Sequence[str]) -> _Replay:
        folders = [self._restored(task) for task in tasks]
        commands: list[list[str | Path]] = [
            [self._program, "replay", "--json", folder] for folder in folders
        ]
        began = time.perf_counter()
        others = [_started(command, self._env) for command in commands[1:]]
        cost = self._lab.run(self._env, commands[0])
        documents = [_document((self._lab.work / "last.log").read_text())]
        documents += [_document(_output(other)) for other in others]
        seconds = time.perf_counter() - began
        records = sum(document["records"] for document in documents)
        itself = max(_partition(document)["seconds"] for document in documents)
        return _Replay(rate=records / itself, whole_rate=records / seconds, cost=cost)

    def require_equal(self) -> None:
        """Compare with what the application has; raises AssertionError where an entry differs."""
        shutil.rmtree(self._app.state_dir)
        start(self._app)
        for partition in range(_PARTITIONS):
            folder = self._lab.work / f"replayed-0_{partition}"
            ours = entries_digest(store_folder(folder, self._app, partition))
            theirs = entries_digest(store_folder(self._app.state_dir, self._app, partition))
            if ours != theirs:
                raise AssertionError(f"partition {partition} differs: {ours}, {theirs}")

    def _restored(self, task: str) -> Path:
        folder = self._lab.folder(f"replayed-{task}")
        only = ["--application", self._app.application, "--task", task]
        command = ["restore", "-q", *self._place, *only, "--target", folder]
        self._lab.quietly(self._env, self._program, *command)
        return folder


def _started(command: Sequence[str | Path], env: Mapping[str, str]) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [str(word) for word in command],
        env=dict(env),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _output(program: "subprocess.Popen[str]") -> str:
    output, errors = program.communicate()
    if program.returncode:
        raise AssertionError(errors)
    return output


def _document(output: str) -> Any:
    return json.loads(output[output.index('{"kind"') :].splitlines()[0])


def _partition(document: Any) -> Any:
    (store,) = document["items"]
    (partition,) = store["partitions"]
    return partition


def _told(
    records: int, theirs: Sequence[Start], ours: Mapping[str, Sequence[_Replay]]
) -> tuple[list[Row], list[Table]]:
    base = statistics.median(each.records_per_second for each in theirs)
    whole_base = statistics.median(each.records / each.seconds for each in theirs)
    rows = []
    for work, runs in ours.items():
        rate = statistics.median(each.rate for each in runs)
        whole = statistics.median(each.whole_rate for each in runs)
        rows += [
            _row(work, _ITSELF, rate / base, f"{rate:,.0f}/s against {base:,.0f}/s"),
            _row(work, _WHOLE, whole / whole_base, f"{whole:,.0f}/s against {whole_base:,.0f}/s"),
        ]
    table = Table(
        title=f"Replay of {records:,} records a partition",
        costs={
            "snapstore replay, one partition": [each.cost for each in ours[_ONE]],
            "snapstore replay, one of two": [each.cost for each in ours[_TWO]],
        },
        notes=(
            "Kafka Streams restores both partitions in one thread; its whole program is its start "
            "until RUNNING. All entries of the replayed stores were compared with its own.",
        ),
    )
    return rows, [table]


def _row(work: str, figure: str, measured: float | None, note: str) -> Row:
    return Row(
        work=work,
        against=_PEER,
        figure=figure,
        limit=_LIMITS[work],
        measured=measured,
        wanted="at least",
        note=note,
    )
