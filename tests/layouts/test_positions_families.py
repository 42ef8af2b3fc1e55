"""From Kafka Streams 4.3 on the captured databases say themselves which offset they hold."""

import pytest

from snapstore.errors import ConfigError, ExactlyOnceHotError, UnknownOffsetError
from snapstore.layouts.kafka_streams import KafkaStreamsLayout, KafkaStreamsOptions
from snapstore.model.offsets import store_offset
from tests.layouts.conftest import PLAIN, Task
from tests.support.fixtures import expected, unpack
from tests.support.state_dirs import offsets_family

A = "app-a-changelog-3"
OPEN, CLOSED = 1, 0
EXACTLY_ONCE = KafkaStreamsOptions(guarantee="exactly_once_v2")


@pytest.mark.parametrize(
    ("why", "status", "running"),
    [
        ("closed cleanly", CLOSED, False),
        ("running at-least-once", OPEN, True),
        ("crashed at-least-once", OPEN, False),
        ("running, and nothing flushed since it was opened", CLOSED, True),
        ("running, transactional", None, True),
    ],
)
def test_the_offset_of_the_database_is_that_of_the_store(
    task: Task, why: str, status: int | None, running: bool
) -> None:
    task.keeps("a", {A: 2785}, status)
    assert task.positions("a", running=running) == {"app-a-changelog:3": 2785}


def test_g09_no_checkpoint_is_needed_and_nothing_is_taken_for_0(task: Task) -> None:
    task.keeps("a", {}, OPEN)
    with pytest.raises(UnknownOffsetError):
        task.positions("a")


@pytest.mark.parametrize("running", [False, True])
def test_the_placeholder_is_unknown(task: Task, running: bool) -> None:
    task.keeps("a", {A: -4}, OPEN)
    with pytest.raises(UnknownOffsetError, match="exactly-once"):
        task.positions("a", running=running)


@pytest.mark.parametrize("running", [False, True])
def test_the_least_segment_decides(task: Task, running: bool) -> None:
    segments = {10: offsets_family({A: 13925}, OPEN), 20: offsets_family({A: 16532}, OPEN)}
    task.segments("a", segments)
    assert task.positions("a", running=running) == {"app-a-changelog:3": 13925}


@pytest.mark.parametrize("running", [False, True])
@pytest.mark.parametrize(
    ("why", "silent"),
    [
        ("not yet any family", {"default": {}}),
        ("rows and no family", PLAIN),
        ("an empty family", {"offsets": {}}),
        ("rows and a status only", offsets_family({}, OPEN)),
        ("the placeholder", offsets_family({A: -4}, OPEN)),
        ("an offset of another partition", offsets_family({"app-a-changelog-1": 5}, OPEN)),
        ("closed, and no offset", offsets_family({}, CLOSED)),
    ],
)
def test_a_silent_segment_is_never_left_out(
    task: Task, why: str, silent: dict[str, dict[bytes, bytes]], running: bool
) -> None:
    task.segments("a", {10: offsets_family({A: 100}, OPEN), 20: silent})
    with pytest.raises(UnknownOffsetError, match=r"a/a\.20"):
        task.positions("a", running=running)


def test_a_hyphenated_topic_and_its_partition_are_told_apart(task: Task) -> None:
    task.keeps("a", {"app-a-changelog-3": 7, "app-a-changelog-13": 9}, CLOSED)
    assert task.positions("a") == {"app-a-changelog:3": 7}
    (remark,) = task.remarks("a")
    assert "app-a-changelog:13" in remark


def test_a_source_topic_as_changelog_needs_no_name_of_its_own(task: Task) -> None:
    task.keeps("a", {"customers-3": 88}, CLOSED)
    assert task.positions("a") == {"customers:3": 88}


def test_two_changelogs_are_not_guessed_between(task: Task) -> None:
    task.keeps("a", {"customers-3": 88, "orders-3": 99}, CLOSED)
    with pytest.raises(UnknownOffsetError, match="customers, orders"):
        task.positions("a")
    options = KafkaStreamsOptions(changelogs={"a": "orders"})
    assert task.positions("a", options=options) == {"orders:3": 99}


class TestWithoutChangelog:
    NONE = KafkaStreamsOptions(changelogs={"a": "none"})

    def test_a_store_that_was_closed_and_notes_nothing_has_none(self, task: Task) -> None:
        task.keeps("a", {}, CLOSED)
        assert task.positions("a") == {}

    @pytest.mark.parametrize(("status", "running"), [(CLOSED, True), (OPEN, True), (OPEN, False)])
    def test_otherwise_it_may_only_not_be_flushed(
        self, task: Task, status: int, running: bool
    ) -> None:
        task.keeps("a", {}, status)
        with pytest.raises(UnknownOffsetError):
            task.positions("a", running=running)
        assert task.positions("a", running=running, options=self.NONE) == {}

    def test_an_offset_of_another_task_does_not_make_it_so(self, task: Task) -> None:
        task.keeps("a", {"app-a-changelog-1": 5}, CLOSED)
        with pytest.raises(UnknownOffsetError, match="app-a-changelog:1"):
            task.positions("a")

    def test_a_configuration_that_the_files_contradict_is_refused(self, task: Task) -> None:
        task.keeps("a", {A: 5}, CLOSED)
        with pytest.raises(ConfigError):
            task.positions("a", options=self.NONE)


@pytest.mark.parametrize(
    ("why", "status", "running", "refused"),
    [
        ("running, not transactional", OPEN, True, True),
        ("running, nothing flushed yet", CLOSED, True, True),
        ("crashed, not transactional", OPEN, False, True),
        ("closed cleanly", CLOSED, False, False),
        ("running, transactional", None, True, False),
        ("crashed, transactional", None, False, False),
    ],
)
def test_under_exactly_once_only_clean_or_transactional_stores_are_taken(
    task: Task, why: str, status: int | None, running: bool, refused: bool
) -> None:
    task.keeps("a", {A: 7}, status)
    if refused:
        with pytest.raises(ExactlyOnceHotError):
            task.positions("a", running=running, options=EXACTLY_ONCE)
    else:
        found = task.positions("a", running=running, options=EXACTLY_ONCE)
        assert found == {"app-a-changelog:3": 7}


class TestCheckpointBesideDatabases:
    """One that lies there is taken over by the application at its start (KIP-1035)."""

    @pytest.mark.parametrize(("noted", "applied"), [(50, 50), (100, 70), (70, 70), (-4, 70)])
    def test_it_can_only_lower_the_offset(self, task: Task, noted: int, applied: int) -> None:
        task.keeps("a", {A: 70}, CLOSED)
        task.checkpoint(f"app-a-changelog 3 {noted}")
        assert task.positions("a") == {"app-a-changelog:3": applied}

    def test_it_does_not_speak_for_a_silent_database(self, task: Task) -> None:
        task.keeps("a", {}, OPEN)
        task.checkpoint("app-a-changelog 3 70")
        with pytest.raises(UnknownOffsetError):
            task.positions("a")

    def test_it_speaks_for_databases_that_are_still_the_old_ones(self, task: Task) -> None:
        task.keeps("b", {"app-b-changelog-3": 5}, OPEN)
        task.store("a")
        task.checkpoint("app-a-changelog 3 70")
        assert task.positions("a", running=True) == {"app-a-changelog:3": 70}


class TestGlobalStores:
    def test_the_noted_offset_is_the_next_one_in_every_partition(self, global_task: Task) -> None:
        global_task.keeps("rates", {"in-rates-0": 20, "in-rates-1": 0, "in-rates-2": 7}, CLOSED)
        assert global_task.positions("rates") == {"in-rates:0": 19, "in-rates:2": 6}

    def test_nothing_applied_is_not_the_same_as_no_changelog(self, global_task: Task) -> None:
        global_task.keeps("rates", {"in-rates-0": 0}, CLOSED)
        with pytest.raises(UnknownOffsetError):
            global_task.positions("rates")


def test_a_real_hot_copy_is_taken_only_where_every_database_says_its_offset(task: Task) -> None:
    unpack("ks440-alos-hot", task.state_dir)
    databases = expected("ks440-alos-hot").rocksdb
    layout = KafkaStreamsLayout()
    taken = []
    for location in layout.discover(task.state_dir, "ks440-alos-hot").locations:
        inside = f"{location.store.task}/{location.root}"
        wanted = store_offset(
            {
                path: next((at for key, at in one.offsets.items() if key != "status"), None)
                for path, one in databases.items()
                if path == inside or path.startswith(f"{inside}/")
            }
        ).applied_offset
        with task.backend.open_view(location.task_dir, location.root) as view:
            if wanted is None:
                with pytest.raises(UnknownOffsetError):
                    layout.positions(location, None, view, running=True)
            else:
                (position,) = layout.positions(location, None, view, running=True)
                assert position.applied_offset == wanted, location.store
                taken.append(f"{location.store.task}/{location.store.store}")
    assert taken == [
        "0_0/versioned",
        "0_1/plain",
        "0_1/table",
        "0_1/versioned",
        "1_0/count",
        "1_1/count",
    ]
