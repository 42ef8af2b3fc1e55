"""What every storage must do: derive from StorageContract, and give it one fixture.

    class TestMyStorage(StorageContract):
        @pytest.fixture
        def open_storage(self, tmp_path: Path) -> OpenStorage:
            return lambda: MyStorage(f"my://{tmp_path}")

``open_storage`` opens one and the same empty place each time it is called in a test. A storage that
believes every checksum says so by ``checks_checksums = False``.
"""

import hashlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import ClassVar

import pytest

from snapstore.errors import (
    BlobCorruptError,
    CaptureError,
    ManifestInvalidError,
    ObjectExistsError,
    ObjectNotFoundError,
    StorageError,
)
from snapstore.model.store import BytesSource
from snapstore.ports import ObjectStorage

OpenStorage = Callable[[], ObjectStorage]

_RACERS = 16
_MIB = 1 << 20


def sha256_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def patterned(size: int) -> bytes:
    """Return bytes in which no stretch looks like another, the same for the same size."""
    blocks = (hashlib.sha256(str(number).encode()).digest() for number in range(size // 32 + 1))
    return b"".join(blocks)[:size]


class EndsEarly:
    """A source that has fewer bytes than it says."""

    def __init__(self, content: bytes, size: int) -> None:
        self._content = content
        self._size = size

    @property
    def size(self) -> int:
        return self._size

    def pread(self, length: int, position: int) -> bytes:
        return self._content[position : position + length]


class StorageContract:
    """Run by pytest for each storage."""

    checks_checksums: ClassVar[bool] = True
    large_bytes: ClassVar[int] = 12 * _MIB
    """Size of a file that the storage stores by its way for large files, if it has one."""

    @pytest.fixture
    def storage(self, open_storage: OpenStorage) -> Iterator[ObjectStorage]:
        opened = open_storage()
        yield opened
        opened.close()

    def test_what_was_put_comes_back(self, storage: ObjectStorage) -> None:
        storage.put("catalog/a.json", b"one")

        assert storage.get("catalog/a.json", limit_bytes=100) == b"one"

    def test_put_replaces_what_was_there(self, storage: ObjectStorage) -> None:
        storage.put("k", b"one")
        storage.put("k", b"two, longer")

        assert storage.get("k", limit_bytes=100) == b"two, longer"

    def test_put_if_absent_refuses_a_taken_key_and_changes_nothing(
        self, storage: ObjectStorage
    ) -> None:
        storage.put("k", b"one", if_absent=True)

        with pytest.raises(ObjectExistsError):
            storage.put("k", b"two", if_absent=True)
        assert storage.get("k", limit_bytes=100) == b"one"

    def test_a_key_is_free_again_after_it_was_deleted(self, storage: ObjectStorage) -> None:
        storage.put("k", b"one", if_absent=True)
        storage.delete(["k"])
        storage.put("k", b"two", if_absent=True)

        assert storage.get("k", limit_bytes=100) == b"two"

    def test_of_sixteen_that_race_for_a_key_one_wins(self, open_storage: OpenStorage) -> None:
        storages = [open_storage() for _ in range(2)]
        start = threading.Barrier(_RACERS)

        def race(number: int) -> bool:
            start.wait()
            try:
                storages[number % 2].put("race", b"racer %d" % number, if_absent=True)
            except ObjectExistsError:
                return False
            return True

        with ThreadPoolExecutor(_RACERS) as pool:
            won = list(pool.map(race, range(_RACERS)))

        assert won.count(True) == 1
        winner = won.index(True)
        assert storages[0].get("race", limit_bytes=100) == b"racer %d" % winner
        for storage in storages:
            storage.close()

    def test_of_sixteen_that_store_the_same_file_one_stores_it(
        self, storage: ObjectStorage
    ) -> None:
        content = patterned(3 * _MIB)
        start = threading.Barrier(_RACERS)

        def race(_: int) -> bool:
            start.wait()
            return storage.put_file("f", BytesSource(content), sha256=sha256_of(content))

        with ThreadPoolExecutor(_RACERS) as pool:
            stored = list(pool.map(race, range(_RACERS)))

        assert stored.count(True) == 1
        assert b"".join(storage.read("f", start=0, stop=len(content))) == content

    @pytest.mark.parametrize("size", [0, 1, _MIB, _MIB + 1, 3 * _MIB + 7])
    def test_a_file_is_stored_once_and_comes_back(self, storage: ObjectStorage, size: int) -> None:
        content = patterned(size)
        key = f"blobs/{sha256_of(content)}"

        assert storage.put_file(key, BytesSource(content), sha256=sha256_of(content)) is True
        assert storage.put_file(key, BytesSource(content), sha256=sha256_of(content)) is False
        assert b"".join(storage.read(key, start=0, stop=size)) == content
        found = storage.stat(key)
        assert found is not None
        assert found.size == size

    def test_a_large_file_is_stored_whole(self, storage: ObjectStorage) -> None:
        content = patterned(self.large_bytes)

        assert storage.put_file("big", BytesSource(content), sha256=sha256_of(content)) is True
        assert storage.put_file("big", BytesSource(content), sha256=sha256_of(content)) is False
        assert b"".join(storage.read("big", start=0, stop=len(content))) == content
        assert list(storage.unfinished_uploads()) == []

    @pytest.mark.parametrize("size", [5, 3 * _MIB, None])
    def test_a_file_that_is_not_what_was_announced_leaves_nothing(
        self, storage: ObjectStorage, size: int | None
    ) -> None:
        content = patterned(size or self.large_bytes)

        with pytest.raises(CaptureError):
            storage.put_file("f", BytesSource(content), sha256=sha256_of(b"other"))
        assert storage.stat("f") is None
        assert list(storage.list("")) == []
        assert list(storage.unfinished_uploads()) == []

    @pytest.mark.parametrize("size", [5, 3 * _MIB, None])
    def test_a_file_that_ends_early_leaves_nothing(
        self, storage: ObjectStorage, size: int | None
    ) -> None:
        announced = patterned(size or self.large_bytes)
        source = EndsEarly(announced[:-2], len(announced))

        with pytest.raises(CaptureError):
            storage.put_file("f", source, sha256=sha256_of(announced))
        assert list(storage.list("")) == []
        assert list(storage.unfinished_uploads()) == []

    def test_a_file_of_that_name_but_another_size_is_damage(self, storage: ObjectStorage) -> None:
        content = patterned(100)
        storage.put("f", content[:-1])

        with pytest.raises(BlobCorruptError):
            storage.put_file("f", BytesSource(content), sha256=sha256_of(content))

    def test_it_says_truly_whether_it_checks_checksums(self, storage: ObjectStorage) -> None:
        assert storage.checks_checksums("probe") is self.checks_checksums
        assert storage.stat("probe") is None

    def test_an_empty_object_is_an_object(self, storage: ObjectStorage) -> None:
        storage.put("empty", b"")

        assert storage.get("empty", limit_bytes=0) == b""
        assert [found.size for found in storage.list("")] == [0]

    def test_get_refuses_an_object_beyond_the_limit(self, storage: ObjectStorage) -> None:
        storage.put("k", b"0123456789")

        assert storage.get("k", limit_bytes=10) == b"0123456789"
        with pytest.raises(ManifestInvalidError):
            storage.get("k", limit_bytes=9)

    def test_a_stretch_of_an_object_can_be_read(self, storage: ObjectStorage) -> None:
        content = patterned(3 * _MIB)
        storage.put("k", content)

        assert b"".join(storage.read("k", start=5, stop=6)) == content[5:6]
        assert (
            b"".join(storage.read("k", start=_MIB - 1, stop=2 * _MIB + 1))
            == (content[_MIB - 1 : 2 * _MIB + 1])
        )
        assert b"".join(storage.read("k", start=7, stop=7)) == b""

    def test_reading_past_the_end_is_an_error_not_a_short_answer(
        self, storage: ObjectStorage
    ) -> None:
        storage.put("k", b"0123456789")

        with pytest.raises(StorageError):
            list(storage.read("k", start=0, stop=11))
        with pytest.raises(StorageError):
            list(storage.read("k", start=10, stop=20))

    def test_what_is_not_there_is_said_to_be_not_there(self, storage: ObjectStorage) -> None:
        storage.put("there", b"")

        assert storage.stat("gone") is None
        with pytest.raises(ObjectNotFoundError):
            storage.get("gone", limit_bytes=100)
        with pytest.raises(ObjectNotFoundError):
            list(storage.read("gone", start=0, stop=5))

    def test_stat_tells_size_and_time(self, storage: ObjectStorage) -> None:
        storage.put("a/b", b"12345")

        found = storage.stat("a/b")

        assert found is not None
        assert (found.key, found.size) == ("a/b", 5)
        assert abs(datetime.now(UTC) - found.modified_at) < timedelta(minutes=5)

    def test_a_thousand_and_one_objects_are_listed_in_order(self, storage: ObjectStorage) -> None:
        keys = [f"catalog/app/0_1/{number:04}" for number in range(1001)]
        storage.put("catalog/zz", b"")
        with ThreadPoolExecutor(8) as pool:
            for _ in pool.map(lambda key: storage.put(key, b"x"), reversed(keys)):
                pass

        assert [found.key for found in storage.list("catalog/app/")] == keys
        assert [found.key for found in storage.list("catalog/app/0_1/", start_after=keys[997])] == (
            keys[998:]
        )
        storage.delete([*keys, "catalog/zz"])
        assert list(storage.list("")) == []

    def test_a_prefix_with_a_final_slash_matches_no_longer_name(
        self, storage: ObjectStorage
    ) -> None:
        for key in ("a/0_1/x", "a/0_10/x", "a/0_1-b/x", "a/0_1.c"):
            storage.put(key, b"")

        assert [found.key for found in storage.list("a/0_1/")] == ["a/0_1/x"]
        assert {found.key for found in storage.list("a/0_1")} == {
            "a/0_1/x",
            "a/0_10/x",
            "a/0_1-b/x",
            "a/0_1.c",
        }
        assert list(storage.list("a/0_1/x/")) == []
        assert list(storage.list("b/")) == []

    def test_the_objects_of_a_folder_are_listed_in_order_and_none_is_left_out(
        self, storage: ObjectStorage
    ) -> None:
        names = ["A0", "Z", "a-b", "a.b", "a0", "a_b", "b"]
        keys = [f"{folder}{name}" for folder in ("", "x/", "x-y/", "x/y/") for name in names]
        for key in keys:
            storage.put(key, b"")

        listed = [found.key for found in storage.list("")]

        assert sorted(listed) == sorted(keys)
        for folder in ("", "x/", "x-y/", "x/y/"):
            in_folder = [key for key in listed if key.rpartition("/")[0] == folder[:-1]]
            assert in_folder == [folder + name for name in names]
        for number, name in enumerate(names):
            after = [found.key for found in storage.list("x/y/", start_after=f"x/y/{name}")]
            assert after == [f"x/y/{later}" for later in names[number + 1 :]]
        missing = [found.key for found in storage.list("x/y/", start_after="x/y/a1")]
        assert missing == ["x/y/a_b", "x/y/b"]

    def test_keys_with_percent_signs_stay_as_they_are(self, storage: ObjectStorage) -> None:
        keys = sorted(["c%2B%2B", "a%20b", "100%25", "x%252By", "%C3%A9", "a%3Db%26c", "%2E%2E/x"])
        for key in keys:
            storage.put(key, key.encode())

        assert [found.key for found in storage.list("")] == keys
        assert [storage.get(key, limit_bytes=100).decode() for key in keys] == keys
        storage.delete(keys)
        assert list(storage.list("")) == []

    def test_deleting_what_is_not_there_is_no_error(self, storage: ObjectStorage) -> None:
        storage.put("a", b"")
        storage.put("b", b"")

        storage.delete(["gone", "a", "x/y/gone"])
        storage.delete([])

        assert [found.key for found in storage.list("")] == ["b"]

    def test_a_second_storage_sees_what_the_first_did(self, open_storage: OpenStorage) -> None:
        first, second = open_storage(), open_storage()
        first.put("k", b"one")

        assert second.get("k", limit_bytes=100) == b"one"
        second.delete(["k"])
        assert first.stat("k") is None
        first.close()
        second.close()
