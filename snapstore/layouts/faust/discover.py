"""Find the tables of Faust below its data directory."""

from collections.abc import Callable
from pathlib import Path

from snapstore.errors import (
    CaptureError,
    ConfigError,
    StoreNotFoundError,
    WrongGenerationError,
)
from snapstore.layouts.faust.names import (
    CONFIG,
    TABLES,
    default_application,
    is_version,
    store_in,
)
from snapstore.layouts.folders import is_folder, is_there, list_dir
from snapstore.model.identity import StoreId
from snapstore.model.snapshot import Description
from snapstore.model.store import StoreLocation
from snapstore.model.unread import Unread
from snapstore.ports import Discovery

ROCKSDICT = "faust-rocksdict"
PYTHON_ROCKSDB = "faust-python-rocksdb"
TABLE = "table"
TABLE_OF_PYTHON_ROCKSDB = "table-python-rocksdb"

_CURRENT = "CURRENT"

Missed = Callable[[Path, CaptureError], None]
"""Told of a folder that cannot be read."""


def discover(data_dir: Path, application: str | None, layout: str) -> Discovery:
    """Return the tables of the application whose data directory that is.

    What cannot be read stops nothing else. Raises StoreNotFoundError, CaptureError when the
    directory itself cannot be read, or ConfigError when nothing tells which application it is.
    """
    if not is_there(data_dir, folder=True):
        raise StoreNotFoundError(f"{data_dir} is not there", path=str(data_dir))
    folder = data_dir.resolve()
    application = application or default_application(folder)
    if application is None:
        raise ConfigError(
            f"{data_dir} does not tell the application it belongs to",
            hint="give the application: the id of the Faust app",
        )
    found: list[StoreLocation] = []
    notes: list[str] = []
    unread: list[Unread] = []

    def missed(path: Path, error: CaptureError) -> None:
        store = store_in(path, application) or StoreId(application, "", "")
        unread.append(Unread(store=store, path=path, error=error))

    for database in sorted(databases(folder, missed)):
        store = store_in(database, application)
        if store is None:
            continue
        try:
            whole = is_there(database / _CURRENT)
        except CaptureError as error:
            missed(database, error)
            continue
        if whole:
            found.append(_location(store, database, layout))
        else:
            notes.append(f"{database} is skipped: it holds no RocksDB")
    if not found and not unread:
        notes.append(f"{data_dir}: no table of Faust, which lie in v1/{TABLES} and so on")
    found.sort(key=lambda location: location.store.order)
    return Discovery(locations=tuple(found), notes=tuple(notes), unread=tuple(unread))


def check_driver(data_dir: Path, description: Description) -> tuple[str, ...]:
    """Return a sentence when the application there has to change its driver for the snapshot.

    rocksdict goes on with files of python-rocksdb, and not the other way round (Faust's own
    warning). Raises WrongGenerationError.
    """
    drivers = {
        ROCKSDICT if (database / CONFIG).exists() else PYTHON_ROCKSDB
        for database in databases(data_dir)
        if (database / _CURRENT).exists()
    }
    if description.generation == ROCKSDICT and PYTHON_ROCKSDB in drivers:
        raise WrongGenerationError(
            f"the tables in {data_dir} were written by python-rocksdb, which cannot open a snapshot"
            " of tables written by rocksdict",
            hint="switch the application to rocksdict, and let it start once",
            store=str(description.store),
            target=str(data_dir),
        )
    if description.generation == PYTHON_ROCKSDB and ROCKSDICT in drivers:
        return ("once rocksdict has opened these tables, python-rocksdb cannot open them again",)
    return ()


def databases(data_dir: Path, missed: Missed | None = None) -> list[Path]:
    """Return the folders that may be tables; ``missed`` is told of what cannot be read.

    Without it CaptureError is raised.
    """
    versions = [path for path in _folders(data_dir, missed) if is_version(path.name)]
    tables = [
        path for version in versions for path in _folders(version, missed) if path.name == TABLES
    ]
    return [path for each in tables for path in _folders(each, missed) if path.suffix == ".db"]


def _folders(path: Path, missed: Missed | None) -> list[Path]:
    try:
        return [path / entry.name for entry in list_dir(path) if is_folder(entry)]
    except CaptureError as error:
        if missed is None:
            raise
        missed(path, error)
        return []


def _location(store: StoreId, folder: Path, layout: str) -> StoreLocation:
    by_rocksdict = (folder / CONFIG).exists()
    return StoreLocation(
        store=store,
        layout=layout,
        backend="rocksdb",
        store_type=TABLE if by_rocksdict else TABLE_OF_PYTHON_ROCKSDB,
        generation=ROCKSDICT if by_rocksdict else PYTHON_ROCKSDB,
        task_dir=folder,
        root=".",
        side_files=(CONFIG,) if by_rocksdict else (),
    )
