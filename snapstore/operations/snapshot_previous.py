"""The snapshot of a store before the one that is being taken."""

from collections.abc import Mapping

import msgspec

from snapstore.model.listing import ListedSnapshot
from snapstore.model.snapshot import Description, FileEntry, Manifest
from snapstore.model.store import ChangelogPosition
from snapstore.operations.upload import Known


class Previous(msgspec.Struct, frozen=True, kw_only=True):
    """The newest snapshot of the same store: while it is listed, no sweep takes its blobs."""

    listed: ListedSnapshot
    manifest: Manifest

    @property
    def blobs(self) -> dict[str, str]:
        """Names by hash."""
        return {file.sha256: file.blob for file in self.manifest.files if file.blob is not None}

    @property
    def known(self) -> Known:
        sizes = frozenset(file.size for file in self.manifest.files if file.blob is not None)
        return Known(blobs=self.blobs, sizes=sizes)

    def says(self, entries: tuple[FileEntry, ...], tags: Mapping[str, str]) -> bool:
        """Whether it names the same blobs (those that were lost have another name now) and has
        those tags, so that another snapshot would say nothing more."""
        names = [file.blob for file in self.manifest.files]
        had = self.manifest.description.tags
        return names == [entry.blob for entry in entries] and tags.items() <= had.items()

    def same(self, description: Description, entries: tuple[FileEntry, ...]) -> bool:
        """Whether it holds the same files at the same offsets."""
        return _facts(self.manifest.files) == _facts(entries) and _positions(
            self.manifest.description
        ) == _positions(description)


def _facts(files: tuple[FileEntry, ...]) -> list[tuple[str, int, str]]:
    return [(file.name, file.mode, file.sha256) for file in files]


def _positions(of: Description) -> list[tuple[ChangelogPosition, bool]]:
    return [(entry.position, entry.fence is None) for entry in of.positions]
