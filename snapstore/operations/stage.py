"""Build the complete new task directory in the work folder, beside the one in use."""

import os
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath

import msgspec

from snapstore.errors import (
    IntegrityError,
    RefusedError,
    SourceDamagedError,
    StoreNotFoundError,
    UnknownOffsetError,
)
from snapstore.model.folder import shown
from snapstore.model.identity import StoreId
from snapstore.model.manifest_rules import lies_in
from snapstore.model.report import Advanced
from snapstore.model.snapshot import Description
from snapstore.model.store import ChangelogPosition, StoreLocation
from snapstore.operations.fetch import BlobToFetch, fetch_all
from snapstore.operations.quarantine import copy_over
from snapstore.operations.rate_limit import RateLimit
from snapstore.operations.restore_names import check_note_name
from snapstore.operations.restore_plan import Fetch, StorePlan, TaskPlan
from snapstore.operations.stage_files import FileWriter, os_errors, sync_tree
from snapstore.operations.swap import Reached
from snapstore.operations.work_area import PARTS, STAGING, WorkArea
from snapstore.ports import (
    FamilyNote,
    FileNote,
    InstallingBackend,
    Layout,
    Listener,
    ObjectStorage,
    StoreBackend,
    StoreView,
)

_FILE_MODE = 0o640


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """What the work on a task needs beside its plan. ``backends`` are by their registered name."""

    storage: ObjectStorage
    layout: Layout
    backends: Mapping[str, StoreBackend]
    listener: Listener
    parallel: int = 8
    limit: RateLimit | None = None


def stage(
    plan: TaskPlan, area: WorkArea, parts: Parts, writer: FileWriter, reached: Reached
) -> None:
    """Make the staged directory complete, verified and durable.

    What an interrupted run has left there is used where its hash is right, and removed otherwise.
    Raises IntegrityError with ``stores`` when blobs are missing or broken, or when the staged files
    do not say the offsets they should.
    """
    staged = _begin(plan, area, writer)
    reached("staging made")
    _remove_strangers(area, plan)
    _take_from_current(staged, plan, area, writer)
    reached("other stores taken over")
    _fetch(staged, plan, area, parts, writer, reached)
    reached("files fetched")
    _write_inline(staged, plan, writer, reached)
    reached("small files written")
    install(staged, plan.stores, parts)
    reached("stores installed")
    note(staged, plan.stores, parts, writer, reached)
    reached("offsets noted")
    verify_staged(staged, plan.stores, parts)
    settle(staged, writer)
    reached("staging durable")


def stage_copy(plan: TaskPlan, area: WorkArea, writer: FileWriter) -> Path:
    """Make the staged directory hold what the current one holds; returns it.

    Tables are linked, so the current directory stays as it is whatever is done to the copy.
    """
    staged = _begin(plan, area, writer)
    _remove_strangers(area, plan)
    _take_from_current(staged, plan, area, writer)
    settle(staged, writer)
    return staged


def install(staged: Path, stores: Sequence[StorePlan], parts: Parts) -> None:
    """Let backends whose captured files are not yet a store make one of them."""
    for description in map(_description, stores):
        backend = parts.backends[description.backend]
        if isinstance(backend, InstallingBackend):
            with staged_errors(description), os_errors(staged / description.root):
                backend.install(staged, description.root)


def note(
    staged: Path,
    stores: Sequence[StorePlan],
    parts: Parts,
    writer: FileWriter,
    reached: Reached,
) -> None:
    """Write the offsets of the restored stores into the staged directory."""
    descriptions = [_description(store) for store in stores]
    with ExitStack() as open_views:
        views: list[StoreView] = [
            open_views.enter_context(open_staged(staged, description, parts))
            for description in descriptions
        ]
        notes = parts.layout.notes(staged, descriptions, views)
    for each in notes:
        match each:
            case FileNote(name=name, content=None):
                check_note_name(name)
                _clear(staged / name)
            case FileNote(name=name, content=bytes() as content):
                check_note_name(name)
                if (staged / name).is_dir():
                    _clear(staged / name)
                writer.write(staged / name, content, _FILE_MODE)
            case FamilyNote(database=database, family=family, entries=entries):
                backend = parts.backends[_backend_of(database, descriptions)]
                backend.write_entries(staged / database, family, entries)
        reached("note written")


def _clear(path: Path) -> None:
    """Remove what has the name of a note, even a folder."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def verify_staged(staged: Path, stores: Sequence[StorePlan], parts: Parts) -> None:
    """Open every restored store and raise IntegrityError unless it says the offsets it should."""
    for store in stores:
        description = _description(store)
        location = staged_location(staged, store)
        noted = parts.layout.noted_offsets(location)
        with open_staged(staged, description, parts) as view:
            if not description.positions:
                continue
            found = parts.layout.positions(location, noted, view, running=False)
        expected = [each.position for each in description.positions]
        if _by_changelog(found) != _by_changelog(expected):
            raise IntegrityError(
                f"the staged files of {description.store} do not say the offsets of the snapshot",
                hint="the target was left as it was",
                stores=[str(description.store)],
                expected=_by_changelog(expected),
                found=_by_changelog(found),
            )


@contextmanager
def open_staged(staged: Path, description: Description, parts: Parts) -> Iterator[StoreView]:
    """Open a staged store."""
    with (
        staged_errors(description),
        parts.backends[description.backend].open_view(staged, description.root) as view,
    ):
        yield view


@contextmanager
def staged_errors(description: Description) -> Iterator[None]:
    """What is wrong with the files of a staged store was wrong in the snapshot already."""
    try:
        yield
    except (SourceDamagedError, StoreNotFoundError, UnknownOffsetError) as error:
        raise IntegrityError(
            f"the snapshot of {description.store} does not open as a store: {shown(error.message)}",
            hint="the target was left as it was; snapstore verify --open finds such snapshots",
            stores=[str(description.store)],
        ) from error


def staged_location(staged: Path, store: StorePlan) -> StoreLocation:
    """Return the restored store as a layout would find it in that task directory."""
    description = _description(store)
    return StoreLocation(
        store=description.store,
        layout=description.layout,
        backend=description.backend,
        store_type=description.store_type,
        generation=description.generation,
        task_dir=staged,
        root=description.root,
        side_files=tuple(name for name in store.modes if not lies_in(name, description.root)),
    )


def _begin(plan: TaskPlan, area: WorkArea, writer: FileWriter) -> Path:
    """Make the staging folder; what is there already is this user's own."""
    staged = area.staged(plan.task_dir.name)
    writer.make_folder(staged)
    return staged


def _remove_strangers(area: WorkArea, plan: TaskPlan) -> None:
    """Leave only the files that the plan found there with the right hash."""
    good = {reuse.name for store in plan.stores for reuse in store.reuse if reuse.staged}
    needed = {str(parent) for name in good for parent in PurePosixPath(name).parents}
    staged = area.staged(plan.task_dir.name)
    with os_errors(staged), area.own.below(f"{STAGING}/{plan.task_dir.name}") as folder:
        strangers = [
            name
            for name, status in folder.walk()
            if name not in (needed if stat.S_ISDIR(status.st_mode) else good)
        ]
        for name in reversed(strangers):
            parent, _, last = name.rpartition("/")
            with folder.below(parent) as around:
                around.remove_tree(last)


def _take_from_current(staged: Path, plan: TaskPlan, area: WorkArea, writer: FileWriter) -> None:
    names = [keep.name for keep in plan.keep]
    names += [reuse.name for store in plan.stores for reuse in store.reuse if not reuse.staged]
    for name in names:
        source = f"{plan.task_dir.name}/{name}"
        fd = area.tasks.open_file(source)
        try:
            mode = os.fstat(fd).st_mode
        finally:
            os.close(fd)
        copy_over(area.tasks, source, staged / name, mode, writer)


def _fetch(
    staged: Path,
    plan: TaskPlan,
    area: WorkArea,
    parts: Parts,
    writer: FileWriter,
    reached: Reached,
) -> None:
    folder = area.part_of(PARTS)
    writer.make_folder(folder)
    fetches = _merged(plan.stores)
    jobs = {
        sha256: BlobToFetch(blob=fetch.blob, sha256=sha256, size=fetch.size, part=folder / sha256)
        for sha256, (fetch, _) in fetches.items()
    }
    modes = {name: mode for store in plan.stores for name, mode in store.modes.items()}

    def advanced(job: BlobToFetch, amount: int) -> None:
        for store in fetches[job.sha256][1]:
            parts.listener(Advanced(store=store, stage="download", amount=amount))
        reached("bytes fetched")

    def fetched(job: BlobToFetch) -> None:
        first, *others = fetches[job.sha256][0].names
        for name in (first, *others):
            writer.make_folder((staged / name).parent)
        for name in others:
            writer.copy(area.own, f"{PARTS}/{job.sha256}", staged / name, modes[name])
        writer.adopt(job.part, modes[first])
        with os_errors(staged / first):
            job.part.rename(staged / first)
        reached("file fetched")

    try:
        fetch_all(
            parts.storage,
            list(jobs.values()),
            parallel=parts.parallel,
            limit=parts.limit,
            advanced=advanced,
            fetched=fetched,
        )
    except IntegrityError as error:
        _name_the_files(error, fetches)
        raise


def _merged(stores: Sequence[StorePlan]) -> dict[str, tuple[Fetch, tuple[StoreId, ...]]]:
    """One fetch for each content, with the stores that wait for it."""
    merged: dict[str, tuple[Fetch, tuple[StoreId, ...]]] = {}
    for store in stores:
        for fetch in store.fetch:
            earlier = merged.get(fetch.sha256)
            if earlier is None:
                merged[fetch.sha256] = (fetch, (store.store,))
            else:
                names = (*earlier[0].names, *fetch.names)
                merged[fetch.sha256] = (
                    msgspec.structs.replace(earlier[0], names=names),
                    (*earlier[1], store.store),
                )
    return merged


def _name_the_files(
    error: IntegrityError, fetches: Mapping[str, tuple[Fetch, tuple[StoreId, ...]]]
) -> None:
    blob = error.facts.get("blob")
    for fetch, stores in fetches.values():
        if fetch.blob == blob:
            error.facts["files"] = list(fetch.names)
            error.facts["stores"] = [str(store) for store in stores]


def _write_inline(staged: Path, plan: TaskPlan, writer: FileWriter, reached: Reached) -> None:
    """Write the small files; CURRENT last, since a database without it cannot be opened."""
    files = [
        (inline.name.rpartition("/")[2] == "CURRENT", inline.name, inline.content, store)
        for store in plan.stores
        for inline in store.inline
    ]
    for _, name, content, store in sorted(files, key=lambda file: file[:2]):
        writer.make_folder((staged / name).parent)
        writer.write(staged / name, content, store.modes[name])
        reached("small file written")


def settle(staged: Path, writer: FileWriter) -> None:
    """Give all files their owner, mode and time, and make them durable.

    A linked table has the owner and mode that the application gave it, and keeps them.
    """
    for parent, _, names in os.walk(staged):
        for path in (Path(parent) / name for name in names):
            status = path.lstat()
            if stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
                writer.adopt(path, status.st_mode)
    with os_errors(staged):
        os.utime(staged)
    sync_tree(staged)


def _backend_of(database: str, descriptions: Sequence[Description]) -> str:
    for description in descriptions:
        if database in description.databases:
            return description.backend
    raise RefusedError(
        f"an offset was to be noted in {database}, which no restored store has", database=database
    )


def _by_changelog(positions: Sequence[ChangelogPosition]) -> dict[str, int]:
    return {str(position.changelog): position.applied_offset for position in positions}


def _description(store: StorePlan) -> Description:
    return store.wanted.manifest.description
