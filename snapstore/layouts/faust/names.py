"""Names of folders and topics that Faust gives (faust-streaming 0.15: types/settings,
stores/rocksdb.py, tables/base.py).

A partition of a table lies in ``<datadir>/v<version>/tables/<table>-<partition>.db``, where the
version is the application's. The task is ``v<version>/<partition>``.
"""

import re
from pathlib import Path

from snapstore.errors import UnsafePathError
from snapstore.layouts.faust.options import FaustOptions
from snapstore.model.identity import ChangelogPartition, StoreId

CONFIG = "rocksdict-config.json"
LOCK = "LOCK"
TABLES = "tables"

_DATA_SUFFIX = "-data"
_VERSION = re.compile(r"v(0|[1-9][0-9]*)")
_TABLE = re.compile(r"(?P<table>.+)-(?P<partition>0|[1-9][0-9]*)\.db")
_TASK = re.compile(r"v(?P<version>0|[1-9][0-9]*)/(?P<partition>0|[1-9][0-9]*)")


def is_version(name: str) -> bool:
    return _VERSION.fullmatch(name) is not None


def default_application(data_dir: Path) -> str | None:
    """Return the application whose data directory would be called so (``<application>-data``)."""
    return data_dir.name.removesuffix(_DATA_SUFFIX) if _is_named_by_default(data_dir) else None


def store_in(folder: Path, application: str) -> StoreId | None:
    """Return which table and partition a folder is; None for another one."""
    match = _TABLE.fullmatch(folder.name)
    if match is None:
        return None
    version = folder.parent.parent.name
    return StoreId(application, f"{version}/{match['partition']}", match["table"])


def changelog_of(store: StoreId, options: FaustOptions) -> ChangelogPartition:
    """Return the changelog partition of a table, the configured topic first.

    From its second version on, an application has the version in its id.
    """
    version, partition = _split(store)
    owner = store.application if version <= 1 else f"{store.application}-v{version}"
    topic = options.changelogs.get(store.store) or f"{owner}-{store.store}-changelog"
    return ChangelogPartition(topic, partition)


def table_dir(data_dir: Path, store: StoreId) -> Path:
    """Return where a partition of a table belongs.

    Raises UnsafePathError when its names would lead elsewhere.
    """
    name = store.application
    if name in {"", ".", ".."} or "/" in name or "/" in store.store or not store.store:
        raise _unsafe(store)
    if not str(store).isprintable():
        raise _unsafe(store)
    version, partition = _split(store)
    return data_dir / f"v{version}" / TABLES / f"{store.store}-{partition}.db"


def _split(store: StoreId) -> tuple[int, int]:
    match = _TASK.fullmatch(store.task)
    if match is None:
        raise _unsafe(store)
    return int(match["version"]), int(match["partition"])


def _is_named_by_default(data_dir: Path) -> bool:
    return data_dir.name.endswith(_DATA_SUFFIX) and data_dir.name != _DATA_SUFFIX


def _unsafe(store: StoreId) -> UnsafePathError:
    return UnsafePathError(
        f"{str(store)!r} does not name a table of Faust",
        application=store.application,
        task=store.task,
        store=store.store,
    )
