"""How many files this process may hold open."""

import resource
from pathlib import Path

_OPEN = Path("/proc/self/fd")
_SPARE = 256


def can_hold(count: int) -> bool:
    """Raise the soft limit of open files where ``count`` more need it; False if they are too many.

    A folder of more files than that is copied instead.
    """
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
