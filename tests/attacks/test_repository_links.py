"""Root works in a repository that lies in a folder of somebody else: nothing outside is touched.

The second user owns the repository's folder, and puts links, pipes and hard links there before
root comes, or while root is at work.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from snapstore.errors import SnapstoreError, UnsafePathError
from snapstore.model.store import BytesSource
from snapstore.storages.local import LocalStorage
from snapstore.testing.storage_contract import sha256_of
from tests.support.second_user import (
    as_second_user,
    common_ground,
    give_away,
    needs_root,
    second_user_at_work,
)

pytestmark = needs_root

PRECIOUS = b"of root alone"
OBJECT = b"content"
KEY = "blobs/ab/one"
NAMES = ("one", "two", "00", "01", "63", "ab/one", "ab/two")


class Ground:
    """A folder of root's alone, and a repository of the second user's."""

    def __init__(self, folder: Path) -> None:
        self.victim = folder / "victim"
        for name in NAMES:
            path = self.victim / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(PRECIOUS)
        self.victim.chmod(0o700)
        self.root = folder / "repository"
        self.storage = LocalStorage(str(self.root))
        for key in (KEY, "blobs/ab/two", "catalog/app/one"):
            self.storage.put(key, OBJECT)
        self.storage.keep_room()
        give_away(self.root)
        self._before = facts(self.victim)

    def check(self) -> None:
        assert facts(self.victim) == self._before


def facts(folder: Path) -> dict[str, object]:
    return {
        str(path): (path.lstat()[:6], path.read_bytes() if path.is_file() else b"")
        for path in (folder, *sorted(folder.rglob("*")))
    }


@pytest.fixture
def ground() -> Iterator[Ground]:
    with common_ground() as folder:
        yield Ground(folder)


def put_over(storage: LocalStorage) -> None:
    storage.put(KEY, OBJECT)


def put_new(storage: LocalStorage) -> None:
    storage.put("blobs/ab/new", OBJECT, if_absent=True)


def put_file(storage: LocalStorage) -> None:
    storage.put_file("blobs/ab/file", BytesSource(OBJECT), sha256=sha256_of(OBJECT))


def copy(storage: LocalStorage) -> None:
    with storage.copied(BytesSource(OBJECT), called="a.sst") as copied:
        copied.publish("blobs/ab/copy")


def get(storage: LocalStorage) -> None:
    assert storage.get(KEY, limit_bytes=99) == OBJECT


def read(storage: LocalStorage) -> None:
    assert b"".join(storage.read(KEY, start=0, stop=len(OBJECT))) == OBJECT


def stat(storage: LocalStorage) -> None:
    found = storage.stat(KEY)
    assert found is None or found.size == len(OBJECT)


def list_all(storage: LocalStorage) -> None:
    for prefix in ("", "blobs/", "blobs/ab/"):
        assert len(PRECIOUS) not in {found.size for found in storage.list(prefix)}


def delete(storage: LocalStorage) -> None:
    storage.delete([KEY, "blobs/ab/two"])


def sweep(storage: LocalStorage) -> None:
    for found in storage.unfinished_uploads():
        storage.abort_upload(found)


def free(storage: LocalStorage) -> None:
    storage.keep_room()
    with storage.freeing():
        while storage._reserve.give():
            pass


VERBS = (put_over, put_new, put_file, copy, get, read, stat, list_all, delete, sweep, free)


def link(name: str, to: str) -> Callable[[Ground], None]:
    def put(ground: Ground) -> None:
        path = ground.root / name
        path.rename(ground.root / "moved")
        path.symlink_to(ground.victim / to)

    return put


def pipe(ground: Ground) -> None:
    (ground.root / KEY).unlink()
    os.mkfifo(ground.root / KEY)


PUT = {
    "the folder of blobs is a link": link("blobs", "."),
    "a folder of blobs is a link": link("blobs/ab", "."),
    "the folder of unfinished files is a link": link(".unfinished", "."),
    "the room kept back is a link": link(".reserve", "."),
    "an object is a link": link(KEY, "one"),
    "an object is a pipe": pipe,
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("what", PUT)
def test_root_s_work_in_a_repository_stays_in_it_h20(
    ground: Ground, what: str, verb: Callable[[LocalStorage], None]
) -> None:
    as_second_user(lambda: PUT[what](ground))

    with suppress(SnapstoreError):
        verb(ground.storage)

    ground.check()


@pytest.mark.parametrize("name", ["blobs", "blobs/ab", ".unfinished", ".reserve"])
def test_a_folder_of_a_repository_that_becomes_a_link_leads_nowhere_h20(
    ground: Ground, name: str
) -> None:
    path, aside = ground.root / name, ground.root / "aside"

    def swap() -> None:
        with suppress(OSError):
            path.rename(aside)
            path.symlink_to(ground.victim)
        with suppress(OSError):
            path.unlink()
        with suppress(OSError):
            aside.rename(path)

    with second_user_at_work(swap):
        for _ in range(50):
            for verb in VERBS:
                with suppress(SnapstoreError):
                    verb(ground.storage)

    ground.check()


@pytest.mark.parametrize("prefix", ["", "blobs/", "catalog/"])
def test_what_a_link_would_hide_from_a_list_is_told(ground: Ground, prefix: str) -> None:
    (ground.root / "moved").mkdir()
    for key in ("blobs/ab", "catalog/app"):
        (ground.root / key).rename(ground.root / "moved" / Path(key).name)
        (ground.root / key).symlink_to(ground.root / "moved" / Path(key).name)

    with pytest.raises(UnsafePathError, match=r"is a symbolic link, and below the root"):
        list(ground.storage.list(prefix))


def test_a_hard_link_to_a_file_of_root_is_no_object(ground: Ground) -> None:
    """Where the kernel lets anybody make one: fs.protected_hardlinks is 0."""
    os.link(ground.victim / "one", ground.root / "blobs/ab/hard")

    with pytest.raises(UnsafePathError, match="is a hard link to a file of user 0"):
        ground.storage.get("blobs/ab/hard", limit_bytes=99)

    ground.storage.delete(["blobs/ab/hard"])
    ground.check()


def test_an_object_is_read_while_its_first_name_is_still_there(ground: Ground) -> None:
    """Its writer goes on, or was killed, between the name for good and the end of the first."""
    ground.storage.put("blobs/ab/of-root", OBJECT)
    os.link(ground.root / "blobs/ab/of-root", ground.root / ".unfinished" / "left")

    assert ground.storage.get("blobs/ab/of-root", limit_bytes=99) == OBJECT


def test_the_root_of_a_repository_may_be_a_link(ground: Ground) -> None:
    path = ground.root.parent / "named"
    path.symlink_to(ground.root)
    storage = LocalStorage(str(path))

    storage.put("blobs/ab/new", OBJECT, if_absent=True)

    assert storage.get("blobs/ab/new", limit_bytes=99) == OBJECT
    assert "blobs/ab/new" in [found.key for found in ground.storage.list("blobs/")]
