"""A state directory that would lose rows, and what it takes to mend it."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from snapstore.backends.rocksdb import RocksDBBackend
from snapstore.layouts.kafka_streams import KafkaStreamsLayout
from snapstore.model.report import Event
from snapstore.operations.fsck import FsckOptions, FsckPorts
from snapstore.operations.mend import mend
from snapstore.ports import Changelog
from tests.support.streams_store import Pairs, make_key_value, make_window, some_pairs

DAY_MS = 86_400_000


def uneven_state(state_dir: Path, applied: tuple[int, int, int] = (99, 40, 70)) -> Path:
    """Two tasks with a key-value and a window store at 99; but the segments of 0_0 as given.

    They are of the days 3, 1 and 2.
    """
    for task, offsets in (("0_0", applied), ("0_1", (99, 99, 99))):
        make_key_value(state_dir, task, "counts", Pairs(pairs=some_pairs(90), applied_offset=99))
        make_window(
            state_dir,
            task,
            "window",
            {
                day * DAY_MS: Pairs(pairs=some_pairs(50, start=day * 1000), applied_offset=offset)
                for day, offset in zip((3, 1, 2), offsets, strict=True)
            },
        )
    return state_dir


def ports(changelog: Changelog | None = None, events: list[Event] | None = None) -> FsckPorts:
    told: list[Event] = [] if events is None else events
    return FsckPorts(
        inspector=KafkaStreamsLayout(),
        backends={"rocksdb": RocksDBBackend()},
        clock=lambda: datetime.now(UTC),
        listener=told.append,
        changelog=changelog,
    )


def mend_in_child(reached: Callable[[str], None], *, state_dir: str) -> None:
    """What a child process does that is to be killed."""
    mend(Path(state_dir), ports(), FsckOptions(), reached=reached)


mend_all = f"{__name__}:{mend_in_child.__name__}"
