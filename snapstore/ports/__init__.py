"""What the parts promise each other.

Adapters implement these protocols; operations know nothing else of them.
"""

from collections.abc import Callable
from datetime import datetime

from snapstore.model.report import Event
from snapstore.ports.changelog import Changelog, ReachableChangelog, Tail
from snapstore.ports.layout import (
    Discovery,
    FamilyNote,
    FileNote,
    Layout,
    Note,
    StartInspector,
    WatchingLayout,
)
from snapstore.ports.replay import (
    ContentLayout,
    DeletingLayout,
    MarkedLayout,
    ReplayLayout,
    ReplaySubject,
    StoreReplay,
)
from snapstore.ports.storage import (
    CheckingStorage,
    ClockedStorage,
    CopyingStorage,
    FileCopy,
    ObjectStat,
    ObjectStorage,
    ReservingStorage,
    TellingStorage,
    UnfinishedUpload,
    VersioningStorage,
)
from snapstore.ports.store import (
    Capture,
    InstallingBackend,
    Pair,
    SeekableView,
    StoreBackend,
    StoreView,
    StoreWriter,
    WritableBackend,
)

__all__ = [
    "Capture",
    "Changelog",
    "CheckingStorage",
    "Clock",
    "ClockedStorage",
    "ContentLayout",
    "CopyingStorage",
    "DeletingLayout",
    "Discovery",
    "FamilyNote",
    "FileCopy",
    "FileNote",
    "InstallingBackend",
    "Layout",
    "Listener",
    "MarkedLayout",
    "Note",
    "ObjectStat",
    "ObjectStorage",
    "Pair",
    "ReachableChangelog",
    "ReplayLayout",
    "ReplaySubject",
    "ReservingStorage",
    "SeekableView",
    "StartInspector",
    "StoreBackend",
    "StoreReplay",
    "StoreView",
    "StoreWriter",
    "Tail",
    "TellingStorage",
    "UnfinishedUpload",
    "VersioningStorage",
    "WatchingLayout",
    "WritableBackend",
]

VERSION = 1
"""Of these ports. A plug-in says in ``ports_version`` for which one it was written: another number
is refused when it is loaded. Methods that are added leave it as it is; other ones raise it."""

Listener = Callable[[Event], None]
Clock = Callable[[], datetime]
