"""Making and opening repositories."""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from snapstore.errors import (
    ConflictError,
    FormatUnsupportedError,
    ManifestInvalidError,
    ObjectExistsError,
    RepositoryExistsError,
    RepositoryNotFoundError,
    StorageUnfitError,
)
from snapstore.ports import ObjectStat
from snapstore.repository import Repository, keys
from snapstore.storages.local import LocalStorage
from snapstore.storages.s3 import S3Storage
from tests.support.moto import make_bucket, moto_server
from tests.support.repository import NOON, make_repository


def test_a_new_repository_holds_its_marker_twice_and_nothing_else(tmp_path: Path) -> None:
    made = make_repository(tmp_path / "r")
    assert [stat.key for stat in made.storage.list("")] == [keys.MARKER_COPY, keys.MARKER]
    opened = Repository.open(LocalStorage((tmp_path / "r").as_uri()))
    assert opened.marker == made.marker
    assert opened.marker.uploads == "checked_by_storage"
    assert opened.marker.longest_run == timedelta(hours=24)


def test_a_second_one_at_the_same_place_is_a_conflict(tmp_path: Path) -> None:
    first = make_repository(tmp_path / "r")
    with pytest.raises(RepositoryExistsError):
        make_repository(tmp_path / "r")
    assert Repository.open(first.storage).marker == first.marker


def test_a_place_that_holds_other_things_is_left_alone(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path.as_uri())
    storage.put("holiday/photo.jpg", b"dear")
    with pytest.raises(ConflictError) as caught:
        Repository.create(storage, created_at=NOON)
    assert caught.value.facts["found"] == "holiday/photo.jpg"
    assert [stat.key for stat in storage.list("")] == ["holiday/photo.jpg"]


def test_what_a_killed_creation_left_is_no_obstacle(tmp_path: Path) -> None:
    LocalStorage(tmp_path.as_uri()).put(f"{keys.PROBES}123", b"first")
    make_repository(tmp_path)


def test_no_repository_is_not_an_empty_one(tmp_path: Path) -> None:
    with pytest.raises(RepositoryNotFoundError):
        Repository.open(LocalStorage((tmp_path / "nowhere").as_uri()))


def test_a_newer_format_is_not_guessed_at(tmp_path: Path) -> None:
    storage = make_repository(tmp_path).storage
    storage.put(keys.MARKER, b'{"format":2,"shape":"unheard of"}')
    with pytest.raises(FormatUnsupportedError, match="format 2"):
        Repository.open(storage)


@pytest.mark.parametrize("content", [b'{"form', b"{}", b"[]", b"\xff\xfe", b"[" * 100_000])
def test_a_damaged_marker_is_damage_and_stays_as_it_is(tmp_path: Path, content: bytes) -> None:
    storage = make_repository(tmp_path).storage
    storage.put(keys.MARKER, content)
    with pytest.raises(ManifestInvalidError):
        Repository.open(storage)
    with pytest.raises(RepositoryExistsError):
        Repository.create(storage, created_at=NOON)
    assert storage.get(keys.MARKER, limit_bytes=1 << 20) == content


class Overwriting(LocalStorage):
    """A storage that takes If-None-Match for decoration."""

    def put(self, key: str, body: bytes, *, if_absent: bool = False) -> None:  # noqa: ARG002
        super().put(key, body)


class Racy(LocalStorage):
    """A storage that looks first and writes later."""

    def put(self, key: str, body: bytes, *, if_absent: bool = False) -> None:
        if if_absent and self.stat(key):
            raise ObjectExistsError(f"{key} is taken")
        super().put(key, body)


@pytest.mark.parametrize("kind", [Overwriting, Racy])
def test_a_storage_without_true_conditional_puts_is_refused_whatever_one_accepts(
    tmp_path: Path, kind: type[LocalStorage]
) -> None:
    storage = kind(tmp_path.as_uri())
    with pytest.raises(StorageUnfitError, match="conditional puts"):
        Repository.create(storage, created_at=NOON, accept_unverified_uploads=True)
    assert list(storage.list("")) == []


def test_a_storage_that_believes_every_checksum_needs_an_explicit_choice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    with moto_server() as url:
        make_bucket(url, "states")
        storage = S3Storage(
            "s3://states/team a",
            S3Storage.Options(endpoint_url=url, region="us-east-1"),
        )
        with pytest.raises(StorageUnfitError, match="checksum"):
            Repository.create(storage, created_at=NOON)
        assert list(storage.list("")) == []
        made = Repository.create(storage, created_at=NOON, accept_unverified_uploads=True)
        assert Repository.open(storage).marker == made.marker
        assert made.marker.uploads == "read_back"
        storage.close()


class FoldingFolder(LocalStorage):
    """A folder as on a disk that takes capital letters for small ones; Linux kernels rarely can."""

    def put(self, key: str, body: bytes, *, if_absent: bool = False) -> None:
        super().put(key.lower(), body, if_absent=if_absent)

    def get(self, key: str, *, limit_bytes: int) -> bytes:
        return super().get(key.lower(), limit_bytes=limit_bytes)

    def stat(self, key: str) -> ObjectStat | None:
        return super().stat(key.lower())

    def delete(self, keys: Sequence[str]) -> None:
        super().delete([key.lower() for key in keys])


def test_a_folder_that_takes_capital_letters_for_small_ones_is_unfit_h73(tmp_path: Path) -> None:
    storage = FoldingFolder((tmp_path / "r").as_uri())
    with pytest.raises(StorageUnfitError, match="capital letters") as caught:
        Repository.create(storage, created_at=NOON)
    assert caught.value.hint is not None
    assert list(storage.list("")) == []
