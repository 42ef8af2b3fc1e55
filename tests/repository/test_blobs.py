"""Putting bytes into a repository, each content once."""

import hashlib
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from snapstore.errors import BlobCorruptError, BlobMissingError, ConfigError, StoreChangedError
from snapstore.model.store import ByteSource, BytesSource
from snapstore.repository import BlobWriter, Repository, keys, read_blob
from snapstore.storages.local import LocalStorage
from tests.support.repository import make_repository

TABLE = b"table" * 1000
SHA256 = hashlib.sha256(TABLE).hexdigest()


def put(writer: BlobWriter, content: bytes = TABLE, known: dict[str, str] | None = None) -> str:
    return writer.put(BytesSource(content), hashlib.sha256(content).hexdigest(), known or {}).name


def content_of(repository: Repository, name: str, size: int = len(TABLE)) -> bytes:
    return b"".join(read_blob(repository.storage, name, start=0, stop=size))


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return make_repository(tmp_path)


def blob_keys(repository: Repository) -> list[str]:
    return [stat.key for stat in repository.storage.list(keys.BLOBS)]


def test_a_blob_is_named_by_its_content(repository: Repository) -> None:
    stored = repository.begin_run("r1").put(BytesSource(TABLE), SHA256, {})
    assert (stored.name, stored.new) == (SHA256, True)
    assert blob_keys(repository) == [f"blobs/{SHA256[:2]}/{SHA256}"]
    assert content_of(repository, SHA256) == TABLE


def test_an_empty_file_is_a_blob_g73(repository: Repository) -> None:
    name = put(repository.begin_run("r1"), b"")
    assert content_of(repository, name, 0) == b""


def test_what_an_earlier_run_left_is_used_g39(repository: Repository) -> None:
    put(repository.begin_run("r1"))
    stored = repository.begin_run("r2").put(BytesSource(TABLE), SHA256, {})
    assert (stored.name, stored.new) == (SHA256, False)


class Counting(LocalStorage):
    """Counts the files that are offered to it."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.offered = 0
        self._counting = threading.Lock()

    def put_file(self, key: str, source: ByteSource, *, sha256: str) -> bool:
        with self._counting:
            self.offered += 1
        return super().put_file(key, source, sha256=sha256)


def test_one_content_is_sent_once_however_many_files_hold_it(tmp_path: Path) -> None:
    made = make_repository(tmp_path)
    storage = Counting(tmp_path.as_uri())
    writer = Repository(storage, made.marker).begin_run("r1")
    with ThreadPoolExecutor(8) as pool:
        stored = list(pool.map(lambda _: writer.put(BytesSource(TABLE), SHA256, {}), range(32)))
    assert storage.offered == 1
    assert sum(one.new for one in stored) == 1


def test_a_blob_that_a_listed_snapshot_names_is_not_offered_again(tmp_path: Path) -> None:
    made = make_repository(tmp_path)
    storage = Counting(tmp_path.as_uri())
    name = f"{SHA256}.r0"
    storage.put(keys.blob(name), TABLE)
    writer = Repository(storage, made.marker).begin_run("r1")
    assert put(writer, known={SHA256: name}) == name
    assert storage.offered == 0


def test_a_blob_that_a_listed_snapshot_names_and_somebody_deleted_is_sent_again(
    repository: Repository,
) -> None:
    assert put(repository.begin_run("r1"), known={SHA256: SHA256}) == SHA256
    assert content_of(repository, SHA256) == TABLE


def test_a_blob_that_a_listed_snapshot_names_and_somebody_cut_is_stored_anew(
    repository: Repository,
) -> None:
    repository.storage.put(keys.blob(SHA256), TABLE[:-1])
    name = put(repository.begin_run("r1"), known={SHA256: SHA256})
    assert name == f"{SHA256}.r1"
    assert content_of(repository, name) == TABLE


@pytest.mark.parametrize("known", [{}, {SHA256: SHA256}])
def test_a_condemned_name_is_dead_g41(repository: Repository, known: dict[str, str]) -> None:
    put(repository.begin_run("r1"))
    repository.storage.put(keys.condemned(SHA256), b"")
    name = put(repository.begin_run("r2"), known=known)
    assert name == f"{SHA256}.r2"
    repository.storage.delete([keys.blob(SHA256)])
    assert content_of(repository, name) == TABLE


def test_a_damaged_blob_of_another_size_does_not_stop_new_snapshots(
    repository: Repository,
) -> None:
    repository.storage.put(keys.blob(SHA256), TABLE[:-1])
    name = put(repository.begin_run("r2"))
    assert name == f"{SHA256}.r2"
    assert content_of(repository, name) == TABLE


def test_what_was_deleted_meanwhile_is_noticed_and_sent_again(repository: Repository) -> None:
    put(repository.begin_run("r1"))
    writer = repository.begin_run("r2")
    assert put(writer) == SHA256
    repository.storage.delete([keys.blob(SHA256)])
    assert not writer.is_stored(SHA256)
    assert put(writer) == SHA256
    assert writer.is_stored(SHA256)


def test_of_many_blobs_those_that_a_listing_shows_are_not_asked_for(
    repository: Repository,
) -> None:
    tables = [bytes([number]) * 10 for number in range(12)]
    writer = repository.begin_run("r1")
    names = [
        writer.put(BytesSource(table), hashlib.sha256(table).hexdigest(), {}).name
        for table in tables
    ]
    assert writer.unseen(names) == []

    repository.storage.delete([keys.blob(names[3])])

    assert writer.unseen(names) == [names[3]]
    assert writer.unseen(names[:4]) == names[:4]


def test_a_listing_that_is_too_long_leaves_the_rest_to_be_asked_for(
    repository: Repository,
) -> None:
    for number in range(300):
        repository.storage.put(keys.blob(f"{number:064x}"), b"")
    last = [f"{number:064x}" for number in range(290, 300)]

    assert repository.begin_run("r1").unseen(last) == last


class Ends(BytesSource):
    """Has fewer bytes than it says."""

    @property
    def size(self) -> int:
        return super().size + 1


def test_a_source_that_ends_early_stores_nothing_and_the_next_try_is_free(
    repository: Repository,
) -> None:
    writer = repository.begin_run("r1")
    with pytest.raises(StoreChangedError):
        writer.put(Ends(TABLE), SHA256, {})
    assert blob_keys(repository) == []
    assert put(writer) == SHA256


class Garbling(LocalStorage):
    """Believes every checksum, and changes a byte of what it stores."""

    def put_file(self, key: str, source: ByteSource, *, sha256: str) -> bool:  # noqa: ARG002
        if self.stat(key):
            return False
        content = source.pread(source.size, 0)
        super().put(key, b"X" + content[1:])
        return True


def unchecked(storage: LocalStorage) -> BlobWriter:
    return BlobWriter(storage, run="r1", read_back=True, condemned=frozenset())


def test_read_back_finds_what_the_storage_changed_and_leaves_nothing(tmp_path: Path) -> None:
    repository = make_repository(tmp_path)
    with pytest.raises(BlobCorruptError):
        put(unchecked(Garbling(tmp_path.as_uri())))
    assert blob_keys(repository) == []


def test_read_back_does_not_believe_what_it_finds_there_either(tmp_path: Path) -> None:
    repository = make_repository(tmp_path)
    repository.storage.put(keys.blob(SHA256), b"X" + TABLE[1:])
    assert put(unchecked(LocalStorage(tmp_path.as_uri()))) == f"{SHA256}.r1"
    assert content_of(repository, f"{SHA256}.r1") == TABLE


def test_a_missing_blob_is_damage(repository: Repository) -> None:
    with pytest.raises(BlobMissingError):
        content_of(repository, SHA256)


@pytest.mark.parametrize("run", ["", "R1", "a/b", "a.b", "x" * 33])
def test_a_run_needs_an_id_that_fits_into_a_key(repository: Repository, run: str) -> None:
    with pytest.raises(ConfigError):
        repository.begin_run(run)
