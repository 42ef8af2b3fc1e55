"""Whatever the guarantee, and however it is known: all verbs say the same of a snapshot."""

import itertools
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from snapstore import client
from snapstore.client import Snapstore
from snapstore.config import Config, load_config
from snapstore.errors import ExactlyOnceHotError, SnapstoreError
from snapstore.model.identity import ChangelogPartition
from snapstore.model.snapshot import Description
from snapstore.operations.replay_plan import ReplayGoal
from snapstore.testing.changelog_contract import numbered
from tests.support.log_in_memory import LogInMemory, LogRegistry
from tests.support.state_dirs import holding_locks, make_database
from tests.support.streams_store import APPLICATION

STATUS = {"open": 1, "closed": 0, "transactional": None}
RECORDS = 10
CHANGELOG = ChangelogPartition(f"{APPLICATION}-counts-changelog", 0)


class Place:
    """One store that has applied all of its changelog, marked as ``status`` says."""

    def __init__(self, folder: Path, status: str, writer: str) -> None:
        self.folder = folder
        self._numbers = itertools.count()
        self.state_dir = folder / "state"
        self.log = LogInMemory()
        self.log.create_as(CHANGELOG.topic)
        if writer == "at_least_once":
            self.log.append(CHANGELOG, numbered(RECORDS))
        else:
            self.log.append_in_transaction(CHANGELOG, numbered(RECORDS), commit=True)
        entries = {b"%s-0" % CHANGELOG.topic.encode(): (RECORDS - 1).to_bytes(8, "big")}
        mark = STATUS[status]
        if mark is not None:
            entries[b"status"] = mark.to_bytes(8, "big")
        rows = {each.key: each.value or b"" for each in numbered(RECORDS)}
        self.application_dir = self.state_dir / APPLICATION
        store = self.application_dir / "0_0" / "rocksdb" / "counts"
        make_database(store, {"default": rows, "offsets": entries})
        (self.application_dir / ".lock").touch()
        client.create(config=self.config("auto")).close()

    def config(self, guarantee: str) -> Config:
        return load_config(
            env={
                "SNAPSTORE_REPOSITORY": str(self.folder / "repository"),
                "SNAPSTORE_KAFKA_BOOTSTRAP": "in memory",
                "SNAPSTORE_CACHE_DIR": str(self.folder / "cache"),
                "SNAPSTORE_GUARANTEE": guarantee,
                "HOME": str(self.folder),
            }
        )

    def open(self, guarantee: str) -> Snapstore:
        return client.open(config=self.config(guarantee), registry=LogRegistry(self.log))

    @contextmanager
    def stopped_or(self, running: bool) -> Iterator[None]:
        with ExitStack() as held:
            if running:
                held.enter_context(holding_locks([self.application_dir / ".lock"]))
            yield

    def save(self, guarantee: str, *, running: bool) -> Description | SnapstoreError:
        with self.stopped_or(running), self.open(guarantee) as store:
            (outcome,) = store.snapshot(self.state_dir, capture="disk").outcomes
        if outcome.snapshot is not None:
            return outcome.snapshot.description
        assert outcome.error is not None
        return outcome.error

    def answers(self, guarantee: str) -> Mapping[str, str | None]:
        """What each verb says of the newest snapshot: the code of its refusal, or None."""
        found: dict[str, str | None] = {}
        with self.open(guarantee) as store:
            (fresh,) = store.status(application=APPLICATION).stores
            found["status"] = None if fresh.standing == "usable" else fresh.code
            (drilled,) = store.drill(application=APPLICATION).stores
            found["drill"] = None if drilled.outcome == "equal" else drilled.code
            for verb, replay in (("restore", None), ("restore --replay", ReplayGoal())):
                target = self.folder / f"target-{next(self._numbers)}"
                try:
                    store.restore(application=APPLICATION, target=target, replay=replay)
                except SnapstoreError as error:
                    found[verb] = error.code
                else:
                    found[verb] = None
        return found


@pytest.mark.parametrize("status", STATUS)
@pytest.mark.parametrize("writer", ["at_least_once", "exactly_once"])
@pytest.mark.parametrize("configured", ["auto", "at_least_once", "exactly_once_v2"])
@pytest.mark.parametrize("running", [True, False], ids=["running", "stopped"])
def test_h02_a_snapshot_is_refused_at_once_or_by_no_verb(
    tmp_path: Path, status: str, writer: str, configured: str, running: bool
) -> None:
    place = Place(tmp_path, status, writer)
    saved = place.save(configured, running=running)
    if isinstance(saved, SnapstoreError):
        assert isinstance(saved, ExactlyOnceHotError)
        told = writer if configured == "auto" else configured
        assert status != "transactional"
        assert told.startswith("exactly_once")
        return
    assert not (status == "open" and (configured, writer) == ("auto", "exactly_once"))
    assert set(place.answers(configured).values()) == {None}
    assert set(place.answers("auto").values()) == {None}


def test_h02_a_snapshot_notes_what_was_found_and_how(tmp_path: Path) -> None:
    place = Place(tmp_path, "open", "at_least_once")
    saved = place.save("auto", running=True)
    assert isinstance(saved, Description)
    assert (saved.status, saved.guarantee, saved.guarantee_found_by) == (
        "open",
        "at_least_once",
        "changelog",
    )


@pytest.mark.parametrize("changed", ["exactly_once_v2", "auto"])
def test_h02_no_verb_uses_a_snapshot_whose_guarantee_was_corrected_later(
    tmp_path: Path, changed: str
) -> None:
    place = Place(tmp_path, "open", "exactly_once")
    assert isinstance(place.save("at_least_once", running=True), Description)
    wanted = {"exactly_once_hot"} if changed == "exactly_once_v2" else {None}
    assert set(place.answers(changed).values()) == wanted


def test_h67_a_killed_application_s_store_is_not_called_closed(tmp_path: Path) -> None:
    place = Place(tmp_path, "open", "at_least_once")
    saved = place.save("auto", running=False)
    assert isinstance(saved, Description)
    assert (saved.source, saved.killed) == ("running", True)
    closed = Place(tmp_path / "closed", "closed", "at_least_once").save("auto", running=False)
    assert isinstance(closed, Description)
    assert (closed.source, closed.killed) == ("closed", False)


def test_h67_a_killed_application_s_store_is_refused_where_its_writes_may_abort(
    tmp_path: Path,
) -> None:
    refused = Place(tmp_path, "open", "exactly_once").save("auto", running=False)
    assert isinstance(refused, ExactlyOnceHotError)
    assert "marker of a transaction" in refused.message
