"""Stores come back as they were saved, at the offset that was saved."""

import os
import shutil
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from snapstore.errors import (
    BlobCorruptError,
    BlobMissingError,
    PartialFailureError,
    RefusedError,
    RunInProgressError,
    SnapshotNotFoundError,
    StorageError,
    StoreInUseError,
    TargetNotEmptyError,
    TombstoneHorizonError,
    UncheckedChangelogError,
    UnsafePathError,
    WrongGenerationError,
)
from snapstore.layouts.kafka_streams.checkpoint import parse_checkpoint
from snapstore.model.identity import ChangelogPartition
from snapstore.model.resume import ResumePlan
from snapstore.model.snapshot import Snapshot
from snapstore.operations.restore import RestoreOptions
from snapstore.operations.restore_choice import Request
from tests.support.fixtures import FixtureName, expected, unpack
from tests.support.restore_lab import (
    REPLACE,
    CountingStorage,
    RestoreLab,
    contents,
    tree,
    utc_now,
)
from tests.support.streams_store import (
    APPLICATION,
    Pairs,
    make_key_value,
    make_window,
    some_pairs,
    topic,
)

KEEPING = RestoreOptions(allow_unchecked_changelog=True, replace=True, keep_replaced=True)


@pytest.fixture
def lab(tmp_path: Path) -> RestoreLab:
    return RestoreLab(tmp_path)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """One task with a key-value store and a window store of two segments at unequal offsets."""
    source = tmp_path / "source"
    make_key_value(source, "0_1", "counts", Pairs(pairs=some_pairs(300), applied_offset=900))
    segments = {
        1700000000000: Pairs(pairs=some_pairs(200), applied_offset=410),
        1700000060000: Pairs(pairs=some_pairs(100, start=200), applied_offset=777),
    }
    make_window(source, "0_1", "windows", segments)
    return source


def counts_dir(state_dir: Path) -> Path:
    return state_dir / APPLICATION / "0_1" / "rocksdb" / "counts"


def offsets(state_dir: Path, scratch: Path) -> dict[str, int]:
    """Return the applied offset of each database, read from a copy."""
    found = {}
    for database, families in contents(state_dir, scratch).items():
        assert isinstance(families, dict)
        for key, value in families["offsets"].items():
            if key not in (b"status", b"position"):
                found[database] = int.from_bytes(value, "big")
    return found


def data(state_dir: Path, scratch: Path) -> dict[str, object]:
    """Return the contents of each database without its offsets."""
    found: dict[str, object] = {}
    for database, families in contents(state_dir, scratch).items():
        assert isinstance(families, dict)
        found[database] = {
            family: pairs for family, pairs in families.items() if family != "offsets"
        }
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ks440-alos", "ks400-eos"])
def test_a_whole_application_comes_back_with_equal_contents_in_another_directory(
    lab: RestoreLab, tmp_path: Path, name: FixtureName
) -> None:
    source = unpack(name, tmp_path / "source")
    if name == "ks400-eos":
        # It never noted an offset of its global store.
        shutil.rmtree(source / "global")
    lab.save(tmp_path / "source")

    report = lab.restore(tmp_path / "target")

    assert data(tmp_path / "target", tmp_path / "s1") == data(tmp_path / "source", tmp_path / "s2")
    databases = {
        str(Path(database).relative_to(name))
        for database in contents(tmp_path / "target", tmp_path / "s1")
    }
    assert databases == {
        database for database in expected(name).rocksdb if (source / database).exists()
    }
    assert not list((tmp_path / "target").rglob(".snapstore"))
    assert not list((tmp_path / "target").rglob("LOCK"))
    assert not list((tmp_path / "target").rglob("rocksdict-config.json"))
    assert report.fetched_bytes == sum(
        path.stat().st_size for path in (tmp_path / "target").rglob("*.sst")
    )


@pytest.mark.slow
def test_to_4_2_the_offsets_of_every_store_are_noted_in_checkpoint(
    lab: RestoreLab, tmp_path: Path
) -> None:
    source = unpack("ks400-eos", tmp_path / "source")
    lab.save(tmp_path / "source", failing=["global"])

    lab.restore(tmp_path / "target")

    for task in ("0_0", "0_1", "1_0", "1_1"):
        there = tmp_path / "target" / "ks400-eos" / task / ".checkpoint"
        before = parse_checkpoint((source / task / ".checkpoint").read_bytes(), source)
        after = parse_checkpoint(there.read_bytes(), there)
        in_memory = {one for one in before if "-mem-" in one.topic}
        assert after == {one: offset for one, offset in before.items() if one not in in_memory}


def test_restoring_one_store_keeps_the_others_and_their_lines_in_checkpoint(
    lab: RestoreLab, tmp_path: Path
) -> None:
    target = tmp_path / "target"
    application = unpack("ks400-eos", target)
    lab.save(target, failing=["global"])
    task = application / "0_0"
    noted = parse_checkpoint((task / ".checkpoint").read_bytes(), task)
    plain = ChangelogPartition("ks400-eos-plain-changelog", 0)
    assert noted[plain] is not None
    lines = (task / ".checkpoint").read_text().replace(f"{noted[plain]}", "7")
    (task / ".checkpoint").write_text(lines)
    shutil.rmtree(task / "rocksdb" / "plain")
    others = {
        name: content
        for name, content in tree(application).items()
        if "plain" not in name and not name.endswith((".checkpoint", "/LOCK"))
    }

    report = lab.restore(target, lab.requests(task="0_0", store="plain"), REPLACE)

    assert parse_checkpoint((task / ".checkpoint").read_bytes(), task)[plain] == noted[plain]
    after = tree(application)
    assert others.items() <= after.items()
    assert "table" in report.kept_stores
    assert (task / "rocksdb" / "plain" / "CURRENT").exists()


def test_a_line_without_files_does_not_survive_a_restore(lab: RestoreLab, tmp_path: Path) -> None:
    target = tmp_path / "target"
    application = unpack("ks400-eos", target)
    lab.save(target, failing=["global"])
    task = application / "0_0"
    shutil.rmtree(task / "rocksdb" / "table")

    lab.restore(target, lab.requests(task="0_0", store="plain"), REPLACE)

    noted = parse_checkpoint((task / ".checkpoint").read_bytes(), task)
    assert ChangelogPartition("ks400-eos-table-changelog", 0) not in noted
    assert ChangelogPartition("ks400-eos-plain-changelog", 0) in noted
    assert any("task 0_0 will lack table" in note for note in lab.notes)


def test_the_least_offset_is_flushed_into_every_segment_and_nothing_else_changes(
    lab: RestoreLab, state: Path, tmp_path: Path
) -> None:
    (snapshot,) = [
        outcome.snapshot for outcome in lab.save(state) if outcome.store.store == "windows"
    ]
    assert snapshot is not None
    assert snapshot.description.applied_offset == 410

    report = lab.restore(tmp_path / "target")

    assert offsets(tmp_path / "target", tmp_path / "s") == {
        "orders/0_1/rocksdb/counts": 900,
        "orders/0_1/windows/windows.1700000000000": 410,
        "orders/0_1/windows/windows.1700000060000": 410,
    }
    assert data(tmp_path / "target", tmp_path / "s") == data(state, tmp_path / "s2")
    by_store = {store.store: store.resume_offsets for store in report.stores}
    assert by_store["orders/0_1/windows"] == {f"{topic('windows')}:1": 411}
    tables = tree(state)
    restored = tree(tmp_path / "target")
    for name, digest in tables.items():
        if name.endswith(".sst"):
            assert restored[name] == digest


def test_nothing_foreign_is_left_in_a_task_directory(
    lab: RestoreLab, state: Path, tmp_path: Path
) -> None:
    lab.save(state)

    lab.restore(tmp_path / "target")

    application = tmp_path / "target" / APPLICATION
    assert {path.name for path in application.iterdir()} == {"0_1", ".lock"}
    assert {path.name for path in (application / "0_1").iterdir()} == {"rocksdb", "windows"}
    assert {path.name for path in (application / "0_1" / "windows").iterdir()} == {
        "windows.1700000000000",
        "windows.1700000060000",
    }
    for path in application.rglob("*"):
        if path.is_file() and path.name != ".lock":
            assert path.name in {"CURRENT", "IDENTITY"} or path.name.startswith(
                ("MANIFEST-", "OPTIONS-", "0")
            )
            assert path.stat().st_nlink == 1


def test_the_files_have_the_time_of_the_restore(
    lab: RestoreLab, state: Path, tmp_path: Path
) -> None:
    for path in state.rglob("*"):
        os.utime(path, (1_600_000_000, 1_600_000_000))
    lab.save(state)
    began = lab.layout.discover(state).locations[0].path.stat().st_atime

    lab.restore(tmp_path / "target")

    for path in (tmp_path / "target").rglob("*"):
        assert path.stat().st_mtime > began


def test_per_host_files_are_not_carried_over(lab: RestoreLab, state: Path, tmp_path: Path) -> None:
    (state / APPLICATION / "kafka-streams-process-metadata").write_text('{"processId":"x"}')
    (state / APPLICATION / ".lock").write_text("")
    lab.save(state)

    lab.restore(tmp_path / "target")

    names = {path.name for path in (tmp_path / "target").rglob("*")}
    assert "kafka-streams-process-metadata" not in names


def test_g93_what_is_there_is_refused_and_left_alone(
    lab: RestoreLab, state: Path, tmp_path: Path
) -> None:
    lab.save(state)
    before = tree(tmp_path)

    with pytest.raises(TargetNotEmptyError):
        lab.restore(state)

    after = tree(tmp_path)
    after.pop("source/orders/.lock", None)
    assert after == before


def test_g93_with_replace_exactly_the_files_of_the_snapshot_remain_in_the_store(
    lab: RestoreLab, state: Path, tmp_path: Path
) -> None:
    lab.save(state)
    kept = make_key_value(state, "0_1", "other", Pairs(pairs=some_pairs(50), applied_offset=3))
    outside = make_key_value(state, "0_2", "counts", Pairs(pairs=some_pairs(9), applied_offset=8))
    (counts_dir(state) / "000099.sst").write_bytes(b"foreign")
    (counts_dir(state) / "MANIFEST-000777").write_bytes(b"foreign")
    before = {**tree(kept), **{f"2/{name}": each for name, each in tree(outside).items()}}

    report = lab.restore(state, options=REPLACE)

    names = {path.name for path in counts_dir(state).iterdir()}
    assert not names & {"000099.sst", "MANIFEST-000777"}
    assert {**tree(kept), **{f"2/{name}": each for name, each in tree(outside).items()}} == before
    assert report.kept_stores == ("other",)


def test_g99_the_second_restore_ends_with_the_same_result_and_fetches_nothing(
    lab: RestoreLab, state: Path, tmp_path: Path
) -> None:
    lab.save(state)
    target = tmp_path / "target"
    lab.restore(target)
    first = contents(target, tmp_path / "s")
    lab.events.clear()

    report = lab.restore(target, options=REPLACE)

    assert contents(target, tmp_path / "s") == first
    assert (report.fetched_bytes, lab.downloaded_bytes) == (0, 0)
    assert report.reused_bytes > 0


def test_what_was_there_can_be_kept(lab: RestoreLab, state: Path, tmp_path: Path) -> None:
    lab.save(state)
    make_key_value(
        state, "0_1", "counts", Pairs(pairs=some_pairs(10, start=900), applied_offset=999)
    )
    before = tree(state / APPLICATION / "0_1")

    report = lab.restore(state, options=KEEPING)

    (replaced,) = report.replaced
    assert replaced.parent == state / APPLICATION / ".snapstore" / "replaced"
    assert tree(replaced) == before
    assert offsets(state, tmp_path / "s")["orders/0_1/rocksdb/counts"] == 900
    assert {location.store.store for location in lab.layout.discover(state).locations} == {
        "counts",
        "windows",
    }


def test_a_table_of_the_same_name_with_other_bytes_is_not_taken_for_the_same(
    lab: RestoreLab, state: Path, tmp_path: Path
) -> None:
    lab.save(state)
    saved = contents(state, tmp_path / "s")
    shutil.rmtree(counts_dir(state))
    other = {key: value[::-1] for key, value in some_pairs(300).items()}
    make_key_value(state, "0_1", "counts", Pairs(pairs=other, applied_offset=900))
    names = {path.name for path in counts_dir(state).glob("*.sst")}

    lab.restore(state, options=REPLACE)

    assert names & {path.name for path in counts_dir(state).glob("*.sst")}
    assert (
        contents(state, tmp_path / "s")["orders/0_1/rocksdb/counts"]
        == (saved["orders/0_1/rocksdb/counts"])
    )


def test_an_application_cannot_start_while_its_directory_is_changed(
    lab: RestoreLab, state: Path, tmp_path: Path
) -> None:
    lab.save(state)
    refused: list[str] = []

    def start(point: str) -> None:
        # As Kafka Streams does it: a POSIX record lock, from another process.
        command = (
            "import fcntl, sys; f = open(sys.argv[1], 'r+b');"
            "fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB)"
        )
        if point in {"held", "journal written", "directories exchanged"}:
            lock = state / APPLICATION / ".lock"
            started = subprocess.run(
                [sys.executable, "-c", command, str(lock)], stderr=subprocess.DEVNULL, check=False
            )
            refused.append(point if started.returncode else "started")

    lab.restore(state, options=REPLACE, reached=start)

    assert refused == ["held", "journal written", "directories exchanged"]


def test_a_running_application_is_refused_before_anything_is_written(
    lab: RestoreLab, state: Path, tmp_path: Path
) -> None:
    lab.save(state)
    before = tree(state)

    description = lab.repository.catalog.load(lab.listed()[0]).description
    with lab.layout.hold(state, description), pytest.raises(StoreInUseError):
        lab.restore(state, options=REPLACE)

    after = tree(state)
    after.pop("orders/.lock", None)
    assert after == before


def test_two_restores_do_not_work_in_one_folder(
    lab: RestoreLab, state: Path, tmp_path: Path
) -> None:
    lab.save(state)
    outcome: list[object] = []

    def second(point: str) -> None:
        if point == "staging made":
            with pytest.raises((RunInProgressError, StoreInUseError)) as refused:
                lab.restore(tmp_path / "target", options=REPLACE)
            outcome.append(refused.value.code)

    lab.restore(tmp_path / "target", reached=second)

    assert outcome == ["store_in_use"]


def test_an_unchecked_restore_must_be_allowed_by_name(
    lab: RestoreLab, state: Path, tmp_path: Path
) -> None:
    lab.save(state)

    with pytest.raises(UncheckedChangelogError):
        lab.restore(tmp_path / "target", options=RestoreOptions())

    assert not (tmp_path / "target").exists()


def test_the_newest_snapshot_that_passes_the_check_is_taken_and_the_other_is_named(
    lab: RestoreLab, state: Path, tmp_path: Path
) -> None:
    lab.save(state)
    make_key_value(
        state, "0_1", "counts", Pairs(pairs=some_pairs(10, start=900), applied_offset=999)
    )
    lab.save(state)

    def check(snapshot: Snapshot) -> tuple[ResumePlan, ...]:
        if snapshot.description.applied_offset == 999:
            raise TombstoneHorizonError("deletions may be missing")
        return (resume(snapshot, deadline=utc_now() + timedelta(hours=1)),)

    report = lab.restore(
        tmp_path / "target", lab.requests(store="counts"), RestoreOptions(), check=check
    )

    (store,) = report.stores
    assert store.resume_offsets == {f"{topic('counts')}:1": 901}
    assert store.records_to_replay == 5
    assert store.replay_before is not None
    assert any("start the application in time" in note for note in lab.notes)
    assert [(skipped.code, skipped.reason) for skipped in store.skipped] == [
        ("tombstone_horizon", "deletions may be missing")
    ]
    assert any("was passed over: deletions may be missing" in note for note in lab.notes)


def resume(snapshot: Snapshot, *, deadline: datetime | None = None) -> ResumePlan:
    """Return what a check of the changelog would: five more records, to be read in time."""
    (position,) = (each.position for each in snapshot.description.positions)
    return ResumePlan(
        changelog=position.changelog,
        cluster_id="c",
        topic_id="t",
        start=position.resume_offset,
        stop=position.resume_offset + 5,
        deadline=deadline,
    )


def test_fetching_for_too_long_leaves_the_target_as_it_was(
    lab: RestoreLab, state: Path, tmp_path: Path
) -> None:
    lab.save(state)
    before = tree(state)
    requests = lab.requests(store="counts")
    deadline = utc_now() + timedelta(hours=1)

    def check(snapshot: Snapshot) -> tuple[ResumePlan, ...]:
        return (resume(snapshot, deadline=deadline),)

    def wait(point: str) -> None:
        if point == "files fetched":
            lab.ahead = timedelta(hours=1)

    with pytest.raises(TombstoneHorizonError, match="would have had to be replayed before"):
        lab.restore(state, requests, RestoreOptions(replace=True), check=check, reached=wait)

    after = {name: each for name, each in tree(state).items() if ".snapstore" not in name}
    after.pop("orders/.lock", None)
    assert after == before


def two_tasks(lab: RestoreLab, state: Path) -> Path:
    """Add a second task with a store of its own, and save both; return its largest blob."""
    pairs = some_pairs(400, start=5000)
    make_key_value(state, "0_2", "counts", Pairs(pairs=pairs, applied_offset=50))
    lab.save(state)
    (listed,) = lab.listed(task="0_2")
    return max(lab.blobs_of(listed).values(), key=lambda blob: blob.stat().st_size)


def test_one_task_that_fails_stops_no_other_and_the_report_says_so(
    lab: RestoreLab, state: Path, tmp_path: Path
) -> None:
    blob = two_tasks(lab, state)
    moved = blob.rename(tmp_path / "moved")

    with pytest.raises(PartialFailureError, match="1 of 2 tasks") as failed:
        lab.restore(tmp_path / "target", lab.requests(latest=False))

    report = failed.value.facts["report"]
    assert isinstance(report, dict)
    assert [store["store"] for store in report["stores"]] == [
        "orders/0_1/counts",
        "orders/0_1/windows",
    ]
    assert [(task["code"], Path(task["task_dir"]).name) for task in report["failed"]] == [
        ("blob_missing", "0_2")
    ]
    assert counts_dir(tmp_path / "target").is_dir()
    assert not (tmp_path / "target" / APPLICATION / "0_2").exists()

    moved.rename(blob)
    lab.restore(tmp_path / "target", lab.requests(task="0_2"))
    assert data(tmp_path / "target", tmp_path / "s") == data(state, tmp_path / "s2")


def test_a_storage_that_is_gone_is_not_asked_for_every_task(
    lab: RestoreLab, state: Path, tmp_path: Path
) -> None:
    two_tasks(lab, state)
    sizes = [
        blob.stat().st_size
        for item in lab.listed(task="0_1")
        for blob in lab.blobs_of(item).values()
    ]
    make_key_value(state, "0_3", "counts", Pairs(pairs=some_pairs(400), applied_offset=50))
    lab.save(state)
    failing = CountingStorage(
        lab.storage.url, budget_bytes=sum(sizes), failure=StorageError("no route to host")
    )

    with pytest.raises(PartialFailureError) as failed:
        lab.restore(tmp_path / "target", storage=failing)

    report = failed.value.facts["report"]
    assert isinstance(report, dict)
    reasons = [task["reason"] for task in report["failed"]]
    assert reasons == ["no route to host", "not tried any more, since no route to host"]


def test_a_link_in_the_task_directory_is_not_lost_but_refused(
    lab: RestoreLab, state: Path, tmp_path: Path
) -> None:
    lab.save(state)
    elsewhere = make_key_value(
        tmp_path / "disk2", "0_1", "kept", Pairs(pairs=some_pairs(5), applied_offset=5)
    )
    (counts_dir(state).parent / "kept").symlink_to(elsewhere)

    with pytest.raises(UnsafePathError, match="would be lost") as refused:
        lab.restore(state, options=REPLACE)

    assert refused.value.facts["names"] == ["rocksdb/kept"]
    assert (counts_dir(state).parent / "kept").is_symlink()


def two_snapshots(lab: RestoreLab, state: Path) -> Path:
    """Save offsets 600 and 900 of one store; return the table that only the newer one needs."""
    shutil.rmtree(state / APPLICATION)
    make_key_value(state, "0_1", "counts", Pairs(pairs=some_pairs(200), applied_offset=600))
    lab.save(state)
    make_key_value(
        state, "0_1", "counts", Pairs(pairs=some_pairs(100, start=200), applied_offset=900)
    )
    lab.save(state)
    newer, older = (lab.blobs_of(item) for item in lab.listed(store="counts"))
    return max({*newer.values()} - {*older.values()}, key=lambda blob: blob.stat().st_size)


@pytest.mark.parametrize(
    ("damage", "code"),
    [(Path.unlink, "blob_missing"), (lambda blob: corrupt(blob), "blob_corrupt")],
    ids=["missing", "corrupt"],
)
def test_g49_of_the_latest_the_newest_whole_one_is_taken_and_the_damaged_one_is_named(
    lab: RestoreLab, state: Path, tmp_path: Path, damage: object, code: str
) -> None:
    blob = two_snapshots(lab, state)
    assert callable(damage)
    damage(blob)

    report = lab.restore(tmp_path / "target")

    (store,) = report.stores
    assert store.resume_offsets == {f"{topic('counts')}:1": 601}
    (skipped,) = store.skipped
    assert (skipped.code, skipped.snapshot_id) == (code, lab.listed()[0].id)
    assert blob.name in skipped.reason
    assert data(tmp_path / "target", tmp_path / "s") == {
        "orders/0_1/rocksdb/counts": {"default": some_pairs(200)}
    }


def corrupt(blob: Path) -> None:
    content = bytearray(blob.read_bytes())
    content[len(content) // 2] ^= 1
    blob.chmod(0o600)
    blob.write_bytes(content)


@pytest.mark.parametrize("missing", [True, False], ids=["missing", "corrupt"])
def test_g49_a_snapshot_that_was_named_fails_with_the_blob_and_leaves_the_target_alone(
    lab: RestoreLab, state: Path, tmp_path: Path, missing: bool
) -> None:
    blob = two_snapshots(lab, state)
    if missing:
        blob.unlink()
    else:
        corrupt(blob)
    shutil.rmtree(counts_dir(state))
    make_key_value(state, "0_1", "counts", Pairs(pairs=some_pairs(9), applied_offset=9))
    before = tree(state)

    with pytest.raises((BlobMissingError, BlobCorruptError)) as failed:
        lab.restore(state, lab.requests(latest=False), REPLACE)

    assert isinstance(failed.value, BlobMissingError if missing else BlobCorruptError)
    assert failed.value.facts["blob"] == blob.name
    assert failed.value.facts["snapshot"] == lab.listed()[0].id
    after = {name: each for name, each in tree(state).items() if ".snapstore" not in name}
    after.pop("orders/.lock", None)
    assert after == before


def test_g49_a_storage_that_fails_is_never_taken_for_a_missing_snapshot(
    lab: RestoreLab, state: Path, tmp_path: Path
) -> None:
    two_snapshots(lab, state)
    failing = CountingStorage(
        lab.storage.url, budget_bytes=4096, failure=StorageError("503 Slow Down")
    )

    with pytest.raises(StorageError, match="503"):
        lab.restore(tmp_path / "target", storage=failing)

    assert not (tmp_path / "target" / APPLICATION / "0_1").exists()


def test_no_candidate_at_all_is_an_error(lab: RestoreLab, tmp_path: Path) -> None:
    with pytest.raises(SnapshotNotFoundError):
        lab.restore(tmp_path / "target", [Request(candidates=(), latest=True)])


def test_an_older_application_is_not_given_files_that_it_cannot_open(
    lab: RestoreLab, tmp_path: Path
) -> None:
    newer = unpack("ks440-alos", tmp_path / "source")
    newer.rename(newer.with_name("ks400-eos"))
    lab.save(tmp_path / "source")
    unpack("ks400-eos", tmp_path / "target")
    before = tree(tmp_path / "target")

    with pytest.raises(WrongGenerationError):
        lab.restore(tmp_path / "target", lab.requests(task="0_0", store="plain"), REPLACE)

    assert tree(tmp_path / "target") == before


def test_a_dry_run_says_what_would_be_done_and_writes_nothing(
    lab: RestoreLab, state: Path, tmp_path: Path
) -> None:
    lab.save(state)
    before = tree(tmp_path)

    plan = lab.plan(state, options=REPLACE)

    assert tree(tmp_path) == before
    (task,) = plan.tasks
    assert task.replaces
    assert all(store.fetch_bytes == 0 for store in task.stores)
    fresh = lab.plan(tmp_path / "fresh")
    assert not (tmp_path / "fresh").exists()
    done = lab.restore(tmp_path / "fresh")
    assert sum(store.fetch_bytes for store in fresh.tasks[0].stores) == done.fetched_bytes


@pytest.mark.parametrize("kind", ["garbage", "folder"])
def test_what_is_replaced_need_not_be_readable_h64(tmp_path: Path, kind: str) -> None:
    lab = RestoreLab(tmp_path)
    for store in ("counts", "names"):
        content = Pairs(pairs=some_pairs(20), applied_offset=99)
        make_key_value(tmp_path / "source", "0_1", store, content)
    lab.save(tmp_path / "source")
    target = tmp_path / "target"
    make_key_value(target, "0_1", "counts", Pairs(pairs=some_pairs(5), applied_offset=9))
    make_key_value(target, "0_1", "names", Pairs(pairs=some_pairs(5), applied_offset=9))
    checkpoint = target / APPLICATION / "0_1" / ".checkpoint"
    if kind == "folder":
        checkpoint.mkdir()
        (checkpoint / "file").touch()
    else:
        checkpoint.write_text("garbage\n")

    with pytest.raises(RefusedError, match=r"cannot be read, and names may have an offset in it"):
        lab.restore(target, lab.requests(store="counts"), REPLACE)
    lab.restore(target, options=REPLACE)

    assert not checkpoint.exists()
    restored, source = (contents(each, tmp_path / "x") for each in (target, tmp_path / "source"))
    assert restored == source
