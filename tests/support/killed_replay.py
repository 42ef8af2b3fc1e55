"""What is killed: a replay of a restored store, and a memory store's snapshots."""

import time
from collections.abc import Callable
from pathlib import Path

import snapstore
from snapstore import client
from snapstore.client import Snapstore
from snapstore.config import Config, load_config
from snapstore.memory import MemoryStore
from snapstore.model.changelog import ChangelogRecord
from snapstore.model.identity import ChangelogPartition, StoreId
from snapstore.model.report import Event
from snapstore.operations.replay_plan import ReplayGoal
from snapstore.testing.changelog_contract import Written
from tests.support.log_in_memory import LogInMemory, LogRegistry
from tests.support.no_exchange import forbid_exchange
from tests.support.restore_lab import contents
from tests.support.streams_store import APPLICATION, Pairs, make_key_value, topic

TASK = "0_0"
SAVED, RECORDS = 500, 4_500
END = RECORDS - 1
OFFSETS = f"{topic('counts')}-0".encode()


def replay(folder: str) -> None:
    """Apply the tail to the restored store. Each event is one more point to be killed at."""
    place = Path(folder)
    client.replay(
        place / "target",
        config=_config(place),
        registry=LogRegistry(_log(place)),
        listener=_marking(place),
        # A copy of the folder is not the one that was restored, whose fence is known.
        allow_unchecked_changelog=True,
        allow_missed_tombstones=True,
    )


def replay_without_exchange(folder: str) -> None:
    """The same on a file system that cannot exchange two directories."""
    forbid_exchange()
    replay(folder)


def place_for_replay(folder: Path) -> None:
    """A store restored to the first records of its log, and no replay yet."""
    (folder / "began").write_text(str(int(time.time() * 1000)))
    (folder / "logged").write_text(str(SAVED))
    client.create(config=_config(folder)).close()
    saved = Pairs(pairs=rows_at(SAVED - 1), applied_offset=SAVED - 1)
    make_key_value(folder / "state", TASK, "counts", saved)
    with _open(folder) as store:
        assert not store.snapshot(folder / "state").failed
        store.restore(target=folder / "target")
    (folder / "logged").write_text(str(RECORDS))


def restore_with_replay(folder: str) -> None:
    """Restore the store over the one that is there, and apply the tail before it is put in."""
    place = Path(folder)
    with _open(place) as store:
        store.restore(
            target=place / "target",
            replay=ReplayGoal(),
            replace=True,
            listener=_marking(place),
        )


def place_for_restore_with_replay(folder: Path) -> None:
    place_for_replay(folder)


def applied(place: Path) -> int:
    """Return the offset that the store notes; its rows must be as they were then."""
    (families,) = contents(place / "target", place / "scratch").values()
    assert isinstance(families, dict)
    offset = int.from_bytes(families["offsets"][OFFSETS], "big")
    assert families["default"] == rows_at(offset)
    return offset


def rows_at(offset: int) -> dict[bytes, bytes]:
    """Return what the records up to there leave."""
    rows: dict[bytes, bytes] = {}
    for key, value in _records()[: offset + 1]:
        if value is None:
            rows.pop(key, None)
        else:
            rows[key] = value
    return rows


def _records() -> list[tuple[bytes, bytes | None]]:
    return [
        (b"k%d" % (number % 700), None if number % 13 == 5 else b"%d" % number)
        for number in range(RECORDS)
    ]


def _log(place: Path) -> LogInMemory:
    """The same log in each process."""
    began_ms, logged = (int((place / name).read_text()) for name in ("began", "logged"))
    log = LogInMemory()
    log.append(
        log.create_as(topic("counts")),
        [Written(key, value, began_ms) for key, value in _records()[:logged]],
    )
    return log


def _open(place: Path) -> Snapstore:
    return client.open(config=_config(place), registry=LogRegistry(_log(place)))


def _config(place: Path) -> Config:
    return load_config(
        env={
            "SNAPSTORE_REPOSITORY": str(place / "repository"),
            "SNAPSTORE_KAFKA_BOOTSTRAP": "memory:1",
            "SNAPSTORE_CACHE_DIR": str(place / "cache"),
            "SNAPSTORE_APPLICATION": APPLICATION,
            "HOME": str(place),
        }
    )


def _marking(place: Path) -> Callable[[Event], None]:
    def heard(event: Event) -> None:
        del event
        (place / "heard").touch()

    return heard


MEMORY = StoreId("billing", "0", "balances")
BALANCES = ChangelogPartition("billing-balances", 0)
MEMORY_ENDS = (199, 249, 449)
"""Offsets at which a memory store is saved: a base, a delta, and a base in their place."""


def memory(folder: str) -> None:
    """Go on from the last saved state, wherever that was."""
    place = Path(folder)
    with (
        snapstore.open(str(place / "memory"), config=Config()) as repository,
        MemoryStore(MEMORY, place / "work", changelog=BALANCES) as store,
    ):
        for end in MEMORY_ENDS:
            start = store.positions.get(BALANCES, -1) + 1
            for offset in range(start, end + 1):
                key, value = _balance(offset)
                store.apply(ChangelogRecord(offset, key, value, 1000 + offset))
            if start <= end:
                store.snapshot(repository)
        if not {each.applied_offset for each in repository.list().snapshots} >= {MEMORY_ENDS[-1]}:
            store.snapshot(repository)


def place_for_memory(folder: Path) -> None:
    snapstore.create(str(folder / "memory"), config=Config()).close()


def memory_states(place: Path) -> list[int]:
    """Check every listed snapshot against the log's prefix; returns their offsets, newest first."""
    offsets = []
    with snapstore.open(str(place / "memory"), config=Config()) as repository:
        for listed in repository.list().snapshots:
            with MemoryStore.restore(
                repository,
                MEMORY,
                place / "checked" / f"{listed.id}-{time.monotonic_ns()}",
                ref=listed.id,
                allow_unchecked_changelog=True,
            ) as store:
                offset = store.positions[BALANCES]
                assert dict(store.range()) == balances_at(offset)
                offsets.append(offset)
        assert not repository.verify(read_data=True, open_store=True).damage
    return offsets


def balances_at(offset: int) -> dict[bytes, bytes]:
    return dict(_balance(each) for each in range(offset + 1))


def _balance(offset: int) -> tuple[bytes, bytes]:
    """A change of 50 keys is a delta; one of 200 is worth a new base."""
    return b"%03d" % (offset % 200), b"%d" % offset
