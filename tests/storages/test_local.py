"""A local folder as a storage: what the contract cannot ask of every storage."""

import errno
import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import BuiltinFunctionType, FrameType

import pytest

from snapstore.errors import (
    BlobCorruptError,
    ConfigError,
    CredentialsError,
    NoSpaceError,
    RepositoryNotFoundError,
    SourceDamagedError,
    StorageError,
    StorageUnfitError,
    StoreChangedError,
    UnsafePathError,
)
from snapstore.model.folder import Folder
from snapstore.model.store import BytesSource
from snapstore.storages.local import LocalStorage
from snapstore.storages.local.claim import Step, claim, link, rename_without_replacing
from snapstore.storages.local.errors import explained
from snapstore.storages.local.tree import Name
from snapstore.testing.storage_contract import EndsEarly, patterned, sha256_of

_MIB = 1 << 20


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "repository"


@pytest.fixture
def storage(root: Path) -> LocalStorage:
    return LocalStorage(str(root))


def files_below(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    "spelled", ["{path}", "{path}/", "file://{path}", "file://localhost{path}", "FILE://{path}/"]
)
def test_a_path_and_its_urls_are_one_place(tmp_path: Path, spelled: str) -> None:
    LocalStorage(str(tmp_path)).put("k", b"x")

    assert LocalStorage(spelled.format(path=tmp_path)).get("k", limit_bytes=9) == b"x"


def test_a_url_is_decoded_and_a_path_is_not(tmp_path: Path) -> None:
    (tmp_path / "a b").mkdir()

    assert LocalStorage(f"file://{tmp_path}/a%20b").root == tmp_path / "a b"
    assert LocalStorage(f"{tmp_path}/a%20b").root == tmp_path / "a%20b"
    assert LocalStorage(LocalStorage(f"{tmp_path}/a%20b").url).root == tmp_path / "a%20b"


@pytest.mark.parametrize("url", ["file://host/path", "file://relative", "file:///a?b", "s3://b/p"])
def test_a_url_that_is_no_local_folder_is_refused(url: str) -> None:
    with pytest.raises(ConfigError):
        LocalStorage(url)


def test_a_folder_that_is_missing_is_not_an_empty_repository(
    storage: LocalStorage, root: Path
) -> None:
    for attempt in (
        lambda: list(storage.list("")),
        lambda: storage.get("k", limit_bytes=9),
        lambda: list(storage.read("k", start=0, stop=1)),
        lambda: list(storage.unfinished_uploads()),
    ):
        with pytest.raises(RepositoryNotFoundError, match=str(root)):
            attempt()
    assert storage.stat("k") is None
    assert not root.exists()


def test_a_disk_that_is_not_mounted_is_not_written_to(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path / "mnt" / "repository"))

    with pytest.raises(RepositoryNotFoundError, match="mnt does not exist"):
        storage.put("k", b"x")
    assert list(tmp_path.iterdir()) == []


def test_files_and_folders_are_the_owners_only(storage: LocalStorage, root: Path) -> None:
    old = os.umask(0)
    try:
        storage.put("catalog/app/k", b"x")
    finally:
        os.umask(old)

    modes = {oct(path.stat().st_mode & 0o777) for path in [root, *root.rglob("*")]}
    assert modes == {"0o700", "0o600"}


@pytest.mark.parametrize(
    "key", ["", "/etc/passwd", "../up", "a/../../up", "a//b", "a/", "./a", ".unfinished/x", "a\0b"]
)
def test_a_key_that_leads_elsewhere_is_refused(storage: LocalStorage, key: str) -> None:
    with pytest.raises(UnsafePathError):
        storage.put(key, b"x")
    with pytest.raises(UnsafePathError):
        storage.stat(key)


def test_listing_is_in_the_order_of_whole_keys(storage: LocalStorage) -> None:
    keys = ["Z", "a-b/x", "a.b", "a/x", "a/y/z", "a0", "a_b/x"]
    for key in keys:
        storage.put(key, b"")

    assert [found.key for found in storage.list("")] == keys
    for number, key in enumerate(keys):
        assert [found.key for found in storage.list("", start_after=key)] == keys[number + 1 :]
    assert [found.key for found in storage.list("a", start_after="a/m")] == keys[3:]
    assert list(storage.list("../")) == []


def test_links_are_no_objects(storage: LocalStorage, root: Path, tmp_path: Path) -> None:
    storage.put("k", b"x")
    (tmp_path / "secret").write_text("s")
    (root / "link").symlink_to(tmp_path / "secret")
    (root / "loop").symlink_to(root)

    assert [found.key for found in storage.list("")] == ["k"]


class Fickle:
    """A source that gives other bytes each time it is read."""

    size = 3 * _MIB

    def __init__(self) -> None:
        self._given = 0

    def pread(self, length: int, position: int) -> bytes:
        self._given += 1
        return bytes([self._given % 256]) * min(length, self.size - position)


def test_a_copy_is_named_by_the_bytes_that_were_written(storage: LocalStorage, root: Path) -> None:
    with storage.copied(Fickle(), called="a.sst") as copy:
        assert copy.publish(f"blobs/{copy.sha256}") is True
        assert copy.publish(f"blobs/{copy.sha256}") is False

    assert files_below(root) == [f"blobs/{copy.sha256}"]
    assert sha256_of((root / "blobs" / copy.sha256).read_bytes()) == copy.sha256


def test_a_copy_that_is_not_published_leaves_nothing(storage: LocalStorage, root: Path) -> None:
    with storage.copied(BytesSource(patterned(3 * _MIB)), called="a.sst") as copy:
        assert copy.sha256 == sha256_of(patterned(3 * _MIB))

    assert files_below(root) == []


def test_a_copy_under_the_name_of_something_else_is_damage(storage: LocalStorage) -> None:
    storage.put("k", b"short")

    with (
        storage.copied(BytesSource(b"longer than that"), called="a.sst") as copy,
        pytest.raises(BlobCorruptError),
    ):
        copy.publish("k")
    assert storage.get("k", limit_bytes=9) == b"short"


def test_a_copy_of_a_file_that_ends_early_leaves_nothing(storage: LocalStorage, root: Path) -> None:
    source = EndsEarly(bytes(2 * _MIB - 1), 2 * _MIB)

    with (
        pytest.raises(StoreChangedError, match=r"a\.sst ended"),
        storage.copied(source, called="a.sst"),
    ):
        pass
    assert files_below(root) == []


def put_whole(storage: LocalStorage) -> None:
    storage.put("blobs/k", b"content", if_absent=True)


def put_a_file(storage: LocalStorage) -> None:
    storage.put_file("blobs/k", BytesSource(b"content"), sha256=sha256_of(b"content"))


def copy_a_file(storage: LocalStorage) -> None:
    with storage.copied(BytesSource(b"content"), called="a.sst") as copy:
        copy.publish("blobs/k")


@pytest.mark.parametrize("store", [put_whole, put_a_file, copy_a_file])
def test_bytes_are_durable_before_they_get_their_name_and_the_name_is_at_the_end(
    storage: LocalStorage, store: Callable[[LocalStorage], None]
) -> None:
    storage.put("blobs/other", b"so that the folders are there")
    called: list[str] = []

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "c_call" and isinstance(argument, BuiltinFunctionType):
            called.append(argument.__name__)

    sys.setprofile(note)
    try:
        store(storage)
    finally:
        sys.setprofile(None)

    steps = [name for name in called if name in ("write", "fsync", "link", "unlink")]
    assert steps == ["write", "fsync", "link", "fsync", "unlink"]


_KILLED_WRITER = """
import os, signal, sys
from snapstore.storages.local import LocalStorage

class Deadly:
    size = 3 << 20
    def pread(self, length, position):
        if position >= 2 << 20:
            os.kill(os.getpid(), signal.SIGKILL)
        return bytes(length)

storage = LocalStorage(sys.argv[1])
if sys.argv[2] == "put_file":
    storage.put_file("blobs/ab", Deadly(), sha256="0" * 64)
with storage.copied(Deadly(), called="a.sst") as copy:
    copy.publish("blobs/ab")
"""


@pytest.mark.parametrize("way", ["put_file", "copied"])
def test_what_a_killed_writer_left_is_no_object_and_can_be_removed_g52(
    storage: LocalStorage, root: Path, way: str
) -> None:
    storage.put("blobs/zz", b"x")

    ended = subprocess.run([sys.executable, "-c", _KILLED_WRITER, str(root), way], check=False)

    assert ended.returncode == -signal.SIGKILL
    assert [found.key for found in storage.list("")] == ["blobs/zz"]
    left = list(storage.unfinished_uploads())
    assert len(left) == 1
    storage.abort_upload(left[0])
    storage.abort_upload(left[0])
    assert list(storage.unfinished_uploads()) == []
    assert files_below(root) == ["blobs/zz"]


@pytest.fixture
def small_files() -> Iterator[int]:
    """Let no file grow beyond the returned size: a disk quota that needs no disk of its own."""
    limit = 2 * _MIB
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    yield limit
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_write_that_fails_half_way_leaves_nothing_g52(
    storage: LocalStorage, root: Path, small_files: int
) -> None:
    storage.put("k", b"old")
    content = patterned(small_files + _MIB)

    with pytest.raises(StorageError, match="File too large"):
        storage.put("k", content)
    with pytest.raises(StorageError, match="File too large"):
        storage.put_file("f", BytesSource(content), sha256=sha256_of(content))

    assert storage.get("k", limit_bytes=9) == b"old"
    assert files_below(root) == ["k"]


def test_a_full_disk_says_what_is_needed_and_what_there_is() -> None:
    full = explained(OSError(errno.ENOSPC, "No space left"), "write", Path("/x/y"), needed_bytes=7)

    assert isinstance(full, NoSpaceError)
    assert full.facts["needed_bytes"] == 7
    assert isinstance(full.facts["available_bytes"], int)


def test_a_source_that_cannot_be_read_is_not_taken_for_a_bad_repository(
    storage: LocalStorage, root: Path
) -> None:
    class Broken:
        size = 10

        def pread(self, length: int, position: int) -> bytes:
            raise OSError(errno.EIO, os.strerror(errno.EIO), f"{length} at {position}")

    with pytest.raises(SourceDamagedError, match="Input/output error"):
        storage.put_file("f", Broken(), sha256="0" * 64)
    assert files_below(root) == []


@pytest.fixture
def without_rights(storage: LocalStorage, root: Path) -> Iterator[None]:
    """A repository with one object that this process may read but not write."""
    storage.put("k", b"x")
    for folder in (root, root / ".unfinished"):
        folder.chmod(0o500)
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    yield
    os.seteuid(user)


def test_missing_rights_are_named_with_the_path(
    storage: LocalStorage, root: Path, without_rights: None
) -> None:
    for attempt in (
        lambda: storage.put("other", b"x"),
        lambda: storage.put_file("f", BytesSource(b"x"), sha256=sha256_of(b"x")),
    ):
        with pytest.raises(CredentialsError, match=f"{root}.*Permission denied") as caught:
            attempt()
        assert caught.value.hint is not None


def test_a_file_in_the_way_of_a_folder_is_an_error(storage: LocalStorage) -> None:
    storage.put("a", b"x")

    with pytest.raises(StorageError, match="Not a directory"):
        storage.put("a/b", b"x")
    assert storage.stat("a/b") is None


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Folder]:
    with Folder.open(tmp_path) as folder:
        yield folder


@pytest.mark.parametrize("step", [link, rename_without_replacing])
def test_of_sixteen_that_claim_a_name_one_gets_it(place: Folder, step: Step) -> None:
    unfinished = [Name(place, f"u{number}") for number in range(16)]
    for number, each in enumerate(unfinished):
        each.path.write_text(str(number))
    start = threading.Barrier(16)

    def race(each: Name) -> bool:
        start.wait()
        return claim(each, Name(place, "final"), (step,))

    with ThreadPoolExecutor(16) as pool:
        won = list(pool.map(race, unfinished))

    assert won.count(True) == 1
    assert (place.path / "final").read_text() == str(won.index(True))


def no_links(unfinished: Name, final: Name) -> None:
    raise OSError(errno.EPERM, os.strerror(errno.EPERM), str(final.path))


def test_where_there_are_no_links_a_rename_claims_the_name(place: Folder) -> None:
    one, two, final = (Name(place, name) for name in ("one", "two", "final"))
    one.path.write_text("one")
    two.path.write_text("two")

    assert claim(one, final, (no_links, rename_without_replacing)) is True
    assert claim(two, final, (no_links, rename_without_replacing)) is False
    assert final.path.read_text() == "one"


def test_where_nothing_claims_a_name_safely_the_file_system_is_refused(place: Folder) -> None:
    one, final = Name(place, "one"), Name(place, "final")
    one.path.write_text("one")

    with pytest.raises(StorageUnfitError, match="can neither link"):
        claim(one, final, (no_links, no_links))
    assert not final.path.exists()


def test_a_link_whose_answer_was_lost_is_known_to_be_ours(place: Folder) -> None:
    one, final = Name(place, "one"), Name(place, "final")
    one.path.write_text("one")

    def link_twice(unfinished: Name, final: Name) -> None:
        link(unfinished, final)
        link(unfinished, final)

    assert claim(one, final, (link_twice,)) is True


def test_every_key_that_would_not_go_is_named(storage: LocalStorage, root: Path) -> None:
    for key in ("a", "b"):
        storage.put(key, b"x")
    (root / "folder").mkdir()

    with pytest.raises(StorageError, match="folder") as caught:
        storage.delete(["a", "folder", "b"])

    assert caught.value.facts["failed"] == ["folder"]
    assert files_below(root) == []
