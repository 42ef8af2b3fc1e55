"""What became of the stores of one snapshot run."""

from typing import Literal

import msgspec

from snapstore.errors import SnapstoreError, UncheckedChangelogError
from snapstore.model.identity import StoreId
from snapstore.model.listing import ListedSnapshot
from snapstore.model.snapshot import Snapshot, Source
from snapstore.model.units import count

Status = Literal["stored", "unchanged", "empty", "failed"]


class StoreOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one store.

    ``stored``: ``snapshot`` was published; ``same_content`` if the one before holds the same files
    at the same offsets. ``unchanged``: the same, and nothing was published because that was asked
    for; ``same_as`` is the one before. ``empty``: there is no state yet. ``failed``: ``error``.
    ``source`` is where it was taken from, if it was looked at. ``remarks`` are sentences on what
    the offsets show.
    ``unrestorable`` says why what was stored, or is unchanged, is not sure to come back; with the
    fact ``by_replay``, that snapstore can restore it as long as compaction has not begun.
    """

    store: StoreId
    status: Status
    seconds: float
    attempts: int
    snapshot: Snapshot | None = None
    same_content: bool = False
    same_as: ListedSnapshot | None = None
    source: Source | None = None
    new_files: int = 0
    new_bytes: int = 0
    reused_files: int = 0
    reused_bytes: int = 0
    remarks: tuple[str, ...] = ()
    error: SnapstoreError | None = None
    unrestorable: SnapstoreError | None = None


class SnapshotReport(msgspec.Struct, frozen=True, kw_only=True):
    """What became of every store of a plan, in its order."""

    run: str
    outcomes: tuple[StoreOutcome, ...]
    notes: tuple[str, ...]

    @property
    def failed(self) -> tuple[StoreOutcome, ...]:
        return tuple(outcome for outcome in self.outcomes if outcome.status == "failed")

    @property
    def unrestorable(self) -> tuple[StoreOutcome, ...]:
        return tuple(outcome for outcome in self.outcomes if outcome.unrestorable is not None)


def unproved(report: SnapshotReport) -> SnapshotReport:
    """Return the report of a run for which Kafka is configured and did not answer."""
    error = UncheckedChangelogError(
        "no fence was taken, since the brokers did not answer: nothing proves it against its"
        " changelog",
        hint="take another once they answer; restore this with --allow-unchecked-changelog",
    )
    outcomes = tuple(
        msgspec.structs.replace(outcome, unrestorable=error)
        if outcome.snapshot is not None and outcome.snapshot.description.positions
        else outcome
        for outcome in report.outcomes
    )
    return msgspec.structs.replace(report, outcomes=outcomes)


def describe(outcome: StoreOutcome) -> str:
    """Return one sentence on an outcome."""
    match outcome.status:
        case "stored" if outcome.snapshot is not None:
            return (
                f"snapshot {outcome.snapshot.id[:12]}: {count(outcome.new_files, 'new file')}, "
                f"{count(outcome.new_bytes, 'byte')}; {outcome.reused_files:,} reused, "
                f"{count(outcome.reused_bytes, 'byte')}"
            )
        case "unchanged" if outcome.same_as is not None:
            return f"unchanged since snapshot {outcome.same_as.id[:12]}"
        case "empty":
            return "no state yet"
        case _:
            return outcome.error.message if outcome.error is not None else outcome.status
