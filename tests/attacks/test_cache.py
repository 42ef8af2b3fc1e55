"""A cache folder in which somebody else can write is not believed."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from snapstore.client.own_cache import own_cache
from snapstore.config import load_config
from tests.support.second_user import UID, as_second_user, common_ground, give_away, needs_root

pytestmark = needs_root


@pytest.fixture
def ground() -> Iterator[Path]:
    with common_ground() as folder:
        yield folder


def of_another_user(cache: Path) -> None:
    (cache / "name").mkdir(parents=True)
    give_away(cache)


def in_a_folder_of_another_user(cache: Path) -> None:
    cache.parent.mkdir(exist_ok=True)
    give_away(cache.parent)
    (cache / "name").mkdir(parents=True)


def missing_in_a_folder_of_another_user(cache: Path) -> None:
    cache.parent.mkdir(exist_ok=True)
    give_away(cache.parent)


def writable_by_all(cache: Path) -> None:
    (cache / "name").mkdir(parents=True)
    (cache / "name").chmod(0o777)


def in_a_folder_writable_by_all(cache: Path) -> None:
    (cache / "name").mkdir(parents=True)
    cache.chmod(0o777)


def a_link_of_another_user(cache: Path) -> None:
    cache.parent.mkdir(exist_ok=True)
    cache.parent.chmod(0o1777)
    there = cache.parent.parent / "of-root"
    there.mkdir(mode=0o700)
    as_second_user(lambda: cache.symlink_to(there))


FORGED = (
    of_another_user,
    in_a_folder_of_another_user,
    missing_in_a_folder_of_another_user,
    writable_by_all,
    in_a_folder_writable_by_all,
    a_link_of_another_user,
)


@pytest.mark.parametrize("forge", FORGED)
def test_a_cache_folder_of_somebody_else_is_not_believed_and_that_is_said_h20(
    ground: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    forge: Callable[[Path], None],
) -> None:
    cache = ground / "place" / "cache"
    forge(cache)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    config = load_config(env={"SNAPSTORE_CACHE_DIR": str(cache)})

    with caplog.at_level(logging.WARNING):
        found = own_cache(config, "name")

    assert not found.is_relative_to(ground)
    assert found.stat().st_uid == 0
    assert found.stat().st_mode & 0o077 == 0
    assert f"{cache}/name is not used as state.cache_dir" in caplog.text
    assert f"uid {UID}" in caplog.text or "others may write" in caplog.text


def test_a_cache_folder_of_root_is_believed(ground: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = load_config(env={"SNAPSTORE_CACHE_DIR": str(ground / "cache")})

    assert own_cache(config, "name") == ground / "cache" / "name"
    assert caplog.text == ""
