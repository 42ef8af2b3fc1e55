"""A snapshot that cannot be what the catalog says is given to nobody who has not named it."""

from datetime import timedelta
from pathlib import Path

import pytest

from snapstore.errors import ManifestInvalidError
from snapstore.operations.restore_choice import Request
from snapstore.operations.status import StatusOptions, status
from tests.support.restore_lab import RestoreLab, utc_now
from tests.support.streams_store import Pairs, make_key_value, some_pairs


@pytest.fixture
def lab(tmp_path: Path) -> RestoreLab:
    """One snapshot of today, and one at a higher offset that is dated years ahead."""
    lab = RestoreLab(tmp_path)
    source = tmp_path / "source"
    make_key_value(source, "0_1", "counts", Pairs(pairs=some_pairs(50), applied_offset=60))
    lab.save(source)
    make_key_value(source, "0_1", "counts", Pairs(pairs=some_pairs(9), applied_offset=900))
    lab.ahead = timedelta(days=3 * 365)
    lab.save(source)
    lab.ahead = timedelta()
    return lab


def test_h23_a_restore_passes_over_a_snapshot_of_the_future_unless_it_is_named(
    lab: RestoreLab, tmp_path: Path
) -> None:
    doubtful, genuine = lab.listed()
    (restored,) = lab.restore(tmp_path / "target").stores
    assert restored.snapshot_id == genuine.id
    (skipped,) = restored.skipped
    assert skipped.snapshot_id == doubtful.id
    assert "in the future" in skipped.reason
    named = [Request(candidates=(doubtful,), latest=False)]
    (restored,) = lab.restore(tmp_path / "named", named).stores
    assert restored.snapshot_id == doubtful.id


def test_h23_where_nothing_else_is_there_the_way_to_take_it_is_told(
    lab: RestoreLab, tmp_path: Path
) -> None:
    doubtful, genuine = lab.listed()
    lab.repository.catalog.remove([genuine])
    with pytest.raises(ManifestInvalidError, match="in the future") as refused:
        lab.restore(tmp_path / "target")
    assert doubtful.id[:12] in str(refused.value.hint)


def test_h23_status_says_of_which_snapshot_a_restore_would_be(lab: RestoreLab) -> None:
    doubtful, genuine = lab.listed()
    stores = {genuine.store: [doubtful, genuine]}
    (seen,) = status(
        stores, lab.repository, None, lambda _: lab.layout, utc_now, StatusOptions()
    ).stores
    assert seen.used == genuine
    assert [passed.snapshot_id for passed in seen.passed_over] == [doubtful.id]
