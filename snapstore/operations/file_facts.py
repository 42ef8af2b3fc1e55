"""What a file system tells of the files of a folder, without opening one of them."""

import os
import stat

FileFacts = tuple[str, int, int, int, int, int, int]


def file_facts(folder: str, prefix: str = "") -> list[FileFacts] | None:
    """Return name, device, inode, size, both times (ns) and mode of all files below a folder.

    None where a link or a device is among them. Raises OSError, also for what goes away meanwhile.
    """
    found: list[FileFacts] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            name = prefix + entry.name
            status = entry.stat(follow_symlinks=False)
            if stat.S_ISREG(status.st_mode):
                found.append(_facts(name, status))
            elif stat.S_ISDIR(status.st_mode):
                inner = file_facts(entry.path, f"{name}/")
                if inner is None:
                    return None
                found.append((f"{name}/", 0, 0, 0, 0, 0, 0))
                found += inner
            else:
                return None
    return found


def _facts(name: str, status: os.stat_result) -> FileFacts:
    return (
        name,
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
        status.st_mode,
    )
