"""A folder of files is taken as it was at one moment, or not at all."""

import itertools
import mmap
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

import snapstore
from snapstore.backends.files import FilesBackend
from snapstore.backends.files.options import FilesOptions, Treatment
from snapstore.client import Snapstore
from snapstore.config.schema import Config, Sections
from snapstore.errors import (
    CaptureError,
    NoSpaceError,
    StoreChangedError,
    StoreNotFoundError,
    UnsafePathError,
)
from snapstore.model.identity import StoreId
from snapstore.model.store import CapturedFile, StoreLocation
from snapstore.testing.backend_contract import materialise, read_whole

LUCENE = FilesOptions(immutable=("_*",), ignore=("write.lock",))


def locate(task_dir: Path, root: str = "index", *side_files: str) -> StoreLocation:
    return StoreLocation(
        store=StoreId("shop", "0_1", "index"),
        layout="kafka-streams",
        backend="files",
        store_type="custom",
        generation="kafka-streams-4.3",
        task_dir=task_dir,
        root=root,
        side_files=side_files,
    )


def write(folder: Path, **files: bytes) -> Path:
    """Write files; ``__`` in a name stands for a folder, ``_0`` at its beginning for itself."""
    for name, content in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


@pytest.fixture
def store(tmp_path: Path) -> StoreLocation:
    write(tmp_path / "0_1" / "index", _0=b"first" * 40_000, _1=b"second", segments_2=b"0,1")
    write(tmp_path / "0_1" / "index", sub__folder__norms=b"n")
    (tmp_path / "0_1" / "index" / "write.lock").touch()
    return locate(tmp_path / "0_1")


def taken(location: StoreLocation, options: FilesOptions = LUCENE) -> dict[str, bytes]:
    with FilesBackend(options).capture(location) as capture:
        return {file.name: read_whole(file) for file in capture.files}


def files_of(location: StoreLocation, options: FilesOptions = LUCENE) -> dict[str, CapturedFile]:
    with FilesBackend(options).capture(location) as capture:
        return {file.name: file for file in capture.files}


WRITERS = """
import itertools, os, sys, time
kind, folder = sys.argv[1:]
path = os.path.join(folder, "restless")
files = [os.open(path + end, os.O_RDWR | os.O_CREAT) for end in ("", "-offset")]
inner = os.path.join(folder, "inner")
for number in itertools.count(1):
    if kind == "coming and going":
        os.mkdir(inner)
        open(os.path.join(inner, "file"), "w").close()
        os.unlink(os.path.join(inner, "file"))
        os.rmdir(inner)
    else:
        for file in files:
            os.pwrite(file, b"%012d" % number, 0)
    if number == 1:
        print(flush=True)
    if kind == "paced" or number % 20 == 0 and kind == "coming and going":
        time.sleep(0.002)
"""


def slow_to_read(folder: Path) -> None:
    """Make a mutable file that takes long enough to read for others to get their turn."""
    (folder / "large").touch()
    os.truncate(folder / "large", 128 << 20)


@contextmanager
def meanwhile(kind: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Write to `restless` and then to `restless-offset` from another process, again and again."""
    command = [sys.executable, "-c", WRITERS, kind, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
        try:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"\n"
            yield writer
        finally:
            writer.kill()


@pytest.mark.parametrize(
    ("name", "treatment"),
    [
        ("_0.cfs", "immutable"),
        ("deep/_0.cfs", "immutable"),
        ("_0.liv", "mutable"),
        ("segments_2", "mutable"),
        ("unheard-of", "mutable"),
        ("write.lock", "ignored"),
        ("logs", "ignored"),
        ("logs/_0.cfs", "mutable"),
        ("tmp/x", "ignored"),
        ("deep/tmp/x", "mutable"),
    ],
)
def test_patterns_say_what_a_file_is(name: str, treatment: Treatment) -> None:
    options = FilesOptions(
        immutable=("_*.cfs", "_*.liv"),
        mutable=("*.liv", "logs/*"),
        ignore=("*.lock", "logs", "tmp/*"),
    )
    assert options.treatment(name) == treatment


def test_every_file_is_taken_whatever_it_is_called(store: StoreLocation) -> None:
    write(store.path, data__bin=b"d", SIDE=b'{"p0":"77"}', empty=b"", **{"ä ö.x": b"umlauts"})
    names = {"_0", "_1", "segments_2", "sub/folder/norms", "data/bin", "SIDE", "empty", "ä ö.x"}
    found = taken(store)
    assert found.keys() == {f"index/{name}" for name in names}
    assert found["index/SIDE"] == b'{"p0":"77"}'


def test_immutable_files_keep_their_identity_and_small_mutable_ones_travel_inside(
    store: StoreLocation,
) -> None:
    write(store.path, large=b"m" * 100_000)
    found = files_of(store)
    status = (store.path / "_0").stat()
    assert found["index/_0"].identity is not None
    assert found["index/_0"].identity.inode == status.st_ino
    assert (found["index/_0"].inline, found["index/segments_2"].inline) == (False, True)
    assert (found["index/large"].identity, found["index/large"].inline) == (None, False)


def test_a_copy_of_a_mutable_file_stays_what_it_was(store: StoreLocation, tmp_path: Path) -> None:
    write(store.path, large=b"m" * 100_000)
    staging = tmp_path / "staging"
    staging.mkdir()
    options = msgspec.structs.replace(LUCENE, staging_dir=str(staging))
    with FilesBackend(options).capture(store) as capture:
        write(store.path, large=b"another", segments_2=b"9")
        (store.path / "_1").unlink()
        found = {file.name: read_whole(file) for file in capture.files}
    assert found["index/large"] == b"m" * 100_000
    assert (found["index/segments_2"], found["index/_1"]) == (b"0,1", b"second")
    assert not list(staging.iterdir())


def test_all_files_are_of_one_moment(store: StoreLocation) -> None:
    """G67: two files that are always written one after the other."""
    options = msgspec.structs.replace(LUCENE, max_attempts=500, retry_seconds=0.0005)
    seen: list[int] = []
    patience = time.monotonic() + 300
    with meanwhile("paced", store.path):
        while len(seen) < 30 or len(set(seen)) < 6:
            assert time.monotonic() < patience, "nothing was written meanwhile"
            found = taken(store, options)
            content = int(found["index/restless"][:12])
            offset = int(found["index/restless-offset"] or 0)
            assert content - offset in (0, 1)
            seen.append(offset)


def test_what_comes_and_goes_meanwhile_is_looked_for_again(store: StoreLocation) -> None:
    """Files and folders vanish between being listed and being opened; a folder is empty briefly."""
    options = msgspec.structs.replace(LUCENE, max_attempts=500, retry_seconds=0.0005)
    left_out = msgspec.structs.replace(options, ignore=("write.lock", "inner"))
    expected = taken(store, left_out)
    with meanwhile("coming and going", store.path):
        for _ in range(100):
            found = taken(store, options)
            assert found.items() >= expected.items()


def test_what_changes_is_read_again_until_two_looks_agree(store: StoreLocation) -> None:
    """G31: no complaint once it has settled."""
    slow_to_read(store.path)
    pauses = []
    with meanwhile("busy", store.path) as writer:

        def pause(seconds: float) -> None:
            pauses.append(seconds)
            if len(pauses) == 3:
                writer.kill()
                writer.wait()

        options = msgspec.structs.replace(LUCENE, max_attempts=200)
        with FilesBackend(options, sleep=pause, draw=lambda: 0.5).capture(store) as capture:
            found = {file.name: read_whole(file) for file in capture.files}
    assert pauses == [0.01, 0.02, 0.04]
    for name in ("restless", "restless-offset"):
        assert found[f"index/{name}"] == (store.path / name).read_bytes()


@pytest.mark.parametrize("kind", ["written to", "mapped"])
def test_a_store_that_never_settles_is_refused(
    store: StoreLocation, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it is mapped into memory: its times stay the same then."""
    (store.path / "restless").write_bytes(bytes(1 << 16))
    reading, numbers = os.pread, itertools.count(1)
    with (
        (store.path / "restless").open("r+b", buffering=0) as file,
        mmap.mmap(file.fileno(), 0) as mapped,
    ):

        def read_and_write(fd: int, length: int, position: int) -> bytes:
            number = next(numbers)
            if kind == "mapped":
                mapped[number * 4099 % len(mapped)] = number % 251 + 1
            else:
                os.pwrite(file.fileno(), b"%012d" % number, 0)
            return reading(fd, length, position)

        monkeypatch.setattr(os, "pread", read_and_write)
        options = msgspec.structs.replace(LUCENE, max_attempts=4, retry_seconds=0.0)
        with (
            pytest.raises(StoreChangedError, match="restless") as refused,
            FilesBackend(options).capture(store),
        ):
            pass
    assert refused.value.facts["attempts"] == 4


def test_an_immutable_file_that_is_written_to_after_all_is_noticed(store: StoreLocation) -> None:
    with FilesBackend(LUCENE).capture(store) as capture:
        for file in capture.files:
            read_whole(file)
        with (store.path / "_1").open("ab") as grown:
            grown.write(b"more")
        (grown_file,) = (file for file in capture.files if file.name == "index/_1")
        with pytest.raises(StoreChangedError, match="pattern of immutable files"):
            capture.release(grown_file)


def link(path: Path) -> None:
    path.symlink_to("/etc/hostname")


def link_to_a_folder(path: Path) -> None:
    path.symlink_to("/etc", target_is_directory=True)


ODD: list[tuple[str, Callable[[Path], object]]] = [
    ("a link", link),
    ("a link", link_to_a_folder),
    ("a pipe", os.mkfifo),
    ("an empty folder", Path.mkdir),
]


@pytest.mark.parametrize(("kind", "make"), ODD)
def test_what_no_snapshot_can_hold_is_refused_unless_it_is_left_out(
    store: StoreLocation, kind: str, make: Callable[[Path], object]
) -> None:
    make(store.path / "sub" / "odd")
    with (
        pytest.raises(CaptureError, match=f"index/sub/odd is {kind}") as refused,
        FilesBackend(LUCENE).capture(store),
    ):
        pass
    assert "ignore" in (refused.value.hint or "")
    options = msgspec.structs.replace(LUCENE, ignore=("write.lock", "odd"))
    assert "index/sub/folder/norms" in taken(store, options)


def test_the_folder_of_the_store_may_not_be_a_link(store: StoreLocation) -> None:
    (store.task_dir / "link").symlink_to(store.path)
    for root in ("link", "link/sub"):
        location = msgspec.structs.replace(store, root=root)
        with pytest.raises(CaptureError, match="it is a link"), FilesBackend().capture(location):
            pass


def test_hostile_names_are_refused(store: StoreLocation) -> None:
    for name in ("a\nb", "back\\slash", os.fsdecode(b"\xff")):
        path = store.path / name
        path.touch()
        with pytest.raises(UnsafePathError), FilesBackend(LUCENE).capture(store):
            pass
        path.unlink()


def test_a_folder_of_locks_alone_is_no_state(tmp_path: Path) -> None:
    write(tmp_path / "index", **{"write.lock": b""})
    with pytest.raises(StoreNotFoundError), FilesBackend(LUCENE).capture(locate(tmp_path)):
        pass


def test_a_full_disk_is_said_before_it_is_full(store: StoreLocation) -> None:
    write(store.path, large=b"m" * 100_000)
    options = msgspec.structs.replace(LUCENE, min_free_bytes=1 << 60)
    with (
        pytest.raises(NoSpaceError, match="too little space"),
        FilesBackend(options).capture(store),
    ):
        pass


def test_files_beside_the_folder_are_read_before_it(store: StoreLocation) -> None:
    """G12: an offset that moves on while the files are read is not taken with older files."""
    beside = store.task_dir / ".checkpoint_index"
    beside.write_bytes(b"0\n1\nshop-index-changelog 1 77\n")
    location = msgspec.structs.replace(store, side_files=(".checkpoint_index",))
    moved = []

    def move(seconds: float) -> None:
        moved.append(seconds)

    with FilesBackend(LUCENE, sleep=move).capture(location) as capture:
        beside.write_bytes(b"0\n1\nshop-index-changelog 1 99\n")
        found = {file.name: read_whole(file) for file in capture.files}
    assert b" 77\n" in found[".checkpoint_index"]
    beside.unlink()
    assert ".checkpoint_index" not in taken(location)


def test_more_files_than_may_be_open_are_copied(store: StoreLocation) -> None:
    write(store.path, **{f"_{n}x": b"%d" % n for n in range(400)})
    program = """
import resource, sys
from pathlib import Path
from snapstore.backends.files import FilesBackend
from tests.backends.test_files import LUCENE, locate, read_whole
resource.setrlimit(resource.RLIMIT_NOFILE, (300, 300))
with FilesBackend(LUCENE).capture(locate(Path(sys.argv[1]))) as capture:
    assert all(file.identity is None for file in capture.files)
    found = {file.name: read_whole(file) for file in capture.files}
assert len(found) == 404, len(found)
assert found["index/_399x"] == b"399"
"""
    subprocess.run(
        [sys.executable, "-c", program, str(store.task_dir)],
        check=True,
        cwd=Path(__file__).resolve().parents[2],
    )


def test_pieces_of_large_files_are_entries_of_the_view(
    store: StoreLocation, tmp_path: Path
) -> None:
    content = os.urandom((1 << 20) + 5)
    write(store.path, _large=content, empty=b"")
    with FilesBackend(LUCENE).capture(store) as capture:
        materialise(capture, tmp_path / "copy")
        entries = capture.view.entries("index", "default")
    assert entries[b"_large\0" + bytes(8)] == content[: 1 << 20]
    assert entries[b"_large\0" + (1).to_bytes(8, "big")] == content[1 << 20 :]
    assert entries[b"empty\0" + bytes(8)] == b""
    with FilesBackend(LUCENE).open_view(tmp_path / "copy", "index") as view:
        assert view.entries("index", "default") == entries
        with pytest.raises(StoreNotFoundError):
            view.entries("index", "other")


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[Snapstore]:
    options: dict[str, object] = {"immutable": ["_*"], "ignore": ["write.lock"]}
    config = Config(sections=Sections(backends={"files": options}))
    with snapstore.create(str(tmp_path / "repository"), config=config) as opened:
        yield opened


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    """G10: a custom store of Kafka Streams 4.3 with its own offset file."""
    task = tmp_path / "state" / "app" / "1_4"
    write(task / "my-custom.store", _0=b"x" * 300_000, segments_1=b"0", deep__norms=b"n")
    (task / "my-custom.store" / "write.lock").touch()
    (task / ".checkpoint_my-custom.store").write_bytes(
        b"0\n1\napp-my-custom.store-changelog 4 77\n"
    )
    return tmp_path / "state"


def test_a_custom_store_of_kafka_streams_is_taken_with_its_offset_and_comes_back(
    repository: Snapstore, state_dir: Path, tmp_path: Path
) -> None:
    report = repository.snapshot(state_dir)
    assert not report.failed, report.failed
    (outcome,) = report.outcomes
    assert outcome.snapshot is not None
    description = outcome.snapshot.description
    assert (description.backend, description.store_type) == ("files", "custom")
    (position,) = description.positions
    assert str(position.position.changelog) == "app-my-custom.store-changelog:4"
    assert position.position.applied_offset == 77

    target = tmp_path / "target"
    repository.restore([outcome.snapshot.id], target=target, allow_unchecked_changelog=True)

    def contents(root: Path) -> dict[str, bytes]:
        return {
            str(path.relative_to(root)): path.read_bytes()
            for path in root.rglob("*")
            if path.is_file() and path.name not in ("write.lock", ".lock")
        }

    assert contents(target / "app" / "1_4") == contents(state_dir / "app" / "1_4")


def test_only_what_is_new_is_sent(repository: Snapstore, state_dir: Path) -> None:
    repository.snapshot(state_dir)
    task = state_dir / "app" / "1_4"
    write(task / "my-custom.store", _1=b"y" * 1000, segments_1=b"0,1")
    (task / ".checkpoint_my-custom.store").write_bytes(
        b"0\n1\napp-my-custom.store-changelog 4 90\n"
    )
    (outcome,) = repository.snapshot(state_dir).outcomes
    assert (outcome.new_bytes, outcome.reused_bytes) == (1000, 300_000)
    assert outcome.snapshot is not None
    assert outcome.snapshot.description.applied_offset == 90
