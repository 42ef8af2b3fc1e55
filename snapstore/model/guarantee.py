"""Find out under which `processing.guarantee` the files of a store were written.

What matters are databases that mark themselves as open (Kafka Streams 4.3 and newer): under
at-least-once their offset moves with each commit; under exactly-once it is that of the last clean
close, and what was written since may be of a transaction that aborts. The files look the same, the
changelog does not. A transaction ends with a marker, which takes an offset and is no record:

- the last stable offset below the high watermark: a transaction is open;
- both equal, and a record at the last offset: its producer wrote without a transaction;
- both equal, and no record there: a marker. Compaction never touches the active segment, which the
  last offset is in; where retention or DeleteRecords took it, the log is empty.

An empty log says nothing, and neither does a topic that is not the application's own: a source
topic that serves as changelog is written by others. A record at the end says who wrote last: an
application that was at-least-once until a moment ago shows it from its first transaction on.
"""

from collections.abc import Iterable, Sequence

import msgspec

from snapstore.errors import ExactlyOnceHotError
from snapstore.model.identity import ChangelogPartition, StoreId
from snapstore.model.snapshot import Description, FoundBy, Position, ProcessingGuarantee
from snapstore.model.units import count

AUTO = "auto"
GLOBAL_TASK = "global"
_WAYS_OUT = "stop the application cleanly, or take the snapshot from the changelog"
_HINT = (
    "write state.guarantee: at_least_once if that is the application's processing.guarantee (it is "
    f"Kafka's default); else {_WAYS_OUT}"
)


class LogEnd(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a changelog partition: ``log_end`` is the last stable offset, read last.

    ``last_record`` is the offset of the last committed record, None where there is none near.
    """

    changelog: ChangelogPartition
    log_end: int
    high_watermark: int
    last_record: int | None


class FoundGuarantee(msgspec.Struct, frozen=True, kw_only=True):
    """A guarantee, None where it is not known, and how it was found; ``why`` is half a sentence."""

    guarantee: ProcessingGuarantee | None
    found_by: FoundBy | None
    why: str

    @property
    def at_least_once(self) -> bool:
        return self.guarantee == "at_least_once"


def written_under(end: LogEnd) -> ProcessingGuarantee | None:
    """Return what the end of a log says of its last writer; None where it says nothing."""
    if end.high_watermark > end.log_end:
        return "exactly_once"
    if end.last_record is None:
        return None
    return "at_least_once" if end.last_record == end.log_end - 1 else "exactly_once"


def by_configuration(configured: str) -> FoundGuarantee | None:
    """Return the guarantee that ``state.guarantee`` gives; None for ``auto``."""
    if configured == AUTO:
        return None
    exactly_once = configured.startswith("exactly_once")
    return FoundGuarantee(
        guarantee="exactly_once" if exactly_once else "at_least_once",
        found_by="configured",
        why=f"state.guarantee is {configured}",
    )


def by_logs(application: str, ends: Iterable[LogEnd]) -> FoundGuarantee:
    """Return what the ends of an application's changelogs say; nothing where they disagree."""
    said: dict[ProcessingGuarantee, LogEnd] = {}
    for end in ends:
        if not _is_own(application, end.changelog):
            continue
        guarantee = written_under(end)
        if guarantee is not None:
            said.setdefault(guarantee, end)
    if len(said) == 1:
        ((guarantee, end),) = said.items()
        return FoundGuarantee(guarantee=guarantee, found_by="changelog", why=_told(guarantee, end))
    if said:
        why = " and ".join(_told(guarantee, end) for guarantee, end in sorted(said.items()))
        return _unknown(f"{why}: was its processing.guarantee changed?")
    return _unknown("neither its files nor its changelog tell its processing.guarantee")


def by_fences(application: str, positions: Sequence[Position]) -> FoundGuarantee:
    """Return what the changelogs said when fences were taken there."""
    return by_logs(
        application,
        [
            LogEnd(
                changelog=each.position.changelog,
                log_end=each.fence.end_offset,
                high_watermark=each.fence.high_watermark,
                last_record=None if each.fence.last is None else each.fence.last.offset,
            )
            for each in positions
            if each.fence is not None and each.fence.high_watermark is not None
        ],
    )


def at_capture(store: StoreId, configured: str, positions: Sequence[Position]) -> FoundGuarantee:
    """Return the guarantee of a store whose files were just held: as configured, else by its log.

    A changelog that holds an open transaction contradicts at-least-once, whoever configured it.
    """
    logs = by_fences(store.application, positions)
    given = by_configuration(configured)
    if given is None:
        return logs
    transaction = any(
        each.fence is not None
        and (each.fence.high_watermark or 0) > each.fence.end_offset
        and _is_own(store.application, each.position.changelog)
        for each in positions
    )
    if given.at_least_once and transaction:
        return _unknown(f"{given.why}, and {logs.why}")
    return given


def of_snapshot(description: Description, configured: str) -> FoundGuarantee:
    """Return the guarantee under which the files of a snapshot were written.

    That is what the snapshot says, where its changelog told it; what is configured now may be that
    of a later time. Snapshots from before it was noted are judged by their fences.
    """
    given = by_configuration(configured)
    if description.guarantee is None:
        logs = by_fences(description.store.application, description.positions)
        return logs if logs.guarantee is not None else given or logs
    noted = FoundGuarantee(
        guarantee=description.guarantee,
        found_by=description.guarantee_found_by,
        why=f"when it was captured it was {description.guarantee.replace('_', '-')}"
        f" ({description.guarantee_found_by})",
    )
    guessed = noted.found_by == "configured" and given is not None
    if guessed and given is not None and given.guarantee != noted.guarantee:
        return _unknown(f"{noted.why}, and now {given.why}")
    return noted


def require_committed(store: StoreId, status: str | None, found: FoundGuarantee) -> None:
    """Raise ExactlyOnceHotError for files that may hold writes of a transaction that aborts.

    Those are databases that mark themselves as open, unless they were written at-least-once. A
    global store takes part in no transaction.
    """
    if status != "open" or store.task == GLOBAL_TASK or found.at_least_once:
        return
    raise ExactlyOnceHotError(
        f"the files of {store} may hold writes of a transaction that aborts: they were not closed, "
        f"and {found.why}",
        hint=_WAYS_OUT if found.guarantee == "exactly_once" else _HINT,
        store=str(store),
        guarantee=found.guarantee,
        guarantee_found_by=found.found_by,
    )


def require_committed_snapshot(description: Description, configured: str) -> None:
    """Raise ExactlyOnceHotError for such a snapshot, as far as its description tells."""
    require_committed(description.store, description.status, of_snapshot(description, configured))


def notes_on_open_files(descriptions: Iterable[Description], configured: str) -> tuple[str, ...]:
    """Return sentences on snapshots that every replay refuses, whole as they may be."""
    refused: dict[str, str | None] = {}
    for description in descriptions:
        try:
            require_committed_snapshot(description, configured)
        except ExactlyOnceHotError as error:
            refused[str(description.store)] = error.hint
    if not refused:
        return ()
    first = min(refused)
    return (
        f"{count(len(refused), 'store')} with snapshots of files that were not closed, which may "
        f"hold writes of a transaction that aborts, such as {first}: {refused[first]}",
    )


def _is_own(application: str, changelog: ChangelogPartition) -> bool:
    return changelog.topic.startswith(f"{application}-") and changelog.topic.endswith("-changelog")


def _told(guarantee: ProcessingGuarantee, end: LogEnd) -> str:
    if guarantee == "at_least_once":
        return f"the last record of {end.changelog} is of no transaction"
    if end.high_watermark > end.log_end:
        return f"{end.changelog} holds an open transaction from offset {end.log_end} on"
    return f"{end.changelog} ends with the marker of a transaction at offset {end.log_end - 1}"


def _unknown(why: str) -> FoundGuarantee:
    return FoundGuarantee(guarantee=None, found_by=None, why=why)
