"""Whose place a restore may write to, and what the files there are like afterwards."""

import ctypes
import os
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
import pytest

from snapstore.errors import ConfigError, NoSpaceError, UnsafePathError
from snapstore.operations.restore import RestoreOptions
from snapstore.operations.restore_target import check_target, remark_on_place
from snapstore.operations.stage_files import FileWriter, Permissions, told_of_owner
from tests.support.restore_lab import REPLACE, UNCHECKED, RestoreLab, contents, modes
from tests.support.second_user import GID, UID, as_second_user
from tests.support.streams_store import APPLICATION, Pairs, make_key_value, make_window, some_pairs

MIB = 1 << 20
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounts and owners need root")


@pytest.fixture
def lab(tmp_path: Path) -> RestoreLab:
    """Snapshots of one store of about 3 MB in one task."""
    lab = RestoreLab(tmp_path)
    pairs = some_pairs(3000, size=1000)
    make_key_value(tmp_path / "source", "0_1", "counts", Pairs(pairs=pairs, applied_offset=900))
    lab.save(tmp_path / "source")
    return lab


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


@contextmanager
def mounted(folder: Path, *, size_bytes: int, read_only: bool = False) -> Iterator[Path]:
    """Mount a file system in memory of that size."""
    folder.mkdir()
    options = f"size={size_bytes}" + (",ro" if read_only else "")
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("place", ["/", "/home", "/etc", "/var/lib", "/usr/", "/tmp/..", "~"])
def test_g93_odd_places_are_refused(place: str) -> None:
    with pytest.raises(UnsafePathError, match="no place for a state directory"):
        check_target(Path(place).expanduser())


def test_g93_an_odd_place_is_refused_by_the_restore_itself(lab: RestoreLab) -> None:
    with pytest.raises(UnsafePathError):
        lab.restore(Path("/"), options=REPLACE)


def test_g93_a_repository_is_no_target(lab: RestoreLab) -> None:
    with pytest.raises(UnsafePathError, match="repository"):
        lab.restore(lab.folder / "repository", options=REPLACE)


def test_g97_a_target_that_is_a_file_is_refused_at_once(lab: RestoreLab, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")

    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(ConfigError, match="is not a directory") as refused:
            lab.restore(place)
        assert refused.value.facts["path"] == str(tmp_path / "file")
    assert lab.downloaded_bytes == 0


@needs_root
def test_g97_a_read_only_mount_is_refused_at_once(lab: RestoreLab, tmp_path: Path) -> None:
    with mounted(tmp_path / "mount", size_bytes=64 * MIB, read_only=True) as mount:
        with pytest.raises(ConfigError, match="cannot write into") as refused:
            lab.restore(mount)
        assert refused.value.facts["path"] == str(mount)
    assert lab.downloaded_bytes == 0


def test_g97_a_directory_without_the_right_to_write_is_refused_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o555)
    folder.chmod(0o555)
    command = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from snapstore.errors import ConfigError\n"
        "from snapstore.operations.restore_target import check_writable\n"
        "if os.geteuid() == 0: os.setgid(65534); os.setuid(65534)\n"
        "try: check_writable(Path(sys.argv[1]))\n"
        "except ConfigError as error: print(error.message)\n"
    )
    for path in (tmp_path, *tmp_path.parents):
        if path.owner() == folder.owner() and path != Path("/tmp"):
            path.chmod(path.stat().st_mode | 0o111)

    said = subprocess.run(
        [sys.executable, "-c", command, str(folder)], capture_output=True, text=True, check=True
    )

    assert said.stdout == f"cannot write into {folder}\n"


@needs_root
def test_g95_a_target_that_is_too_small_is_refused_before_anything_is_written(
    lab: RestoreLab, tmp_path: Path
) -> None:
    with mounted(tmp_path / "mount", size_bytes=2 * MIB) as mount:
        with pytest.raises(NoSpaceError) as refused:
            lab.restore(mount)
        assert list(mount.iterdir()) == []
    assert refused.value.facts["free_bytes"] == 2 * MIB
    assert lab.downloaded_bytes == 0


@needs_root
def test_g95_a_disk_that_fills_up_meanwhile_leaves_no_store_that_opens(
    lab: RestoreLab, tmp_path: Path
) -> None:
    with mounted(tmp_path / "mount", size_bytes=10 * MIB) as mount:

        def fill(point: str) -> None:
            if point == "staging made":
                (mount / "others").write_bytes(bytes(8 * MIB))

        with pytest.raises(NoSpaceError) as failed:
            lab.restore(mount, reached=fill)

        assert "ENOSPC" in failed.value.message
        assert str(mount) in str(failed.value.facts["path"])
        assert not (mount / APPLICATION / "0_1").exists()
        assert not list(mount.rglob("CURRENT"))
        (mount / "others").unlink()
        report = lab.restore(mount)
        assert 0 < report.fetched_bytes < 3 * MIB
        assert len(contents(mount, tmp_path / "scratch")) == 1


@needs_root
def test_g95_a_disk_that_is_full_when_offsets_are_noted_changes_nothing_and_a_re_run_finishes(
    lab: RestoreLab, tmp_path: Path
) -> None:
    segments = {
        1700000000000: Pairs(pairs=some_pairs(200, size=1000), applied_offset=410),
        1700000060000: Pairs(pairs=some_pairs(100, size=1000), applied_offset=777),
    }
    make_window(tmp_path / "source", "0_2", "windows", segments)
    lab.save(tmp_path / "source")
    requests = lab.requests(store="windows")
    with mounted(tmp_path / "mount", size_bytes=10 * MIB) as mount:

        def fill(point: str) -> None:
            if point == "small files written":
                with (mount / "others").open("wb", buffering=0) as file, suppress(OSError):
                    while file.write(bytes(4096)):
                        pass

        with pytest.raises(NoSpaceError, match="ENOSPC"):
            lab.restore(mount, requests, reached=fill)

        assert not (mount / APPLICATION / "0_2").exists()
        (mount / "others").unlink()
        report = lab.restore(mount, requests)
        assert report.fetched_bytes == 0
        assert len(contents(mount, tmp_path / "scratch")) == 2


@needs_root
@pytest.mark.parametrize("mask", [0o077, 0o000, 0o022])
def test_g94_as_root_the_files_get_the_owner_of_the_target(
    lab: RestoreLab, tmp_path: Path, mask: int
) -> None:
    target = tmp_path / "target"
    target.mkdir()
    target.chmod(0o750)
    os.chown(target, 1000, 1000)

    with umask(mask):
        lab.restore(target)

    found = list(target.rglob("*"))
    assert len(found) > 5
    for path in found:
        status = path.lstat()
        assert (status.st_uid, status.st_gid) == (1000, 1000), path
        assert status.st_mode & stat.S_IRUSR
        assert status.st_mode & stat.S_IWUSR
        assert not status.st_mode & stat.S_IWOTH


@needs_root
def test_g94_the_owner_may_be_named(lab: RestoreLab, tmp_path: Path) -> None:
    options = msgspec.structs.replace(UNCHECKED, permissions=Permissions(owner=(1234, 5678)))

    lab.restore(tmp_path / "target", options=options)

    task = tmp_path / "target" / APPLICATION / "0_1"
    for path in (task, *task.rglob("*")):
        assert (path.stat().st_uid, path.stat().st_gid) == (1234, 5678)


@pytest.mark.parametrize("mask", [0o022, 0o000])
def test_g98_nobody_else_can_read_what_was_restored(
    lab: RestoreLab, tmp_path: Path, mask: int
) -> None:
    with umask(mask):
        lab.restore(tmp_path / "target")

    for name, mode in modes(tmp_path / "target").items():
        path = tmp_path / "target" / name
        assert mode & ~(0o750 if path.is_dir() else 0o640) == 0, (name, oct(mode))


def test_g98_no_mode_from_a_manifest_makes_a_file_wider_or_set_uid() -> None:
    permissions = Permissions()
    assert permissions.of_file(0o4777) == 0o640
    assert permissions.of_file(0o644) == 0o640
    assert permissions.of_file(0o600) == 0o600
    assert permissions.of_file(0o000) == 0o600
    assert Permissions(file_mode=0o660).of_file(0o664) == 0o660


def without_chown() -> None:
    """Let this process keep its user, root, and lose the right to give files away."""
    pr_capbset_drop, cap_chown, cap_fowner = 24, 0, 3
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in (cap_chown, cap_fowner):
        assert libc.prctl(pr_capbset_drop, capability, 0, 0, 0) == 0


@needs_root
def test_g98_an_owner_or_mode_that_cannot_be_set_is_a_warning_only(tmp_path: Path) -> None:
    command = (
        "import sys\n"
        "from pathlib import Path\n"
        "from snapstore.operations.stage_files import FileWriter, Permissions\n"
        "said = []\n"
        "writer = FileWriter(Permissions(owner=(1000, 1000)), said.append)\n"
        "for name in 'ab': writer.write(Path(sys.argv[1]) / name, b'bytes', 0o644)\n"
        "print(len(said), said[0])\n"
    )

    said = subprocess.run(
        [sys.executable, "-c", command, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=without_chown,
    )

    assert said.stdout.startswith("1 owner or mode of ")
    assert "could not be set: Operation not permitted" in said.stdout
    assert [(tmp_path / name).read_bytes() for name in "ab"] == [b"bytes", b"bytes"]
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in "ab"] == [0o640, 0o640]


def test_a_link_in_staging_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "CURRENT.tmp").symlink_to(tmp_path / "victim")
    writer = FileWriter(Permissions(), pytest.fail)

    with pytest.raises(ConfigError):
        writer.write(tmp_path / "CURRENT", b"x", 0o600)

    assert (tmp_path / "victim").read_text() == "precious"


def test_a_link_in_place_of_the_task_directory_is_refused(lab: RestoreLab, tmp_path: Path) -> None:
    application = tmp_path / "target" / APPLICATION
    application.mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (application / "0_1").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(UnsafePathError, match="symbolic link"):
        lab.restore(tmp_path / "target", options=REPLACE)


def test_an_empty_task_directory_is_no_obstacle(lab: RestoreLab, tmp_path: Path) -> None:
    (tmp_path / "target" / APPLICATION / "0_1").mkdir(parents=True)

    lab.restore(tmp_path / "target")

    assert len(contents(tmp_path / "target", tmp_path / "scratch")) == 1


def test_the_rate_is_limited(lab: RestoreLab, tmp_path: Path) -> None:
    began = time.monotonic()
    lab.restore(
        tmp_path / "target",
        options=RestoreOptions(allow_unchecked_changelog=True, limit_bytes_per_second=2 * MIB),
    )

    assert time.monotonic() - began > lab.downloaded_bytes / (2 * MIB) * 0.9


@needs_root
def test_an_owner_that_only_root_can_give_is_told_h74() -> None:
    def told() -> None:
        said = told_of_owner(Permissions(owner=(1000, 1000)))
        assert said is not None
        assert "restore.owner is 1000:1000" in said
        assert told_of_owner(Permissions(owner=(UID, GID))) is None

    as_second_user(told)
    assert told_of_owner(Permissions(owner=(1000, 1000))) is None


def test_a_target_that_does_not_stay_is_told_h69() -> None:
    told = remark_on_place(Path("/tmp/kafka-streams"))
    assert told is not None
    assert "a reboot or a cleaner takes it away" in told
    assert remark_on_place(Path("/var/lib/orders")) is None


def test_the_plan_of_a_restore_below_a_temporary_folder_says_so_h69(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    lab = RestoreLab(tmp_path)
    content = Pairs(pairs=some_pairs(5), applied_offset=9)
    make_key_value(tmp_path / "source", "0_1", "counts", content)
    lab.save(tmp_path / "source")
    notes = lab.plan(tmp_path / "target").notes
    assert any("a reboot or a cleaner takes it away" in note for note in notes)


def test_a_target_inside_a_repository_is_refused_h74(tmp_path: Path) -> None:
    RestoreLab(tmp_path)
    with pytest.raises(UnsafePathError, match="is in a snapstore repository"):
        check_target(tmp_path / "repository" / "blobs" / "state")


@needs_root
def test_something_mounted_in_a_task_is_told_and_stays_h74(tmp_path: Path) -> None:
    lab = RestoreLab(tmp_path)
    content = Pairs(pairs=some_pairs(5), applied_offset=9)
    store = make_key_value(tmp_path / "state", "0_1", "counts", content)
    lab.save(tmp_path / "state")
    place = store.parent / "on another disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", str(place)], check=True)
    try:
        (place / "file").write_text("precious")
        with pytest.raises(UnsafePathError, match="something is mounted on"):
            lab.restore(tmp_path / "state", options=REPLACE)
        assert (place / "file").read_text() == "precious"
    finally:
        subprocess.run(["umount", str(place)], check=True)
