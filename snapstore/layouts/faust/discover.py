"""Find the tables of Faust below its data directory."""

from pathlib import Path

from snapstore.errors import ConfigError, StoreNotFoundError, WrongGenerationError
from snapstore.layouts.faust.names import (
    CONFIG,
    TABLES,
    default_application,
    is_version,
    store_in,
)
from snapstore.model.identity import StoreId
from snapstore.model.snapshot import Description
from snapstore.model.store import StoreLocation
from snapstore.ports import Discovery

ROCKSDICT = "faust-rocksdict"
PYTHON_ROCKSDB = "faust-python-rocksdb"
TABLE = "table"
TABLE_OF_PYTHON_ROCKSDB = "table-python-rocksdb"

_CURRENT = "CURRENT"


def discover(data_dir: Path, application: str | None, layout: str) -> Discovery:
    """Return the tables of the application whose data directory that is.

    Raises StoreNotFoundError, or ConfigError when nothing tells which application it is.
    """
    if not data_dir.is_dir():
        raise StoreNotFoundError(f"{data_dir} is not there", path=str(data_dir))
    folder = data_dir.resolve()
    application = application or default_application(folder)
    if application is None:
        raise ConfigError(
            f"{data_dir} does not tell the application it belongs to",
            hint="give the application: the id of the Faust app",
        )
    found, notes = [], []
    for database in sorted(_databases(folder)):
        store = store_in(database, application)
        if store is None:
            continue
        if not (database / _CURRENT).exists():
            notes.append(f"{database} is skipped: it holds no RocksDB")
            continue
        found.append(_location(store, database, layout))
    if not found:
        notes.append(f"{data_dir}: no table of Faust, which lie in v1/{TABLES} and so on")
    found.sort(key=lambda location: location.store.order)
    return Discovery(locations=tuple(found), notes=tuple(notes))


def check_driver(data_dir: Path, description: Description) -> tuple[str, ...]:
    """Return a sentence when the application there has to change its driver for the snapshot.

    rocksdict goes on with files of python-rocksdb, and not the other way round (Faust's own
    warning). Raises WrongGenerationError.
    """
    drivers = {
        ROCKSDICT if (database / CONFIG).exists() else PYTHON_ROCKSDB
        for database in _databases(data_dir)
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


def _databases(data_dir: Path) -> list[Path]:
    return [
        database
        for database in data_dir.glob(f"v*/{TABLES}/*.db")
        if is_version(database.parent.parent.name) and database.is_dir()
    ]


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
