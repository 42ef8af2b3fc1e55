"""Every danger that was accepted is named in the report, and by the runs that come after."""

import itertools
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from snapstore import client
from snapstore.client import Snapstore
from snapstore.client.preparing import prepare
from snapstore.client.replaying import replay
from snapstore.client.trust import fsck
from snapstore.config import Config, load_config
from snapstore.errors import TombstoneHorizonError
from snapstore.model.identity import ChangelogPartition
from snapstore.operations.replay_plan import ReplayGoal
from snapstore.testing.changelog_contract import Written, numbered
from tests.support.log_in_memory import LogInMemory, LogRegistry
from tests.support.streams_store import APPLICATION, Pairs, make_key_value, topic

TOMBSTONES = "--allow-missed-tombstones was used"
UNCHECKED = "--allow-unchecked-changelog was used"
CHANGELOG = ChangelogPartition(topic("counts"), 0)


def two_days_later() -> datetime:
    return datetime.now(UTC) + timedelta(days=2)


class Place:
    """A snapshot at offset 9 of a log that has a gap after it: a deletion was compacted away."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = LogInMemory()
        self.log.create_as(CHANGELOG.topic)
        self.log.append(CHANGELOG, numbered(20))
        self._numbers = itertools.count()
        client.create(config=self.config()).close()
        pairs = {each.key: each.value or b"" for each in numbered(10)}
        content = Pairs(pairs=pairs, applied_offset=9)
        make_key_value(folder / "state", "0_0", "counts", content)
        with client.open(config=self.config(), registry=self.registry) as store:
            assert not store.snapshot(folder / "state", capture="disk").failed
        self.log.append(CHANGELOG, [Written(b"k1", None)])
        self.log.append(CHANGELOG, numbered(5, 30))
        self.log.compact(CHANGELOG, drop_tombstones=True)

    def config(self, *, kafka: bool = True) -> Config:
        env = {
            "SNAPSTORE_REPOSITORY": str(self.folder / "repository"),
            "SNAPSTORE_CACHE_DIR": str(self.folder / "cache"),
            "HOME": str(self.folder),
        }
        return load_config(env=env | ({"SNAPSTORE_KAFKA_BOOTSTRAP": "memory"} if kafka else {}))

    @property
    def registry(self) -> LogRegistry:
        return LogRegistry(self.log)

    def open(self, *, kafka: bool = True) -> Snapstore:
        """Two days later: the log keeps deletions for one."""
        return client.open(
            config=self.config(kafka=kafka), registry=self.registry, clock=two_days_later
        )

    def fsck(self, state_dir: Path) -> Sequence[str]:
        return fsck(
            state_dir, config=self.config(), registry=self.registry, clock=two_days_later
        ).notes

    def prepare(self, state_dir: Path) -> Sequence[str]:
        return prepare(
            state_dir, config=self.config(), registry=self.registry, clock=two_days_later
        ).notes

    def replay(self, state_dir: Path, *, unchecked: bool = False) -> Sequence[str]:
        return replay(
            state_dir,
            config=self.config(),
            registry=self.registry,
            clock=two_days_later,
            allow_missed_tombstones=True,
            allow_unchecked_changelog=unchecked,
        ).notes

    def target(self) -> Path:
        return self.folder / f"target-{next(self._numbers)}"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.parametrize("goal", [None, ReplayGoal()], ids=["restore", "restore --replay"])
def test_h16_a_restore_past_the_horizon_names_the_danger_in_notes_and_report(
    place: Place, goal: ReplayGoal | None
) -> None:
    with place.open() as store:
        with pytest.raises(TombstoneHorizonError):
            store.restore(application=APPLICATION, target=place.target(), replay=goal)
        report = store.restore(
            application=APPLICATION,
            target=place.target(),
            replay=goal,
            allow_missed_tombstones=True,
        )
    assert [note for note in report.notes if TOMBSTONES in note]
    assert report.stores[0].accepted == ("missed_tombstones",)


def test_h16_later_verbs_name_it_too(place: Place) -> None:
    target = place.target()
    with place.open() as store:
        store.restore(application=APPLICATION, target=target, allow_missed_tombstones=True)
    assert any(TOMBSTONES in note for note in place.fsck(target))
    assert any(TOMBSTONES in note for note in place.prepare(target))
    assert any(TOMBSTONES in note for note in place.replay(target))
    assert any(TOMBSTONES in note for note in place.fsck(target))


def test_h16_a_replay_of_unknown_origin_is_remembered(place: Place) -> None:
    state_dir = place.folder / "state"
    assert any(UNCHECKED in note for note in place.replay(state_dir, unchecked=True))
    assert any(UNCHECKED in note for note in place.fsck(state_dir))


def test_h16_a_restore_without_kafka_is_named_unchecked(place: Place) -> None:
    with place.open(kafka=False) as store:
        report = store.restore(
            application=APPLICATION, target=place.target(), allow_unchecked_changelog=True
        )
    assert [note for note in report.notes if UNCHECKED in note]
    assert report.stores[0].accepted == ("unchecked_changelog",)


def test_h16_an_override_that_was_not_needed_is_not_named(place: Place) -> None:
    with client.open(config=place.config(), registry=place.registry) as store:
        report = store.restore(
            application=APPLICATION,
            target=place.target(),
            allow_missed_tombstones=True,
            allow_unchecked_changelog=True,
        )
    assert not [note for note in report.notes if "was used" in note]
    assert report.stores[0].accepted == ()
