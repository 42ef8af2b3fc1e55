"""A store as it is to be captured, after whatever prepared it."""

from collections.abc import Callable, Mapping

import msgspec

from snapstore.errors import SnapstoreError
from snapstore.model.changelog import PartitionState
from snapstore.model.identity import ChangelogPartition
from snapstore.model.snapshot import Source
from snapstore.model.store import StoreLocation
from snapstore.operations.stopping import Stop


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A store as it is to be captured. ``source`` None: as it turns out to be.

    ``before`` are partitions as they were before, and ``remarks`` sentences on the preparation.
    ``otherwise`` prepares another way, if a snapshot of these files could not be restored: it is
    given the reason. ``complete``: see ``Description``.
    """

    location: StoreLocation
    source: Source | None = None
    before: Mapping[ChangelogPartition, PartitionState] = {}
    remarks: tuple[str, ...] = ()
    complete: bool = True
    otherwise: Callable[[SnapstoreError, Stop], "Prepared"] | None = None


class UnrestorableError(Exception):
    """The files could be saved, and not be restored; there may be another way."""

    def __init__(self, reason: SnapstoreError) -> None:
        super().__init__(reason.message)
        self.reason = reason
