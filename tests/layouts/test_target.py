"""A restored task goes where the application looks for it, if the application can open it."""

from pathlib import Path

import msgspec
import pytest

from snapstore.errors import UnsafePathError, WrongGenerationError
from snapstore.layouts.kafka_streams import KafkaStreamsLayout
from snapstore.model.identity import StoreId
from snapstore.model.snapshot import Description
from snapstore.testing.layout_contract import describe
from tests.layouts.conftest import Task

NEW, OLD = "kafka-streams-4.3", "kafka-streams-4.0"


@pytest.fixture
def layout() -> KafkaStreamsLayout:
    return KafkaStreamsLayout()


def described(store: StoreId, tmp_path: Path, generation: str = NEW) -> Description:
    source = Task(tmp_path / "source")
    source.store("a")
    return msgspec.structs.replace(
        describe(source.location("a"), ()), store=store, generation=generation
    )


@pytest.mark.parametrize(
    ("task", "inside"),
    [("0_3", "app/0_3"), ("global", "app/global"), ("__x__/0_3", "app/__x__/0_3")],
)
def test_a_task_goes_below_its_application(
    layout: KafkaStreamsLayout, tmp_path: Path, task: str, inside: str
) -> None:
    description = described(StoreId("app", task, "a"), tmp_path)
    assert layout.task_dir(tmp_path / "state", description) == tmp_path / "state" / inside


def test_the_application_directory_itself_may_be_the_target(
    layout: KafkaStreamsLayout, tmp_path: Path
) -> None:
    description = described(StoreId("app", "0_3", "a"), tmp_path)
    target = tmp_path / "app"
    (target / "0_1").mkdir(parents=True)
    assert layout.task_dir(target, description) == target / "0_3"


def test_a_state_dir_that_only_shares_the_name_is_a_state_dir(
    layout: KafkaStreamsLayout, tmp_path: Path
) -> None:
    description = described(StoreId("app", "0_3", "a"), tmp_path)
    target = tmp_path / "app"
    assert layout.task_dir(target, description) == target / "app" / "0_3"
    (target / "app").mkdir(parents=True)
    (target / "0_1").mkdir()
    assert layout.task_dir(target, description) == target / "app" / "0_3"


@pytest.mark.parametrize(
    ("application", "task"),
    [
        ("..", "0_3"),
        ("", "0_3"),
        ("a/b", "0_3"),
        ("a\nb", "0_3"),
        ("app", ".."),
        ("app", "0_3/.."),
        ("app", "/0_3"),
        ("app", "__../x__/0_3"),
        ("app", "__x__/../0_3"),
        ("app", "counts"),
        ("app", "0_3\n"),
    ],
)
def test_other_names_are_refused(
    layout: KafkaStreamsLayout, tmp_path: Path, application: str, task: str
) -> None:
    description = described(StoreId(application, task, "a"), tmp_path)
    with pytest.raises(UnsafePathError):
        layout.task_dir(tmp_path, description)


def test_an_application_that_is_visibly_older_is_refused(
    layout: KafkaStreamsLayout, task: Task, tmp_path: Path
) -> None:
    task.store("a")
    task.checkpoint("app-a-changelog 3 5")
    description = described(StoreId("app", "0_3", "a"), tmp_path)
    with pytest.raises(WrongGenerationError, match="or older, which cannot open"):
        layout.check_target(task.state_dir, description)


def test_one_store_of_its_generation_is_enough(
    layout: KafkaStreamsLayout, task: Task, tmp_path: Path
) -> None:
    task.store("left-over")
    task.keeps("a", {}, 0)
    description = described(StoreId("app", "0_3", "a"), tmp_path)
    assert layout.check_target(task.state_dir, description) == ()


def test_an_empty_target_is_warned_of(layout: KafkaStreamsLayout, tmp_path: Path) -> None:
    description = described(StoreId("app", "0_3", "a"), tmp_path)
    assert layout.check_target(tmp_path / "state", description) == (
        "app needs Kafka Streams 4.3 or newer",
    )


def test_an_older_snapshot_opens_everywhere(
    layout: KafkaStreamsLayout, task: Task, tmp_path: Path
) -> None:
    task.store("a")
    description = described(StoreId("app", "0_3", "a"), tmp_path, OLD)
    assert layout.check_target(task.state_dir, description) == ()


def test_g98_a_folder_that_is_made_to_be_held_is_no_wider_than_kafka_streams_makes_it(
    layout: KafkaStreamsLayout, tmp_path: Path
) -> None:
    description = described(StoreId("app", "0_3", "a"), tmp_path)
    with layout.hold(tmp_path / "state", description):
        application = tmp_path / "state" / "app"
        assert (application / ".lock").read_bytes() == b""
        assert application.stat().st_mode & 0o777 & ~0o750 == 0
