"""What the configuration makes of plug-ins, owners and references."""

import functools
import grp
import os
import pwd
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import snapstore
from snapstore.client.owner import parse_owner, permissions
from snapstore.client.parts import ConfiguredBackends, configured_layout, layout_options, state_dir
from snapstore.config import Config, load_config
from snapstore.config.schema import RestoreConfig
from snapstore.errors import ConfigError, PluginError, SnapshotNotFoundError
from snapstore.model.identity import StoreId
from snapstore.registry import Registry
from tests.support.fixtures import unpack


def configured(tmp_path: Path, text: str) -> Config:
    file = tmp_path / "snapstore.yaml"
    file.write_text(text)
    return load_config(file, env={"HOME": str(tmp_path)})


def test_settings_of_other_sections_reach_the_layout(tmp_path: Path) -> None:
    config = configured(
        tmp_path,
        "state: {guarantee: exactly_once_v2}\nstores: {lookup: {changelog: none}, a: {skip: true}}",
    )
    assert layout_options(config, Registry(), "kafka-streams") == {
        "guarantee": "exactly_once_v2",
        "changelogs": {"lookup": "none"},
    }


def test_settings_of_one_layout_do_not_reach_another(tmp_path: Path) -> None:
    config = configured(tmp_path, "state: {options: {changelogs: {a: t}}}")
    assert layout_options(config, Registry(), "plain") == {}


def test_a_store_can_be_given_another_backend(tmp_path: Path) -> None:
    unpack("ks440-alos", tmp_path / "state")
    config = configured(tmp_path, "stores: {count: {backend: other}}")
    found = configured_layout(config, Registry()).discover(tmp_path / "state")
    backends = {location.store.store: location.backend for location in found.locations}
    assert backends["count"] == "other"
    assert backends["window"] == "rocksdb"


def test_backends_are_made_once_and_with_their_options(tmp_path: Path) -> None:
    config = configured(tmp_path, "backends: {rocksdb: {max_attempts: 3}}")
    backends = ConfiguredBackends(config, Registry())
    assert backends["rocksdb"] is backends["rocksdb"]
    assert "rocksdb" in [*backends]
    with pytest.raises(PluginError):
        backends["leveldb"]


def test_a_state_directory_must_be_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no state directory"):
        state_dir(Config())
    assert state_dir(configured(tmp_path, "state: {dir: /a}"), "/b") == Path("/b")


def test_owners_are_names_or_numbers() -> None:
    me = pwd.getpwuid(os.getuid())
    group = grp.getgrgid(me.pw_gid).gr_name
    ids = (me.pw_uid, me.pw_gid)
    for text in (me.pw_name, f"{me.pw_name}:{group}", f"{me.pw_uid}:{me.pw_gid}", str(me.pw_uid)):
        assert parse_owner(text) == ids
    assert parse_owner("4711:4712") == (4711, 4712)
    for text in ("nobody-of-that-name", f"{me.pw_name}:no-such-group", ":5", ""):
        with pytest.raises(ConfigError, match="no such user or group"):
            parse_owner(text)


def test_modes_are_octal() -> None:
    modes = permissions(RestoreConfig(file_mode="0600", dir_mode="700"))
    assert (modes.file_mode, modes.dir_mode, modes.owner) == (0o600, 0o700, None)


def same(time: datetime) -> datetime:
    return time


def test_a_repository_is_made_opened_and_used(tmp_path: Path) -> None:
    unpack("ks440-alos", tmp_path / "state")
    url = str(tmp_path / "repository")
    config = configured(tmp_path, f"state: {{cache_dir: {tmp_path}/cache}}")
    times = [datetime(2026, 5, 4, 12, minute, tzinfo=UTC) for minute in (0, 10, 20)]
    with snapstore.create(url, config=config, clock=lambda: times[0]):
        pass
    for time in times:
        with snapstore.open(url, config=config, clock=functools.partial(same, time)) as repository:
            report = repository.snapshot(tmp_path / "state", stores=["count"], tasks=["1_0"])
            assert not report.failed
    with snapstore.open(url, config=config, clock=lambda: times[2]) as repository:
        count = StoreId("ks440-alos", "1_0", "count")
        listed = repository.list(application="ks440-alos").snapshots
        assert [item.store for item in listed] == [count] * 3
        assert len(repository.list(latest=2).snapshots) == 2
        assert len(repository.list(captured_within=timedelta(minutes=15)).snapshots) == 2
        assert repository.find("ks440-alos/count:0").id == listed[0].id
        assert repository.find(f"{count}@2026-05-04T12:15:00Z").id == listed[1].id
        plan = repository.restore(
            [f"{count}@2026-05-04T12:15:00Z"],
            target=tmp_path / "new",
            allow_unchecked_changelog=True,
            dry_run=True,
        )
        assert plan.tasks[0].stores[0].wanted.snapshot.id == listed[1].id
        with pytest.raises(SnapshotNotFoundError):
            repository.restore([f"{count}@2026-05-04T11:00:00Z"], target=tmp_path / "new")
        assert not (tmp_path / "new").exists()


def test_an_error_while_opening_leaves_nothing_open(tmp_path: Path) -> None:
    with pytest.raises(snapstore.NotFoundError):
        snapstore.open(str(tmp_path / "none"), config=Config())
    with pytest.raises(ConfigError, match="no repository was named"):
        snapstore.open(config=Config())
