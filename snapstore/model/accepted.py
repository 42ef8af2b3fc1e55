"""Dangers that an operator has accepted, in the words that later runs are told in."""

from collections.abc import Iterable, Mapping
from typing import Final, Literal

Danger = Literal["missed_tombstones", "unchecked_changelog"]

_TOLD: Final[Mapping[Danger, str]] = {
    "missed_tombstones": "--allow-missed-tombstones was used: keys that were deleted after the "
    "snapshot may be there again",
    "unchecked_changelog": "--allow-unchecked-changelog was used: nothing proved that the "
    "changelog is the one that the files are of",
}


def told(store: str, dangers: Iterable[Danger]) -> list[str]:
    """Return one sentence a danger."""
    return [f"{store}: {_TOLD[each]}" for each in dict.fromkeys(dangers)]
