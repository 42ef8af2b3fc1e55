"""What can be set for the layout `faust`."""

from typing import Literal

import msgspec

Guarantee = Literal["auto", "at_least_once", "exactly_once", "exactly_once_v2"]


class FaustOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``changelogs`` gives the topic of a table where it is not the one that Faust makes.

    ``guarantee`` is the application's ``processing_guarantee``: the files do not show it, and
    ``auto`` takes it for Faust's default, at least once.
    """

    changelogs: dict[str, str] = {}
    guarantee: Guarantee = "auto"

    @property
    def exactly_once(self) -> bool:
        return self.guarantee in ("exactly_once", "exactly_once_v2")
