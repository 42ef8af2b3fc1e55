"""The main job: hot snapshots of a real application, its disk lost, and only the tail replayed.

One story a version is told once, and each test looks at another side of it.
"""

import dataclasses
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.broker import Broker
from tests.support.changelog_check import DAY_MS, HOUR_MS, VERSIONED
from tests.support.command import Command
from tests.support.moto import make_bucket
from tests.support.seaweedfs import ACCESS_KEY, SECRET_KEY
from tests.support.snapshot_answers import Place, Taken, resume_offsets
from tests.support.streams_app import Run, StreamsApp
from tests.support.streams_input import InputShape, Load
from tests.support.streams_lab import StreamsLab
from tests.support.streams_progress import wait_until_logged
from tests.support.streams_raw import Stores, data_of, noted_offsets, read_stores
from tests.support.topic import TopicRecord, read_partition
from tests.support.topic_history import History

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(1800)]

KEYS = 300
IN_TASKS = (
    "join-left-shared-join-store",
    "join-outer-other-join-store",
    "join-this-join-store",
    "plain",
    "session",
    "table",
    "versioned",
    "window",
)
ON_DISK = {(task, store) for task in ("0_0", "0_1") for store in IN_TASKS} | {
    ("1_0", "count"),
    ("1_1", "count"),
}
GLOBAL = ("global", "global")
JOIN_WINDOWS = ("join-outer-other-join-store", "join-this-join-store")
JOIN_RETENTION_MS = 3000  # a second before, a second after, and a second of grace
# To 4.2 a task that has not noted its first offsets looks like one under exactly-once.
WHY_REFUSED = {"4.4.0": {"unknown_offset"}, "4.2.1": {"unknown_offset", "exactly_once_hot"}}
QUERIED = {"plain", "table", "mem", "window", "session", "count", "global"}
MOST_RUNS = 60


@dataclass(frozen=True, kw_only=True)
class Story:
    """What was seen, in order: hot runs, the restore, two starts on it, and a rebuild."""

    app: StreamsApp
    runs: list[Taken]
    resume: dict[Place, int]
    restored: Stores
    first: Run
    after_crash: Stores
    second: Run
    at_end: Stores
    rebuilt: Run
    rebuilt_at_end: Stores
    lengths: dict[tuple[str, int], int]

    def topic(self, store: str) -> str:
        return f"{self.app.topic}-global" if store == "global" else self.app.changelog(store)


@pytest.fixture(scope="module", params=["4.4.0", "4.2.1"])
def story(
    broker: Broker, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Story]:
    folder = tmp_path_factory.mktemp("story")
    lab = StreamsLab(broker, folder / "lab")
    snapstore = _repository(folder, request)
    try:
        yield _tell(lab, snapstore, folder, request.param)
    finally:
        lab.close()


def _repository(folder: Path, request: pytest.FixtureRequest) -> Command:
    """A real S3 server for the one version, a folder for the other."""
    if request.param != "4.4.0":
        return Command(folder / "home", str(folder / "repository"))
    endpoint = request.getfixturevalue("seaweedfs_url")
    make_bucket(endpoint, "streams", access_key=ACCESS_KEY, secret=SECRET_KEY)
    return Command(
        folder / "home",
        "s3://streams/of/the/application",
        options={"endpoint_url": endpoint, "region": "us-east-1"},
        keys={"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY},
    )


def _tell(lab: StreamsLab, snapstore: Command, folder: Path, version: str) -> Story:
    topic = lab.new_topic()
    app = lab.app(topic, version=version, memtable=65536, keys=KEYS)
    snapstore("init")
    run, load = _begin(lab, app)
    runs = _take_all(snapstore, app)
    while True:
        time.sleep(2)
        runs.append(_take(snapstore, app))
        if runs[-1].new_bytes:
            break
        assert len(runs) < MOST_RUNS, "nothing new reaches the disk"
    load.stop()
    wait_until_logged(app)
    run.close()

    shutil.rmtree(app.state_dir)
    restore = ("restore", "--application", app.application, "--target", app.state_dir)
    answer = snapstore(*restore, "--allow-unchecked-changelog")
    restored = read_stores(app.directory, folder)

    # Whatever reaches the disk now was flushed on purpose: the memtables are of the usual size.
    first = dataclasses.replace(app, memtable=None, runs=app.runs).start()
    first.wait_ready()
    first.crash()
    after_crash = read_stores(app.directory, folder)
    second = app.run("running")
    at_end = read_stores(app.directory, folder)
    other = dataclasses.replace(app, state_dir=folder / "rebuilt", runs=app.runs)
    rebuilt = other.run("running")
    starts = {(one.topic, one.partition) for one in first.restore_starts()}
    return Story(
        app=app,
        runs=runs,
        resume=resume_offsets(answer.document),
        restored=restored,
        first=first,
        after_crash=after_crash,
        second=second,
        at_end=at_end,
        rebuilt=rebuilt,
        rebuilt_at_end=read_stores(other.directory, folder),
        lengths=_lengths(app.bootstrap, starts),
    )


def _lengths(bootstrap: str, partitions: set[tuple[str, int]]) -> dict[tuple[str, int], int]:
    """How many records there are in each; none is missing from its beginning on."""
    history = History(bootstrap)
    history.follow(partitions)
    try:
        return history.read()
    finally:
        history.close()


def _begin(lab: StreamsLab, app: StreamsApp) -> tuple[Run, Load]:
    """Fill one daily segment, then go on into the next, in order: ten milliseconds a record."""
    midnight = int((time.time() * 1000 - 3 * HOUR_MS) // DAY_MS * DAY_MS)
    shape = InputShape(records=4000, keys=KEYS, start_ts=midnight - 40_000)
    before = lab.fill(app.topic, shape)
    run = app.start()
    run.wait_ready()
    on = dataclasses.replace(shape, records=1_000_000, start_ts=before.next_ts, rate=1000, seed=2)
    return run, lab.load(app.topic, on)


def _take(snapstore: Command, app: StreamsApp) -> Taken:
    answer = snapstore("snapshot", "--state-dir", app.state_dir, expect=(0, 3, 5))
    return Taken.of(answer.document)


def _take_all(snapstore: Command, app: StreamsApp) -> list[Taken]:
    """Take snapshots until there is one of every store that is on disk, but for the global one."""
    runs: list[Taken] = []
    missing = set(ON_DISK)
    while missing:
        assert len(runs) < MOST_RUNS, f"still none of {sorted(missing)}: {runs[-1].refused}"
        time.sleep(1)
        runs.append(_take(snapstore, app))
        missing -= runs[-1].stored.keys()
    return runs


def _partition(task: str) -> int:
    return 0 if task == "global" else int(task[-1])


def test_a_store_is_taken_or_refused_because_its_offset_is_unknown(story: Story) -> None:
    for run in story.runs:
        assert run.stored.keys() | run.refused.keys() <= ON_DISK | {GLOBAL}
        assert set(run.refused.values()) <= WHY_REFUSED[story.app.version]
    # To 4.2 one file notes the offsets of a whole task, and flushing comes before it.
    assert story.runs[-1].stored.keys() | story.runs[-1].refused.keys() == ON_DISK | {GLOBAL}
    last = story.runs[-1].refused.keys()
    assert last <= {GLOBAL} | {place for place in ON_DISK if place[1] in JOIN_WINDOWS}
    assert last == ({GLOBAL} | last if story.app.version == "4.4.0" else set())


def test_the_second_snapshot_sends_only_what_is_new_and_never_goes_back(story: Story) -> None:
    assert story.runs[-1].new_bytes > 0
    assert story.runs[-1].reused_bytes > 0
    for before, after in zip(story.runs, story.runs[1:], strict=False):
        for place in before.stored.keys() & after.stored.keys():
            assert (after.stored[place] or 0) >= (before.stored[place] or 0), place


def test_the_newest_snapshot_of_every_store_is_restored(story: Story) -> None:
    newest: dict[Place, int | None] = {}
    for run in story.runs:
        newest |= run.stored
    assert newest.keys() == (ON_DISK if story.app.version == "4.4.0" else ON_DISK | {GLOBAL})
    assert story.resume == {place: (offset or 0) + 1 for place, offset in newest.items()}
    assert story.restored.keys() == newest.keys()


def test_the_application_reads_only_what_comes_after_the_recorded_offset(story: Story) -> None:
    starts = {(one.store, one.partition): one for one in story.first.restore_starts()}
    counts = story.first.restored()
    for (task, store), resume in story.resume.items():
        partition = _partition(task)
        start = starts[(store, partition)]
        assert (start.topic, start.start_offset) == (story.topic(store), resume)
        assert start.end_offset == story.lengths[(start.topic, partition)]
        assert counts[(store, partition)] == start.end_offset - resume
    tailed = {(store, _partition(task)) for task, store in story.resume}
    whole = starts.keys() - tailed
    assert whole == {("mem", 0), ("mem", 1), ("global", 0)} - tailed
    assert all(starts[one].start_offset == 0 for one in whole)


def test_every_query_is_answered_as_by_an_instance_that_rebuilt_from_scratch(
    story: Story,
) -> None:
    """But for the versioned store, which shows its history only where a record has come in."""
    wanted = story.rebuilt.dump()
    assert wanted.keys() >= QUERIED
    for run in (story.first, story.second):
        found = run.dump()
        for store in QUERIED:
            assert found[store] == wanted[store], store


def test_the_entries_of_every_store_are_those_of_a_rebuild(story: Story) -> None:
    assert story.at_end.keys() == story.rebuilt_at_end.keys()
    for place, databases in story.rebuilt_at_end.items():
        held, wanted = data_of(story.at_end[place]), data_of(databases)
        assert wanted, place
        different = {key for key in held.keys() | wanted.keys() if held.get(key) != wanted.get(key)}
        if place[1] == "versioned":
            different = {key for key in different if key[8:] not in _applied_twice(story, place)}
        if place[1] in JOIN_WINDOWS:
            different &= _alive(held.keys() | wanted.keys())
        assert not different, (place, len(different))


def _alive(keys: set[bytes]) -> set[bytes]:
    """The rows that a join can still meet.

    A segment that has expired goes when the next one is made, and where that falls in a restore
    depends on its batches: two restores of one log may keep different expired rows.
    """
    times = {key: int.from_bytes(key[-12:-4], "big") for key in keys}
    newest = max(times.values(), default=0)
    return {key for key, time_ms in times.items() if time_ms > newest - JOIN_RETENTION_MS}


def _applied_twice(story: Story, place: Place) -> set[bytes]:
    """The keys of records that are in the files and come after their offset.

    A versioned store that is opened does not see the older versions in its files until a record
    has touched their segment (LogicalKeyValueSegments). The first record that is applied a second
    time is put as if there were none: their list gets it twice, and begins with it.
    """
    held = VERSIONED.content(data_of(story.restored[place]))
    topic = story.app.changelog("versioned")
    tail = read_partition(
        story.app.bootstrap, topic, _partition(place[0]), start=story.resume[place]
    )
    return {_key(record) for record in tail if VERSIONED.entry(record)[0] in held}


def _key(record: TopicRecord) -> bytes:
    assert record.key is not None
    return record.key


def test_a_crash_right_after_the_start_brings_no_other_offset_back(story: Story) -> None:
    starts = {(one.store, one.partition): one for one in story.second.restore_starts()}
    for (task, store), resume in story.resume.items():
        topic, partition = story.topic(store), _partition(task)
        noted = noted_offsets(story.app.directory, story.restored[(task, store)], task)
        start = starts[(store, partition)].start_offset
        if story.app.version == "4.4.0" and store not in JOIN_WINDOWS:
            after = noted_offsets(story.app.directory, story.after_crash[(task, store)], task)
            assert [one[(topic, partition)] for one in noted] == [resume - 1] * len(noted)
            assert after == noted
            assert start == resume
        else:
            # To 4.2 the application flushes and notes new offsets as soon as it has restored; and
            # the segments of the join windows have expired, and are removed, while it restores.
            assert start >= resume
