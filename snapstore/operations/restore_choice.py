"""Choose the snapshot of each store that a restore takes: the newest usable one."""

from collections.abc import Callable, Collection, Sequence

import msgspec

from snapstore.errors import (
    IntegrityError,
    ManifestInvalidError,
    RefusedError,
    SnapshotNotFoundError,
    SnapstoreError,
    UncheckedChangelogError,
    UnsafePathError,
)
from snapstore.model.identity import StoreId
from snapstore.model.listing import ListedSnapshot
from snapstore.model.plausible import require_plausible
from snapstore.model.resume import ResumePlan
from snapstore.model.snapshot import Snapshot
from snapstore.operations.restore_plan import Skipped, Wanted
from snapstore.ports import Clock
from snapstore.repository import Repository

Check = Callable[[Snapshot], tuple[ResumePlan, ...]]
"""Proves a snapshot against its changelog and returns what to replay, one plan a position.

Raises the RefusedError that says why it must not be used.
"""


NOT_USABLE = (IntegrityError, RefusedError, SnapshotNotFoundError)
"""What says that a snapshot cannot be used; any other error says that it could not be found out."""


INCOMPLETE = "incomplete"
NOT_COMPLETE = (
    "it was made from a changelog whose first records were gone, and lacks what only they held"
)
"""Why a snapshot is taken only where no older one holds more."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One store to bring back. ``candidates`` come newest first.

    With ``latest`` the newest usable one is taken and the skipped ones are named; else the first
    candidate is meant, and it fails when that cannot be used.
    """

    candidates: tuple[ListedSnapshot, ...]
    latest: bool


class Chooser:
    """Loads candidates of one repository until one is usable."""

    def __init__(
        self,
        repository: Repository,
        *,
        check: Check | None,
        allow_unchecked_changelog: bool,
        clock: Clock,
    ) -> None:
        self._clock = clock
        self._repository = repository
        self._check = check
        self._allow_unchecked_changelog = allow_unchecked_changelog

    def choose(self, request: Request, failed: Collection[Skipped] = ()) -> Wanted:
        """Return the newest usable candidate.

        ``failed`` are those that have turned out to be damaged. A storage that cannot be read is
        never taken for a snapshot that is not there: UnavailableError goes through. Raises the
        error of the newest candidate, with ``skipped``, when none is usable.
        """
        if not request.candidates:
            raise SnapshotNotFoundError("there is no snapshot to restore")
        known_bad = {skipped.snapshot_id: skipped for skipped in failed}
        skipped: list[Skipped] = []
        incomplete: Wanted | None = None
        first: SnapstoreError | None = None
        for listed in request.candidates if request.latest else request.candidates[:1]:
            if listed.id in known_bad:
                skipped.append(known_bad[listed.id])
                continue
            try:
                wanted = self._load(listed, tuple(skipped), named=not request.latest)
            except UnsafePathError:
                raise
            except NOT_USABLE as error:
                first = first or error
                skipped.append(skip(listed.id, error))
                continue
            if wanted.snapshot.description.complete or not request.latest:
                return wanted
            incomplete = incomplete or wanted
            skipped.append(Skipped(snapshot_id=listed.id, reason=NOT_COMPLETE, code=INCOMPLETE))
        if incomplete is not None:
            return incomplete
        return self._none_usable(request, skipped, first)

    def _load(self, listed: ListedSnapshot, skipped: tuple[Skipped, ...], *, named: bool) -> Wanted:
        if listed.changelogs and self._check is None and not self._allow_unchecked_changelog:
            raise UncheckedChangelogError(
                f"nothing proves snapshot {listed.id[:12]} of {listed.store} against its changelog",
                hint="configure Kafka, or pass --allow-unchecked-changelog",
                snapshot=listed.id,
                store=str(listed.store),
            )
        snapshot = self._repository.catalog.load(listed)
        if not named:
            require_plausible(listed, snapshot.description, now=self._clock())
        manifest = self._repository.manifests.load(snapshot.id)
        if manifest.description != snapshot.description:
            raise ManifestInvalidError(
                f"the manifest of snapshot {snapshot.id[:12]} describes something else than its"
                " catalog entry",
                snapshot=snapshot.id,
            )
        resume = () if self._check is None else self._check(snapshot)
        return Wanted(snapshot=snapshot, manifest=manifest, skipped=skipped, resume=resume)

    def _none_usable(
        self, request: Request, skipped: list[Skipped], first: SnapstoreError | None
    ) -> Wanted:
        newest = skipped[0]
        error = first or IntegrityError(newest.reason)
        error.facts.setdefault("snapshot", newest.snapshot_id)
        error.facts.setdefault("store", str(request.candidates[0].store))
        if len(skipped) > 1:
            error.facts["skipped"] = [f"{item.snapshot_id[:12]}: {item.reason}" for item in skipped]
        raise error


def with_choices(
    error: SnapstoreError, unrestorable: Sequence[StoreId], restorable: Sequence[StoreId]
) -> SnapstoreError:
    """Say in an error about one store which others there are, and how to restore those that can be.

    Nothing of an application is restored as long as one of its stores cannot be: whether the others
    are worth having alone is not for this program to decide.
    """
    if not restorable:
        return error
    error.facts["unrestorable"] = [str(store) for store in unrestorable]
    error.facts["restorable"] = [str(store) for store in restorable]
    how = (
        "restore the others with --skip-unrestorable: what is there of those left out stays, else "
        "the application fills them from their changelogs; or name one with --task and --store"
    )
    error.hint = how if error.hint is None else f"{error.hint}; else {how}"
    return error


def skip(snapshot_id: str, error: SnapstoreError) -> Skipped:
    """Return why a snapshot was passed over."""
    return Skipped(snapshot_id=snapshot_id, reason=error.message, code=error.code)
