"""Open no more of a repository than is needed: it loads in half the time of a whole client."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from snapstore.client.catalog import CatalogVerbs
from snapstore.client.moments import utc_now
from snapstore.client.parts import configured_storage
from snapstore.config import Config
from snapstore.model.report import nobody
from snapstore.ports import Listener
from snapstore.registry import Registry
from snapstore.repository import Repository

if TYPE_CHECKING:
    from snapstore.client.taking import SnapshotVerbs


@contextmanager
def open_catalog(config: Config, listener: Listener = nobody) -> Iterator[CatalogVerbs]:
    """Yield the verbs that need nothing but the catalog of the configured repository.

    ``listener`` hears the storage. Raises as ``open`` does.
    """
    with closing(configured_storage(config, Registry(), listener)) as storage:
        yield CatalogVerbs(config, Repository.open(storage), utc_now)


@contextmanager
def open_taking(config: Config, listener: Listener = nobody) -> Iterator["SnapshotVerbs"]:
    """Yield the verbs that take snapshots into the configured repository.

    ``listener`` hears the storage. Raises as ``open`` does.
    """
    # Imported here: a listing takes none.
    from snapstore.client.taking import SnapshotVerbs

    with closing(configured_storage(config, Registry(), listener)) as storage:
        yield SnapshotVerbs(config, Repository.open(storage))
