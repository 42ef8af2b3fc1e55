"""Root works in a directory of somebody else: whatever lies there, nothing outside is touched.

The second user owns the state directory, and puts there what he likes before root comes, or while
root is at work. What he cannot read or write himself must stay as it is.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from snapstore.errors import RefusedError, SnapstoreError
from snapstore.operations.fsck import FsckOptions
from snapstore.operations.mend import mend
from snapstore.operations.restore import RestoreOptions
from tests.support.mend_lab import ports, uneven_state
from tests.support.restore_lab import REPLACE, RestoreLab, contents
from tests.support.second_user import (
    UID,
    as_second_user,
    common_ground,
    give_away,
    needs_root,
    second_user_at_work,
)
from tests.support.streams_store import APPLICATION, Pairs, make_key_value, some_pairs

pytestmark = needs_root

PRECIOUS = b"of root alone"
TASK = "0_1"
KEEP = msgspec.structs.replace(REPLACE, keep_replaced=True, set_aside={"counts": "not trusted"})


class Ground:
    """A repository and a victim of root's, and a state directory of the second user."""

    def __init__(self, folder: Path, template: Path) -> None:
        self.victim = folder / "victim"
        for name in (TASK, "rocksdb", "0_1-20200101T000000Z"):
            (self.victim / name / "counts").mkdir(parents=True)
            (self.victim / name / "counts" / "CURRENT").write_bytes(PRECIOUS)
        (self.victim / "precious").write_bytes(PRECIOUS)
        self.victim.chmod(0o700)
        shutil.copytree(template, folder / "lab")
        self.lab = RestoreLab.reopened(folder / "lab")
        self.state = folder / "state"
        shutil.move(folder / "lab" / "state", self.state)
        give_away(self.state)
        self.application = self.state / APPLICATION
        self.task = self.application / TASK
        self.work = self.application / ".snapstore"
        self._before = facts(self.victim)

    def restore(self, options: RestoreOptions = REPLACE) -> None:
        """Restore one of two stores as root."""
        requests = self.lab.requests(store="counts")
        self.lab.restore(self.state, requests, options)

    def check(self) -> None:
        """Nothing of root's was touched or given away, and nothing of it was let out."""
        assert facts(self.victim) == self._before
        for path in self.state.rglob("*"):
            if path.is_file() and not path.is_symlink() and path.lstat().st_uid == UID:
                assert PRECIOUS not in path.read_bytes(), path


def facts(folder: Path) -> dict[str, object]:
    return {
        str(path): (path.lstat()[:6], path.read_bytes() if path.is_file() else b"")
        for path in (folder, *sorted(folder.rglob("*")))
    }


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A task of two stores, and a repository that has snapshots of them."""
    folder = tmp_path_factory.mktemp("template", numbered=True)
    lab = RestoreLab(folder)
    for store in ("counts", "names"):
        content = Pairs(pairs=some_pairs(200), applied_offset=99)
        make_key_value(folder / "state", TASK, store, content)
    lab.save(folder / "state")
    return folder


@pytest.fixture
def ground(template: Path) -> Iterator[Ground]:
    with common_ground() as folder:
        yield Ground(folder, template)


Put = Callable[[Ground], object]


def link(name: str, to: str = "") -> Put:
    """Put a link into the application's directory, in place of what has that name."""

    def put(ground: Ground) -> None:
        path = ground.application / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            path.rename(ground.state / "moved")
        path.symlink_to(ground.victim / to)

    return put


def pipe(name: str) -> Put:
    def put(ground: Ground) -> None:
        path = ground.application / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        os.mkfifo(path)

    return put


def journal(work: str, *, keep: bool, inode: int | None = None) -> Put:
    """Forge the journal of a swap: the old directory would be the victim's, moved or removed."""

    def put(ground: Ground) -> None:
        folder = ground.application / work
        (folder / "swaps").mkdir(parents=True)
        (folder / "replaced").symlink_to(ground.victim)
        there = ground.task.stat().st_ino if inode is None else inode
        if inode is not None:
            ground.task.rename(ground.state / "moved")
        forged = {
            "format": 1,
            "task": TASK,
            "staged_inode": there,
            "replaced": "0_1-20200101T000000Z",
            "keep_replaced": keep,
        }
        (folder / "swaps" / f"{TASK}.json").write_bytes(msgspec.json.encode(forged))

    return put


WORK, OWN = ".snapstore", ".snapstore/work-0"
PUT = {
    "the work folder is a link": link(WORK),
    "the folder of root's runs is a link": link(OWN),
    "the staged task is a link": link(f"{WORK}/staging/{TASK}"),
    "the staged task is a link where root works": link(f"{OWN}/staging/{TASK}"),
    "staging is a link": link(f"{WORK}/staging"),
    "fetched parts are a link": link(f"{WORK}/parts"),
    "journals are a link": link(f"{WORK}/swaps"),
    "markers are a link": link(f"{WORK}/replays"),
    "a journal has the old directory removed": journal(WORK, keep=False),
    "a journal where root works has it removed": journal(OWN, keep=False),
    "a journal has the old directory put back": journal(WORK, keep=True, inode=1),
    "a journal where root works has it put back": journal(OWN, keep=True, inode=1),
    "quarantine is a link": link(f"{WORK}/quarantine"),
    "the place of old directories is a link": link(f"{WORK}/replaced"),
    "the lock of the work is a link": link(f"{WORK}/lock", "precious"),
    "the lock of the work is a pipe": pipe(f"{WORK}/lock"),
    "the application's lock is a link": link(".lock", "precious"),
    "the application's lock is a pipe": pipe(".lock"),
    "the task is a link": link(TASK),
    "a folder of the task is a link": link(f"{TASK}/rocksdb", "rocksdb"),
    "a store is a link": link(f"{TASK}/rocksdb/names", "rocksdb/counts"),
    "a file is a link": link(f"{TASK}/rocksdb/names/CURRENT", "precious"),
    "a table is a link": link(f"{TASK}/rocksdb/names/000999.sst", "precious"),
    "a file is a pipe": pipe(f"{TASK}/rocksdb/names/CURRENT"),
    "the offsets are a pipe": pipe(f"{TASK}/.checkpoint"),
}


@pytest.mark.parametrize("what", PUT)
@pytest.mark.parametrize("options", [REPLACE, KEEP], ids=["replace", "keep"])
def test_a_restore_by_root_leaves_alone_what_is_not_the_application_s_h20(
    ground: Ground, what: str, options: RestoreOptions
) -> None:
    as_second_user(lambda: PUT[what](ground))

    with suppress(SnapstoreError):
        ground.restore(options)

    ground.check()


@pytest.mark.parametrize("what", PUT)
def test_a_mend_by_root_leaves_alone_what_is_not_the_application_s_h20(
    ground: Ground, what: str
) -> None:
    uneven_state(ground.state)
    give_away(ground.state)
    as_second_user(lambda: PUT[what](ground))

    with suppress(SnapstoreError):
        mend(ground.state, ports(), FsckOptions())

    ground.check()


def test_what_root_has_restored_belongs_to_the_owner_of_the_directory(
    ground: Ground, tmp_path: Path
) -> None:
    ground.restore()

    owners = {path.lstat().st_uid for path in ground.application.rglob("*")}
    assert owners == {UID}
    assert contents(ground.state, tmp_path)
    assert not ground.work.exists()


def test_what_was_kept_can_be_reached_by_the_owner_of_the_directory(ground: Ground) -> None:
    ground.restore(KEEP)

    def reach() -> None:
        found = {path.parts[-1] for path in ground.work.rglob("*")}
        assert {"CURRENT", "README.txt", "quarantine", "replaced"} <= found
        for path in ground.work.rglob("CURRENT"):
            path.unlink()
        (ground.work / "work-54321").mkdir()

    as_second_user(reach)


def test_a_journal_of_another_user_is_told_and_not_believed(ground: Ground) -> None:
    as_second_user(lambda: journal(OWN, keep=False)(ground))
    with pytest.raises(RefusedError, match=r"work-0 belongs to user 54321, mode 0755"):
        ground.restore()
    ground.check()


@pytest.mark.parametrize("name", ["names/secret", "names/000999.sst", "names/CURRENT"])
def test_a_hard_link_to_a_file_of_root_is_refused(ground: Ground, name: str) -> None:
    """Where the kernel lets anybody make one: fs.protected_hardlinks is 0."""
    path = ground.task / "rocksdb" / name
    path.unlink(missing_ok=True)
    os.link(ground.victim / "precious", path)

    with pytest.raises(RefusedError, match="is a hard link to a file of user 0"):
        ground.restore()

    path.unlink()
    ground.check()


SWAPPED: dict[str, str] = {
    WORK: "",
    TASK: "",
    f"{TASK}/rocksdb": "rocksdb",
    f"{TASK}/rocksdb/names": "rocksdb/counts",
    f"{WORK}/quarantine": "",
}


@pytest.mark.parametrize("name", SWAPPED)
def test_a_link_that_comes_and_goes_while_root_is_at_work_leads_nowhere_h20(
    ground: Ground, name: str
) -> None:
    path = ground.application / name
    as_second_user(lambda: path.mkdir(parents=True, exist_ok=True))
    aside = ground.application / "aside"
    target = ground.victim / SWAPPED[name]

    def swap() -> None:
        with suppress(OSError):
            path.rename(aside)
            path.symlink_to(target)
        with suppress(OSError):
            path.unlink()
        with suppress(OSError):
            aside.rename(path)

    with second_user_at_work(swap):
        for _ in range(5):
            with suppress(SnapstoreError):
                ground.restore(KEEP)

    ground.check()
