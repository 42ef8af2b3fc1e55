"""Compare the files of two snapshots."""

import msgspec

from snapstore.model.snapshot import FileEntry, Manifest


class ChangedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A name that both have, with other content."""

    name: str
    old_bytes: int
    new_bytes: int


class DiffedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of one snapshot. ``elsewhere`` is where the other has the same content, if it does."""

    name: str
    size_bytes: int
    elsewhere: str | None = None


class SnapshotDiff(msgspec.Struct, frozen=True, kw_only=True):
    """What changed from an older snapshot to a newer one.

    ``added_bytes`` counts what the newer brought that the older did not have under any name, and
    ``gone_bytes`` the reverse; ``shared_bytes`` is stored once for both.
    """

    shared: tuple[DiffedFile, ...]
    added: tuple[DiffedFile, ...]
    gone: tuple[DiffedFile, ...]
    changed: tuple[ChangedFile, ...]
    shared_bytes: int
    added_bytes: int
    gone_bytes: int


def diff(old: Manifest, new: Manifest) -> SnapshotDiff:
    """Return which files the two share, and which only one of them has.

    Files are the same when their content is; a name alone says nothing, since every fresh RocksDB
    counts its tables from the same number.
    """
    olds = {entry.name: entry for entry in old.files}
    news = {entry.name: entry for entry in new.files}
    both = sorted(olds.keys() & news.keys())
    shared = [name for name in both if olds[name].sha256 == news[name].sha256]
    old_contents = _contents(old)
    new_contents = _contents(new)
    return SnapshotDiff(
        shared=tuple(_file(news[name], {}) for name in shared),
        added=tuple(_file(news[name], old_contents) for name in sorted(news.keys() - olds.keys())),
        gone=tuple(_file(olds[name], new_contents) for name in sorted(olds.keys() - news.keys())),
        changed=tuple(
            ChangedFile(name=name, old_bytes=olds[name].size, new_bytes=news[name].size)
            for name in both
            if name not in set(shared)
        ),
        shared_bytes=_bytes(new_contents, new_contents.keys() & old_contents.keys()),
        added_bytes=_bytes(new_contents, new_contents.keys() - old_contents.keys()),
        gone_bytes=_bytes(old_contents, old_contents.keys() - new_contents.keys()),
    )


def _contents(manifest: Manifest) -> dict[str, FileEntry]:
    return {entry.sha256: entry for entry in manifest.files}


def _file(entry: FileEntry, others: dict[str, FileEntry]) -> DiffedFile:
    other = others.get(entry.sha256)
    return DiffedFile(
        name=entry.name, size_bytes=entry.size, elsewhere=None if other is None else other.name
    )


def _bytes(contents: dict[str, FileEntry], hashes: set[str]) -> int:
    return sum(contents[sha256].size for sha256 in hashes)
