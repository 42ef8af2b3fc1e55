"""The library's face: open a repository, and its verbs are methods.

Each part is imported when it is first asked for: a listing needs no restore.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from snapstore.client.catalog import ShownSnapshot, newest_of_each
    from snapstore.client.finding import discover
    from snapstore.client.listing import open_catalog, open_taking
    from snapstore.client.moments import utc_now
    from snapstore.client.opening import check, create, open, open_to_repair  # noqa: A004
    from snapstore.client.preparing import prepare
    from snapstore.client.replaying import replay
    from snapstore.client.snapstore import Snapstore
    from snapstore.client.taking import SnapshotVerbs
    from snapstore.client.trust import fsck, mend

_HOMES = {
    "catalog": ("ShownSnapshot", "newest_of_each"),
    "finding": ("discover",),
    "listing": ("open_catalog", "open_taking"),
    "moments": ("utc_now",),
    "opening": ("check", "create", "open", "open_to_repair"),
    "preparing": ("prepare",),
    "replaying": ("replay",),
    "snapstore": ("Snapstore",),
    "taking": ("SnapshotVerbs",),
    "trust": ("fsck", "mend"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "ShownSnapshot",
    "SnapshotVerbs",
    "Snapstore",
    "check",
    "create",
    "discover",
    "fsck",
    "mend",
    "newest_of_each",
    "open",
    "open_catalog",
    "open_taking",
    "open_to_repair",
    "prepare",
    "replay",
    "utc_now",
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'snapstore.client' has no attribute {name!r}")
    return getattr(importlib.import_module(f"snapstore.client.{home}"), name)
