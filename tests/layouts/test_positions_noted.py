"""To Kafka Streams 4.2 the offset is the one that was noted before the files were looked at."""

from pathlib import Path

import pytest

from snapstore.errors import (
    ConfigError,
    ExactlyOnceHotError,
    SourceDamagedError,
    StoreChangedError,
    UnknownOffsetError,
)
from snapstore.layouts.kafka_streams import KafkaStreamsLayout, KafkaStreamsOptions
from tests.layouts.conftest import Task
from tests.support.state_dirs import write_checkpoint

NO_CHANGELOG = KafkaStreamsOptions(changelogs={"lookup": "none"})
EXACTLY_ONCE = KafkaStreamsOptions(guarantee="exactly_once_v2")
AT_LEAST_ONCE = KafkaStreamsOptions(guarantee="at_least_once")


@pytest.mark.parametrize("running", [False, True])
def test_the_line_of_the_store_gives_its_offset(task: Task, running: bool) -> None:
    task.store("a")
    task.store("b")
    task.checkpoint("app-a-changelog 3 70", "app-b-changelog 3 1500")
    assert task.positions("a", running=running) == {"app-a-changelog:3": 70}
    assert task.positions("b", running=running) == {"app-b-changelog:3": 1500}


def test_offset_0_is_an_offset(task: Task) -> None:
    task.store("a")
    task.checkpoint("app-a-changelog 3 0")
    assert task.positions("a") == {"app-a-changelog:3": 0}


def test_g02_an_unknown_offset_is_refused_and_does_not_touch_its_neighbour(task: Task) -> None:
    task.store("a")
    task.store("b")
    task.checkpoint("app-a-changelog 3 -4", "app-b-changelog 3 1500")
    with pytest.raises(UnknownOffsetError):
        task.positions("a", running=True)
    assert task.positions("b", running=True) == {"app-b-changelog:3": 1500}


def test_g06_lines_of_other_partitions_are_left_aside_with_a_warning(task: Task) -> None:
    task.store("a")
    task.checkpoint("app-a-changelog 3 70", "app-a-changelog 1 9", "app-a-changelog 2 8")
    assert task.positions("a") == {"app-a-changelog:3": 70}
    (remark,) = task.remarks("a")
    assert "app-a-changelog:1, app-a-changelog:2" in remark
    assert "0_3" in remark


def test_a_line_of_another_partition_is_never_the_offset(task: Task) -> None:
    task.store("a")
    task.checkpoint("app-a-changelog 1 9")
    with pytest.raises(UnknownOffsetError):
        task.positions("a")


@pytest.mark.parametrize("running", [False, True])
def test_g07_a_half_written_file_is_never_read(task: Task, running: bool) -> None:
    task.store("a")
    (task.dir / ".checkpoint.tmp").write_text("0\n1\napp-a-changelog 3 9")
    with pytest.raises(UnknownOffsetError):
        task.positions("a", running=running)
    task.checkpoint("app-a-changelog 3 5")
    assert task.positions("a", running=running) == {"app-a-changelog:3": 5}


def test_a_broken_file_is_named(task: Task) -> None:
    task.store("a")
    (task.dir / ".checkpoint").write_text("0\n1\napp-a-changelog 3\n")
    with pytest.raises(SourceDamagedError, match=r"0_3/\.checkpoint, line 3"):
        task.positions("a")


def test_g10_a_custom_store_has_a_file_of_its_own(task: Task) -> None:
    (task.dir / "my-custom.store").mkdir()
    (task.dir / "my-custom.store" / "segment").touch()
    write_checkpoint(
        task.dir, "app-my-custom.store-changelog 3 77", name=".checkpoint_my-custom.store"
    )
    task.checkpoint("app-other-changelog 3 5")
    layout = KafkaStreamsLayout()
    location = task.location("my-custom.store")
    noted = layout.noted_offsets(location)
    task.store("any")
    with task.view("any") as view:
        (position,) = layout.positions(location, noted, view, running=False)
    assert position.applied_offset == 77


def test_g12_the_offset_is_that_of_before_the_files_however_far_it_moved_since(task: Task) -> None:
    task.store("a")
    task.checkpoint("app-a-changelog 3 100")
    layout = KafkaStreamsLayout()
    location = task.location("a")
    noted = layout.noted_offsets(location)
    task.checkpoint("app-a-changelog 3 200")
    with task.view("a") as view:
        (position,) = layout.positions(location, noted, view, running=True)
    assert position.applied_offset == 100


@pytest.mark.parametrize("later", [None, "app-a-changelog 3 -4", "app-a-changelog 3 99"])
def test_an_offset_that_was_withdrawn_during_the_capture_is_not_used(
    task: Task, later: str | None
) -> None:
    """An exactly-once application withdraws it when it starts, and then writes.

    A lower one is of a store that was removed and is being filled anew.
    """
    task.store("a")
    path = task.checkpoint("app-a-changelog 3 100")
    layout = KafkaStreamsLayout()
    location = task.location("a")
    noted = layout.noted_offsets(location)
    path.unlink() if later is None else task.checkpoint(later)
    with task.view("a") as view, pytest.raises(StoreChangedError):
        layout.positions(location, noted, view, running=True)


@pytest.mark.parametrize("running", [False, True])
def test_an_offset_file_that_comes_meanwhile_is_looked_at_again(task: Task, running: bool) -> None:
    """Its task was away for a moment, or has just been closed."""
    task.store("a")
    location = task.location("a")
    task.checkpoint("app-a-changelog 3 100")
    with task.view("a") as view, pytest.raises(StoreChangedError, match="was made while"):
        KafkaStreamsLayout().positions(location, None, view, running=running)


class TestWithoutChangelog:
    """G19: a store without a changelog is taken, and not given another store's offset."""

    def test_a_store_without_a_line_after_a_clean_stop_has_none(self, task: Task) -> None:
        task.store("lookup")
        task.store("a")
        task.checkpoint("app-a-changelog 3 70")
        assert task.positions("lookup") == {}

    def test_a_running_one_may_only_not_have_noted_it_yet(self, task: Task) -> None:
        task.store("lookup")
        task.store("a")
        task.checkpoint("app-a-changelog 3 70")
        with pytest.raises(UnknownOffsetError) as caught:
            task.positions("lookup", running=True)
        assert "stores.NAME.changelog: none" in (caught.value.hint or "")

    @pytest.mark.parametrize("running", [False, True])
    def test_the_configuration_decides(self, task: Task, running: bool) -> None:
        task.store("lookup")
        task.store("customers-STORE")
        task.checkpoint("customers 3 88")
        assert task.positions("lookup", running=running, options=NO_CHANGELOG) == {}
        assert task.positions("customers-STORE", running=running, options=NO_CHANGELOG) == {
            "customers:3": 88
        }

    def test_without_any_file_only_the_configuration_can_tell(self, task: Task) -> None:
        task.store("lookup")
        with pytest.raises(UnknownOffsetError):
            task.positions("lookup")
        assert task.positions("lookup", options=NO_CHANGELOG) == {}

    def test_a_configuration_that_the_files_contradict_is_refused(self, task: Task) -> None:
        task.store("lookup")
        task.checkpoint("app-lookup-changelog 3 70")
        with pytest.raises(ConfigError, match="app-lookup-changelog"):
            task.positions("lookup", options=NO_CHANGELOG)


class TestSourceTopicAsChangelog:
    """G20: with topology optimisation the input topic itself is the changelog."""

    NAME = "customers-STATE-STORE-0000000000"

    def test_the_only_line_belongs_to_the_only_store(self, task: Task) -> None:
        task.store(self.NAME)
        task.checkpoint("customers 3 88")
        assert task.positions(self.NAME) == {"customers:3": 88}

    def test_stores_with_lines_of_their_own_do_not_blur_it(self, task: Task) -> None:
        task.store(self.NAME)
        task.store("a")
        task.checkpoint("customers 3 88", "app-a-changelog 3 70")
        assert task.positions(self.NAME) == {"customers:3": 88}

    def test_two_candidates_are_not_guessed_between(self, task: Task) -> None:
        task.store(self.NAME)
        task.store("orders-STORE")
        task.checkpoint("customers 3 88", "orders 3 99")
        with pytest.raises(UnknownOffsetError) as caught:
            task.positions(self.NAME)
        assert caught.value.facts["topics"] == ["customers", "orders"]
        assert "configure the changelog" in (caught.value.hint or "")

    def test_one_line_and_two_stores_are_not_guessed_between(self, task: Task) -> None:
        task.store(self.NAME)
        task.store("lookup")
        task.checkpoint("customers 3 88")
        with pytest.raises(UnknownOffsetError):
            task.positions("lookup")

    def test_the_configuration_decides(self, task: Task) -> None:
        task.store(self.NAME)
        task.store("orders-STORE")
        task.checkpoint("customers 3 88", "orders 3 99")
        options = KafkaStreamsOptions(changelogs={"orders-STORE": "orders"})
        assert task.positions("orders-STORE", options=options) == {"orders:3": 99}
        assert task.positions(self.NAME, options=options) == {"customers:3": 88}

    def test_a_configured_topic_without_a_line_is_unknown(self, task: Task) -> None:
        task.store("a")
        task.checkpoint("customers 3 88")
        options = KafkaStreamsOptions(changelogs={"a": "orders"})
        with pytest.raises(UnknownOffsetError, match="orders:3"):
            task.positions("a", options=options)

    def test_the_line_of_a_store_that_is_not_there_is_nobody_elses(self, task: Task) -> None:
        task.store("lookup")
        task.checkpoint("app-gone-changelog 3 88")
        assert task.positions("lookup") == {}


class TestExactlyOnce:
    def test_a_running_task_that_notes_nothing_but_unknown_is_exactly_once(
        self, task: Task
    ) -> None:
        task.store("a")
        task.store("b")
        task.checkpoint("app-a-changelog 3 -4", "app-b-changelog 3 -4")
        with pytest.raises(ExactlyOnceHotError):
            task.positions("a", running=True)

    def test_the_same_file_after_a_crash_only_says_nothing(self, task: Task) -> None:
        task.store("a")
        task.checkpoint("app-a-changelog 3 -4")
        with pytest.raises(UnknownOffsetError):
            task.positions("a")

    def test_under_at_least_once_it_only_says_nothing(self, task: Task) -> None:
        task.store("a")
        task.checkpoint("app-a-changelog 3 -4")
        with pytest.raises(UnknownOffsetError):
            task.positions("a", running=True, options=AT_LEAST_ONCE)

    def test_a_running_one_is_refused_whatever_its_file_says(self, task: Task) -> None:
        task.store("a")
        task.checkpoint("app-a-changelog 3 70")
        with pytest.raises(ExactlyOnceHotError):
            task.positions("a", running=True, options=EXACTLY_ONCE)

    def test_a_cleanly_stopped_one_is_taken(self, task: Task) -> None:
        task.store("a")
        task.checkpoint("app-a-changelog 3 70")
        assert task.positions("a", options=EXACTLY_ONCE) == {"app-a-changelog:3": 70}


class TestGlobalStores:
    def test_the_noted_offset_is_the_next_one_in_every_partition(self, global_task: Task) -> None:
        global_task.store("rates")
        global_task.checkpoint("in-rates 0 20", "in-rates 1 0", "in-rates 2 7")
        assert global_task.positions("rates") == {"in-rates:0": 19, "in-rates:2": 6}

    def test_nothing_applied_is_not_the_same_as_no_changelog(self, global_task: Task) -> None:
        global_task.store("rates")
        global_task.checkpoint("in-rates 0 0")
        with pytest.raises(UnknownOffsetError):
            global_task.positions("rates")

    def test_one_unknown_partition_makes_it_unknown(self, global_task: Task) -> None:
        global_task.store("rates")
        global_task.checkpoint("in-rates 0 20", "in-rates 1 -4")
        with pytest.raises(UnknownOffsetError, match="in-rates:1"):
            global_task.positions("rates")

    def test_two_topics_are_not_guessed_between(self, global_task: Task) -> None:
        global_task.store("rates")
        global_task.store("names")
        global_task.checkpoint("in-rates 0 20", "in-names 0 30")
        with pytest.raises(UnknownOffsetError):
            global_task.positions("rates")
        options = KafkaStreamsOptions(changelogs={"rates": "in-rates", "names": "in-names"})
        assert global_task.positions("rates", options=options) == {"in-rates:0": 19}


def test_a_named_topology_names_its_changelogs_after_itself(tmp_path: Path) -> None:
    task = Task(tmp_path / "state", "__billing__/0_3")
    task.store("a")
    task.store("b")
    task.checkpoint("app-billing-a-changelog 3 70", "app-b-changelog 3 9")
    assert task.positions("a") == {"app-billing-a-changelog:3": 70}


def test_g63_offset_0_of_an_empty_store_raises_a_hint(task: Task) -> None:
    task.store("a", {"default": {}})
    task.checkpoint("customers 3 0")
    assert task.positions("a") == {"customers:3": 0}
    (remark,) = task.remarks("a")
    assert "offset 0" in remark


def test_g63_offset_0_of_a_store_that_holds_something_does_not(task: Task) -> None:
    task.store("a")
    task.checkpoint("customers 3 0")
    assert task.remarks("a") == ()
