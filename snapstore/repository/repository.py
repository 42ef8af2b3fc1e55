"""A repository: the blobs, manifests and catalog at one URL."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Self

from snapstore.model.listing import ListedSnapshot
from snapstore.ports import CheckingStorage, ObjectStorage
from snapstore.repository import marker
from snapstore.repository.blobs import BlobWriter, condemned_names
from snapstore.repository.catalog import Catalog
from snapstore.repository.condemned import Marks
from snapstore.repository.manifests import Manifests
from snapstore.repository.pins import Pins


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
        for item in doomed:
            self.marks.remove(item.id, run=run, now=now)
        self.catalog.remove(doomed)

    def begin_run(self, run: str) -> BlobWriter:
        """Return the writer of one run's blobs, knowing which names are dead."""
        return BlobWriter(
            self.storage,
            run=run,
            read_back=self._read_back,
            condemned=condemned_names(self.storage),
        )
