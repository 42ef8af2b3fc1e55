"""The layout on state directories that a real Quix Streams application left."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from snapstore.backends.rocksdb import RocksDBBackend
from snapstore.errors import ConfigError, SourceDamagedError, StoreNotFoundError, UnknownOffsetError
from snapstore.layouts.quix import QuixLayout
from snapstore.layouts.quix.options import QuixOptions
from snapstore.model.identity import ChangelogPartition, StoreId
from snapstore.model.quix_records import OFFSET_KEY, encode_number
from snapstore.model.store import ChangelogPosition
from snapstore.ports import Layout, StoreBackend
from snapstore.testing.layout_contract import LayoutContract, Positions, StateMaker, describe
from tests.support.python_engines import Pair, expected, unpack
from tests.support.state_dirs import holding_locks, make_database

Families = Mapping[str, Mapping[bytes, bytes]]


class FixtureMaker:
    def __init__(self, pair: Pair) -> None:
        self._pair = pair
        self.backend: StoreBackend = RocksDBBackend()

    def make(self, state_dir: Path) -> Mapping[StoreId, Positions]:
        unpack(self._pair, "B", state_dir)
        made: dict[StoreId, Positions] = {}
        for store in expected(self._pair, "B"):
            group, name, stream, partition = store.path.split("/")
            changelog, applied = store.position
            made[StoreId(group, f"{stream}/{partition}", name)] = (
                ChangelogPosition(changelog, applied),
            )
        return made

    @contextmanager
    def running(self, state_dir: Path) -> Iterator[None]:
        with holding_locks(sorted(state_dir.rglob("LOCK"))):
            yield


class TestAtLeastOnce(LayoutContract):
    @pytest.fixture
    def layout(self) -> Layout:
        return QuixLayout()

    @pytest.fixture
    def maker(self) -> StateMaker:
        return FixtureMaker("quix_alos")


class TestExactlyOnceWithExpiry(LayoutContract):
    @pytest.fixture
    def layout(self) -> Layout:
        return QuixLayout()

    @pytest.fixture
    def maker(self) -> StateMaker:
        return FixtureMaker("quix_eos_ttl")


def noting(offset: int) -> Families:
    return {"default": {b"k": b"v"}, "__metadata__": {OFFSET_KEY: encode_number(offset)}}


def make_store(state_dir: Path, path: str, families: Families) -> None:
    make_database(state_dir / path, families)


def position(
    state_dir: Path, options: QuixOptions | None = None, *, running: bool = False
) -> Positions:
    layout = QuixLayout(options)
    [location] = layout.discover(state_dir).locations
    with RocksDBBackend().open_view(location.task_dir, location.root) as view:
        return layout.positions(location, None, view, running=running)


def test_the_topic_of_a_store_may_hold_any_dashes(tmp_path: Path) -> None:
    make_store(tmp_path, "quix-app/default/orders/33", noting(7))
    changelog = ChangelogPartition("changelog__quix-app--orders--default", 33)
    assert position(tmp_path, running=True) == (ChangelogPosition(changelog, 7),)


def test_a_stream_that_is_an_internal_topic_of_the_group_is_named_without_it(
    tmp_path: Path,
) -> None:
    make_store(tmp_path, "shop/default/repartition__shop--orders--by-user/0", noting(7))
    [found] = position(tmp_path)
    assert found.changelog.topic == "changelog__shop--repartition.orders.by-user--default"


def test_the_topic_that_is_configured_is_taken_as_it_is(tmp_path: Path) -> None:
    make_store(tmp_path, "shop/default/orders/2", noting(7))
    options = QuixOptions(changelogs={"default": "any thing--at_all"})
    assert position(tmp_path, options)[0].changelog == ChangelogPartition("any thing--at_all", 2)
    narrower = QuixOptions(changelogs={"default": "a", "orders/default": "b"})
    assert position(tmp_path, narrower)[0].changelog.topic == "b"


def test_a_topic_that_is_configured_for_stores_of_several_streams_is_refused(
    tmp_path: Path,
) -> None:
    for stream in ("orders", "returns"):
        make_store(tmp_path, f"shop/default/{stream}/0", noting(7))
    layout = QuixLayout(QuixOptions(changelogs={"default": "x"}))
    with pytest.raises(ConfigError) as caught:
        layout.discover(tmp_path)
    assert caught.value.hint == "name the stream too: orders/default"
    narrower = QuixOptions(changelogs={"orders/default": "x"})
    assert len(QuixLayout(narrower).discover(tmp_path).locations) == 2


def test_a_store_that_notes_no_offset_is_said_to(tmp_path: Path) -> None:
    make_store(tmp_path, "shop/default/orders/0", {"__metadata__": {b"else": b"1"}})
    with pytest.raises(UnknownOffsetError, match="shop/orders/0/default notes no changelog offset"):
        position(tmp_path)


def test_a_database_of_something_else_is_said_to_be(tmp_path: Path) -> None:
    make_store(tmp_path, "shop/default/orders/0", {"default": {b"k": b"v"}})
    with pytest.raises(UnknownOffsetError, match="not a store of Quix Streams"):
        position(tmp_path)


def test_an_offset_of_another_length_is_damage(tmp_path: Path) -> None:
    make_store(tmp_path, "shop/default/orders/0", {"__metadata__": {OFFSET_KEY: b"12"}})
    with pytest.raises(SourceDamagedError):
        position(tmp_path)


def test_a_store_without_a_changelog_has_no_position(tmp_path: Path) -> None:
    make_store(tmp_path, "shop/default/orders/0", {"__metadata__": {}})
    without = QuixOptions(changelogs={"default": "none"})
    assert position(tmp_path, without) == ()
    assert QuixLayout(without).presumed_changelogs(StoreId("shop", "orders/0", "default")) == ()


def test_a_store_that_is_said_to_have_no_changelog_and_has_one_is_refused(tmp_path: Path) -> None:
    make_store(tmp_path, "shop/default/orders/0", noting(7))
    with pytest.raises(ConfigError, match="configured without a changelog"):
        position(tmp_path, QuixOptions(changelogs={"default": "none"}))


def test_only_the_group_that_was_asked_for_is_looked_at(tmp_path: Path) -> None:
    for group in ("shop", "other"):
        make_store(tmp_path, f"{group}/default/orders/0", noting(7))
    found = QuixLayout().discover(tmp_path, "shop").locations
    assert [one.store.application for one in found] == ["shop"]
    with pytest.raises(StoreNotFoundError, match="no consumer group 'shup'"):
        QuixLayout().discover(tmp_path, "shup")


def test_folders_that_are_no_store_are_told_of(tmp_path: Path) -> None:
    (tmp_path / "shop/default/orders/0").mkdir(parents=True)
    (tmp_path / "shop/default/orders/.snapstore").mkdir()
    (tmp_path / "shop/default/orders/01").mkdir()
    found = QuixLayout().discover(tmp_path)
    assert found.locations == ()
    skipped, empty = found.notes
    assert skipped.endswith("shop/default/orders/0 is skipped: it holds no RocksDB")
    assert "no store of Quix Streams" in empty


def test_every_partition_of_a_group_is_held_at_once(tmp_path: Path) -> None:
    for path in ("shop/default/orders/0", "shop/sums/orders/1", "other/default/orders/0"):
        make_store(tmp_path, path, noting(7))
    layout = QuixLayout()
    other, first, second = layout.discover(tmp_path).locations
    with layout.hold(tmp_path, describe(first, ())):
        assert layout.which_in_use([other, first, second]) == (first, second)
    assert layout.which_in_use([other, first, second]) == ()


def test_a_target_without_stores_needs_no_lock(tmp_path: Path) -> None:
    make_store(tmp_path / "a", "shop/default/orders/0", noting(7))
    [location] = QuixLayout().discover(tmp_path / "a").locations
    with QuixLayout().hold(tmp_path / "b", describe(location, ())):
        assert not (tmp_path / "b").exists()
