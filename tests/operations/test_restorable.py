"""One rule says whether a snapshot can be restored, and every verb goes by it.

The stores have not applied all of their changelog when they are saved, as those of a running
application; compaction takes tombstones away afterwards, and they are restored then.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from msgspec import structs

from snapstore import client
from snapstore.client import Snapstore
from snapstore.config import load_config
from snapstore.config.schema import StoreConfig
from snapstore.errors import RefusedError, TombstoneHorizonError
from snapstore.model.identity import ChangelogPartition
from snapstore.model.snapshot import Deletion
from snapstore.operations import tail as tails
from snapstore.operations.capture_choice import CaptureMode
from snapstore.operations.replay_plan import ReplayGoal
from snapstore.operations.snapshot_report import StoreOutcome
from snapstore.testing.changelog_contract import Written
from tests.support.log_in_memory import DAY_MS, LogInMemory, LogRegistry
from tests.support.rocksdb import raw_contents
from tests.support.state_dirs import make_database
from tests.support.streams_store import APPLICATION, Pairs, make_key_value, make_window, topic

STORE, WINDOW, TASK = "counts", "window", "0_0"
INTERVAL_MS = 3_600_000
HOUR = timedelta(hours=1)

Rows = dict[bytes, bytes]
Change = tuple[bytes, bytes | None]


class Lab:
    """An application with a key-value store; ``ahead`` is by how much the clock is ahead."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = LogInMemory()
        self.changelog: ChangelogPartition = self.log.create_as(topic(STORE))
        self.state_dir = folder / "state"
        self.target = folder / "target"
        self.changes: list[Change] = []
        self.ahead = timedelta()
        self.config = load_config(
            env={
                "SNAPSTORE_REPOSITORY": str(folder / "repository"),
                "SNAPSTORE_KAFKA_BOOTSTRAP": "memory:1",
                "SNAPSTORE_CACHE_DIR": str(folder / "cache"),
                "SNAPSTORE_APPLICATION": APPLICATION,
                "HOME": str(folder),
            }
        )
        client.create(config=self.config).close()

    def clock(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    def open(self) -> Snapstore:
        return client.open(config=self.config, clock=self.clock, registry=LogRegistry(self.log))

    def write(self, *changes: Change) -> None:
        now_ms = int(self.clock().timestamp() * 1000)
        self.log.append(self.changelog, [Written(key, value, now_ms) for key, value in changes])
        self.changes += changes

    def keep(self, applied: int) -> None:
        """Leave a closed store that has applied the log up to that offset."""
        pairs = Pairs(pairs=fold(self.changes[: applied + 1]), applied_offset=applied)
        make_key_value(self.state_dir, TASK, STORE, pairs)

    def snapshot(
        self, capture: CaptureMode | None = None, *, skip_unchanged: bool = False
    ) -> StoreOutcome:
        with self.open() as store:
            report = store.snapshot(self.state_dir, capture=capture, skip_unchanged=skip_unchanged)
        (outcome,) = report.outcomes
        assert outcome.error is None, outcome.error
        return outcome

    def restore(self, replay: ReplayGoal | None = None) -> Rows:
        """Restore, let the application replay, and return what it holds then."""
        with self.open() as store:
            report = store.restore(target=self.target, replace=True, replay=replay)
        (restored,) = report.stores
        (start,) = restored.resume_offsets.values()
        folder = self.target / APPLICATION / TASK / "rocksdb" / STORE
        rows = raw_contents(folder, self.folder)["default"]
        return replayed(self.log, self.changelog, rows, start)

    def verdicts(self) -> dict[str, str]:
        """What status, drill and restore, dry and for real, say of the newest snapshot."""
        with self.open() as store:
            (fresh,) = store.status().stores
            scratch = self.folder / "drills"
            scratch.mkdir(exist_ok=True)
            (drilled,) = store.drill(scratch=scratch).stores
            said: dict[str, str] = {"status": fresh.standing, "drill": drilled.outcome}
            try:
                store.restore(target=self.target, replace=True, dry_run=True)
                said["plan"] = "done"
                store.restore(target=self.target, replace=True)
                said["restore"] = "done"
            except RefusedError as error:
                said["plan"] = said["restore"] = error.code
        return said


def fold(changes: Sequence[Change]) -> Rows:
    content: Rows = {}
    for key, value in changes:
        if value is None:
            content.pop(key, None)
        else:
            content[key] = value
    return content


def replayed(
    log: LogInMemory, changelog: ChangelogPartition, rows: Mapping[bytes, bytes], start: int
) -> Rows:
    stop = log.inspect(changelog, now=datetime.now(UTC)).log_end
    with log.read(changelog, start, stop) as tail:
        records = [record for batch in tail for record in batch]
    return fold([*rows.items(), *((record.key or b"", record.value) for record in records)])


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    made = Lab(tmp_path)
    made.write(*((b"k%02d" % number, b"v%d" % number) for number in range(40)))
    return made


def delete_in_the_tail(lab: Lab) -> None:
    """The store is at offset 39; five keys are deleted, and one of them is written again."""
    lab.keep(39)
    lab.write(*((b"k%02d" % number, None) for number in range(5)), (b"k03", b"new"), (b"z", b"1"))


def compact_all(lab: Lab) -> None:
    lab.log.compact(lab.changelog, drop_tombstones=True)


@pytest.mark.parametrize("capture", [None, "disk"])
@pytest.mark.parametrize("replay", [None, ReplayGoal()], ids=["application", "snapstore"])
def test_h01_the_first_snapshot_of_a_store_that_is_behind_comes_back(
    lab: Lab, capture: CaptureMode | None, replay: ReplayGoal | None
) -> None:
    """Nobody has ever seen the log end where the store is: the deletions are noted with it."""
    delete_in_the_tail(lab)
    outcome = lab.snapshot(capture)
    assert (outcome.unrestorable, outcome.source) == (None, "closed")
    assert set(lab.verdicts().values()) <= {"usable", "equal", "done"}

    compact_all(lab)
    lab.write((b"later", b"1"))

    assert lab.restore(replay) == fold(lab.changes)
    assert lab.restore(replay) == fold(lab.changes)


def test_h01_a_quiet_store_stays_restorable_snapshot_after_snapshot(lab: Lab) -> None:
    """Its offset does not move; each snapshot goes on from what the one before has noted."""
    delete_in_the_tail(lab)
    for number in range(5):
        assert lab.snapshot().unrestorable is None
        compact_all(lab)
        lab.ahead += 20 * HOUR
        lab.write((b"k%02d" % (10 + number), None), (b"k%02d" % (20 + number), b"w"))
    assert lab.snapshot().unrestorable is None
    compact_all(lab)
    assert lab.restore() == fold(lab.changes)


def test_h01_a_store_whose_tail_lacks_records_is_made_from_the_changelog(lab: Lab) -> None:
    delete_in_the_tail(lab)
    compact_all(lab)
    outcome = lab.snapshot()
    assert (outcome.unrestorable, outcome.source) == (None, "changelog")
    assert "hold no record any more" in outcome.remarks[0]
    assert lab.restore() == fold(lab.changes)


def test_h01_a_snapshot_that_cannot_be_restored_is_said_to_be_so_at_once(lab: Lab) -> None:
    delete_in_the_tail(lab)
    compact_all(lab)
    outcome = lab.snapshot("disk")
    assert outcome.status == "stored"
    assert isinstance(outcome.unrestorable, TombstoneHorizonError)
    assert "offset 39" in outcome.unrestorable.message
    assert lab.verdicts() == {
        "status": "unusable",
        "drill": "refused",
        "restore": "tombstone_horizon",
        "plan": "tombstone_horizon",
    }
    for dry_run in (True, False):
        with lab.open() as store, pytest.raises(TombstoneHorizonError, match="compacted away"):
            store.restore(target=lab.target, replay=ReplayGoal(), dry_run=dry_run)


def nothing_follows(lab: Lab) -> None:
    lab.keep(39)


def values_follow(lab: Lab) -> None:
    lab.keep(20)


def deleted_and_compacted(lab: Lab) -> None:
    delete_in_the_tail(lab)
    compact_all(lab)


def trimmed(lab: Lab) -> None:
    lab.keep(20)
    lab.log.cut_start(lab.changelog, 30)


def hidden(lab: Lab) -> None:
    lab.keep(39)
    lab.log.begin_transaction(lab.changelog, 2)


def short_lived(lab: Lab) -> None:
    delete_in_the_tail(lab)
    lab.log.keep_tombstones(lab.changelog, 1000)


CASES = (
    nothing_follows,
    values_follow,
    delete_in_the_tail,
    deleted_and_compacted,
    trimmed,
    hidden,
    short_lived,
)


@pytest.mark.parametrize("capture", ["auto", "disk", "roll-forward", "changelog"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.__name__))
def test_h01_all_verbs_agree(
    lab: Lab, case: Callable[[Lab], None], capture: CaptureMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tails, "_PATIENCE_S", 0.1)
    case(lab)
    try:
        outcome = lab.snapshot(capture)
    except AssertionError:
        return  # nothing was saved
    said = lab.verdicts()
    if outcome.unrestorable is None:
        assert set(said.values()) <= {"usable", "equal", "partly", "done"}, said
        compact_all(lab)
        if case is not trimmed:
            assert lab.restore() == fold(lab.changes)
    elif outcome.unrestorable.facts.get("by_replay"):
        assert set(said.values()) <= {"usable", "equal", "partly", "done"}, said
    else:
        assert not set(said.values()) & {"usable", "done"}, said


def test_old_readers_go_by_what_they_know(lab: Lab) -> None:
    """They would restore without the deletions: what they read must not let them."""
    delete_in_the_tail(lab)
    outcome = lab.snapshot()
    assert outcome.snapshot is not None
    (position,) = outcome.snapshot.description.positions
    assert position.fence is not None
    assert position.fence.behind_since is None
    assert position.fence.tail is not None
    with lab.open() as store:
        manifest = store.repository.manifests.load(outcome.snapshot.id)
    assert [each.key for each in manifest.deletions_in(lab.changelog)] == [
        b"k00",
        b"k01",
        b"k02",
        b"k04",
    ]


def test_a_snapshot_without_a_note_is_proved_by_its_tail_when_it_is_restored(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those of older versions are. What the tail deletes is deleted before it gets into place,
    since it may be compacted away before the application has read it."""
    delete_in_the_tail(lab)
    with monkeypatch.context() as patch:
        patch.setattr(tails, "MOST_RECORDS", 0)
        assert lab.snapshot("disk").unrestorable is not None
    assert set(lab.verdicts().values()) <= {"usable", "equal", "done"}
    with lab.open() as store:
        report = store.restore(target=lab.target, replace=True)
    assert any("nothing dates what follows offset 39" in note for note in report.notes)
    compact_all(lab)
    folder = lab.target / APPLICATION / TASK / "rocksdb" / STORE
    rows = raw_contents(folder, lab.folder)["default"]
    assert replayed(lab.log, lab.changelog, rows, 40) == fold(lab.changes)
    assert lab.verdicts()["restore"] == "tombstone_horizon"


def test_h57_the_least_retention_that_any_snapshot_has_seen_counts(lab: Lab) -> None:
    lab.keep(30)
    lab.write((b"k32", b"again"))
    lab.snapshot()
    lab.ahead += HOUR
    lab.log.keep_tombstones(lab.changelog, 3_600_000)
    lab.snapshot()
    lab.log.keep_tombstones(lab.changelog, DAY_MS)
    lab.ahead += HOUR
    with lab.open() as store:
        lab.log.compact(lab.changelog)
        for listed in store.list(application=APPLICATION).snapshots:
            with pytest.raises(TombstoneHorizonError):
                store.restore([listed.id], target=lab.target)


def test_an_unchanged_store_is_saved_anew_before_its_snapshot_goes_out_of_use(lab: Lab) -> None:
    delete_in_the_tail(lab)
    lab.snapshot()
    lab.ahead += 6 * HOUR
    assert lab.snapshot(skip_unchanged=True).status == "unchanged"
    lab.ahead += 12 * HOUR
    assert lab.snapshot(skip_unchanged=True).status == "stored"
    lab.ahead += 12 * HOUR
    assert lab.restore() == fold(lab.changes)


def test_a_replay_to_an_earlier_offset_deletes_nothing_that_comes_later(lab: Lab) -> None:
    delete_in_the_tail(lab)
    lab.snapshot()
    with pytest.raises(TombstoneHorizonError):
        lab.restore(ReplayGoal(to_offset=41))


def test_h01_what_only_a_replay_makes_right_is_replayed_without_being_asked(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More keys are deleted than are noted: restore reads all of the tail itself, and says so."""
    delete_in_the_tail(lab)
    monkeypatch.setattr(tails, "MOST_DELETIONS", 2)
    outcome = lab.snapshot("disk")
    assert outcome.unrestorable is not None
    assert outcome.unrestorable.facts["by_replay"] is True
    assert set(lab.verdicts().values()) <= {"usable", "equal", "done"}
    with lab.open() as store:
        report = store.restore(target=lab.target, replace=True)
    (restored,) = report.stores
    assert any("restore does" in note for note in report.notes)
    assert (restored.records_to_replay, sum(each.records for each in restored.replayed)) == (0, 7)
    compact_all(lab)
    rows = raw_contents(lab.target / APPLICATION / TASK / "rocksdb" / STORE, lab.folder)
    assert rows["default"] == fold(lab.changes)
    assert lab.verdicts()["restore"] == "tombstone_horizon"


def window_key(key: bytes, hour: int) -> bytes:
    return key + (hour * INTERVAL_MS).to_bytes(8, "big") + bytes(4)


def test_h01_deletions_go_to_the_segment_that_has_not_applied_them(tmp_path: Path) -> None:
    """One segment is behind, another has seen the deletion and a newer value."""
    lab = Lab(tmp_path)
    lab.changelog = lab.log.create_as(topic(WINDOW))
    lab.write(
        (window_key(b"a", 1), b"a1"),
        (window_key(b"b", 2), b"b1"),
        (window_key(b"c", 1), b"c1"),
        (window_key(b"a", 1), None),
        (window_key(b"b", 2), None),
        (window_key(b"b", 2), b"b2"),
        (window_key(b"c", 3), None),
    )
    first = {window_key(b"a", 1): b"a1", window_key(b"c", 1): b"c1"}
    segments = {
        1 * INTERVAL_MS: Pairs(pairs=first, applied_offset=2),
        2 * INTERVAL_MS: Pairs(pairs={window_key(b"b", 2): b"b2"}, applied_offset=5),
    }
    make_window(lab.state_dir, TASK, WINDOW, segments)
    outcome = lab.snapshot()
    assert outcome.unrestorable is None
    assert outcome.snapshot is not None
    with lab.open() as store:
        manifest = store.repository.manifests.load(outcome.snapshot.id)
        assert manifest.deletions_in(lab.changelog) == (
            Deletion(window_key(b"a", 1), 3),
            Deletion(window_key(b"c", 3), 6),
        )
        lab.log.compact(lab.changelog, drop_tombstones=True)
        store.restore(target=lab.target)
    rows: Rows = {}
    for name in (1, 2):
        folder = lab.target / APPLICATION / TASK / WINDOW / f"{WINDOW}.{name * INTERVAL_MS}"
        content = raw_contents(folder, tmp_path)
        rows |= content["default"]
        assert content["offsets"][f"{topic(WINDOW)}-0".encode()] == (2).to_bytes(8, "big")
    assert not (lab.target / APPLICATION / TASK / WINDOW / f"{WINDOW}.{3 * INTERVAL_MS}").exists()
    assert replayed(lab.log, lab.changelog, rows, 3) == fold(lab.changes)


def test_h17_a_store_that_has_applied_offset_0_is_not_behind(tmp_path: Path) -> None:
    fresh = Lab(tmp_path)
    fresh.write((b"a", b"1"))
    fresh.keep(0)
    fresh.snapshot()
    with fresh.open() as store:
        (status,) = store.status(max_lag_records=0).stores
        assert (status.lag_records, status.over) == (0, ())
        (restored,) = store.restore(target=fresh.target).stores
    assert (restored.records_to_replay, [*restored.resume_offsets.values()]) == (0, [1])


def test_h55_a_snapshot_of_what_a_trimmed_changelog_has_left_is_not_preferred(lab: Lab) -> None:
    """The rows of the first records are in the complete one only."""
    lab.keep(39)
    lab.snapshot("disk")
    lab.write((b"k39", b"new"))
    whole = fold(lab.changes)
    lab.log.cut_start(lab.changelog, 30)

    (lab.folder / "other").mkdir()
    other = Lab(lab.folder / "other")
    other.log, other.changes = lab.log, lab.changes
    other.keep(39)
    alone = other.snapshot("changelog")
    assert alone.snapshot is not None
    assert not alone.snapshot.description.complete
    assert any("begins at 30" in remark for remark in alone.remarks), alone.remarks
    again = other.snapshot("changelog")
    assert again.snapshot is not None
    assert not again.snapshot.description.complete
    with other.open() as store:
        (fresh,) = store.status().stores
        assert any("not complete" in advice for advice in fresh.advice)
        report = store.restore(target=other.target)
        assert any("not complete" in note for note in report.notes)

    second = lab.snapshot("changelog")
    assert second.snapshot is not None
    assert second.snapshot.description.complete
    assert lab.restore() == whole


def test_h55_an_older_complete_snapshot_is_taken_before_one_that_lacks_rows(lab: Lab) -> None:
    lab.keep(39)
    lab.snapshot("disk")
    lab.write((b"k39", b"new"))
    with lab.open() as store:
        (complete,) = store.list(application=APPLICATION).snapshots
        snapshot = store.load(complete)
        later = snapshot.description.captured_at + timedelta(milliseconds=1)
        lacking = msgspec.structs.replace(snapshot.description, complete=False, captured_at=later)
        store.repository.catalog.publish(
            msgspec.structs.replace(
                snapshot,
                description=lacking,
                id=store.repository.manifests.put(
                    msgspec.structs.replace(
                        store.repository.manifests.load(complete.id), description=lacking
                    )
                ),
            )
        )
        (fresh,) = store.status().stores
        assert (fresh.standing, fresh.passed_over[0].code) == ("older", "incomplete")
        (restored,) = store.restore(target=lab.target).stores
    assert restored.snapshot_id == complete.id
    assert [each.code for each in restored.skipped] == ["incomplete"]


@pytest.mark.parametrize("rules", [{}, {"format": "timestamped"}], ids=["nothing", "format"])
def test_a_global_store_that_was_never_flushed_is_refused_with_a_way_out(
    lab: Lab, rules: dict[str, str]
) -> None:
    """What is advised ends with exit code 0: the application fills it from its topic."""
    lab.keep(39)
    folder = lab.state_dir / APPLICATION / "global" / "rocksdb" / "rates"
    make_database(folder, {"default": {}, "offsets": {b"status": (1).to_bytes(8, "big")}})
    config = lab.config
    for given, saved in ((rules, False), (rules | {"skip": True}, True)):
        stores = {"rates": msgspec.convert(given, StoreConfig)}
        lab.config = structs.replace(
            config, sections=structs.replace(config.sections, stores=stores)
        )
        with lab.open() as store:
            report = store.snapshot(lab.state_dir)
        assert bool(report.failed) is not saved, report.outcomes
        hints = [each.error.hint or "" for each in report.failed if each.error is not None]
        assert all("stores.rates.skip" in hint for hint in hints)
