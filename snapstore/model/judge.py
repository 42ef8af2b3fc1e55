"""Say what Kafka Streams will do with the stores of a task at its next start.

Sources: ProcessorStateManager, AbstractSegments, RocksDBStore, AbstractColumnFamilyAccessor,
LegacyCheckpointingStateStore and StoreChangelogReader of 4.2.1, 4.3.0 and 4.3.1, and the class
files of 4.4.0. What sets the versions apart is where they look for the offset of a store:

- to 4.2: in the task's `.checkpoint`; databases of 4.3 and newer do not open;
- 4.3.0: in the oldest segment that notes one;
- from 4.3.1 (KAFKA-20663): in the newest segment that notes one.

From 4.3 on each segment of a window or session store has a memtable of its own and no log, so after
a crash each holds another offset. What lies between that of a segment and the one that the
application goes by is never read again.
"""

from collections.abc import Mapping
from itertools import product
from typing import Final

import msgspec

from snapstore.errors import StoreUnsupportedError
from snapstore.model.identity import StoreId
from snapstore.model.judge_changelog import (
    MEND,
    NOTHING,
    all_of,
    judge_changelog,
    judge_unknown,
    rebuilt,
)
from snapstore.model.judge_global import judge_global
from snapstore.model.state_facts import OrphanLine, StoreFacts, TaskFacts
from snapstore.model.unread import Unread
from snapstore.model.verdict import (
    SEVERITY,
    Bounds,
    Conditions,
    Guarantee,
    Reader,
    Verdict,
)

VERSIONS: Final[Mapping[Reader, str]] = {
    "checkpoint": "Kafka Streams 4.2 or older",
    "oldest": "Kafka Streams 4.3.0",
    "newest": "Kafka Streams 4.3.1 or newer",
}
GUARANTEES: Final[Mapping[Guarantee, str]] = {
    "at_least_once": "at-least-once",
    "exactly_once": "exactly-once",
    "transactional": "exactly-once with transactional stores",
}


def judge_task(task: TaskFacts, conditions: Conditions, bounds: Bounds) -> tuple[Verdict, ...]:
    """Return a verdict for each store, then for each line without a store: the worst that may be.

    Last come the stores that could not be looked at: nothing is known of them. ``bounds`` holds the
    partitions that were looked up; one that is missing was not.
    """
    cases = [
        (reader, guarantee, _judge(task, reader, guarantee, bounds))
        for reader, guarantee in product(
            conditions.readers, conditions.guarantees_of(is_global=task.is_global)
        )
    ]
    return (
        *(
            _worst([(reader, guarantee, each[index]) for reader, guarantee, each in cases])
            for index in range(len(cases[0][2]))
        ),
        *map(_unseen, task.unread),
    )


def _worst(cases: list[tuple[Reader, Guarantee, Verdict]]) -> Verdict:
    """Return the worst verdict; it names what it assumes, where that makes a difference."""
    reader, guarantee, worst = max(cases, key=lambda case: SEVERITY.index(case[2].kind))
    others = [case for case in cases if case[2].kind != worst.kind]
    parts = [VERSIONS[reader]] if any(case[1] == guarantee for case in others) else []
    parts += [GUARANTEES[guarantee]] if any(case[0] == reader for case in others) else []
    return msgspec.structs.replace(worst, assumed=", ".join(parts) or None)


def _judge(task: TaskFacts, reader: Reader, guarantee: Guarantee, bounds: Bounds) -> list[Verdict]:
    """Judge under one version and guarantee."""
    if task.offset_file_fault is not None:
        stores = [each.store for each in task.stores] or [StoreId(task.application, task.task, "")]
        return [_unreadable(store, task.offset_file_fault) for store in stores]
    verdicts = [_judge_store(store, task, reader, guarantee, bounds) for store in task.stores]
    verdicts += [_orphan(line, bounds) for line in task.orphans]
    wiped = next((each for each in verdicts if each.kind == "wipes"), None)
    if wiped is None:
        return verdicts
    return [_wiped_too(each, wiped, bounds) for each in verdicts]


def _unseen(unread: Unread) -> Verdict:
    if isinstance(unread.error, StoreUnsupportedError):
        return Verdict(
            store=unread.store,
            kind="unknown",
            cause="unsupported",
            reason=f"{unread.error.message}; its application can open it all the same",
            advice="it is left as it is",
        )
    return Verdict(
        store=unread.store,
        kind="unknown",
        cause="unreadable",
        reason=f"could not look: {unread.error.message}",
        advice=unread.error.hint or "try again",
    )


def _unreadable(store: StoreId, fault: str) -> Verdict:
    return Verdict(
        store=store,
        kind="damaged",
        cause="offset_file",
        reason=f"the application cannot read its offsets and stops: {fault}",
        advice=f"set the file aside {MEND}; the task is then replayed whole",
    )


def _orphan(line: OrphanLine, bounds: Bounds) -> Verdict:
    if line.offset is None:
        return Verdict(
            store=line.store,
            kind="replays",
            reason="it has no files and no known offset, so it is filled from its changelog",
            advice=NOTHING,
            changelog=line.changelog,
            records=all_of(line.changelog, bounds),
        )
    return Verdict(
        store=line.store,
        kind="loses_rows",
        cause="no_files",
        reason=f"its files are missing and its line says {line.offset}: the application makes an "
        f"empty store and goes on after {line.offset}",
        advice=f"remove the line {MEND}",
        changelog=line.changelog,
        resume_offset=line.offset + 1,
        skipped=line.offset + 1,
    )


def _wiped_too(verdict: Verdict, wiped: Verdict, bounds: Bounds) -> Verdict:
    """A task is given up as a whole, so what else is wrong with its stores goes with them."""
    if verdict.kind in ("wipes", "damaged", "refuses"):
        return verdict
    return Verdict(
        store=verdict.store,
        kind="wipes",
        cause=wiped.cause,
        reason=f"its task is rebuilt whole, since of {wiped.store.store} {wiped.reason}",
        advice=wiped.advice,
        changelog=verdict.changelog,
        records=all_of(verdict.changelog, bounds),
    )


def _judge_store(
    store: StoreFacts, task: TaskFacts, reader: Reader, guarantee: Guarantee, bounds: Bounds
) -> Verdict:
    if store.damage:
        return _damaged(store)
    if reader == "checkpoint" and store.keeps_offsets:
        return Verdict(
            store=store.store,
            kind="refuses",
            cause="version",
            reason='Kafka Streams to 4.2 cannot open it: "Column families not opened: offsets"',
            advice="start 4.3 or newer, or move the task directory away and let it be rebuilt",
        )
    if store.candidates:
        return Verdict(
            store=store.store,
            kind="unknown",
            cause="topic",
            reason=f"cannot tell which topic is its changelog: {', '.join(store.candidates)}",
            advice=f"configure stores.{store.store.store}.changelog: a topic, or none",
        )
    if task.is_global:
        verdict = judge_global(store, reader, guarantee, bounds)
        if verdict is not None:
            return verdict
    statuses = {database.status for database in store.databases}
    if reader != "checkpoint" and guarantee != "at_least_once" and "open" in statuses:
        return rebuilt(
            store,
            "its databases are marked as open: it was not closed, and under exactly-once the "
            "application trusts none of it",
            bounds,
        )
    if not store.changelogs:
        return _without_offset(store, task, guarantee, bounds)
    verdicts = [
        judge_changelog(store, changelog, reader, guarantee, bounds)
        for changelog in store.changelogs
    ]
    return max(verdicts, key=lambda each: SEVERITY.index(each.kind))


def _damaged(store: StoreFacts) -> Verdict:
    first = store.damage[0]
    more = f" (and {len(store.damage) - 1} more)" if len(store.damage) > 1 else ""
    empty = any(each.starts_empty for each in store.damage)
    then = (
        "the application would begin an empty database in its place"
        if empty
        else "the application fails when it opens or reads it"
    )
    silent = all(each.silent for each in store.damage)
    return Verdict(
        store=store.store,
        kind="loses_rows" if silent else "damaged",
        cause="exchanged" if silent else "file",
        reason=f"{first.file}: {first.reason}{more}{'' if silent else f'; {then}'}",
        advice=f"set it aside {MEND}; or restore a snapshot: --from-snapshot",
        changelog=next(iter(store.changelogs), None),
    )


def _without_offset(
    store: StoreFacts, task: TaskFacts, guarantee: Guarantee, bounds: Bounds
) -> Verdict:
    """Judge a store for which no offset is noted anywhere."""
    if store.foreign and guarantee == "at_least_once":
        return _foreign(store)
    closed = store.keeps_offsets and {each.status for each in store.databases} == {"closed"}
    listed = not store.keeps_offsets and task.has_offset_file and not store.foreign
    log = None if store.presumed is None else bounds.get(store.presumed)
    logged = log is not None and log.end > log.start
    if (closed or listed) and not (logged or task.is_global):
        return Verdict(
            store=store.store,
            kind="clean",
            reason="it was closed and notes no offset: it has no changelog, or nothing is in it",
            advice=NOTHING,
            records=0,
        )
    if guarantee == "exactly_once" and not task.is_global:
        return rebuilt(
            store,
            "no offset is noted although there are files, and under exactly-once the application "
            "then trusts none of the task",
            bounds,
        )
    return judge_unknown(
        store, "no offset is noted, so all of its changelog is read again", store.presumed, bounds
    )


def _foreign(store: StoreFacts) -> Verdict:
    named = ", ".join(map(str, store.foreign[:3]))
    return Verdict(
        store=store.store,
        kind="loses_rows",
        cause="foreign",
        reason=f"its offset is noted for {named}, which task {store.store.task} does not read: "
        "the files are another task's, and the application would keep their rows",
        advice=f"set it aside {MEND}",
    )
