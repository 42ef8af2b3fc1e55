"""What does not belong into the folder of a window, session or join store.

From 4.3 on Kafka Streams stops at a name that it cannot read; older versions then open no segment
at their start (AbstractSegments.openExisting).
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from snapstore.errors import CaptureError
from snapstore.layouts.folders import is_there, list_dir
from snapstore.layouts.kafka_streams.names import (
    is_passed_over,
    segment_opened_instead,
    segment_start,
)
from snapstore.model.state_facts import Damage
from snapstore.model.store import StoreLocation


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


def require_segments(location: StoreLocation, databases: Sequence[str]) -> None:
    """Raise CaptureError where a captured folder is no segment, or two are the same one."""
    store = location.store.store
    names = sorted(database.rpartition("/")[2] for database in databases)
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
