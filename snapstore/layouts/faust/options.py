"""What can be set for the layout `faust`."""

from typing import Literal

import msgspec

Guarantee = Literal["auto", "at_least_once", "exactly_once", "exactly_once_v2"]


class FaustOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``changelogs`` gives the topic of a table where it is not the one that Faust makes.

    ``guarantee`` is the application's ``processing_guarantee``: the files do not show it, and
    ``auto`` takes it for Faust's default, at least once.

    ``assume_stopped_without_locks``: where the file system has no locks, nothing tells whether the
    application runs; it is taken for stopped.
    """

    changelogs: dict[str, str] = {}
    guarantee: Guarantee = "auto"
    assume_stopped_without_locks: bool = False

    @property
    def exactly_once(self) -> bool:
        return self.guarantee in ("exactly_once", "exactly_once_v2")
