"""How many bytes a folder holds."""

import os
from contextlib import suppress
from pathlib import Path


def size_on_disk(folder: Path) -> int:
    """Return the bytes of all files below a folder; what cannot be looked at counts as nothing."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(place, name)).st_size  # noqa: PTH118 - thousands
    return total
