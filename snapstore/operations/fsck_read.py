"""Read what the databases of a store note, and whether their files are whole."""

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from snapstore.errors import (
    CaptureError,
    SourceDamagedError,
    StoreChangedError,
    StoreNotFoundError,
)
from snapstore.model.regular_file import may_not_be_read
from snapstore.model.state_facts import Damage, DatabaseFacts, StoreFacts
from snapstore.model.store import StoreLocation
from snapstore.operations.discover import backend_of
from snapstore.operations.file_facts import file_facts
from snapstore.operations.stopping import Stop
from snapstore.ports import StartInspector, StoreBackend, StoreView

CURRENT = "CURRENT"

_SECOND_LOOK_S = 0.1


class ReadStore(msgspec.Struct, frozen=True, kw_only=True):
    """A store with what its databases note; ``pairs`` were scanned."""

    facts: StoreFacts
    pairs: int = 0


def read_store(
    store: StoreFacts,
    inspector: StartInspector,
    backends: Mapping[str, StoreBackend],
    *,
    running: bool,
    scan: bool,
) -> ReadStore:
    """Open every database of a store for reading, and all its blocks with ``scan``.

    A store that an application has open is captured; of one that nobody writes to each database is
    opened by itself, so that one that is broken hides no other. Raises StoreChangedError when it
    changed meanwhile and may be looked at again, and CaptureError when it cannot be read.
    """
    if not store.databases:
        return ReadStore(facts=store)
    backend = backend_of(store.location, backends)
    try:
        if running:
            return _read_live(store, inspector, backend, scan=scan)
        before = _files(store)
        read = _read_closed(store, inspector, backend, scan=scan)
        if read.facts.damage != store.damage:
            # A folder that is moved, removed or filled is damaged once, and not twice.
            Stop().sleep(_SECOND_LOOK_S)
            again = _read_closed(store, inspector, backend, scan=scan)
            if again.facts.damage != read.facts.damage:
                raise _changed(store)
        if _files(store) != before:
            # What was said of files that did not stay is not to be believed, good or bad.
            raise _changed(store)
        return read
    except FileNotFoundError as error:
        raise _changed(store) from error
    except PermissionError as error:
        raise may_not_be_read(Path(error.filename or store.location.path)) from error
    except OSError as error:
        raise CaptureError(
            f"{store.store} cannot be read: {error.strerror or error}: {error.filename}",
            path=str(error.filename),
        ) from error


def _files(store: StoreFacts) -> object:
    """Look at the files that nobody should change; None where they cannot all be looked at."""
    try:
        files = file_facts(str(store.location.path))
    except PermissionError:
        return None
    return None if files is None else sorted(files)


def _changed(store: StoreFacts) -> StoreChangedError:
    return StoreChangedError(
        f"{store.store} changed or went away while it was read",
        hint="try again",
        path=str(store.location.path),
    )


def made_at(location: StoreLocation) -> datetime | None:
    """Return the time of the oldest file of a store; None where there is none.

    Files that go away meanwhile do not count.
    """
    times = []
    for folder, _, names in os.walk(location.path):
        for name in names:
            try:
                times.append(Path(folder, name).lstat().st_mtime)
            except FileNotFoundError:
                continue
    return datetime.fromtimestamp(min(times), UTC) if times else None


def _read_live(
    store: StoreFacts, inspector: StartInspector, backend: StoreBackend, *, scan: bool
) -> ReadStore:
    try:
        with backend.capture(store.location) as capture:
            known = {each.name: each for each in store.databases}
            present = tuple(
                known.get(name, DatabaseFacts(name=name)) for name in capture.view.databases
            )
            current = msgspec.structs.replace(store, databases=present)
            facts = inspector.read_databases(current, [capture.view])
            pairs = sum(1 for _ in _pairs(capture.view)) if scan else 0
    except SourceDamagedError as error:
        return ReadStore(facts=_with_damage(store, [_damage(error, store, None)]))
    except StoreNotFoundError as error:
        # It had databases a moment ago.
        raise _changed(store) from error
    return ReadStore(facts=facts, pairs=pairs)


def _read_closed(
    store: StoreFacts, inspector: StartInspector, backend: StoreBackend, *, scan: bool
) -> ReadStore:
    location = store.location
    views: list[StoreView] = []
    empty: list[str] = []
    damage: list[Damage] = []
    pairs = 0
    with ExitStack() as opened:
        for database in store.databases:
            if _is_empty(location.task_dir / database.name):
                empty.append(database.name)
                continue
            try:
                view = opened.enter_context(backend.open_view(location.task_dir, database.name))
                views.append(view)
                pairs += sum(1 for _ in _pairs(view)) if scan else 0
            except SourceDamagedError as error:
                damage.append(_damage(error, store, database.name))
            except StoreNotFoundError as error:
                # It had databases a moment ago.
                raise _changed(store) from error
        marked = tuple(
            msgspec.structs.replace(each, empty=each.name in empty) for each in store.databases
        )
        store = msgspec.structs.replace(store, databases=marked)
        try:
            store = inspector.read_databases(store, views)
        except SourceDamagedError as error:
            damage.append(_damage(error, store, None))
    return ReadStore(facts=_with_damage(store, damage), pairs=pairs)


def _pairs(view: StoreView) -> Iterator[tuple[bytes, bytes]]:
    for database in view.databases:
        for family in view.families(database):
            yield from view.scan(database, family)


def _is_empty(folder: Path) -> bool:
    """Whether RocksDB has made neither a table nor CURRENT there yet."""
    return not any(path.name == CURRENT or path.suffix == ".sst" for path in folder.iterdir())


def _damage(error: SourceDamagedError, store: StoreFacts, database: str | None) -> Damage:
    named = error.facts.get("file") or error.facts.get("database") or database
    file = str(named) if named is not None else store.location.root
    reason = str(error.facts.get("reason") or error.message)
    missing = not (store.location.task_dir / file).exists()
    return Damage(
        file=file,
        reason=reason.removeprefix(f"{file} is missing or broken: "),
        starts_empty=file.endswith(f"/{CURRENT}") and missing,
    )


def _with_damage(store: StoreFacts, damage: list[Damage]) -> StoreFacts:
    return msgspec.structs.replace(store, damage=(*store.damage, *damage))
