"""What is noted of a tail makes a restored store right, whatever compaction does afterwards."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapstore.model.identity import ChangelogPartition
from snapstore.model.snapshot import Deletion, NotedTail
from snapstore.model.store import ChangelogPosition
from snapstore.operations import tail as tails
from snapstore.operations.fence import fence_at
from snapstore.operations.tail import Inherited, TailNote, note_tail
from snapstore.testing.changelog_contract import Written
from tests.support.log_in_memory import DAY_MS, LogInMemory

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)

Change = tuple[bytes, bytes | None]


def put(key: bytes, value: bytes | None) -> Written:
    return Written(key, value, 0)


def fold(changes: list[Change]) -> dict[bytes, bytes]:
    content: dict[bytes, bytes] = {}
    for key, value in changes:
        if value is None:
            content.pop(key, None)
        else:
            content[key] = value
    return content


def note(
    log: LogInMemory,
    changelog: ChangelogPartition,
    applied: int,
    *,
    since: datetime | None = None,
    earlier: Inherited | None = None,
    can_delete: bool = True,
) -> TailNote:
    state = log.inspect(changelog, now=NOW)
    position = ChangelogPosition(changelog, applied)
    fence = fence_at(log, position, state)
    fence = msgspec.structs.replace(fence, behind_since=since)
    return note_tail(
        log,
        position,
        fence,
        state,
        can_delete=lambda _: can_delete,
        inherited=lambda: earlier,
        clock=lambda: NOW,
    )


def replayed(
    log: LogInMemory,
    changelog: ChangelogPartition,
    files: Mapping[bytes, bytes],
    start: int,
    deletions: tuple[Deletion, ...],
) -> dict[bytes, bytes]:
    content = {key: value for key, value in files.items() if key not in {d.key for d in deletions}}
    stop = log.inspect(changelog, now=NOW).log_end
    with log.read(changelog, start, stop) as tail:
        for batch in tail:
            for record in batch:
                assert record.key is not None
                if record.value is None:
                    content.pop(record.key, None)
                else:
                    content[record.key] = record.value
    return content


KEYS = st.sampled_from([b"a", b"b", b"c", b"d", b"e"])
CHANGES = st.lists(st.tuples(KEYS, st.one_of(st.none(), st.binary(min_size=1, max_size=2))))


@settings(max_examples=400)
@given(st.data())
def test_a_restored_store_ends_as_the_log_says_whatever_was_compacted(data: st.DataObject) -> None:
    """The files hold all that was applied, of each key maybe more. At the capture compaction may
    have begun; afterwards it may take away everything that Kafka's rules allow."""
    history = data.draw(CHANGES, label="until the capture")
    applied = data.draw(st.integers(-1, len(history) - 1), label="applied offset")
    log = LogInMemory()
    changelog = log.create()
    log.append(changelog, [put(*change) for change in history])
    ahead = data.draw(
        st.dictionaries(KEYS, st.integers(applied + 1, len(history))), label="files are ahead"
    )
    files = fold(history[: applied + 1])
    for key, stop in ahead.items():
        of_key = fold([change for change in history[:stop] if change[0] == key])
        files.pop(key, None)
        files |= of_key
    if data.draw(st.booleans(), label="compacted before"):
        log.compact(changelog, before=data.draw(st.integers(0, len(history))))
    start = 0 if applied == 0 else applied + 1
    found = note(log, changelog, applied, since=NOW - HOUR)
    tail = found.fence.tail
    assert (tail is None) == (len(history) <= applied + 1), found.lack

    later = data.draw(CHANGES, label="after the capture")
    log.append(changelog, [put(*change) for change in later])
    stop = len(history) if tail is None else tail.stop
    log.compact(changelog, before=data.draw(st.integers(0, len(history) + len(later))))
    log.compact(changelog, drop_tombstones=True, before=min(stop, data.draw(st.integers(0, stop))))

    result = replayed(log, changelog, files, start, found.deletions)
    assert result == fold([*history, *later])
    assert replayed(log, changelog, result, start, found.deletions) == result


def test_keys_that_were_written_again_are_not_noted() -> None:
    log = LogInMemory()
    changelog = log.create()
    log.append(changelog, [put(b"a", b"1"), put(b"a", None), put(b"b", None), put(b"a", b"2")])
    found = note(log, changelog, -1)
    assert found.deletions == (Deletion(b"b", 2),)
    assert found.fence.tail == NotedTail(
        stop=4, observed_at=NOW, delete_retention_ms=DAY_MS, deletions=1
    )


def compacted_tail() -> tuple[LogInMemory, ChangelogPartition]:
    """The tombstone at offset 1 has been taken away."""
    log = LogInMemory()
    changelog = log.create()
    log.append(changelog, [put(b"a", b"1"), put(b"a", None), put(b"b", b"2")])
    log.compact(changelog, drop_tombstones=True)
    return log, changelog


def test_a_tail_that_lacks_records_is_noted_only_if_no_tombstone_can_be_gone() -> None:
    log, changelog = compacted_tail()
    found = note(log, changelog, 0)
    assert (found.fence.tail, found.gap) == (None, True)
    assert "2 offsets after it hold no record any more" in (found.lack or "")
    assert note(log, changelog, 0, since=NOW - DAY + timedelta(minutes=4)).fence.tail is None
    assert note(log, changelog, 0, since=NOW - DAY + timedelta(minutes=6)).fence.tail is not None


@pytest.mark.parametrize(("age", "noted"), [(23 * HOUR, True), (DAY, False)])
def test_what_an_earlier_snapshot_has_noted_is_known_still(age: timedelta, noted: bool) -> None:
    log, changelog = compacted_tail()
    earlier = Inherited(
        tail=NotedTail(stop=2, observed_at=NOW - age, delete_retention_ms=DAY_MS, deletions=1),
        deletions=(Deletion(b"a", 1),),
    )
    found = note(log, changelog, 0, earlier=earlier)
    assert found.deletions == ((Deletion(b"a", 1),) if noted else ())
    assert (found.fence.tail is not None) == noted


def test_an_inherited_deletion_is_dropped_once_the_key_is_written_again() -> None:
    log, changelog = compacted_tail()
    log.append(changelog, [put(b"a", b"3")])
    tail = NotedTail(stop=2, observed_at=NOW - HOUR, delete_retention_ms=DAY_MS, deletions=1)
    found = note(log, changelog, 0, earlier=Inherited(tail=tail, deletions=(Deletion(b"a", 1),)))
    assert found.fence.tail is not None
    assert found.deletions == ()


def test_a_store_whose_keys_cannot_be_deleted_notes_a_tail_without_deletions_only() -> None:
    log = LogInMemory()
    changelog = log.create()
    log.append(changelog, [put(b"a", b"1"), put(b"b", b"2")])
    assert note(log, changelog, -1, can_delete=False).fence.tail is not None
    log.append(changelog, [put(b"a", None)])
    found = note(log, changelog, -1, can_delete=False)
    assert found.fence.tail is None
    assert "1 key" in (found.lack or "")


def test_what_an_open_transaction_hides_is_not_taken_for_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tails, "_PATIENCE_S", 0.1)
    log = LogInMemory()
    changelog = log.create()
    log.append(changelog, [put(b"a", b"1"), put(b"b", b"2")])
    log.begin_transaction(changelog, 3)
    found = note(log, changelog, 0)
    assert found.fence.tail is None
    assert "transaction is open" in (found.lack or "")


def test_more_deletions_than_a_manifest_should_hold_are_not_noted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tails, "MOST_DELETIONS", 2)
    log = LogInMemory()
    changelog = log.create()
    log.append(changelog, [put(key, None) for key in (b"a", b"b", b"c")])
    found = note(log, changelog, -1)
    assert found.fence.tail is None
    assert "more than 2 keys" in (found.lack or "")
