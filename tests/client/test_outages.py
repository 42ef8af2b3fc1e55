"""Which verbs need the storage, which need Kafka, and which go on without the one that is away."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from snapstore import client
from snapstore.cli.exit_codes import exit_code
from snapstore.config import Config
from snapstore.config.schema import KafkaConfig, RepositoryConfig, Sections, StateConfig
from snapstore.errors import SnapstoreError
from snapstore.kafka.changelog import KafkaChangelog
from snapstore.operations.replay_plan import ReplayGoal
from snapstore.ports import Changelog
from snapstore.registry import Registry
from tests.support.mend_lab import uneven_state
from tests.support.streams_store import APPLICATION

pytestmark = pytest.mark.slow

HERE = "pod-0"
UNCHECKED = {"allow_unchecked_changelog": True}


class HastyRegistry(Registry):
    """Its changelogs wait for a second, not for eight."""

    def changelog(self, bootstrap: str, properties: Mapping[str, object]) -> Changelog:
        return KafkaChangelog(bootstrap, properties, timeout_seconds=1)


class Site(NamedTuple):
    """One configuration and one state directory."""

    config: Config
    state_dir: Path
    scratch: Path

    def call(self, verb: Callable[..., Any], *arguments: object, **how: object) -> Any:
        return verb(*arguments, config=self.config, registry=HastyRegistry(), **how)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a state directory of two tasks, and a repository with snapshots of it."""
    home = tmp_path_factory.mktemp("saved")
    even = uneven_state(home / "state", (99, 99, 99))
    with client.create(config=configured(home)) as repository:
        assert not repository.snapshot(even).failed
    uneven_state(home / "uneven")
    return home


@pytest.fixture
def site(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, disk: str, away: str
) -> Site:
    """``disk``: clean, broken, uneven or empty; ``away``: storage, Kafka or both."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    state_dir = tmp_path / "state"
    if disk != "empty":
        shutil.copytree(saved / ("uneven" if disk == "uneven" else "state"), state_dir)
    if disk == "broken":
        (state_dir / APPLICATION / "0_1" / "rocksdb" / "counts" / "CURRENT").write_text("x")
    shutil.copytree(saved / "repository", tmp_path / "repository")
    config = configured(tmp_path, away=away)
    return Site(config, state_dir, tmp_path / "scratch")


def configured(home: Path, *, away: str = "") -> Config:
    repository = RepositoryConfig(url=(home / "repository").as_uri())
    if "storage" in away:
        repository = RepositoryConfig(
            url="s3://bucket/x",
            options={
                "endpoint_url": "http://127.0.0.1:1",
                "region": "us-east-1",
                "max_attempts": 1,
            },
        )
    sections = Sections(
        repository=repository,
        state=StateConfig(instance=HERE, cache_dir=str(home / "cache")),
    )
    if "Kafka" in away:
        sections = msgspec.structs.replace(sections, kafka=KafkaConfig(bootstrap="127.0.0.1:1"))
    return Config(sections=sections)


def fsck(site: Site) -> str:
    return str(site.call(client.fsck, site.state_dir).worst)


def prepare(site: Site) -> str:
    return str(site.call(client.prepare, site.state_dir, application=APPLICATION).worst)


def prepare_unchecked(site: Site) -> str:
    asked = {"application": APPLICATION, **UNCHECKED}
    return str(site.call(client.prepare, site.state_dir, **asked).worst)


def restore(site: Site, **how: Any) -> str:
    with site.call(client.open) as repository:
        done = repository.restore(target=site.scratch, application=APPLICATION, **how)
    return f"{len(done.stores)} restored"


def restore_unchecked(site: Site) -> str:
    return restore(site, **UNCHECKED)


def replay_unchecked(site: Site) -> str:
    return restore(site, replay=ReplayGoal(), **UNCHECKED)


def snapshot(site: Site, **how: Any) -> str:
    with site.call(client.open) as repository:
        report = repository.snapshot(site.state_dir, **how)
    if report.failed:
        first = report.failed[0].error
        assert first is not None
        raise first
    return f"{len(report.outcomes)} saved" + (", unproved" if report.unrestorable else "")


def snapshot_from_disk(site: Site) -> str:
    return snapshot(site, capture="disk")


def status(site: Site) -> str:
    with site.call(client.open) as repository:
        return f"{len(repository.status(application=APPLICATION).unknown)} unknown"


def list_all(site: Site) -> str:
    with site.call(client.open) as repository:
        return f"{len(repository.list().snapshots)} listed"


TABLE: list[tuple[Callable[[Site], str], str, dict[str, str | int]]] = [
    (fsck, "clean", {"storage": "clean", "Kafka": 12, "storage and Kafka": 12}),
    (fsck, "broken", {"storage": "damaged", "Kafka": 12}),
    (fsck, "uneven", {"storage": "loses_rows", "Kafka": 12}),
    (prepare, "clean", {"storage": "clean", "Kafka": 12, "storage and Kafka": 12}),
    (prepare, "uneven", {"storage": "clean", "Kafka": 12}),
    (prepare, "broken", {"storage": 12, "Kafka": 12}),
    (prepare, "empty", {"storage": 12}),
    (prepare_unchecked, "clean", {"Kafka": "clean", "storage and Kafka": "clean"}),
    (prepare_unchecked, "uneven", {"storage and Kafka": "clean"}),
    (prepare_unchecked, "broken", {"Kafka": "clean", "storage and Kafka": 12}),
    (prepare_unchecked, "empty", {"Kafka": "clean", "storage and Kafka": 12}),
    (restore, "empty", {"storage": 12, "Kafka": 12}),
    (restore_unchecked, "empty", {"Kafka": "4 restored", "storage and Kafka": 12}),
    (replay_unchecked, "empty", {"Kafka": 12}),
    (snapshot, "clean", {"storage": 12, "Kafka": 12}),
    (snapshot_from_disk, "clean", {"Kafka": "4 saved, unproved", "storage and Kafka": 12}),
    (status, "empty", {"storage": 12, "Kafka": "4 unknown"}),
    (list_all, "empty", {"storage": 12, "Kafka": "4 listed"}),
]
CASES = [
    pytest.param(verb, disk, away, expected, id=f"{verb.__name__} {disk} without {away}")
    for verb, disk, answers in TABLE
    for away, expected in answers.items()
]


@pytest.mark.parametrize(("verb", "disk", "away", "expected"), CASES)
def test_an_outage_stops_only_what_needs_the_service_h08(
    site: Site, verb: Callable[[Site], str], expected: str | int
) -> None:
    try:
        found: str | int = verb(site)
    except SnapstoreError as error:
        found = exit_code(type(error))
    assert found == expected
