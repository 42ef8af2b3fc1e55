"""Which blobs snapshots need, and which of them one run reads."""

import math
import random
from bisect import bisect_right
from collections.abc import Mapping, Sequence

import msgspec

from snapstore.model.listing import ListedSnapshot
from snapstore.model.snapshot import Manifest


class Need(msgspec.Struct, kw_only=True):
    """A blob and all that needs it."""

    blob: str
    sha256: str
    size: int
    files: set[str]
    snapshots: dict[str, ListedSnapshot]


def needs_of(manifests: Mapping[ListedSnapshot, Manifest]) -> dict[str, Need]:
    """Return every blob that the manifests name, once, with all that needs it."""
    needs: dict[str, Need] = {}
    for listed, manifest in manifests.items():
        for entry in manifest.files:
            if entry.blob is None:
                continue
            need = needs.setdefault(
                entry.blob,
                Need(
                    blob=entry.blob,
                    sha256=entry.sha256,
                    size=entry.size,
                    files=set(),
                    snapshots={},
                ),
            )
            need.files.add(entry.name)
            need.snapshots[listed.id] = listed
    return needs


def walk(needs: Sequence[Need], percent: float, after: str) -> list[Need]:
    """Return that share of the blobs in the order of their names, the first ``after`` a name.

    Runs that each go on after the last name of the one before read every blob in turn.
    """
    ordered = sorted(needs, key=lambda need: need.blob)
    count = math.ceil(len(ordered) * percent / 100)
    first = bisect_right(ordered, after, key=lambda need: need.blob)
    return [*ordered[first:], *ordered[:first]][:count]


def sample(needs: Sequence[Need], percent: float, seed: int) -> list[Need]:
    """Draw that share of the blobs, at least one if there are any; the same for the same seed."""
    count = math.ceil(len(needs) * percent / 100)
    return random.Random(seed).sample(sorted(needs, key=lambda need: need.blob), count)
