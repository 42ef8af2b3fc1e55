"""Refuse names that the file system of the target takes for one: vfat, APFS, a casefolded ext4."""

import unicodedata
from collections import defaultdict
from collections.abc import Iterable

from snapstore.errors import UnsafePathError
from snapstore.model.folder import Folder

_PROBE = "probe"


def require_apart(own: Folder, names: Iterable[str]) -> None:
    """Raise UnsafePathError if two of the relative names would be one file or folder.

    ``own`` is a folder of this user alone, on that file system: names that differ in case or in
    their Unicode form only are made there, since no rule tells what a file system folds.
    """
    alike = names_alike(names)
    if not alike:
        return
    try:
        for group in alike:
            with own.make(_PROBE)[0] as probe:
                _require_apart(probe, group)
            own.remove_tree(_PROBE)
    finally:
        own.remove_tree(_PROBE)


def names_alike(names: Iterable[str]) -> list[list[str]]:
    """Return groups of names of one folder that differ in case or Unicode form only, sorted."""
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for name in names:
        parent = ""
        for part in name.split("/"):
            found[parent, _folded(part)].add(part)
            parent = f"{parent}/{part}"
    return sorted(sorted(group) for group in found.values() if len(group) > 1)


def _require_apart(probe: Folder, group: list[str]) -> None:
    for name in group:
        inner, made = probe.make(name)
        inner.close()
        if not made:
            raise UnsafePathError(
                f"refused: the file system takes the names {' and '.join(map(repr, group))} for"
                " one, and the stores would be mixed",
                hint="restore to a file system that tells them apart, or one store at a time to"
                " directories of their own",
                names=group,
            )


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKD", name).casefold())
