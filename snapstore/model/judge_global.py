"""What the thread of the global stores does otherwise than a task.

Seen on applications of 4.4.0, 4.3.1 and 4.2.1 under every guarantee: the table is in docs/trust.md.
A task that cannot be trusted is given up and filled anew; the global thread throws, and the whole
application with it, at every start until somebody removes ``global/`` (KAFKA-21034).
"""

from typing import Final

from snapstore.model.identity import ChangelogPartition
from snapstore.model.judge_changelog import MEND
from snapstore.model.state_facts import StoreFacts
from snapstore.model.verdict import Bounds, Cause, Guarantee, Reader, Verdict

_ASIDE: Final = f"set it aside {MEND}; it is then filled from its topic"


def judge_global(
    store: StoreFacts, reader: Reader, guarantee: Guarantee, bounds: Bounds
) -> Verdict | None:
    """Return what keeps the application from starting; None where a task's rules hold."""
    marked = any(database.status == "open" for database in store.databases)
    if marked and reader != "checkpoint" and guarantee != "at_least_once":
        return _refuses(
            store,
            "open",
            "its database is marked as open: it was not closed, and under exactly-once the "
            "application stops at every start (KAFKA-21034)",
        )
    for changelog in store.changelogs:
        noted = [store.lines.get(changelog, 0)]
        noted += [database.offsets.get(changelog, 0) for database in store.databases]
        if None in noted:
            return _refuses(
                store,
                "file",
                f"its offset of {changelog} is noted as not known, and the application stops at "
                "every start",
            )
        outside = _outside(store, changelog, bounds)
        if outside is not None:
            return outside
    return None


def _outside(store: StoreFacts, changelog: ChangelogPartition, bounds: Bounds) -> Verdict | None:
    """Judge a position that the log does not have: out of range is an exception like any other."""
    log = bounds.get(changelog)
    offsets = [store.lines.get(changelog)]
    offsets += [database.offsets.get(changelog) for database in store.databases]
    known = [at for at in offsets if at is not None]
    if log is None or log.replaced_by is not None or not known:
        return None
    then = "the application stops at its next start, and removes all global stores as it does"
    if max(known) + 1 > log.high_watermark:
        reason = f"it notes offset {max(known)}, and {changelog} ends before {log.high_watermark}"
        return _refuses(store, "beyond_end", f"{reason}: {then}")
    if min(known) + 1 < log.start:
        reason = f"it would go on at {min(known) + 1}, and {changelog} begins at {log.start}"
        return _refuses(store, "below_start", f"{reason}: {then}")
    return None


def _refuses(store: StoreFacts, cause: Cause, reason: str) -> Verdict:
    return Verdict(
        store=store.store,
        kind="refuses",
        cause=cause,
        reason=reason,
        advice=_ASIDE,
        changelog=next(iter(store.changelogs), None),
    )
