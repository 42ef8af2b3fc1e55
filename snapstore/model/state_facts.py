"""What was read of the stores of one task, before anybody judges it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from snapstore.model.identity import ChangelogPartition, StoreId
from snapstore.model.offsets import StoreOffset, store_offset
from snapstore.model.store import StoreLocation
from snapstore.model.unread import Unread

NotedOffsets = Mapping[ChangelogPartition, int | None]
"""Applied offsets, inclusive; None where one is noted as not known."""


class DatabaseFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What one database notes about the changelogs that its task reads.

    ``name`` is its folder relative to the task directory. ``keeps_offsets`` says whether it has a
    place for offsets at all; ``status`` is the mark that its last user has left. ``empty``: the
    folder was made, and RocksDB has not made its files.
    """

    name: str
    keeps_offsets: bool = False
    empty: bool = False
    offsets: NotedOffsets = {}
    status: Literal["open", "closed"] | None = None


class Damage(msgspec.Struct, frozen=True, kw_only=True):
    """A file that is missing or broken, relative to the task directory, and how it shows.

    ``starts_empty``: RocksDB takes the folder for a new database and begins an empty one.
    ``silent``: the application opens it, and has wrong rows. ``stranger``: the file belongs to no
    store; ``holds_rows``: what is in it may be of one all the same.
    """

    file: str
    reason: str
    starts_empty: bool = False
    stranger: bool = False
    holds_rows: bool = False
    silent: bool = False


class StoreFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One store: its databases (the newest segment first) and what is noted beside them.

    ``changelogs`` are the partitions that it is of, empty where nothing names one: then
    ``presumed`` is the one that it would have by its name, and ``candidates`` are topics of which
    any could be meant. ``lines`` are of the offset file. ``foreign`` are partitions that its files
    name and its task does not read.
    """

    location: StoreLocation
    databases: tuple[DatabaseFacts, ...] = ()
    changelogs: tuple[ChangelogPartition, ...] = ()
    candidates: tuple[str, ...] = ()
    presumed: ChangelogPartition | None = None
    lines: NotedOffsets = {}
    foreign: tuple[ChangelogPartition, ...] = ()
    damage: tuple[Damage, ...] = ()

    @property
    def store(self) -> StoreId:
        return self.location.store

    @property
    def keeps_offsets(self) -> bool:
        return any(database.keeps_offsets for database in self.databases)

    @property
    def empty(self) -> bool:
        """Whether there are folders, and nothing in them."""
        return bool(self.databases) and all(database.empty for database in self.databases)

    def noted(self, changelog: ChangelogPartition) -> StoreOffset:
        """Combine what the databases note."""
        return store_offset({each.name: each.offsets.get(changelog) for each in self.databases})


class OrphanLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of an offset file (its name: ``file``) whose store has no files.

    ``offset`` None: noted as not known.
    """

    store: StoreId
    changelog: ChangelogPartition
    offset: int | None
    file: str


class TaskFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One task directory.

    ``offset_file_fault`` says why an offset file cannot be read, ``unreadable_files`` names all
    such. ``foreign_lines`` are of stores or partitions of other tasks. ``leftovers`` are sentences
    on what lies about. ``unread`` are stores that are there and could not be looked at.
    """

    application: str
    task: str
    task_dir: Path
    has_offset_file: bool = False
    offset_file_fault: str | None = None
    unreadable_files: tuple[str, ...] = ()
    stores: tuple[StoreFacts, ...] = ()
    orphans: tuple[OrphanLine, ...] = ()
    foreign_lines: tuple[ChangelogPartition, ...] = ()
    leftovers: tuple[str, ...] = ()
    unread: tuple[Unread, ...] = ()

    @property
    def is_global(self) -> bool:
        """Whether its stores are global ones, which every instance has whole."""
        return self.task == "global"
