"""Judge one store by one partition of its changelog: the rules of ``judge``, in their order."""

from typing import Final

import msgspec

from snapstore.model.identity import ChangelogPartition
from snapstore.model.state_facts import DatabaseFacts, StoreFacts
from snapstore.model.verdict import (
    Bounds,
    Cause,
    Guarantee,
    Kind,
    LogBounds,
    Reader,
    Verdict,
)

MEND: Final = "before the application starts: snapstore fsck --repair"
NOTHING: Final = "nothing to do"
CATCHES_UP: Final = (
    "it catches up by itself; a row that was deleted meanwhile, longer ago than the changelog "
    "keeps deletions (delete.retention.ms), may be back"
)


def judge_changelog(
    store: StoreFacts,
    changelog: ChangelogPartition,
    reader: Reader,
    guarantee: Guarantee,
    bounds: Bounds,
) -> Verdict:
    """Return what happens to a store that notes something of that partition."""
    return _Partition(store, changelog, reader, guarantee, bounds).judge()


def rebuilt(store: StoreFacts, reason: str, bounds: Bounds, cause: Cause | None = None) -> Verdict:
    """Say that the application gives up the files and fills the store anew."""
    changelog = next(iter(store.changelogs), store.presumed)
    return Verdict(
        store=store.store,
        kind="wipes",
        cause=cause,
        reason=reason,
        advice=_on_rebuild(changelog, bounds),
        changelog=changelog,
        records=all_of(changelog, bounds),
    )


def _on_rebuild(changelog: ChangelogPartition | None, bounds: Bounds) -> str:
    log = None if changelog is None else bounds.get(changelog)
    gone = (
        f", and rows that only records before {log.start} held are gone from it"
        if log is not None and log.start and not log.expires
        else ""
    )
    return (
        f"it then holds what its changelog holds{gone}; a snapshot restored before the start "
        "would save the rebuild"
    )


def judge_unknown(
    store: StoreFacts, reason: str, changelog: ChangelogPartition | None, bounds: Bounds
) -> Verdict:
    """Judge a store without an offset whose files stay: all of the log is read over them."""
    log = None if changelog is None else bounds.get(changelog)
    verdict = Verdict(
        store=store.store,
        kind="replays",
        reason=reason,
        advice=CATCHES_UP,
        changelog=changelog,
        records=all_of(changelog, bounds),
    )
    if log is None or not log.start or log.expires or store.empty:
        return verdict
    return msgspec.structs.replace(
        verdict,
        kind="loses_rows",
        cause="below_start",
        reason=f"{reason} over its files; but {changelog} begins at {log.start}, and the files may "
        "lack what the records before wrote or deleted",
        advice=f"set the store aside {MEND}; it is then replayed whole",
        resume_offset=log.start,
    )


def all_of(changelog: ChangelogPartition | None, bounds: Bounds) -> int | None:
    """Return how many offsets the whole log spans; None where it was not looked up."""
    log = None if changelog is None else bounds.get(changelog)
    return None if log is None else log.end - log.start


class _Partition:
    """One store and one partition of its changelog, under one version and guarantee."""

    def __init__(
        self,
        store: StoreFacts,
        changelog: ChangelogPartition,
        reader: Reader,
        guarantee: Guarantee,
        bounds: Bounds,
    ) -> None:
        self._store = store
        self._changelog = changelog
        self._reader = reader
        self._guarantee = guarantee
        self._bounds = bounds
        self._line = store.lines.get(changelog)

    def judge(self) -> Verdict:
        start = self._start()
        if start is None:
            return self._without_start()
        problem = self._nothing_there(start) or self._outside_the_log(start) or self._hole(start)
        return problem if problem is not None else self._replays(start)

    def _start(self) -> int | None:
        """Return the offset that the application takes for the applied one of the store."""
        if self._line is not None or not self._store.keeps_offsets:
            return self._line
        for database in self._in_reading_order():
            if self._changelog in database.offsets:
                # -4, where it stands first, is taken for the store's: all is read again.
                return database.offsets[self._changelog]
        return None

    def _in_reading_order(self) -> tuple[DatabaseFacts, ...]:
        databases = self._store.databases
        return databases[::-1] if self._reader == "oldest" else databases

    def _without_start(self) -> Verdict:
        # A line of -4 counts to 4.2; newer versions pass it over when they take the file over.
        noted = (self._reader == "checkpoint" and self._changelog in self._store.lines) or any(
            self._changelog in database.offsets for database in self._store.databases
        )
        if self._guarantee == "exactly_once" and not noted:
            return rebuilt(
                self._store,
                "no offset is noted although there are files, and under exactly-once the "
                "application then trusts none of the task",
                self._bounds,
            )
        return judge_unknown(
            self._store,
            "its offset is noted as not known, so all of its changelog is read again",
            self._changelog,
            self._bounds,
        )

    def _nothing_there(self, start: int) -> Verdict | None:
        if not self._store.empty:
            return None
        return self._lost(
            "no_files",
            f"its folder holds no database, and its line says {start}: the application makes an "
            f"empty store and goes on after {start}",
            start,
        )

    def _outside_the_log(self, start: int) -> Verdict | None:
        if self._changelog not in self._bounds:
            return None
        log = self._bounds[self._changelog]
        if log is None:
            return self._lost(
                "topic_gone",
                f"{self._changelog} does not exist: the application would make it anew, and it "
                "would lack every row that is in the files",
                start,
            )
        if log.replaced_by is not None:
            return self._lost(
                "topic_recreated",
                f"{self._changelog} was deleted and created again since its files were written "
                f"(its id is now {log.replaced_by}): offset {start} counts records of another "
                "topic",
                start,
            )
        if start + 1 > log.high_watermark:
            return self._lost(
                "beyond_end",
                f"it notes offset {start}, and {self._changelog} ends before "
                f"{log.high_watermark}: the application takes it for complete, and will not read "
                "what comes until then",
                start,
            )
        if start + 1 < log.start:
            return self._below_start(start, log)
        return None

    def _below_start(self, start: int, log: LogBounds) -> Verdict:
        found = f"it would go on at {start + 1}, and {self._changelog} begins at {log.start}: "
        if self._guarantee != "at_least_once":
            reason = f"{found}out of range, so the application rebuilds the task"
            return rebuilt(self._store, reason, self._bounds, "below_start")
        return self._lost(
            "below_start",
            f"{found}under at-least-once the application keeps the files and reads the log from "
            f"{log.start}, so rows that the {log.start - start - 1} records between wrote or "
            "deleted are missing, stale, or still there",
            start,
            resume=log.start,
            skipped=log.start - start - 1,
        )

    def _hole(self, start: int) -> Verdict | None:
        """Find databases that may lack records before the one at which reading goes on."""
        if not self._store.keeps_offsets or self._trusted_line():
            return None
        noted = self._store.noted(self._changelog)
        if noted.unknown:
            return self._lost(
                "unflushed",
                f"{_some(noted.unknown, len(self._store.databases))} of its databases never noted "
                f"an offset, their rows were in memory only, and the application goes on after "
                f"{start}",
                start,
                resume=start + 1,
            )
        least = noted.applied_offset
        if least is None or least >= start:
            return None
        behind = sum(
            1
            for database in self._store.databases
            if (database.offsets.get(self._changelog) or 0) < start
        )
        return self._lost(
            "uneven",
            f"its segments hold offsets from {least} to {noted.greatest}, and the application goes "
            f"on after {start}: {behind} of {len(self._store.databases)} may lack records from "
            f"{least + 1} on",
            start,
            resume=start + 1,
            skipped=start - least,
        )

    def _trusted_line(self) -> bool:
        """Whether the offset comes from a `.checkpoint` that speaks for all databases.

        That is so as long as none of them notes an offset itself: 4.3 has made the families, and
        was stopped before it took the file over.
        """
        noted = self._store.noted(self._changelog)
        return self._line is not None and noted.greatest is None

    def _replays(self, start: int) -> Verdict:
        log = self._bounds.get(self._changelog)
        closed = {each.status for each in self._store.databases} == {"closed"}
        records = None if log is None else max(0, log.end - (start + 1))
        # Under exactly-once the last offset of a log is the marker that ends a transaction.
        marker = 0 if self._guarantee == "at_least_once" else 1
        if records is not None and records <= marker:
            return self._verdict("clean", "it is up to date", start=start, records=0)
        if records is None and closed:
            return self._verdict(
                "clean",
                "it is marked as closed, and all of it is at one offset; its changelog was not "
                "looked at",
                start=start,
            )
        verdict = self._verdict(
            "replays", f"reading goes on at {start + 1}", start=start, records=records
        )
        return msgspec.structs.replace(verdict, advice=CATCHES_UP)

    def _lost(
        self,
        cause: Cause,
        reason: str,
        start: int,
        *,
        resume: int | None = None,
        skipped: int | None = None,
    ) -> Verdict:
        mends = {
            "uneven": f"note the least offset in every segment {MEND}",
            "unflushed": f"set the store aside {MEND}; it is then replayed whole",
        }
        return msgspec.structs.replace(
            self._verdict("loses_rows", reason, start=start),
            cause=cause,
            advice=mends.get(cause, f"set the store aside {MEND}; it is then replayed whole"),
            resume_offset=resume if resume is not None else start + 1,
            skipped=skipped,
        )

    def _verdict(
        self, kind: Kind, reason: str, *, start: int | None = None, records: int | None = None
    ) -> Verdict:
        return Verdict(
            store=self._store.store,
            kind=kind,
            reason=reason,
            advice=NOTHING,
            changelog=self._changelog,
            resume_offset=None if start is None else start + 1,
            records=records,
        )


def _some(databases: tuple[str, ...], total: int) -> str:
    shown = ", ".join(name.rpartition("/")[2] for name in databases[:3])
    more = ", ..." if len(databases) > 3 else ""
    return f"{len(databases)} of {total} ({shown}{more})"
