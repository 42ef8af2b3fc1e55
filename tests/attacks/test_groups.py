"""A volume that a group shares, as Kubernetes makes it with fsGroup: the application can write."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from snapstore.operations.fsck import FsckOptions, fsck
from tests.support.mend_lab import ports
from tests.support.restore_lab import REPLACE, UNCHECKED, RestoreLab
from tests.support.second_user import GID, as_second_user, common_ground, needs_root
from tests.support.streams_store import APPLICATION, Pairs, make_key_value, some_pairs

pytestmark = needs_root

OTHER_UID = 54322


@pytest.fixture
def ground() -> Iterator[Path]:
    """A repository that everybody can read, and a volume `root:GID`, mode 2775."""
    with common_ground() as folder:
        for name in ("lab", "volume"):
            (folder / name).mkdir()
        lab = RestoreLab(folder / "lab")
        make_key_value(folder / "source", "0_1", "counts", Pairs(pairs={}, applied_offset=9))
        content = Pairs(pairs=some_pairs(50), applied_offset=99)
        make_key_value(folder / "source", "0_1", "names", content)
        lab.save(folder / "source")
        for path in (folder / "lab").rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)
        os.chown(folder / "volume", 0, GID)
        (folder / "volume").chmod(0o2775)
        yield folder


def unwritable(folder: Path) -> list[str]:
    """Return what the application's user, who is only of the group, cannot write."""
    found = folder / "found"
    found.touch()
    found.chmod(0o666)

    def look() -> None:
        paths = [folder / "volume", *(folder / "volume").rglob("*")]
        bad = [str(path) for path in paths if not os.access(path, os.W_OK)]
        found.write_text("\n".join(bad))

    as_second_user(look)
    return found.read_text().splitlines()


def restore_as_other_user(folder: Path) -> None:
    """Restore as another user of the group, once what only root may read was read."""
    script = (
        "import os, sys\n"
        "from contextlib import ExitStack\n"
        "from snapstore.layouts.locks import watching_locks\n"
        "from pathlib import Path\n"
        "from tests.support.restore_lab import REPLACE, RestoreLab\n"
        "import msgspec\n"
        "lab = RestoreLab.reopened(Path(sys.argv[1]) / 'lab')\n"
        "held = ExitStack()\n"
        "held.enter_context(watching_locks())\n"
        "lab.restore(Path(sys.argv[1]) / 'imports', options=REPLACE)\n"
        "os.setgroups([int(sys.argv[3])])\n"
        "os.setresgid(*[int(sys.argv[2])] * 3)\n"
        "os.setresuid(*[int(sys.argv[2])] * 3)\n"
        "options = msgspec.structs.replace(REPLACE, keep_replaced=True)\n"
        "lab.restore(Path(sys.argv[1]) / 'volume', options=options)\n"
        "assert not [each for each in lab.notes if 'could not' in each], lab.notes\n"
    )
    subprocess.run(
        [sys.executable, "-c", script, str(folder), str(OTHER_UID), str(GID)],
        check=True,
        cwd=Path(__file__).parents[2],
    )


def test_what_root_restores_can_be_written_by_the_group_h11(ground: Path) -> None:
    lab = RestoreLab.reopened(ground / "lab")
    lab.restore(ground / "volume")
    lab.restore(ground / "volume", lab.requests(store="counts"), REPLACE)

    assert unwritable(ground) == []
    task = ground / "volume" / APPLICATION / "0_1"
    assert {path.stat().st_gid for path in task.rglob("*")} == {GID}
    assert all(path.stat().st_mode & 0o2000 for path in task.rglob("*") if path.is_dir())


def test_what_another_user_of_the_group_restores_can_be_written_by_it_h11(ground: Path) -> None:
    restore_as_other_user(ground)
    restore_as_other_user(ground)

    bad = unwritable(ground)
    assert [path for path in bad if f"work-{OTHER_UID}" not in path] == []


def test_a_directory_of_one_user_is_not_opened_to_a_group(ground: Path) -> None:
    (ground / "volume").chmod(0o755)
    RestoreLab.reopened(ground / "lab").restore(ground / "volume", options=UNCHECKED)

    for path in (ground / "volume").rglob("*"):
        assert not path.stat().st_mode & 0o020


def test_what_the_group_cannot_write_is_told_by_fsck_h11(ground: Path) -> None:
    volume = ground / "volume"
    RestoreLab.reopened(ground / "lab").restore(volume)
    assert not fsck(volume, ports(), FsckOptions()).notes

    names = volume / APPLICATION / "0_1" / "rocksdb" / "names"
    (names / "CURRENT").chmod(0o640)

    (note,) = fsck(volume, ports(), FsckOptions()).notes
    assert "cannot be written by it" in note
    assert str(names / "CURRENT") in note
