"""What is replaced may hold more than the snapshot: that is said in numbers."""

from pathlib import Path

import msgspec
import pytest

from snapstore.errors import InMemoryStoreError, TargetNotEmptyError
from snapstore.model.snapshot import FORMAT, Manifest, Snapshot
from tests.support.restore_lab import REPLACE, UNCHECKED, RestoreLab
from tests.support.streams_store import APPLICATION, Pairs, make_key_value, some_pairs, topic


def state(folder: Path, applied: int) -> Path:
    for store in ("counts", "totals"):
        pairs = Pairs(pairs=some_pairs(20), applied_offset=applied)
        make_key_value(folder, "0_0", store, pairs)
    return folder


@pytest.fixture
def lab(tmp_path: Path) -> RestoreLab:
    lab = RestoreLab(tmp_path)
    lab.save(state(tmp_path / "saved", 1000))
    return lab


def test_h62_a_plan_that_goes_back_says_so_for_each_store(lab: RestoreLab, tmp_path: Path) -> None:
    target = state(tmp_path / "target", 5000)
    plan = lab.plan(target, options=REPLACE)
    told = [note for note in plan.notes if "goes back" in note]
    assert len(told) == 2
    assert told[0] == (
        f"{APPLICATION}/0_0/counts goes back: the target has applied {topic('counts')}:0 up to "
        "5,000, and the snapshot up to 1,000, 4,000 offsets less"
    )
    report = lab.restore(target, options=REPLACE)
    assert {*told} <= {*report.notes}
    assert {*told} <= {*lab.notes}


@pytest.mark.parametrize("applied", [999, 1000])
def test_h62_a_plan_that_goes_forward_says_nothing(
    lab: RestoreLab, tmp_path: Path, applied: int
) -> None:
    plan = lab.plan(state(tmp_path / "target", applied), options=REPLACE)
    assert not [note for note in plan.notes if "goes back" in note]


def test_h62_the_refusal_without_replace_names_both_offsets(
    lab: RestoreLab, tmp_path: Path
) -> None:
    target = state(tmp_path / "target", 5000)
    with pytest.raises(TargetNotEmptyError) as refused:
        lab.restore(target, options=UNCHECKED)
    assert "offset 5,000 in the target, 1,000 in the snapshot" in refused.value.message
    assert len(refused.value.facts["goes_back"]) == 2  # type: ignore[arg-type]


def test_h62_what_cannot_be_read_is_replaced_all_the_same(lab: RestoreLab, tmp_path: Path) -> None:
    target = state(tmp_path / "target", 5000)
    (target / APPLICATION / "0_0" / "rocksdb" / "counts" / "CURRENT").write_text("nothing\n")
    report = lab.restore(target, options=REPLACE)
    assert len(report.stores) == 2


def keep_in_memory(lab: RestoreLab, store: str) -> None:
    """Say in the only snapshot of a store that its application keeps it in memory."""
    (listed,) = lab.listed(store=store)
    manifest = lab.repository.manifests.load(listed.id)
    description = msgspec.structs.replace(manifest.description, store_type="in-memory")
    changed = Manifest(format=FORMAT, description=description, files=manifest.files)
    lab.repository.catalog.remove([listed])
    lab.repository.catalog.publish(
        Snapshot(
            format=FORMAT,
            id=lab.repository.manifests.put(changed),
            description=description,
            files=len(manifest.files),
            size_bytes=sum(file.size for file in manifest.files),
            new_files=0,
            new_bytes=0,
        )
    )


def test_h50_a_store_in_memory_stops_no_other(lab: RestoreLab, tmp_path: Path) -> None:
    keep_in_memory(lab, "totals")
    report = lab.restore(tmp_path / "target")
    assert [each.store for each in report.stores] == [f"{APPLICATION}/0_0/counts"]
    (left_out,) = report.unrestorable
    assert (left_out.store, left_out.code) == (f"{APPLICATION}/0_0/totals", "in_memory_store")
    assert not [note for note in report.notes if "will lack" in note]


def test_h50_a_store_in_memory_that_is_named_is_refused(lab: RestoreLab, tmp_path: Path) -> None:
    keep_in_memory(lab, "totals")
    for latest in (True, False):
        with pytest.raises(InMemoryStoreError):
            lab.restore(tmp_path / "target", lab.requests(store="totals", latest=latest))
