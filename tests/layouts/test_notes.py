"""At a restore offsets are noted so that the application skips no record that it lacks."""

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest

from snapstore.errors import RefusedError
from snapstore.layouts.kafka_streams import KafkaStreamsLayout, KafkaStreamsOptions
from snapstore.model.identity import ChangelogPartition
from snapstore.model.store import ChangelogPosition
from snapstore.ports import FamilyNote, FileNote, Note
from snapstore.testing.layout_contract import carry_out, describe
from tests.layouts.conftest import Positions, Task
from tests.support.state_dirs import offsets_family, write_checkpoint

A = "app-a-changelog-3"


def plan(
    task: Task,
    restored: Mapping[str, Positions],
    options: KafkaStreamsOptions | None = None,
    generation: str | None = None,
) -> tuple[Note, ...]:
    """Plan the notes for stores that lie in the task already, as if they had been restored."""
    with ExitStack() as stack:
        views = [stack.enter_context(task.view(name)) for name in restored]
        descriptions = [
            describe(
                task.location(name),
                [
                    ChangelogPosition(ChangelogPartition.parse(changelog), applied)
                    for changelog, applied in positions.items()
                ],
            )
            for name, positions in restored.items()
        ]
        if generation is not None:
            descriptions = [
                msgspec.structs.replace(one, generation=generation) for one in descriptions
            ]
        return KafkaStreamsLayout(options).notes(task.dir, descriptions, views)


def long(number: int) -> bytes:
    return number.to_bytes(8, "big", signed=True)


def checkpoint_note(*lines: str, name: str = ".checkpoint") -> FileNote:
    text = "".join(f"{line}\n" for line in ("0", str(len(lines)), *lines))
    return FileNote(name=name, content=text.encode())


class TestTo42:
    def test_the_restored_store_gets_a_line(self, task: Task) -> None:
        task.store("a")
        assert plan(task, {"a": {"app-a-changelog:3": 2**53 + 1}}) == (
            checkpoint_note("app-a-changelog 3 9007199254740993"),
        )

    def test_lines_of_the_stores_that_are_there_stay(self, task: Task) -> None:
        for name in ("a", "b", "c"):
            task.store(name)
        task.checkpoint("app-c-changelog 3 -4", "app-b-changelog 3 9", "app-a-changelog 3 8")
        assert plan(task, {"a": {"app-a-changelog:3": 5}}) == (
            checkpoint_note("app-a-changelog 3 5", "app-b-changelog 3 9", "app-c-changelog 3 -4"),
        )

    def test_a_line_for_files_that_are_not_there_goes(self, task: Task) -> None:
        task.store("a")
        (task.dir / "rocksdb" / "empty").mkdir()
        task.checkpoint("app-gone-changelog 3 9", "app-empty-changelog 3 9")
        assert plan(task, {"a": {"app-a-changelog:3": 5}}) == (
            checkpoint_note("app-a-changelog 3 5"),
        )

    def test_a_line_of_another_partition_goes(self, task: Task) -> None:
        task.store("a")
        task.store("b")
        task.checkpoint("app-b-changelog 4 9")
        assert plan(task, {"a": {"app-a-changelog:3": 5}}) == (
            checkpoint_note("app-a-changelog 3 5"),
        )

    def test_several_stores_are_noted_at_once(self, task: Task) -> None:
        for name in ("a", "b"):
            task.store(name)
        restored = {"b": {"app-b-changelog:3": 7}, "a": {"customers:3": 5}}
        assert plan(task, restored) == (checkpoint_note("app-b-changelog 3 7", "customers 3 5"),)

    def test_g20_a_source_topic_stays_with_the_store_it_must_be_of(self, task: Task) -> None:
        task.store("a")
        task.store("customers-STORE")
        task.checkpoint("customers 3 88")
        assert plan(task, {"a": {"app-a-changelog:3": 5}}) == (
            checkpoint_note("app-a-changelog 3 5", "customers 3 88"),
        )

    def test_g20_a_source_topic_that_could_be_of_several_goes(self, task: Task) -> None:
        for name in ("a", "customers-STORE", "lookup"):
            task.store(name)
        task.checkpoint("customers 3 88")
        restored = {"a": {"app-a-changelog:3": 5}}
        assert plan(task, restored) == (checkpoint_note("app-a-changelog 3 5"),)
        options = KafkaStreamsOptions(changelogs={"lookup": "none"})
        assert plan(task, restored, options) == (
            checkpoint_note("app-a-changelog 3 5", "customers 3 88"),
        )

    def test_a_line_of_the_restored_store_is_not_kept_as_anothers(self, task: Task) -> None:
        task.store("a")
        task.store("lookup")
        task.checkpoint("customers 3 88")
        assert plan(task, {"a": {"customers:3": 5}}) == (checkpoint_note("customers 3 5"),)

    def test_nothing_is_noted_where_it_stands_already(self, task: Task) -> None:
        task.store("a")
        task.checkpoint("app-a-changelog 3 5")
        assert plan(task, {"a": {"app-a-changelog:3": 5}}) == ()

    def test_g19_a_store_without_changelog_gets_no_line_and_loses_an_old_one(
        self, task: Task
    ) -> None:
        task.store("a")
        assert plan(task, {"a": {}}) == ()
        task.checkpoint("app-a-changelog 3 5")
        assert plan(task, {"a": {}}) == (FileNote(name=".checkpoint", content=None),)

    def test_a_global_store_notes_the_next_offset(self, global_task: Task) -> None:
        global_task.store("rates")
        assert plan(global_task, {"rates": {"in-rates:0": 19, "in-rates:2": 6}}) == (
            checkpoint_note("in-rates 0 20", "in-rates 2 7"),
        )

    def test_a_broken_file_of_the_target_is_not_guessed_at(self, task: Task) -> None:
        task.store("a")
        task.store("kept")
        (task.dir / ".checkpoint").write_text("0\n1\n")
        with pytest.raises(RefusedError, match="kept"):
            plan(task, {"a": {"app-a-changelog:3": 5}})

    def test_a_broken_file_is_not_read_where_every_store_is_replaced(self, task: Task) -> None:
        task.store("a")
        (task.dir / ".checkpoint").write_text("0\n1\n")
        assert plan(task, {"a": {"app-a-changelog:3": 5}}) == (
            checkpoint_note("app-a-changelog 3 5"),
        )

    def test_what_was_planned_is_read_back(self, task: Task) -> None:
        task.store("a")
        task.store("b")
        task.checkpoint("app-a-changelog 3 8", "app-b-changelog 3 9")
        restored = {"a": {"app-a-changelog:3": 5}}
        carry_out(plan(task, restored), task.dir, task.backend)
        assert task.positions("a") == {"app-a-changelog:3": 5}
        assert task.positions("b") == {"app-b-changelog:3": 9}
        assert plan(task, restored) == ()


class TestFrom43:
    def test_only_databases_that_say_otherwise_are_written(self, task: Task) -> None:
        task.segments("a", {10: offsets_family({A: 100}, 1), 20: offsets_family({A: 170}, 1)})
        assert plan(task, {"a": {"app-a-changelog:3": 100}}) == (
            FamilyNote(database="a/a.20", family="offsets", entries={A.encode(): long(100)}),
        )

    def test_nothing_is_noted_where_it_stands_already(self, task: Task) -> None:
        task.keeps("a", {A: 100}, 0)
        assert plan(task, {"a": {"app-a-changelog:3": 100}}) == ()

    def test_a_store_without_changelog_gets_no_entry(self, task: Task) -> None:
        task.keeps("a", {}, 0)
        assert plan(task, {"a": {}}) == ()

    def test_a_global_store_notes_the_next_offset(self, global_task: Task) -> None:
        global_task.keeps("rates", {"in-rates-0": 25}, 0)
        assert plan(global_task, {"rates": {"in-rates:0": 19}}) == (
            FamilyNote(
                database="rocksdb/rates",
                family="offsets",
                entries={b"in-rates-0": long(20)},
            ),
        )

    def test_an_old_line_of_the_restored_store_goes_and_others_stay(self, task: Task) -> None:
        task.keeps("a", {A: 100}, 0)
        task.store("b")
        task.checkpoint("app-a-changelog 3 50", "app-b-changelog 3 9")
        assert plan(task, {"a": {"app-a-changelog:3": 100}}) == (
            checkpoint_note("app-b-changelog 3 9"),
        )

    def test_an_old_file_that_has_nothing_left_to_say_goes(self, task: Task) -> None:
        task.keeps("a", {A: 100}, 0)
        task.checkpoint("app-a-changelog 3 50")
        assert plan(task, {"a": {"app-a-changelog:3": 100}}) == (
            FileNote(name=".checkpoint", content=None),
        )

    def test_a_store_of_4_2_beside_them_gets_its_line(self, task: Task) -> None:
        task.keeps("a", {A: 100}, 0)
        task.store("b")
        assert plan(task, {"b": {"app-b-changelog:3": 9}}) == (
            checkpoint_note("app-b-changelog 3 9"),
        )

    def test_a_database_built_without_the_family_gets_it(self, task: Task) -> None:
        task.store("a")
        assert plan(task, {"a": {"app-a-changelog:3": 100}}, generation="kafka-streams-4.3") == (
            FamilyNote(database="rocksdb/a", family="offsets", entries={A.encode(): long(100)}),
        )

    def test_what_was_planned_is_read_back_and_the_status_stays(self, task: Task) -> None:
        task.segments("a", {10: offsets_family({A: 100}, 1), 20: offsets_family({A: 170}, 1)})
        task.keeps("b", {"app-b-changelog-3": 9}, 0)
        restored = {"a": {"app-a-changelog:3": 60}}
        carry_out(plan(task, restored), task.dir, task.backend)
        assert task.positions("a") == {"app-a-changelog:3": 60}
        assert task.positions("b") == {"app-b-changelog:3": 9}
        assert plan(task, restored) == ()
        with task.view("a") as view:
            for database in view.databases:
                assert view.entries(database, "offsets")[b"status"] == long(1)


def test_g10_a_custom_store_keeps_its_own_file(task: Task) -> None:
    (task.dir / "custom").mkdir()
    (task.dir / "custom" / "segment").touch()
    name = ".checkpoint_custom"
    write_checkpoint(task.dir, "app-custom-changelog 3 99", name=name)
    task.store("any")
    position = ChangelogPosition(ChangelogPartition("app-custom-changelog", 3), 77)
    description = describe(task.location("custom"), [position])
    with task.view("any") as view:
        notes = KafkaStreamsLayout().notes(task.dir, [description], [view])
    assert notes == (checkpoint_note("app-custom-changelog 3 77", name=name),)


def test_nothing_restored_nothing_noted(tmp_path: Path) -> None:
    assert KafkaStreamsLayout().notes(tmp_path, [], []) == ()
