"""A repository: the blobs, manifests and catalog at one URL."""

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta
from typing import Self

from snapstore.errors import StorageError
from snapstore.model.listing import ListedSnapshot
from snapstore.ports import CheckingStorage, ObjectStorage, ReservingStorage
from snapstore.repository import marker
from snapstore.repository.blobs import BlobWriter, condemned_names
from snapstore.repository.catalog import Catalog
from snapstore.repository.condemned import Marks
from snapstore.repository.manifests import Manifests
from snapstore.repository.pins import Pins

AT_ONCE = 50
"""As many marks as a storage surely has room for, kept back."""


def freeing(storage: ObjectStorage) -> AbstractContextManager[None]:
    """Let what is written to free room use the room that a storage keeps back for that."""
    return storage.freeing() if isinstance(storage, ReservingStorage) else nullcontext()


def _keep_room(storage: ObjectStorage) -> None:
    if isinstance(storage, ReservingStorage):
        storage.keep_room()


class Repository:
    """What is kept at one URL, after its marker was read."""

    def __init__(self, storage: ObjectStorage, its_marker: marker.Marker) -> None:
        self.storage = storage
        self.marker = its_marker
        self._read_back = its_marker.uploads == "read_back"
        if not self._read_back and isinstance(storage, CheckingStorage):
            storage.rely_on_checks()
        self.catalog = Catalog(storage, read_back=self._read_back)
        self.manifests = Manifests(storage, read_back=self._read_back)
        self.pins = Pins(storage)
        self.marks = Marks(storage)

    @classmethod
    def create(
        cls,
        storage: ObjectStorage,
        *,
        created_at: datetime,
        accept_unverified_uploads: bool = False,
        longest_run: timedelta = marker.LONGEST_RUN,
    ) -> Self:
        """Make a repository; raises what ``marker.create`` raises."""
        made = marker.create(
            storage,
            created_at=created_at,
            accept_unverified_uploads=accept_unverified_uploads,
            longest_run=longest_run,
        )
        _keep_room(storage)
        return cls(storage, made)

    @classmethod
    def open(cls, storage: ObjectStorage) -> Self:
        """Open a repository; raises what ``marker.read`` raises."""
        return cls(storage, marker.read(storage))

    def withdraw(self, listed: Iterable[ListedSnapshot], *, run: str, now: datetime) -> None:
        """Take snapshots out on purpose; their bytes stay until a sweep.

        Raises StorageError with ``failed`` when some would not go.
        """
        doomed = [*listed]
        failed: list[StorageError] = []
        with freeing(self.storage):
            # A few at a time: on a full disk each entry makes room for the next mark.
            for first in range(0, len(doomed), AT_ONCE):
                some = doomed[first : first + AT_ONCE]
                for item in some:
                    self.marks.remove(item.id, run=run, now=now)
                try:
                    self.catalog.remove(some)
                except StorageError as error:
                    failed.append(error)
        if failed:
            keys = [key for error in failed for key in error.facts.get("failed", ())]  # type: ignore[attr-defined]
            raise StorageError(failed[0].message, hint=failed[0].hint, failed=keys)

    def begin_run(self, run: str) -> BlobWriter:
        """Return the writer of one run's blobs, knowing which names are dead."""
        _keep_room(self.storage)
        return BlobWriter(
            self.storage,
            run=run,
            read_back=self._read_back,
            condemned=condemned_names(self.storage),
        )
