"""The layout on data directories that a real Faust application left."""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from snapstore.backends.rocksdb import RocksDBBackend
from snapstore.errors import (
    ConfigError,
    ExactlyOnceHotError,
    NotReplayableError,
    SourceDamagedError,
    StoreNotFoundError,
    UnknownOffsetError,
    WrongGenerationError,
)
from snapstore.layouts.faust import FaustLayout
from snapstore.layouts.faust.options import FaustOptions
from snapstore.model.faust_records import OFFSET_KEY
from snapstore.model.identity import ChangelogPartition, StoreId
from snapstore.model.store import ChangelogPosition, StoreLocation
from snapstore.ports import Layout, StoreBackend
from snapstore.testing.backend_contract import materialise
from snapstore.testing.layout_contract import LayoutContract, Positions, StateMaker, describe
from tests.support.python_engines import ExpectedStore, Pair, expected, unpack
from tests.support.replaying import contents
from tests.support.state_dirs import holding_locks, make_database


def store_id(store: ExpectedStore) -> StoreId:
    """Name a store of a fixture; its changelog tells the application."""
    version, _, folder = store.path.split("/")
    table = folder.rpartition("-")[0]
    application = store.changelog.removesuffix(f"-{table}-changelog")
    return StoreId(application, f"{version}/{store.partition}", table)


class FixtureMaker:
    def __init__(self, pair: Pair) -> None:
        self._pair = pair
        self.backend: StoreBackend = RocksDBBackend()

    def make(self, state_dir: Path) -> Mapping[StoreId, Positions]:
        unpack(self._pair, "B", state_dir)
        return {
            store_id(store): (ChangelogPosition(*store.position),)
            for store in expected(self._pair, "B")
        }

    @contextmanager
    def running(self, state_dir: Path) -> Iterator[None]:
        with holding_locks(sorted(state_dir.rglob("LOCK"))):
            yield


class TestStopped(LayoutContract):
    @pytest.fixture
    def layout(self) -> Layout:
        return FaustLayout()

    @pytest.fixture
    def maker(self) -> StateMaker:
        return FixtureMaker("faust_clean")


class TestCopiedWhileItRan(LayoutContract):
    @pytest.fixture
    def layout(self) -> Layout:
        return FaustLayout()

    @pytest.fixture
    def maker(self) -> StateMaker:
        return FixtureMaker("faust_hot")


def a_table(
    data_dir: Path, offset: bytes | None = b"7", *, name: str = "counts-0", version: str = "v1"
) -> StoreLocation:
    """Make a table as rocksdict leaves it."""
    noted = {} if offset is None else {OFFSET_KEY: offset}
    folder = data_dir / version / "tables" / f"{name}.db"
    make_database(folder, {"default": {b'"k"': b"1", b"{": b"1", **noted}})
    assert (folder / "rocksdict-config.json").exists()
    return FaustLayout().discover(data_dir, "shop").locations[-1]


def by_python_rocksdb(location: StoreLocation) -> StoreLocation:
    """Make it look as python-rocksdb leaves it: without the file that rocksdict writes."""
    (location.path / "rocksdict-config.json").unlink()
    [found] = FaustLayout().discover(location.path.parents[2], "shop").locations
    return found


def positions(
    location: StoreLocation, options: FaustOptions | None = None, *, running: bool = False
) -> Positions:
    with RocksDBBackend().open_view(location.task_dir, location.root) as view:
        return FaustLayout(options).positions(location, None, view, running=running)


def test_the_first_version_of_an_application_has_plain_topics(tmp_path: Path) -> None:
    changelog = ChangelogPartition("shop-counts-changelog", 0)
    assert positions(a_table(tmp_path)) == (ChangelogPosition(changelog, 7),)


def test_later_versions_have_topics_of_their_own(tmp_path: Path) -> None:
    location = a_table(tmp_path, name="my-counts.a-12", version="v3")
    assert location.store == StoreId("shop", "v3/12", "my-counts.a")
    [found] = positions(location)
    assert found.changelog == ChangelogPartition("shop-v3-my-counts.a-changelog", 12)


def test_the_topic_that_is_configured_is_taken_as_it_is(tmp_path: Path) -> None:
    options = FaustOptions(changelogs={"counts": "any--thing"})
    [found] = positions(a_table(tmp_path), options)
    assert found.changelog == ChangelogPartition("any--thing", 0)


def test_the_data_directory_tells_the_application_by_its_usual_name(tmp_path: Path) -> None:
    a_table(tmp_path / "shop-data")
    [found] = FaustLayout().discover(tmp_path / "shop-data").locations
    assert found.store.application == "shop"
    (tmp_path / "shop-data").rename(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="does not tell the application"):
        FaustLayout().discover(tmp_path / "elsewhere")
    with pytest.raises(StoreNotFoundError):
        FaustLayout().discover(tmp_path / "shop-data")


def test_a_table_without_an_offset_is_said_to_have_none(tmp_path: Path) -> None:
    with pytest.raises(UnknownOffsetError, match="notes no changelog offset"):
        positions(a_table(tmp_path, None))


def test_an_offset_that_is_no_number_is_damage(tmp_path: Path) -> None:
    with pytest.raises(SourceDamagedError):
        positions(a_table(tmp_path, b"seven"))


def test_a_running_table_is_refused_only_where_transactions_are_configured(
    tmp_path: Path,
) -> None:
    location = a_table(tmp_path)
    options = FaustOptions(guarantee="exactly_once")
    assert positions(location, running=True) == positions(location, options)
    with pytest.raises(ExactlyOnceHotError):
        positions(location, options, running=True)


def test_folders_that_are_no_table_are_told_of_or_passed_over(tmp_path: Path) -> None:
    (tmp_path / "v1/tables/counts-0.db").mkdir(parents=True)
    (tmp_path / "v1/tables/counts-backups").mkdir()
    (tmp_path / "vx/tables/counts-0.db").mkdir(parents=True)
    found = FaustLayout().discover(tmp_path, "shop")
    assert found.locations == ()
    assert "counts-0.db is skipped: it holds no RocksDB" in found.notes[0]
    assert "no table of Faust" in found.notes[1]


def test_a_table_of_python_rocksdb_is_captured_and_brought_back_unchanged(tmp_path: Path) -> None:
    unpack("faust_clean", "A", tmp_path / "source")
    for config in (tmp_path / "source").rglob("rocksdict-config.json"):
        config.unlink()
    locations = FaustLayout().discover(tmp_path / "source", "fapp").locations
    before = {path: look(path) for path in (tmp_path / "source").rglob("*") if path.is_file()}
    stores = expected("faust_clean", "A")
    for location in locations:
        target = tmp_path / "target" / location.path.name
        with RocksDBBackend().capture(location) as capture:
            materialise(capture, target)
            copied = capture.view
            (position,) = FaustLayout().positions(location, None, copied, running=False)
        store = next(each for each in stores if each.path.endswith(target.name))
        assert position.applied_offset == store.applied_offset
        assert contents(location)["default"] == store.contents["default"]
        assert not (target / "rocksdict-config.json").exists()
    assert len(locations) == len(stores)
    assert before == {
        path: look(path) for path in (tmp_path / "source").rglob("*") if path.is_file()
    }


def look(path: Path) -> tuple[int, str]:
    return path.stat().st_ino, hashlib.sha256(path.read_bytes()).hexdigest()


def test_nothing_is_ever_written_into_a_table_of_python_rocksdb(tmp_path: Path) -> None:
    location = by_python_rocksdb(a_table(tmp_path))
    layout = FaustLayout()
    with pytest.raises(NotReplayableError, match="python-rocksdb"):
        layout.require_replayable(location.store, location.store_type)
    [position] = positions(location)
    older = ChangelogPosition(position.changelog, 6)
    with RocksDBBackend().open_view(location.task_dir, location.root) as view:
        assert layout.notes(location.task_dir, [describe(location, [position])], [view]) == ()
        with pytest.raises(NotReplayableError):
            layout.notes(location.task_dir, [describe(location, [older])], [view])


def test_files_of_rocksdict_are_not_brought_to_an_application_with_python_rocksdb(
    tmp_path: Path,
) -> None:
    new = a_table(tmp_path / "new")
    old = by_python_rocksdb(a_table(tmp_path / "old"))
    layout = FaustLayout()
    with pytest.raises(WrongGenerationError, match="written by python-rocksdb"):
        layout.check_target(tmp_path / "old", describe(new, ()))
    [note] = layout.check_target(tmp_path / "new", describe(old, ()))
    assert "python-rocksdb cannot open them again" in note
    assert layout.check_target(tmp_path / "new", describe(new, ())) == ()
    assert layout.check_target(tmp_path / "nothing", describe(new, ())) == ()
