"""What Kafka Streams does with a store at its next start, row by row."""

from pathlib import Path

import msgspec
import pytest

from snapstore.errors import ConfigError
from snapstore.model.conditions import conditions_of, reader_of
from snapstore.model.identity import ChangelogPartition, StoreId
from snapstore.model.judge import judge_task
from snapstore.model.state_facts import (
    Damage,
    DatabaseFacts,
    NotedOffsets,
    OrphanLine,
    StoreFacts,
    TaskFacts,
)
from snapstore.model.store import StoreLocation
from snapstore.model.verdict import (
    Bounds,
    Conditions,
    Guarantee,
    LogBounds,
    Reader,
    Verdict,
    worst_kind,
)

TOPIC = ChangelogPartition("orders-window-changelog", 0)
TASK_DIR = Path("/state/orders/0_0")


def segment(start: int, offset: int | str | None, status: str | None = "open") -> DatabaseFacts:
    """A segment that notes an offset, -4 (None), or none at all ("none")."""
    return DatabaseFacts(
        name=f"window/window.{start}",
        keeps_offsets=True,
        offsets={} if isinstance(offset, str) else {TOPIC: offset},
        status=status,  # type: ignore[arg-type]
    )


def store(
    *databases: DatabaseFacts,
    lines: NotedOffsets | None = None,
    name: str = "window",
    known: bool = True,
    foreign: tuple[ChangelogPartition, ...] = (),
    damage: tuple[Damage, ...] = (),
) -> StoreFacts:
    """A store with its databases, the newest first."""
    return StoreFacts(
        location=StoreLocation(
            store=StoreId("orders", "0_0", name),
            layout="kafka-streams",
            backend="rocksdb",
            store_type="segmented",
            generation="kafka-streams-4.3",
            task_dir=TASK_DIR,
            root=name,
        ),
        databases=databases,
        changelogs=(TOPIC,) if known else (),
        presumed=TOPIC,
        lines=lines or {},
        foreign=foreign,
        damage=damage,
    )


def task(*stores: StoreFacts, **facts: object) -> TaskFacts:
    made = TaskFacts(application="orders", task="0_0", task_dir=TASK_DIR, stores=stores)
    return msgspec.structs.replace(made, **facts)


def judge(
    facts: TaskFacts,
    reader: Reader = "newest",
    guarantee: Guarantee = "at_least_once",
    bounds: Bounds | None = None,
) -> Verdict:
    """The verdict on the first store."""
    conditions = Conditions(readers=(reader,), guarantees=(guarantee,))
    return judge_task(facts, conditions, bounds or {})[0]


def log(start: int, end: int, **more: object) -> Bounds:
    made = LogBounds(start=start, end=end, high_watermark=end)
    return {TOPIC: msgspec.structs.replace(made, **more)}


OLD = (DatabaseFacts(name="window/window.0"),)
UNEVEN = (segment(2000, 90), segment(1000, 40))

ROWS: dict[str, tuple[TaskFacts, Reader, Guarantee, Bounds, str, str | None]] = {
    "segments at one offset lose nothing": (
        task(store(segment(2000, 90), segment(1000, 90))),
        "newest",
        "at_least_once",
        {},
        "replays",
        None,
    ),
    "an older segment that is behind loses rows from 4.3.1 on": (
        task(store(*UNEVEN)),
        "newest",
        "at_least_once",
        {},
        "loses_rows",
        "uneven",
    ),
    "4.3.0 goes by the oldest segment and loses none there": (
        task(store(*UNEVEN)),
        "oldest",
        "at_least_once",
        {},
        "replays",
        None,
    ),
    "4.3.0 loses rows where the oldest segment is ahead": (
        task(store(segment(2000, 40), segment(1000, 90))),
        "oldest",
        "at_least_once",
        {},
        "loses_rows",
        "uneven",
    ),
    "4.3.1 goes by the newest segment where that is the least": (
        task(store(segment(2000, 40), segment(1000, 90))),
        "newest",
        "at_least_once",
        {},
        "replays",
        None,
    ),
    "transactional stores have the same hole": (
        task(store(segment(2000, 90, None), segment(1000, 40, None))),
        "newest",
        "transactional",
        {},
        "loses_rows",
        "uneven",
    ),
    "a segment that was never flushed loses rows": (
        task(store(segment(2000, "none"), segment(1000, 40))),
        "newest",
        "at_least_once",
        {},
        "loses_rows",
        "unflushed",
    ),
    "an older segment noted as unknown loses rows": (
        task(store(segment(2000, 90), segment(1000, None))),
        "newest",
        "at_least_once",
        {},
        "loses_rows",
        "unflushed",
    ),
    "a newest segment noted as unknown makes all be replayed": (
        task(store(segment(2000, None), segment(1000, 40))),
        "newest",
        "at_least_once",
        {},
        "replays",
        None,
    ),
    "no segment notes an offset: all is replayed": (
        task(store(segment(2000, "none"), segment(1000, "none"))),
        "newest",
        "at_least_once",
        {},
        "replays",
        None,
    ),
    "a crash under exactly-once is wiped": (
        task(store(*UNEVEN)),
        "newest",
        "exactly_once",
        {},
        "wipes",
        None,
    ),
    "exactly-once without an offset is wiped": (
        task(store(segment(2000, "none", "closed"), segment(1000, "none", None))),
        "newest",
        "exactly_once",
        {},
        "wipes",
        None,
    ),
    "transactional without an offset is replayed, not wiped": (
        task(store(segment(2000, "none", None))),
        "newest",
        "transactional",
        {},
        "replays",
        None,
    ),
    "closed at one offset is clean": (
        task(store(segment(2000, 90, "closed"), segment(1000, 90, "closed"))),
        "newest",
        "exactly_once",
        {},
        "clean",
        None,
    ),
    "closed, but the log went on": (
        task(store(segment(2000, 90, "closed"))),
        "newest",
        "at_least_once",
        log(0, 191),
        "replays",
        None,
    ),
    "nothing is left to replay": (
        task(store(segment(2000, 90))),
        "newest",
        "at_least_once",
        log(0, 91),
        "clean",
        None,
    ),
    "only a transaction marker is left": (
        task(store(segment(2000, 90, None))),
        "newest",
        "transactional",
        log(0, 92),
        "clean",
        None,
    ),
    "an offset beyond the log's end": (
        task(store(segment(2000, 90, "closed"))),
        "newest",
        "exactly_once",
        log(0, 90),
        "loses_rows",
        "beyond_end",
    ),
    "the changelog is gone": (
        task(store(segment(2000, 90, "closed"))),
        "newest",
        "at_least_once",
        {TOPIC: None},
        "loses_rows",
        "topic_gone",
    ),
    "the changelog was created again": (
        task(store(segment(2000, 90, "closed"))),
        "newest",
        "at_least_once",
        log(0, 500, replaced_by="another"),
        "loses_rows",
        "topic_recreated",
    ),
    "the log's start has passed the offset, and at-least-once keeps the files": (
        task(store(segment(2000, 90))),
        "newest",
        "at_least_once",
        log(100, 500),
        "loses_rows",
        "below_start",
    ),
    "the log's start has passed the offset": (
        task(store(segment(2000, 90, status="closed"))),
        "newest",
        "transactional",
        log(100, 500),
        "wipes",
        "below_start",
    ),
    "to 4.2 the line counts, whatever the files hold": (
        task(store(*OLD, lines={TOPIC: 50})),
        "checkpoint",
        "at_least_once",
        {},
        "replays",
        None,
    ),
    "to 4.2 a line of -4 makes all be replayed, even under exactly-once": (
        task(store(*OLD, lines={TOPIC: None})),
        "checkpoint",
        "exactly_once",
        {},
        "replays",
        None,
    ),
    "4.4 passes a line of -4 over and wipes under exactly-once": (
        task(store(*OLD, lines={TOPIC: None})),
        "newest",
        "exactly_once",
        {},
        "wipes",
        None,
    ),
    "to 4.2 no line under exactly-once is wiped": (
        task(store(*OLD, known=False)),
        "checkpoint",
        "exactly_once",
        {},
        "wipes",
        None,
    ),
    "to 4.2 no file under at-least-once is replayed whole": (
        task(store(*OLD, known=False)),
        "checkpoint",
        "at_least_once",
        {},
        "replays",
        None,
    ),
    "to 4.2 cannot open a directory of 4.3": (
        task(store(*UNEVEN)),
        "checkpoint",
        "at_least_once",
        {},
        "refuses",
        "version",
    ),
    "4.4 takes a directory of 4.2 over by its lines": (
        task(store(*OLD, lines={TOPIC: 50})),
        "newest",
        "exactly_once",
        {},
        "replays",
        None,
    ),
    "a line that is lower than every segment mends the hole": (
        task(store(*UNEVEN, lines={TOPIC: 40})),
        "newest",
        "at_least_once",
        {},
        "replays",
        None,
    ),
    "a line above a segment makes a hole": (
        task(store(segment(2000, 40), segment(1000, 40), lines={TOPIC: 60})),
        "newest",
        "at_least_once",
        {},
        "loses_rows",
        "uneven",
    ),
    "a take-over that was cut short keeps its line": (
        task(store(segment(2000, "none"), segment(1000, "none"), lines={TOPIC: 60})),
        "newest",
        "at_least_once",
        {},
        "replays",
        None,
    ),
    "a folder without a database, and a line": (
        task(store(DatabaseFacts(name="window/window.0", empty=True), lines={TOPIC: 60})),
        "newest",
        "at_least_once",
        {},
        "loses_rows",
        "no_files",
    ),
    "files of another task": (
        task(store(*OLD, known=False, foreign=(ChangelogPartition("orders-window-changelog", 1),))),
        "newest",
        "at_least_once",
        {},
        "loses_rows",
        "foreign",
    ),
    "a broken file": (
        task(store(*UNEVEN, damage=(Damage(file="window/window.1000/000012.sst", reason="gone"),))),
        "newest",
        "at_least_once",
        {},
        "damaged",
        "file",
    ),
    "an offset file that cannot be read": (
        task(store(*OLD), offset_file_fault=".checkpoint, line 1: not a version"),
        "checkpoint",
        "at_least_once",
        {},
        "damaged",
        "offset_file",
    ),
    "a store without a changelog, closed by 4.4": (
        task(store(segment(2000, "none", "closed"), known=False)),
        "newest",
        "at_least_once",
        {},
        "clean",
        None,
    ),
    "a store without a line beside others of 4.2": (
        task(store(*OLD, known=False), has_offset_file=True),
        "checkpoint",
        "at_least_once",
        {},
        "clean",
        None,
    ),
    "closed by 4.4 without an offset, and its changelog holds records": (
        task(store(segment(2000, "none", "closed"), known=False)),
        "newest",
        "at_least_once",
        log(0, 7),
        "replays",
        None,
    ),
    "closed at least once, and one record follows": (
        task(store(segment(2000, 90, "closed"))),
        "newest",
        "at_least_once",
        log(0, 92),
        "replays",
        None,
    ),
    "several topics could be meant": (
        task(msgspec.structs.replace(store(*OLD, known=False), candidates=("a", "b"))),
        "checkpoint",
        "at_least_once",
        {},
        "unknown",
        "topic",
    ),
}


@pytest.mark.parametrize("sentence", ROWS)
def test_verdict(sentence: str) -> None:
    facts, reader, guarantee, bounds, kind, cause = ROWS[sentence]
    verdict = judge(facts, reader, guarantee, bounds)
    assert (verdict.kind, verdict.cause) == (kind, cause), verdict.reason
    assert verdict.reason
    assert verdict.advice


@pytest.mark.parametrize("sentence", ROWS)
def test_there_is_nothing_to_do_only_for_a_store_that_starts_clean_or_empty(sentence: str) -> None:
    facts, reader, guarantee, bounds, _, _ = ROWS[sentence]
    verdict = judge(facts, reader, guarantee, bounds)
    assert (verdict.advice == "nothing to do") == (verdict.kind == "clean"), verdict.reason


def test_a_line_without_files_loses_all_that_it_skips() -> None:
    line = OrphanLine(
        store=StoreId("orders", "0_0", "gone"), changelog=TOPIC, offset=41, file=".checkpoint"
    )
    verdict = judge(task(orphans=(line,)))
    assert (verdict.kind, verdict.cause, verdict.skipped) == ("loses_rows", "no_files", 42)
    unknown = judge(task(orphans=(msgspec.structs.replace(line, offset=None),)))
    assert unknown.kind == "replays"


def test_the_hole_is_counted_and_the_resume_offset_is_the_applications() -> None:
    verdict = judge(task(store(*UNEVEN)))
    assert (verdict.resume_offset, verdict.skipped) == (91, 50)


def test_one_store_that_is_wiped_takes_its_whole_task_along() -> None:
    facts = task(
        store(segment(2000, 90, None), segment(1000, 40, None)),
        store(segment(2000, 90, "open"), name="other"),
    )
    conditions = Conditions(readers=("newest",), guarantees=("exactly_once",))
    assert [each.kind for each in judge_task(facts, conditions, {})] == ["wipes", "wipes"]


def test_of_several_conditions_the_worst_counts_and_is_named() -> None:
    facts = task(store(*UNEVEN))
    conditions = conditions_of([facts], guarantee="auto", version=None)
    assert conditions.readers == ("oldest", "newest")
    verdict = judge_task(facts, conditions, {})[0]
    assert verdict.kind == "loses_rows"
    assert verdict.assumed == "Kafka Streams 4.3.1 or newer"


@pytest.mark.parametrize(
    ("version", "reader"),
    [
        ("2.8.1", "checkpoint"),
        ("4.2.1", "checkpoint"),
        ("4.3.0", "oldest"),
        ("4.3", "newest"),
        ("4.3.1", "newest"),
        ("4.4.0", "newest"),
        ("4.4.0-SNAPSHOT", "newest"),
        ("5.0", "newest"),
    ],
)
def test_a_version_tells_where_offsets_are_looked_for(version: str, reader: Reader) -> None:
    assert reader_of(version) == reader


def test_a_text_that_is_no_version_is_refused() -> None:
    with pytest.raises(ConfigError, match="not a version"):
        reader_of("latest")


GUARANTEE_ROWS: dict[str, tuple[TaskFacts, str, tuple[Guarantee, ...]]] = {
    "offsets of open databases are at-least-once": (
        task(store(segment(2000, 90))),
        "auto",
        ("at_least_once",),
    ),
    "offsets without a status are transactional": (
        task(store(segment(2000, 90, None))),
        "auto",
        ("transactional",),
    ),
    "lines of -4 only are exactly-once": (
        task(store(*OLD, lines={TOPIC: None})),
        "auto",
        ("exactly_once",),
    ),
    "a clean close may be either": (
        task(store(segment(2000, 90, "closed"))),
        "auto",
        ("at_least_once", "exactly_once"),
    ),
    "what is given counts": (
        task(store(segment(2000, 90))),
        "exactly_once_v2",
        ("exactly_once",),
    ),
    "exactly-once may be transactional where nothing tells": (
        task(store(*OLD)),
        "exactly_once_v2",
        ("exactly_once", "transactional"),
    ),
}


@pytest.mark.parametrize("sentence", GUARANTEE_ROWS)
def test_guarantee(sentence: str) -> None:
    facts, given, expected = GUARANTEE_ROWS[sentence]
    assert conditions_of([facts], guarantee=given, version="4.4.0").guarantees == expected


def test_the_worst_of_no_store_is_clean() -> None:
    assert worst_kind([]) == "clean"
