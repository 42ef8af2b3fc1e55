"""The library's face: open a repository, and its verbs are methods."""

from snapstore.client.catalog import ShownSnapshot, newest_of_each, utc_now
from snapstore.client.finding import discover
from snapstore.client.opening import check, create, open  # noqa: A004
from snapstore.client.prepare import prepare
from snapstore.client.replaying import replay
from snapstore.client.snapstore import Snapstore
from snapstore.client.trust import fsck, mend

__all__ = [
    "ShownSnapshot",
    "Snapstore",
    "check",
    "create",
    "discover",
    "fsck",
    "mend",
    "newest_of_each",
    "open",
    "prepare",
    "replay",
    "utc_now",
]
