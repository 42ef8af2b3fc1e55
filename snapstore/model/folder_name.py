"""Names of folders that a snapshot can hold."""

import unicodedata

from snapstore.errors import UnsafePathError


def check_folder(folder: str) -> None:
    """Raise UnsafePathError unless a folder relative to the task directory stays inside it."""
    parts = [] if folder == "." else folder.split("/")
    if (
        any(part in {"", ".", ".."} or "\\" in part for part in parts)
        or any(unicodedata.category(character) in {"Cc", "Cs"} for character in folder)
        or (not parts and folder != ".")
    ):
        raise UnsafePathError(
            f"the folder {folder!r} has a name that no snapshot can hold",
            hint="rename it while the application is stopped",
            folder=ascii(folder),
        )


def child(folder: str, name: str) -> str:
    """Join a folder relative to the task directory (``.``: that itself) and a name in it."""
    return name if folder == "." else f"{folder}/{name}"
