"""Decide what a restore will do to one task directory, before anything is written."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

import msgspec

from snapstore.errors import (
    ManifestInvalidError,
    NoSpaceError,
    TargetNotEmptyError,
    UnsafePathError,
)
from snapstore.model.accepted import Danger
from snapstore.model.identity import StoreId
from snapstore.model.resume import ResumePlan
from snapstore.model.snapshot import FileEntry, Manifest, Snapshot
from snapstore.operations.restore_back import Step
from snapstore.operations.restore_names import PER_HOST_NAMES

IMMUTABLE_SUFFIXES = (".sst", ".blob")
"""RocksDB writes such a file once and only ever unlinks it, so it may be linked."""
_MARGIN_BYTES = 1 << 20
_MARGIN_PER_DATABASE_BYTES = 256 << 10


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """A store to bring back, from which snapshot; ``skipped`` says which newer ones were not.

    ``resume`` are the ranges to replay, one a position, where the changelog was looked at.
    """

    snapshot: Snapshot
    manifest: Manifest
    skipped: tuple["Skipped", ...] = ()
    resume: tuple[ResumePlan, ...] = ()

    @property
    def records_to_replay(self) -> int | None:
        """No fewer than there are; None where the changelog was not looked at."""
        if len(self.resume) != len(self.snapshot.description.positions):
            return None
        return sum(plan.behind for plan in self.resume)

    @property
    def accepted(self) -> tuple[Danger, ...]:
        """The dangers without whose acceptance it would have been refused."""
        unchecked = self.snapshot.description.positions and not self.resume
        found = {each for plan in self.resume for each in plan.accepted}
        return ("unchecked_changelog",) if unchecked else tuple(sorted(found))

    @property
    def replay_before(self) -> datetime | None:
        """When the replay must have ended; None where compaction can take no deletion away."""
        return min((plan.deadline for plan in self.resume if plan.deadline), default=None)


class Skipped(msgspec.Struct, frozen=True, kw_only=True):
    """A newer snapshot that was passed over, and the reason as a sentence."""

    snapshot_id: str
    reason: str
    code: str


class FoundFile(msgspec.Struct, frozen=True):
    """A regular file in the target. ``sha256`` is None where no file of the snapshot is like it."""

    size: int
    sha256: str | None = None


class PresentStore(msgspec.Struct, frozen=True, kw_only=True):
    """A store that lies in the task directory already."""

    store: str
    root: str
    side_files: tuple[str, ...] = ()


class TaskTarget(msgspec.Struct, frozen=True, kw_only=True):
    """The place of a task as it was found.

    ``parts`` are bytes of blobs that an interrupted run has fetched, by SHA-256. ``odd`` are links,
    sockets and the like. ``free_bytes`` is what the file system of the target has left.
    """

    task_dir: Path
    current: Mapping[str, FoundFile] = {}
    odd: tuple[str, ...] = ()
    staged: Mapping[str, FoundFile] = {}
    parts: Mapping[str, int] = {}
    stores: tuple[PresentStore, ...] = ()
    free_bytes: int

    @property
    def empty(self) -> bool:
        return not self.current and not self.odd


class Fetch(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes to be read from the repository into one or several files of that content.

    ``have_bytes`` of them are in the partial file of an interrupted run.
    """

    blob: str
    sha256: str
    size: int
    names: tuple[str, ...]
    store: StoreId
    have_bytes: int = 0


class Reuse(msgspec.Struct, frozen=True, kw_only=True):
    """A file with the right hash: already staged, or to be taken from the current directory."""

    name: str
    size: int
    staged: bool


class Inline(msgspec.Struct, frozen=True, kw_only=True):
    """A small file whose bytes are in the manifest."""

    name: str
    content: bytes


class Keep(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a store that is not being restored: linked when immutable, else copied."""

    name: str
    size: int

    @property
    def linked(self) -> bool:
        return self.name.endswith(IMMUTABLE_SUFFIXES)


class StorePlan(msgspec.Struct, frozen=True, kw_only=True):
    """Which snapshot of one store goes in, and where each of its files comes from."""

    wanted: Wanted
    fetch: tuple[Fetch, ...]
    reuse: tuple[Reuse, ...]
    inline: tuple[Inline, ...]
    modes: Mapping[str, int]

    @property
    def store(self) -> StoreId:
        return self.wanted.snapshot.description.store

    @property
    def fetch_bytes(self) -> int:
        return sum(fetch.size - fetch.have_bytes for fetch in self.fetch)

    @property
    def reuse_bytes(self) -> int:
        return sum(reuse.size for reuse in self.reuse)


class TaskPlan(msgspec.Struct, frozen=True, kw_only=True):
    """All that happens to one task directory.

    ``needed_bytes`` is what staging will add to the disk; ``freed_bytes`` what removing the old
    directory gives back afterwards. ``left_out`` are files of the snapshots that belong to one host
    only. ``steps`` compare the stores that are replaced with what replaces them.
    """

    task_dir: Path
    stores: tuple[StorePlan, ...]
    keep: tuple[Keep, ...]
    kept_stores: tuple[str, ...]
    replaces: bool
    needed_bytes: int
    freed_bytes: int
    free_bytes: int
    left_out: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()


class RestorePlan(msgspec.Struct, frozen=True, kw_only=True):
    """The tasks in the order in which they are done; ``notes`` are sentences for the operator.

    ``left_out`` are stores of which no snapshot can be used, with the reasons.
    """

    target: Path
    tasks: tuple[TaskPlan, ...]
    notes: tuple[str, ...] = ()
    left_out: Mapping[StoreId, str] = {}


def plan_task(
    target: TaskTarget,
    wanted: Sequence[Wanted],
    *,
    replace: bool,
    keep_replaced: bool = False,
    steps: tuple[Step, ...] = (),
) -> TaskPlan:
    """Return what must be done so that the task holds the wanted snapshots.

    Other stores of the task are kept. Raises TargetNotEmptyError when something is there and
    ``replace`` is not given, UnsafePathError when it holds what cannot be kept, and
    ManifestInvalidError when two stores claim the same file.
    """
    if not target.empty and not replace:
        raise TargetNotEmptyError(
            f"{target.task_dir} is not empty"
            + (f": {'; '.join(map(str, steps))}" if steps else ""),
            hint="restore elsewhere, or pass --replace: the stores that are restored are replaced,"
            " others in that directory are kept",
            path=str(target.task_dir),
            stores=[present.store for present in target.stores],
            goes_back=[step.store for step in steps if step.back],
        )
    if target.odd:
        raise UnsafePathError(
            f"refused: {target.task_dir} holds links or special files, which would be lost",
            hint="move them away first",
            path=str(target.task_dir),
            names=[*target.odd],
        )
    restored = {each.snapshot.description.store.store: each for each in wanted}
    kept_stores = tuple(store for store in target.stores if store.store not in restored)
    keep = _kept_files(target, restored, kept_stores)
    _check_apart(wanted, kept_stores)
    stores = tuple(_plan_store(each, target) for each in wanted)
    needed = _needed_bytes(stores, keep)
    staged_from_current = sum(
        reuse.size
        for store in stores
        for reuse in store.reuse
        if not reuse.staged and reuse.name.endswith(IMMUTABLE_SUFFIXES)
    )
    staged_from_current += sum(file.size for file in keep if file.linked)
    freed = sum(file.size for file in target.current.values()) - staged_from_current
    return TaskPlan(
        task_dir=target.task_dir,
        stores=stores,
        keep=keep,
        kept_stores=tuple(store.store for store in kept_stores),
        replaces=not target.empty,
        needed_bytes=needed,
        freed_bytes=0 if keep_replaced else freed,
        free_bytes=target.free_bytes,
        steps=steps,
        left_out=tuple(
            entry.name
            for each in wanted
            for entry in each.manifest.files
            if entry.name in PER_HOST_NAMES
        ),
    )


def check_space(tasks: Iterable[TaskPlan]) -> None:
    """Raise NoSpaceError unless every task fits, one after the other, on its file system.

    The old directory of a task is removed only after the new one is in place, so what it frees
    counts for the tasks after it. All tasks are taken to lie on one file system.
    """
    balance = 0
    for task in tasks:
        balance += task.needed_bytes
        if balance > task.free_bytes:
            raise NoSpaceError(
                f"not enough space for {task.task_dir}: {balance} bytes are needed,"
                f" {task.free_bytes} are free",
                hint="free some space, or restore fewer tasks at a time",
                path=str(task.task_dir),
                needed_bytes=balance,
                free_bytes=task.free_bytes,
            )
        balance -= task.freed_bytes


def missing_stores(task: TaskPlan, known: Iterable[str]) -> tuple[str, ...]:
    """Return the stores of the task that are known of, but will not be in its directory.

    Under exactly-once the application wipes a task that lacks one of its stores and replays it
    whole (Kafka Streams 4.4.0), so an incomplete task gains nothing there.
    """
    there = {plan.store.store for plan in task.stores} | set(task.kept_stores)
    return tuple(sorted(set(known) - there))


def _plan_store(wanted: Wanted, target: TaskTarget) -> StorePlan:
    reuse: list[Reuse] = []
    inline: list[Inline] = []
    needed: dict[str, FileEntry] = {}
    names: dict[str, list[str]] = {}
    entries = [entry for entry in wanted.manifest.files if entry.name not in PER_HOST_NAMES]
    for entry in entries:
        if entry.inline is not None:
            inline.append(Inline(name=entry.name, content=entry.inline))
        elif _is(target.staged.get(entry.name), entry):
            reuse.append(Reuse(name=entry.name, size=entry.size, staged=True))
        elif _is(target.current.get(entry.name), entry):
            reuse.append(Reuse(name=entry.name, size=entry.size, staged=False))
        else:
            needed[entry.sha256] = entry
            names.setdefault(entry.sha256, []).append(entry.name)
    return StorePlan(
        wanted=wanted,
        fetch=tuple(
            _fetch(entry, names[sha256], wanted, target.parts) for sha256, entry in needed.items()
        ),
        reuse=tuple(reuse),
        inline=tuple(inline),
        modes={entry.name: entry.mode for entry in entries},
    )


def _fetch(
    entry: FileEntry, names: Iterable[str], wanted: Wanted, parts: Mapping[str, int]
) -> Fetch:
    if entry.blob is None:
        raise ManifestInvalidError(
            f"{entry.name} has neither bytes nor a blob", snapshot=wanted.snapshot.id
        )
    return Fetch(
        blob=entry.blob,
        sha256=entry.sha256,
        size=entry.size,
        names=tuple(names),
        store=wanted.snapshot.description.store,
        have_bytes=min(parts.get(entry.sha256, 0), entry.size),
    )


def _is(found: FoundFile | None, entry: FileEntry) -> bool:
    return found is not None and found.size == entry.size and found.sha256 == entry.sha256


def _kept_files(
    target: TaskTarget, restored: Mapping[str, Wanted], kept_stores: Sequence[PresentStore]
) -> tuple[Keep, ...]:
    """Return everything in the directory that belongs to no store that is being restored."""
    gone = set(PER_HOST_NAMES)
    roots = {store.root: True for store in kept_stores}
    for present in target.stores:
        if present.store in restored:
            roots[present.root] = False
            gone.update(present.side_files)
    for each in restored.values():
        roots[each.snapshot.description.root] = False
        gone.update(entry.name for entry in each.manifest.files)
    return tuple(
        Keep(name=name, size=file.size)
        for name, file in sorted(target.current.items())
        if name not in gone and roots.get(_owner(name, roots) or "", True)
    )


def _check_apart(wanted: Sequence[Wanted], kept_stores: Sequence[PresentStore]) -> None:
    names = Counter(entry.name for each in wanted for entry in each.manifest.files)
    names.update({name for store in kept_stores for name in store.side_files})
    clashes = {name for name, count in names.items() if count > 1}
    roots = {store.root for store in kept_stores}
    roots.update(each.snapshot.description.root for each in wanted)
    for each in wanted:
        clashes.update(
            entry.name
            for entry in each.manifest.files
            if _owner(entry.name, roots) not in {None, ".", each.snapshot.description.root}
        )
    if clashes:
        raise ManifestInvalidError(
            "files of one snapshot lie in the folder of another store", names=sorted(clashes)
        )


def _owner(name: str, roots: Collection[str]) -> str | None:
    """Return the deepest root that holds the file: a window store may be called ``rocksdb``."""
    while name:
        if name in roots:
            return name
        name = name.rpartition("/")[0]
    return "." if "." in roots else None


def _needed_bytes(stores: Sequence[StorePlan], keep: Sequence[Keep]) -> int:
    databases = 0
    needed = _MARGIN_BYTES
    for store in stores:
        databases += len(store.wanted.snapshot.description.databases)
        needed += sum(fetch.size * len(fetch.names) - fetch.have_bytes for fetch in store.fetch)
        needed += sum(len(inline.content) for inline in store.inline)
        needed += sum(
            reuse.size
            for reuse in store.reuse
            if not reuse.staged and not reuse.name.endswith(IMMUTABLE_SUFFIXES)
        )
    needed += sum(file.size for file in keep if not file.linked)
    return needed + databases * _MARGIN_PER_DATABASE_BYTES
