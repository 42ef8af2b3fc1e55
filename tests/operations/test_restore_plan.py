"""What a restore decides before it writes anything."""

import hashlib
from pathlib import Path

import msgspec
import pytest

from snapstore.errors import (
    ManifestInvalidError,
    NoSpaceError,
    TargetNotEmptyError,
    UnsafePathError,
)
from snapstore.model.identity import StoreId
from snapstore.model.snapshot import FORMAT, FileEntry, Manifest, Snapshot
from snapstore.operations.restore_names import check_inside
from snapstore.operations.restore_plan import (
    FoundFile,
    PresentStore,
    TaskPlan,
    TaskTarget,
    Wanted,
    check_space,
    missing_stores,
    plan_task,
)
from tests.support.repository import describe

TASK_DIR = Path("/state/orders/0_1")
MIB = 1 << 20


def entry(name: str, content: bytes = b"", *, size: int | None = None) -> FileEntry:
    sha256 = hashlib.sha256(content or name.encode()).hexdigest()
    small = name.endswith("CURRENT")
    return FileEntry(
        name=name,
        size=len(b"inline") if small else size or 1000,
        mode=0o644,
        sha256=sha256,
        blob=None if small else sha256,
        inline=b"inline" if small else None,
    )


def wanted(*files: FileEntry, store: str = "counts", root: str | None = None) -> Wanted:
    description = msgspec.structs.replace(
        describe(StoreId("orders", "0_1", store)), root=root or f"rocksdb/{store}"
    )
    return Wanted(
        snapshot=Snapshot(
            format=FORMAT,
            id="a" * 64,
            description=description,
            files=len(files),
            size_bytes=0,
            new_files=0,
            new_bytes=0,
        ),
        manifest=Manifest(format=FORMAT, description=description, files=files),
    )


def found(file: FileEntry) -> FoundFile:
    return FoundFile(file.size, file.sha256)


TABLE = entry("rocksdb/counts/000010.sst")
OTHER_TABLE = entry("rocksdb/counts/000011.sst")
CURRENT = entry("rocksdb/counts/CURRENT")
COUNTS = PresentStore(store="counts", root="rocksdb/counts", side_files=("counts.position",))
PLAIN = PresentStore(store="plain", root="rocksdb/plain")
EMPTY = TaskTarget(task_dir=TASK_DIR, free_bytes=100 * MIB)


def test_into_an_empty_place_every_blob_is_fetched_and_small_files_come_from_the_manifest() -> None:
    plan = plan_task(EMPTY, [wanted(TABLE, CURRENT)], replace=False)

    (store,) = plan.stores
    assert [fetch.names for fetch in store.fetch] == [(TABLE.name,)]
    assert [inline.name for inline in store.inline] == [CURRENT.name]
    assert (store.fetch_bytes, store.reuse, plan.keep, plan.replaces) == (1000, (), (), False)


def test_a_file_with_the_right_hash_is_reused_from_staging_before_the_current_directory() -> None:
    target = msgspec.structs.replace(
        EMPTY,
        current={TABLE.name: found(TABLE), OTHER_TABLE.name: found(OTHER_TABLE)},
        staged={TABLE.name: found(TABLE)},
    )

    (store,) = plan_task(target, [wanted(TABLE, OTHER_TABLE)], replace=True).stores

    assert [(reuse.name, reuse.staged) for reuse in store.reuse] == [
        (TABLE.name, True),
        (OTHER_TABLE.name, False),
    ]
    assert store.fetch == ()


@pytest.mark.parametrize(
    "there",
    [
        pytest.param(FoundFile(1000, "0" * 64), id="the same name and size with other bytes"),
        pytest.param(FoundFile(999, TABLE.sha256), id="another size"),
        pytest.param(FoundFile(1000, None), id="a file that was not hashed"),
    ],
)
def test_a_file_that_is_not_proved_to_be_the_same_is_fetched(there: FoundFile) -> None:
    target = msgspec.structs.replace(EMPTY, current={TABLE.name: there}, staged={TABLE.name: there})

    (store,) = plan_task(target, [wanted(TABLE)], replace=True).stores

    assert store.fetch_bytes == 1000
    assert store.reuse == ()


def test_bytes_of_a_partial_file_are_not_fetched_again() -> None:
    target = msgspec.structs.replace(EMPTY, parts={TABLE.sha256: 400})

    (store,) = plan_task(target, [wanted(TABLE)], replace=False).stores

    assert (store.fetch[0].have_bytes, store.fetch_bytes) == (400, 600)


def test_one_content_under_two_names_is_fetched_once() -> None:
    twin = msgspec.structs.replace(TABLE, name="rocksdb/counts/000012.sst")

    (store,) = plan_task(EMPTY, [wanted(TABLE, twin)], replace=False).stores

    assert [fetch.names for fetch in store.fetch] == [(TABLE.name, twin.name)]
    assert store.fetch_bytes == 1000


def test_what_is_there_is_not_replaced_unasked() -> None:
    target = msgspec.structs.replace(
        EMPTY, current={"rocksdb/counts/000099.sst": FoundFile(7)}, stores=(COUNTS,)
    )

    with pytest.raises(TargetNotEmptyError) as refused:
        plan_task(target, [wanted(TABLE)], replace=False)

    assert refused.value.facts["path"] == str(TASK_DIR)
    assert refused.value.facts["stores"] == ["counts"]


def test_a_link_in_the_place_counts_as_something_that_is_there_and_cannot_be_kept() -> None:
    target = msgspec.structs.replace(EMPTY, odd=("rocksdb",))

    with pytest.raises(TargetNotEmptyError):
        plan_task(target, [wanted(TABLE)], replace=False)
    with pytest.raises(UnsafePathError) as refused:
        plan_task(target, [wanted(TABLE)], replace=True)
    assert refused.value.facts["names"] == ["rocksdb"]


def test_other_stores_are_kept_and_nothing_else_of_the_restored_one() -> None:
    target = msgspec.structs.replace(
        EMPTY,
        current={
            ".checkpoint": FoundFile(30),
            ".lock": FoundFile(0),
            "counts.position": FoundFile(20),
            "plain.position": FoundFile(20),
            "rocksdb/counts/000099.sst": FoundFile(5000),
            "rocksdb/plain/000010.sst": FoundFile(4000),
            "rocksdb/plain/CURRENT": FoundFile(16),
        },
        stores=(COUNTS, PLAIN),
    )

    plan = plan_task(target, [wanted(TABLE)], replace=True)

    assert [(keep.name, keep.linked) for keep in plan.keep] == [
        (".checkpoint", False),
        ("plain.position", False),
        ("rocksdb/plain/000010.sst", True),
        ("rocksdb/plain/CURRENT", False),
    ]
    assert plan.kept_stores == ("plain",)
    assert plan.replaces


def test_a_window_store_called_rocksdb_does_not_own_the_stores_beside_it() -> None:
    segment = entry("rocksdb/rocksdb.1700000000000/000010.sst")
    target = msgspec.structs.replace(
        EMPTY,
        current={"rocksdb/plain/000010.sst": FoundFile(4000), segment.name: FoundFile(9)},
        stores=(PLAIN, PresentStore(store="rocksdb", root="rocksdb")),
    )

    plan = plan_task(target, [wanted(segment, store="rocksdb", root="rocksdb")], replace=True)

    assert [keep.name for keep in plan.keep] == ["rocksdb/plain/000010.sst"]


@pytest.mark.parametrize(
    ("both", "others"),
    [
        pytest.param(
            [wanted(TABLE), wanted(TABLE, store="plain")], (), id="two snapshots, the same file"
        ),
        pytest.param(
            [wanted(TABLE, entry("rocksdb/plain/000010.sst"))],
            (PLAIN,),
            id="a file in the folder of a store that is kept",
        ),
        pytest.param(
            [wanted(TABLE, entry("rocksdb/plain/000010.sst")), wanted(store="plain")],
            (),
            id="a file in the folder of another restored store",
        ),
    ],
)
def test_snapshots_that_claim_files_of_other_stores_are_refused(
    both: list[Wanted], others: tuple[PresentStore, ...]
) -> None:
    target = msgspec.structs.replace(EMPTY, stores=others)

    with pytest.raises(ManifestInvalidError) as refused:
        plan_task(target, both, replace=True)

    assert refused.value.facts["names"]


def test_files_of_one_host_are_left_out_and_named() -> None:
    names = (".lock", "kafka-streams-process-metadata")
    plan = plan_task(EMPTY, [wanted(TABLE, *map(entry, names))], replace=False)

    assert plan.left_out == names
    assert plan.stores[0].modes.keys() == {TABLE.name}


def plan_of(needed: int, freed: int, free: int) -> TaskPlan:
    return TaskPlan(
        task_dir=TASK_DIR,
        stores=(),
        keep=(),
        kept_stores=(),
        replaces=True,
        needed_bytes=needed,
        freed_bytes=freed,
        free_bytes=free,
    )


def test_g95_a_target_that_is_too_small_is_refused_with_both_numbers() -> None:
    big = entry(TABLE.name, size=50 * MIB)
    target = msgspec.structs.replace(EMPTY, free_bytes=10 * MIB)
    plan = plan_task(target, [wanted(big)], replace=False)

    with pytest.raises(NoSpaceError) as refused:
        check_space([plan])

    assert refused.value.facts["free_bytes"] == 10 * MIB
    needed = refused.value.facts["needed_bytes"]
    assert isinstance(needed, int)
    assert 50 * MIB < needed < 53 * MIB


def test_what_a_task_frees_counts_for_the_tasks_after_it() -> None:
    check_space([plan_of(60, 60, 100), plan_of(60, 60, 100)])
    with pytest.raises(NoSpaceError):
        check_space([plan_of(60, 10, 100), plan_of(60, 60, 100)])
    with pytest.raises(NoSpaceError):
        check_space([plan_of(110, 110, 100)])


def test_linked_tables_need_no_space_and_free_none() -> None:
    big = entry(TABLE.name, size=50 * MIB)
    target = msgspec.structs.replace(
        EMPTY, current={big.name: found(big)}, stores=(COUNTS,), free_bytes=10 * MIB
    )

    plan = plan_task(target, [wanted(big)], replace=True)

    check_space([plan])
    assert plan.needed_bytes < 3 * MIB
    assert plan.freed_bytes == 0


def test_old_directories_that_are_kept_free_nothing() -> None:
    target = msgspec.structs.replace(
        EMPTY, current={"rocksdb/counts/000099.sst": FoundFile(5000)}, stores=(COUNTS,)
    )

    assert plan_task(target, [wanted(TABLE)], replace=True).freed_bytes == 5000
    kept = plan_task(target, [wanted(TABLE)], replace=True, keep_replaced=True)
    assert kept.freed_bytes == 0


def test_stores_that_the_task_will_lack_are_named() -> None:
    target = msgspec.structs.replace(EMPTY, stores=(PLAIN,))
    plan = plan_task(target, [wanted(TABLE)], replace=True)

    assert missing_stores(plan, ["counts", "plain", "window", "session"]) == ("session", "window")


def test_the_target_itself_may_be_the_folder_of_the_only_store(tmp_path: Path) -> None:
    check_inside(tmp_path / "state", tmp_path / "state")


@pytest.mark.parametrize("place", ["..", "../elsewhere", "orders/../../x"])
def test_a_task_directory_outside_the_target_is_refused(tmp_path: Path, place: str) -> None:
    with pytest.raises(UnsafePathError):
        check_inside(tmp_path / "state", tmp_path / "state" / place)


def test_a_link_on_the_way_to_the_task_directory_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "state"
    (tmp_path / "elsewhere").mkdir()
    target.mkdir()
    (target / "orders").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(UnsafePathError, match="symbolic link"):
        check_inside(target, target / "orders" / "0_1")
