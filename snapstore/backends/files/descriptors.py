"""How many files this process may hold open."""

import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_OPEN = Path("/proc/self/fd")
_SPARE = 256


class _About:
    """How many files the captures of this process are about to open."""

    lock = threading.Lock()
    count = 0


@contextmanager
def about_to_open(count: int) -> Iterator[bool]:
    """Raise the soft limit of open files where ``count`` more need it; False if they are too many.

    A folder of more files than that is copied instead. Captures that open theirs at the same time
    are counted, too.
    """
    with _About.lock:
        possible = _can_hold(_About.count + count)
        held = count if possible else 0
        _About.count += held
    try:
        yield possible
    finally:
        with _About.lock:
            _About.count -= held


def _can_hold(count: int) -> bool:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    in_use = sum(1 for _ in _OPEN.iterdir()) if _OPEN.is_dir() else _SPARE
    wanted = in_use + count + _SPARE
    if soft == resource.RLIM_INFINITY or wanted <= soft:
        return True
    if hard != resource.RLIM_INFINITY and wanted > hard:
        return False
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):
        return False
    return True
