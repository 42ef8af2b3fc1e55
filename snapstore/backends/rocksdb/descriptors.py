"""How many files this process may still open."""

import os
import resource
from pathlib import Path

_OPEN = Path("/proc/self/fd")
_SPARE = 64


def can_pin() -> bool:
    """Whether open files can be reached by a path, as a view of pinned files needs it."""
    return _OPEN.is_dir()


def reserve(count: int) -> bool:
    """Make room for ``count`` more descriptors and some to spare; False if there is none.

    Raises the soft limit of this process where that is needed and the hard one allows it.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return True
    wanted = _in_use() + count + _SPARE
    if wanted <= soft:
        return True
    if hard != resource.RLIM_INFINITY and wanted > hard:
        return False
    raised = 2 * wanted if hard == resource.RLIM_INFINITY else min(2 * wanted, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
    except (OSError, ValueError):
        return False
    return True


def _in_use() -> int:
    return len(os.listdir(_OPEN)) if can_pin() else 256  # noqa: PTH208 - thousands of them
