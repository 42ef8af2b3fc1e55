"""Snapshots of stream-processing state stores, taken from outside the application.

    with snapstore.open("s3://bucket/prefix") as repository:
        report = repository.snapshot("/var/lib/kafka-streams")
        newest = repository.find("orders/counts:3")
        repository.restore(application="orders", target="/data/state")

Verbs are methods of Snapstore and equal those of the command line. Errors are SnapstoreError and
its families. The names below are all that is public; what they need is imported when they are used.
"""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from snapstore.client import ShownSnapshot as ShownSnapshot
    from snapstore.client import Snapstore as Snapstore
    from snapstore.client import create as create
    from snapstore.client import discover as discover
    from snapstore.client import fsck as fsck
    from snapstore.client import mend as mend
    from snapstore.client import open as open  # noqa: A004
    from snapstore.client import prepare as prepare
    from snapstore.config import Config as Config
    from snapstore.config import load_config as load_config
    from snapstore.errors import CaptureError as CaptureError
    from snapstore.errors import ConfigError as ConfigError
    from snapstore.errors import ConflictError as ConflictError
    from snapstore.errors import IntegrityError as IntegrityError
    from snapstore.errors import NotFoundError as NotFoundError
    from snapstore.errors import PartialFailureError as PartialFailureError
    from snapstore.errors import RefusedError as RefusedError
    from snapstore.errors import SnapstoreError as SnapstoreError
    from snapstore.errors import UnavailableError as UnavailableError
    from snapstore.memory import MemoryStore as MemoryStore
    from snapstore.model.freshness import FreshnessReport as FreshnessReport
    from snapstore.model.identity import ChangelogPartition as ChangelogPartition
    from snapstore.model.identity import StoreId as StoreId
    from snapstore.model.listing import ListedSnapshot as ListedSnapshot
    from snapstore.model.retention import RetentionPolicy as RetentionPolicy
    from snapstore.model.snapshot import Snapshot as Snapshot
    from snapstore.model.store import StoreLocation as StoreLocation
    from snapstore.operations.drill_report import DrillReport as DrillReport
    from snapstore.operations.prune_report import PruneReport as PruneReport
    from snapstore.operations.repair_plan import RepairReport as RepairReport
    from snapstore.operations.repair_plan import RepositoryReport as RepositoryReport
    from snapstore.operations.restore_report import RestoreReport as RestoreReport
    from snapstore.operations.snapshot_report import SnapshotReport as SnapshotReport
    from snapstore.operations.verify_report import VerifyReport as VerifyReport
    from snapstore.ports import Layout as Layout
    from snapstore.ports import ObjectStorage as ObjectStorage
    from snapstore.ports import StoreBackend as StoreBackend

_HOMES = {
    "snapstore.client": (
        "ShownSnapshot",
        "Snapstore",
        "create",
        "discover",
        "fsck",
        "mend",
        "open",
        "prepare",
    ),
    "snapstore.config": ("Config", "load_config"),
    "snapstore.errors": (
        "CaptureError",
        "ConfigError",
        "ConflictError",
        "IntegrityError",
        "NotFoundError",
        "PartialFailureError",
        "RefusedError",
        "SnapstoreError",
        "UnavailableError",
    ),
    "snapstore.memory": ("MemoryStore",),
    "snapstore.model.freshness": ("FreshnessReport",),
    "snapstore.model.identity": ("ChangelogPartition", "StoreId"),
    "snapstore.model.listing": ("ListedSnapshot",),
    "snapstore.model.snapshot": ("Snapshot",),
    "snapstore.model.store": ("StoreLocation",),
    "snapstore.model.retention": ("RetentionPolicy",),
    "snapstore.operations.drill_report": ("DrillReport",),
    "snapstore.operations.prune_report": ("PruneReport",),
    "snapstore.operations.repair_plan": ("RepairReport", "RepositoryReport"),
    "snapstore.operations.restore_report": ("RestoreReport",),
    "snapstore.operations.snapshot_report": ("SnapshotReport",),
    "snapstore.operations.verify_report": ("VerifyReport",),
    "snapstore.ports": ("Layout", "ObjectStorage", "StoreBackend"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "CaptureError",
    "ChangelogPartition",
    "Config",
    "ConfigError",
    "ConflictError",
    "DrillReport",
    "FreshnessReport",
    "IntegrityError",
    "Layout",
    "ListedSnapshot",
    "MemoryStore",
    "NotFoundError",
    "ObjectStorage",
    "PartialFailureError",
    "PruneReport",
    "RefusedError",
    "RepairReport",
    "RepositoryReport",
    "RestoreReport",
    "RetentionPolicy",
    "ShownSnapshot",
    "Snapshot",
    "SnapshotReport",
    "Snapstore",
    "SnapstoreError",
    "StoreBackend",
    "StoreId",
    "StoreLocation",
    "UnavailableError",
    "VerifyReport",
    "__version__",
    "create",
    "discover",
    "fsck",
    "load_config",
    "mend",
    "open",
    "prepare",
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'snapstore' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
