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
    CopyingStorage,
    FileCopy,
    ObjectStat,
    ObjectStorage,
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

Listener = Callable[[Event], None]
Clock = Callable[[], datetime]
