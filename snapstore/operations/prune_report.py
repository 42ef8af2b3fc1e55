"""What a prune has done, or would do."""

from collections.abc import Mapping
from datetime import datetime, timedelta

import msgspec

from snapstore.model.listing import ListedSnapshot
from snapstore.model.retention import Decision


class Amount(msgspec.Struct, frozen=True, kw_only=True):
    """So many objects, and the bytes in them."""

    count: int = 0
    size_bytes: int = 0


class PruneReport(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on every snapshot, then what the sweep did with bytes.

    ``freed`` is gone for good: blobs, manifests, unfinished uploads. ``kept_as_versions`` was
    deleted as well, and stays as old versions of a bucket that keeps those. ``condemned`` was
    marked now; ``waiting`` was marked before: both go with a prune that comes ``wait`` after the
    mark, the first of the latter from ``waiting_until`` on. ``young`` no snapshot names either; the
    first of them can be marked from ``young_until`` on.
    ``lost`` are ids of snapshots whose catalog entries seem to be lost: they are kept for a repair.
    ``unjudged`` says why nothing of the blobs was condemned or deleted; empty as a rule. ``failed``
    are keys that the storage would not delete. ``doubtful`` snapshots say of themselves what cannot
    be true, with the reason: they stay, and take the place of no other. ``notes`` are sentences for
    the operator.
    """

    dry_run: bool
    decisions: tuple[Decision, ...]
    freed: Amount
    kept_as_versions: Amount = Amount()
    deleted_blobs: Amount
    deleted_manifests: Amount
    aborted_uploads: int
    condemned: Amount
    waiting: Amount
    wait: timedelta
    waiting_until: datetime | None = None
    young: Amount = Amount()
    young_until: datetime | None = None
    lost: tuple[str, ...] = ()
    unjudged: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    doubtful: Mapping[ListedSnapshot, str] = {}
    notes: tuple[str, ...] = ()

    @property
    def removed(self) -> tuple[Decision, ...]:
        return tuple(decision for decision in self.decisions if not decision.kept)
