"""A run that skips what has not changed need not always ask the repository, and never guesses."""

import shutil
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from snapstore import client
from snapstore.client import Snapstore, answering
from snapstore.config import Config, load_config
from snapstore.errors import ConfigError
from snapstore.model.retention import RetentionPolicy
from snapstore.operations.snapshot_report import SnapshotReport, StoreOutcome
from snapstore.repository import keys
from tests.support.moto import make_bucket
from tests.support.state_dirs import holding_locks
from tests.support.streams_store import Pairs, make_key_value, some_pairs

pytestmark = pytest.mark.slow

TEN_MINUTES = timedelta(minutes=10)


class Host:
    """A host with two stores and a cache of its own; its clock goes only when it is told to.

    It begins fifty minutes ahead, when no file is young any more.
    """

    def __init__(self, folder: Path, endpoint_url: str, bucket: str) -> None:
        self.state = folder / "state"
        self.cache = folder / "cache"
        self.now = datetime.now(UTC) + timedelta(minutes=50)
        self.settings: dict[str, object] = {
            "repository.url": f"s3://{bucket}/snapshots",
            "repository.options": {"endpoint_url": endpoint_url},
            "repository.accept_unverified_uploads": True,
            "state.dir": str(self.state),
            "state.cache_dir": str(self.cache),
        }
        self.counts = make_key_value(self.state, "0_0", "counts", _pairs(20))
        self.totals = make_key_value(self.state, "0_1", "totals", _pairs(30))

    @property
    def config(self) -> Config:
        overrides = {key: (value, "test") for key, value in self.settings.items()}
        return load_config(env={}, overrides=overrides)

    def clock(self) -> datetime:
        return self.now

    def open(self) -> Snapstore:
        return client.open(config=self.config, clock=self.clock)

    def answer(self, *stores: str) -> SnapshotReport | None:
        """Run without asking, if that can be."""
        return client.unchanged(self.config, stores=stores, clock=self.clock)

    def run(self, *, skip_unchanged: bool = True) -> tuple[StoreOutcome, ...]:
        """Run, and ask the repository."""
        with self.open() as repository:
            return repository.snapshot(skip_unchanged=skip_unchanged).outcomes

    def record(self) -> Path:
        (path,) = (self.cache / "runs").glob("*.run")
        return path


def _pairs(count: int) -> Pairs:
    return Pairs(pairs=some_pairs(count), applied_offset=count)


def _statuses(outcomes: tuple[StoreOutcome, ...]) -> list[str]:
    return [outcome.status for outcome in outcomes]


def _opened(outcomes: tuple[StoreOutcome, ...]) -> list[bool]:
    return [outcome.attempts > 0 for outcome in outcomes]


@pytest.fixture
def bucket(moto_url: str, s3_credentials: None) -> str:
    name = f"b{uuid.uuid4().hex}"
    make_bucket(moto_url, name)
    return name


@pytest.fixture
def host(tmp_path: Path, moto_url: str, bucket: str) -> Host:
    """One that has taken a snapshot of each store."""
    host = Host(tmp_path / "host", moto_url, bucket)
    client.create(config=host.config).close()
    assert _statuses(host.run()) == ["stored", "stored"]
    return host


@pytest.fixture
def other(tmp_path: Path, moto_url: str, bucket: str) -> Host:
    """Another one, without stores that matter, on the same repository."""
    return Host(tmp_path / "other", moto_url, bucket)


def test_what_the_last_run_saw_is_told_again_and_said_to_be_old(host: Host) -> None:
    asked = host.run()
    assert _statuses(asked) == ["unchanged", "unchanged"]
    report = host.answer()
    assert report is not None
    assert _statuses(report.outcomes) == ["unchanged", "unchanged"]
    for told, before in zip(report.outcomes, asked, strict=True):
        assert told.same_as == before.same_as
        assert told.same_content
        assert told.listed_at == host.now
        assert before.listed_at is None
        assert (told.reused_files, told.reused_bytes) == (before.reused_files, before.reused_bytes)
        assert told.remarks[:-1] == before.remarks
        assert told.remarks[-1].startswith("not asked again: the repository listed its snapshot at")


def test_a_run_right_after_the_first_snapshots_is_answered_too(host: Host) -> None:
    report = host.answer()
    assert report is not None
    assert [outcome.reused_files > 0 for outcome in report.outcomes] == [True, True]


def test_one_store_can_be_asked_for(host: Host) -> None:
    report = host.answer("totals")
    assert report is not None
    assert [outcome.store.store for outcome in report.outcomes] == ["totals"]


def test_a_plain_run_is_a_snapshot_each_time_and_leaves_the_record_of_the_newest(
    host: Host,
) -> None:
    host.now += timedelta(seconds=1)
    stored = host.run(skip_unchanged=False)
    assert _statuses(stored) == ["stored", "stored"]
    report = host.answer()
    assert report is not None
    for told, before in zip(report.outcomes, stored, strict=True):
        assert told.same_as is not None
        assert before.snapshot is not None
        assert told.same_as.id == before.snapshot.id


@pytest.mark.parametrize(
    ("passed", "is_answered"),
    [
        pytest.param(TEN_MINUTES, True, id="within the bound"),
        pytest.param(TEN_MINUTES + timedelta(seconds=1), False, id="past the bound"),
        pytest.param(-timedelta(seconds=1), False, id="the clock went back"),
    ],
)
def test_the_repository_is_asked_again_in_time(
    host: Host, passed: timedelta, is_answered: bool
) -> None:
    host.now += passed
    assert (host.answer() is not None) == is_answered


def test_a_run_that_asks_opens_no_store_and_starts_the_time_anew(host: Host) -> None:
    host.now += TEN_MINUTES * 2
    outcomes = host.run()
    assert _statuses(outcomes) == ["unchanged", "unchanged"]
    assert _opened(outcomes) == [False, False]
    host.now += TEN_MINUTES
    assert host.answer() is not None


def _touch(host: Host) -> None:
    next(host.counts.glob("*.sst")).touch()


def _replace_by_a_copy(host: Host) -> None:
    table = next(host.counts.glob("*.sst"))
    copy = shutil.copy2(table, table.with_name("copy"))
    Path(copy).replace(table)


def _write(host: Host) -> None:
    make_key_value(host.state, "0_0", "counts", _pairs(40))


def _note_an_offset(host: Host) -> None:
    (host.counts.parents[1] / ".checkpoint").write_text("0\n1\norders-counts-changelog 0 3\n")


def _link_a_file(host: Host) -> None:
    (host.counts / "more").symlink_to(host.counts / "CURRENT")


def _add_a_store(host: Host) -> None:
    make_key_value(host.state, "0_0", "more", _pairs(5))


def _remove_a_file(host: Host) -> None:
    next(host.counts.glob("OPTIONS-*")).unlink()


@pytest.mark.parametrize(
    "change",
    [
        _touch,
        _replace_by_a_copy,
        _write,
        _note_an_offset,
        _link_a_file,
        _add_a_store,
        _remove_a_file,
    ],
)
def test_a_store_that_looks_otherwise_is_looked_into(
    host: Host, change: Callable[[Host], None]
) -> None:
    change(host)
    assert host.answer() is None
    opened = {outcome.store.store: outcome.attempts > 0 for outcome in host.run()}
    assert opened["counts"]
    assert not opened["totals"]


def test_an_application_that_runs_now_and_did_not_then_makes_a_difference(host: Host) -> None:
    lock = host.counts.parents[2] / ".lock"
    lock.touch()
    with holding_locks([lock]):
        assert host.answer() is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("snapshot.confirm_after", timedelta(0)),
        ("snapshot.capture", "changelog"),
        ("kafka.bootstrap", "127.0.0.1:9"),
        ("state.layout", "plain"),
        ("state.instance", "another"),
        ("backends", {"rocksdb": {"copy_tables": True}}),
        ("repository.options", {"endpoint_url": "http://127.0.0.1:9"}),
    ],
)
def test_under_other_settings_the_repository_is_asked(host: Host, key: str, value: object) -> None:
    host.settings[key] = value
    assert host.answer() is None


def test_settings_that_an_answer_does_not_hang_on_may_change(host: Host) -> None:
    host.settings["transfer.parallel"] = 2
    host.settings["snapshot.confirm_after"] = TEN_MINUTES * 2
    assert host.answer() is not None


@pytest.mark.parametrize(
    ("name", "value"),
    [("AWS_ENDPOINT_URL", "http://127.0.0.1:9"), ("AWS_PROFILE", "p"), ("https_proxy", "p")],
)
def test_in_another_environment_the_repository_is_asked(
    host: Host, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    assert host.answer() is None


def test_a_changed_file_of_the_aws_tools_is_heeded(host: Host, clean_environment: Path) -> None:
    (clean_environment / ".aws").mkdir()
    (clean_environment / ".aws" / "config").write_text("[default]\nregion=us-west-2\n")
    assert host.answer() is None


def test_what_another_version_saw_counts_for_nothing(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answering, "__version__", "0.0.9")
    assert host.answer() is None


@pytest.mark.parametrize("damage", ["empty", "cut", "one bit", "foreign"])
def test_a_damaged_record_counts_for_nothing_and_is_written_anew(host: Host, damage: str) -> None:
    path = host.record()
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    damaged = {
        "empty": b"",
        "cut": path.read_bytes()[:-1],
        "one bit": bytes(content),
        "foreign": b"snapstore last run 2\n",
    }
    path.write_bytes(damaged[damage])
    assert host.answer() is None
    assert _opened(host.run()) == [True, True]
    assert host.answer() is not None


def _delete(repository: Snapstore) -> None:
    repository.delete([repository.list().snapshots[0].id])


def _prune(repository: Snapstore) -> None:
    repository.prune(RetentionPolicy(keep_last=1))


def _repair(repository: Snapstore) -> None:
    repository.repair()


def _find_damage(repository: Snapstore) -> None:
    _lose_a_blob(repository)
    assert not repository.verify().sound


def _lose_a_blob(repository: Snapstore) -> None:
    lost = next(repository.repository.storage.list(keys.BLOBS))
    repository.repository.storage.delete([lost.key])


@pytest.mark.parametrize("act", [_delete, _prune, _repair, _find_damage])
def test_what_takes_snapshots_away_on_this_host_is_heeded_at_once(
    host: Host, act: Callable[[Snapstore], None]
) -> None:
    assert host.answer() is not None
    with host.open() as repository:
        act(repository)
    assert host.answer() is None


def test_a_run_that_began_before_a_deletion_leaves_no_record(host: Host) -> None:
    host.record().unlink()
    with host.open() as running, host.open() as deleting:

        def delete_meanwhile(event: object) -> None:
            del event
            for listed in deleting.list().snapshots[:1]:
                deleting.delete([listed.id])

        running.snapshot(skip_unchanged=True, listener=delete_meanwhile)
    assert host.answer() is None


def test_a_deletion_on_another_host_is_seen_as_soon_as_the_repository_is_asked(
    host: Host, other: Host
) -> None:
    with other.open() as repository:
        repository.delete([listed.id for listed in repository.list().snapshots])
    assert host.answer() is not None
    outcomes = host.run()
    assert _statuses(outcomes) == ["stored", "stored"]


def test_a_blob_that_was_lost_is_sent_again_as_soon_as_the_repository_is_asked(
    host: Host, other: Host
) -> None:
    with other.open() as repository:
        _lose_a_blob(repository)
    outcomes = host.run()
    assert sum(outcome.new_files for outcome in outcomes) == 1
    with host.open() as repository:
        assert repository.verify([each.id for each in repository.list(latest=1).snapshots]).sound


def test_another_repository_at_the_same_place_is_no_longer_the_old_one(
    host: Host, other: Host
) -> None:
    with other.open() as repository:
        storage = repository.repository.storage
        storage.delete([stat.key for stat in storage.list("")])
    client.create(config=other.config).close()
    assert _statuses(host.run()) == ["stored", "stored"]


def test_making_a_repository_forgets_another_that_was_there(host: Host) -> None:
    with host.open() as repository:
        storage = repository.repository.storage
        storage.delete([stat.key for stat in storage.list("")])
    client.create(config=host.config).close()
    assert host.answer() is None


def test_a_file_that_has_just_been_written_is_not_relied_on(
    tmp_path: Path, moto_url: str, bucket: str
) -> None:
    host = Host(tmp_path / "young", moto_url, bucket)
    client.create(config=host.config).close()
    host.now = datetime.now(UTC)
    host.counts.joinpath("CURRENT").touch()
    host.totals.joinpath("CURRENT").touch()
    assert _statuses(host.run()) == ["stored", "stored"]
    assert not [*(host.cache / "runs").glob("*.run")]
    assert host.answer() is None


def test_a_local_folder_is_asked_always_and_its_stores_are_not_opened(tmp_path: Path) -> None:
    host = Host(tmp_path, "", "none")
    del host.settings["repository.options"]
    host.settings["repository.url"] = str(tmp_path / "repository")
    client.create(config=host.config).close()
    assert _statuses(host.run()) == ["stored", "stored"]
    assert host.answer() is None
    outcomes = host.run()
    assert _statuses(outcomes) == ["unchanged", "unchanged"]
    assert _opened(outcomes) == [False, False]


@pytest.mark.parametrize("seconds", [-1, 3601])
def test_the_time_has_bounds(host: Host, seconds: int) -> None:
    host.settings["snapshot.confirm_after"] = timedelta(seconds=seconds)
    with pytest.raises(ConfigError, match="between 0s and 1h"):
        host.answer()


def test_a_record_of_one_store_does_not_lose_the_others(host: Host) -> None:
    _touch(host)
    host.now += timedelta(hours=2)
    with host.open() as repository:
        repository.snapshot(stores=["counts"], skip_unchanged=True)
    host.now += timedelta(seconds=1)
    assert host.answer("counts") is not None
    assert host.answer("totals") is None
