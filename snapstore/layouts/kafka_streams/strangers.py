"""What does not belong into the folder of a window, session or join store.

From 4.3 on Kafka Streams stops at a name that it cannot read; older versions then open no segment
at their start (AbstractSegments.openExisting).
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from snapstore.errors import CaptureError, SourceDamagedError, StoreUnsupportedError
from snapstore.layouts.folders import is_there, list_dir
from snapstore.layouts.kafka_streams.family import FAMILY
from snapstore.model.segment_names import is_passed_over, segment_opened_instead, segment_start
from snapstore.model.segment_times import misplaced_segment
from snapstore.model.state_facts import Damage
from snapstore.model.store import StoreLocation
from snapstore.ports import StoreView

_KEYS = 3
"""Of each family of each segment: so many are enough, and cheap."""


def find_strangers(task_dir: Path, root: str, store: str) -> list[Damage]:
    """Return what is no segment in the folder of a segmented store, and names of one segment."""
    names = sorted(entry.name for entry in list_dir(task_dir / root))
    found = [
        Damage(
            file=f"{root}/{name}",
            reason=_why(store, name, names),
            starts_empty=segment_opened_instead(store, name) is not None,
            stranger=True,
            holds_rows=_holds_rows(task_dir / root / name),
        )
        for name in names
        if segment_start(store, name) is None and not is_passed_over(store, name)
    ]
    return found + [
        Damage(file=f"{root}/{others[0]}", reason=f"it is the same segment as {kept}")
        for kept, *others in _of_one_time(store, names)
    ]


def passed_over(task_dir: Path, root: str, store: str) -> tuple[str, ...]:
    """Say which folders of a segmented store the application leaves alone, with a warning."""
    names = sorted(entry.name for entry in list_dir(task_dir / root))
    return tuple(
        f"{task_dir / root / name}: no segment, since its date cannot be read; the application "
        "leaves it alone"
        for name in names
        if is_passed_over(store, name)
    )


def require_segments(location: StoreLocation, view: StoreView) -> None:
    """Raise CaptureError where a captured folder is no segment, or two are the same one, and
    SourceDamagedError where one holds the rows of another."""
    store = location.store.store
    names = sorted(database.rpartition("/")[2] for database in view.databases)
    for name in names:
        if segment_start(store, name) is None:
            raise CaptureError(
                f"{location.path / name} is no segment of {location.store}",
                hint="move it out of the state directory while the application is stopped",
                path=str(location.path / name),
            )
    for kept, *others in _of_one_time(store, names):
        raise CaptureError(
            f"{location.path / others[0]} is the same segment as {kept}, and the application "
            "cannot rename it",
            hint="keep the right one while the application is stopped: snapstore fsck",
            path=str(location.path / others[0]),
        )
    if damage := exchanged(location, [view]):
        raise SourceDamagedError(
            f"{location.store}: {damage.file} was exchanged for another segment: {damage.reason}",
            hint="give each segment its own name again, or let the store be rebuilt",
            file=damage.file,
        )


def exchanged(location: StoreLocation, views: Sequence[StoreView]) -> Damage | None:
    """Return the damage where a segment holds the rows of another one: a few keys of each tell."""
    samples = {
        database: [
            key
            for family in view.families(database)
            if family != FAMILY
            for key, _ in islice(_pairs(view, database, family), _KEYS)
        ]
        for view in views
        for database in view.databases
    }
    found = misplaced_segment(location.store.store, samples)
    if found is None:
        return None
    name, other = found
    return Damage(
        file=name,
        reason=f"it holds rows of the time of {other}: the application would not find them",
        silent=True,
    )


def _pairs(view: StoreView, database: str, family: str) -> Iterator[tuple[bytes, bytes]]:
    try:
        yield from view.scan(database, family)
    except StoreUnsupportedError:
        return


def _why(store: str, name: str, names: Sequence[str]) -> str:
    instead = segment_opened_instead(store, name)
    if instead is None:
        return "it is no segment"
    opened = "opens" if instead in names else "makes"
    return f"it is no segment: the application {opened} {instead} for it"


def _of_one_time(store: str, names: Sequence[str]) -> Iterator[list[str]]:
    by_start: defaultdict[int, list[str]] = defaultdict(list)
    for name in names:
        start = segment_start(store, name)
        if start is not None:
            by_start[start].append(name)
    yield from (each for each in by_start.values() if len(each) > 1)


def _holds_rows(path: Path) -> bool:
    """Whether there may be rows in it: a folder that is not empty."""
    return is_there(path, folder=True) and any(True for _ in list_dir(path))
