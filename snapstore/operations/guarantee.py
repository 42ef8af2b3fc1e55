"""Ask whether the files of a store may hold writes of a transaction that aborts.

Every verb asks here, so that all of them say the same: the layout for the mark of the databases and
for what is configured, the changelog for the rest. The rules are in ``model.guarantee``.
"""

from collections.abc import Iterable, Sequence
from typing import cast

from snapstore.errors import ChangelogGoneError
from snapstore.model.guarantee import (
    AUTO,
    GLOBAL_TASK,
    FoundGuarantee,
    LogEnd,
    at_capture,
    by_configuration,
    by_logs,
    require_committed,
)
from snapstore.model.identity import ChangelogPartition, StoreId
from snapstore.model.snapshot import Position, StoreStatus
from snapstore.ports import Changelog, Clock, Layout, MarkedLayout, StoreView


def configured_guarantee(layout: Layout) -> str:
    """Return what ``state.guarantee`` says; ``auto`` for a layout that does not ask for it."""
    marked = _marked(layout)
    return AUTO if marked is None else marked.guarantee


def status_of(layout: Layout, view: StoreView) -> StoreStatus | None:
    """Return how the databases of a store mark themselves; None where they have no mark."""
    marked = _marked(layout)
    return None if marked is None else marked.status(view)


def guarantee_at_capture(
    store: StoreId,
    status: StoreStatus | None,
    layout: Layout,
    positions: Sequence[Position],
    *,
    fenced: bool,
) -> FoundGuarantee | None:
    """Return what open files were written under; None for others.

    Raises ExactlyOnceHotError for files that no restore could use. Without Kafka (not ``fenced``)
    that it is not known is no reason: whoever restores is asked again.
    """
    if status != "open":
        return None
    found = at_capture(store, configured_guarantee(layout), positions)
    if fenced or found.guarantee is not None:
        require_committed(store, status, found)
    return found


def guarantee_now(
    store: StoreId,
    layout: Layout,
    changelog: Changelog,
    partitions: Iterable[ChangelogPartition],
    clock: Clock,
) -> FoundGuarantee:
    """Return what is configured, else what the store's changelogs show now.

    Raises KafkaError and CredentialsError where the log could not be read.
    """
    given = by_configuration(configured_guarantee(layout))
    if given is not None:
        return given
    return by_logs(store.application, log_ends(changelog, partitions, clock))


def log_ends(
    changelog: Changelog, partitions: Iterable[ChangelogPartition], clock: Clock
) -> list[LogEnd]:
    """Look at the ends of partitions; one that does not exist is left out."""
    ends = []
    for partition in partitions:
        try:
            state = changelog.inspect(partition, now=clock())
            last = changelog.last_mark(partition, start=state.log_start, stop=state.log_end)
        except ChangelogGoneError:
            continue
        ends.append(
            LogEnd(
                changelog=partition,
                log_end=state.log_end,
                high_watermark=state.high_watermark,
                last_record=None if last is None else last.offset,
            )
        )
    return ends


def require_committed_now(
    store: StoreId,
    status: StoreStatus | None,
    layout: Layout,
    changelog: Changelog,
    partitions: Iterable[ChangelogPartition],
    clock: Clock,
) -> None:
    """Raise ExactlyOnceHotError for files that may hold uncommitted writes, as the log is now.

    The log is asked only where that matters.
    """
    if status == "open" and store.task != GLOBAL_TASK:
        found = guarantee_now(store, layout, changelog, partitions, clock)
        require_committed(store, status, found)


def _marked(layout: Layout) -> MarkedLayout | None:
    # Not isinstance: a layout may pass what it lacks on to another one.
    return cast("MarkedLayout", layout) if hasattr(layout, "status") else None
