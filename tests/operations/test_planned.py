"""A run tells at its beginning what it is about to do in all."""

from pathlib import Path

from snapstore.model.report import Event, Planned, StoreStarted
from tests.support.restore_lab import UNCHECKED, RestoreLab
from tests.support.streams_store import Pairs, make_key_value, some_pairs


def _planned_first(events: list[Event]) -> Planned:
    kinds = [type(each) for each in events]
    assert kinds.count(Planned) == 1
    assert kinds.index(Planned) < kinds.index(StoreStarted)
    return next(each for each in events if isinstance(each, Planned))


def test_the_bytes_of_all_stores_are_told_before_the_first_is_begun_h42(tmp_path: Path) -> None:
    lab = RestoreLab(tmp_path)
    for task in ("0_0", "0_1"):
        content = Pairs(pairs=some_pairs(20), applied_offset=9)
        make_key_value(tmp_path / "state", task, "counts", content)
    lab.save(tmp_path / "state")
    planned = _planned_first(lab.events)
    names = {"orders/0_0/counts", "orders/0_1/counts"}
    assert planned.sizes.keys() == names
    assert all(planned.sizes.values())

    lab.events.clear()
    lab.restore(tmp_path / "new", options=UNCHECKED)
    planned = _planned_first(lab.events)
    started = [each for each in lab.events if isinstance(each, StoreStarted)]
    assert planned.sizes == {str(each.store): each.total for each in started}
    assert planned.sizes.keys() == names
