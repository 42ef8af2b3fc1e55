"""Every kind of work, killed just before each of its changes to the disk, and run again."""

from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from snapstore.cli import main
from snapstore.errors import StoreNotFoundError
from snapstore.repository import keys
from snapstore.testing.kill import Victims
from tests.support import killed_replay, killed_work
from tests.support.killed_work import NIGHT, copied, grow_old, open_repository, require_whole
from tests.support.restore_lab import contents

PROJECT = Path(__file__).resolve().parents[2]
QUICK = 12
"""Points of each kind of work that the quick cut takes, spread evenly."""


@pytest.fixture(scope="module")
def victims() -> Iterator[Victims]:
    with Victims(PROJECT) as started:
        yield started


class Case(msgspec.Struct, frozen=True):
    """A kind of work; ``left`` looks at what a kill has left, ``done`` at what a re-run made."""

    name: str
    left: Callable[[Path, Path], None]
    done: Callable[[Path, Path], None]
    works: ModuleType = killed_work


def one_or_two_snapshots(template: Path, place: Path) -> None:
    assert require_whole(place) in ([100], [200, 100])


def both_snapshots(template: Path, place: Path) -> None:
    assert require_whole(place)[-2:] == [200, 100]
    assert len([*open_repository(place).storage.list(keys.BLOBS)]) == len(killed_work.FILES)


def the_old_or_the_new_task(template: Path, place: Path) -> None:
    before = contents(template / "target", place / "scratch")
    after = contents(template / "source", place / "scratch")
    left = contents(place / "target", place / "scratch")
    kept = "orders/0_1/rocksdb/kept"
    assert left[kept] == before[kept]
    assert left == before or left == {**after, kept: before[kept]}


def the_new_task(template: Path, place: Path) -> None:
    after = contents(template / "source", place / "scratch")
    left = contents(place / "target", place / "scratch")
    assert {name: left[name] for name in after} == after
    assert not [*(place / "target").glob("*/.snapstore")]


def the_kept_snapshots(template: Path, place: Path) -> None:
    assert require_whole(place)[:2] == [9, 8]


def nothing_but_the_kept_snapshots(template: Path, place: Path) -> None:
    for _ in range(8):
        grow_old(place, NIGHT)
        killed_work.sweep(str(place))
        assert require_whole(place) == [9, 8]
    repository = open_repository(place)
    named = set()
    for listed in repository.catalog.list_all().snapshots:
        manifest = repository.manifests.load(listed.id)
        named |= {keys.manifest(listed.id), keys.entry(listed)}
        named |= {keys.blob(file.blob) for file in manifest.files if file.blob}
    left = (
        {stat.key for stat in repository.storage.list("")} - named - {keys.MARKER, keys.MARKER_COPY}
    )
    assert {key for key in left if not key.startswith(keys.LEASES)} == set()
    assert not [*repository.storage.unfinished_uploads()]


def nothing_more_lost(template: Path, place: Path) -> None:
    repository = open_repository(place)
    ids = {each.listed_id for each in _stored_manifests(place)}
    assert len(ids) == 4
    assert repository.marker.format == 1


def all_that_can_be_had(template: Path, place: Path) -> None:
    assert require_whole(place) == [4, 3, 1]
    repository = open_repository(place)
    kept = [stat.key for stat in repository.storage.list(keys.QUARANTINE)]
    assert any(key.endswith("/catalog/orders/strange") for key in kept)
    assert len(kept) >= 3


def the_log_before_or_after(template: Path, place: Path) -> None:
    assert killed_replay.applied(place) in (killed_replay.SAVED - 1, killed_replay.END)


def the_whole_log(template: Path, place: Path) -> None:
    assert killed_replay.applied(place) == killed_replay.END
    assert not [*(place / "target").glob("*/.snapstore")]


def whole_memory_snapshots(template: Path, place: Path) -> None:
    killed_replay.memory_states(place)


def the_last_memory_snapshot(template: Path, place: Path) -> None:
    assert killed_replay.memory_states(place)[0] == killed_replay.MEMORY_ENDS[-1]


class _Stored(msgspec.Struct, frozen=True):
    listed_id: str


def _stored_manifests(place: Path) -> list[_Stored]:
    storage = open_repository(place).storage
    return [_Stored(keys.parse_manifest(stat.key)) for stat in storage.list(keys.MANIFESTS)]


CASES = [
    Case("snapshot", one_or_two_snapshots, both_snapshots),
    Case("restore", the_old_or_the_new_task, the_new_task),
    Case("sweep", the_kept_snapshots, nothing_but_the_kept_snapshots),
    Case("mend", nothing_more_lost, all_that_can_be_had),
    Case("replay", the_log_before_or_after, the_whole_log, killed_replay),
    Case("restore_with_replay", the_log_before_or_after, the_whole_log, killed_replay),
    Case("memory", whole_memory_snapshots, the_last_memory_snapshot, killed_replay),
]


def kill_each(victims: Victims, case: Case, tmp_path: Path, most: int | None) -> int:
    """Kill at ``most`` points, or at every one; returns how many there are."""
    work = f"{case.works.__name__}:{case.name}"
    template, place = tmp_path / "template", tmp_path / "place"
    template.mkdir()
    getattr(case.works, f"place_for_{case.name}")(template)
    whole = copied(template, place)
    count = len(victims.changes(work, {"folder": str(whole)}, below=whole))
    step = 1 if most is None else max(1, count // most)
    for number in range(1, count + 1, step):
        copied(template, place)
        killed = victims.kill(work, {"folder": str(place)}, below=place, at=number)
        case.left(template, place)
        # A prune or repair that was killed holds its lease for ten minutes more.
        grow_old(place, NIGHT)
        getattr(case.works, case.name)(str(place))
        case.done(template, place)
        assert killed, f"only {number - 1} changes"
    return count


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_killed_at_some_of_its_changes_it_loses_nothing_and_the_next_run_finishes(
    victims: Victims, case: Case, tmp_path: Path
) -> None:
    assert kill_each(victims, case, tmp_path, QUICK) > 20


@pytest.mark.slow
def test_a_task_that_a_killed_replay_has_moved_aside_is_named(
    victims: Victims, tmp_path: Path
) -> None:
    """On a file system that cannot exchange two directories."""
    template, place = tmp_path / "template", tmp_path / "place"
    template.mkdir()
    killed_replay.place_for_replay(template)
    work = "tests.support.killed_replay:replay_without_exchange"
    whole = copied(template, place)
    changes = victims.changes(work, {"folder": str(whole)}, below=whole)
    copied(template, place)
    last_rename = len(changes) - changes[::-1].index("os.rename '0_0'")
    assert victims.kill(work, {"folder": str(place)}, below=place, at=last_rename)
    with pytest.raises(StoreNotFoundError) as missing:
        killed_replay.replay(str(place))
    assert "orders/0_0 aside: fsck --repair puts it back" in (missing.value.hint or "")
    assert main.run(["fsck", "--repair", str(place / "target")], {"HOME": str(place)}) == 0
    the_log_before_or_after(template, place)
    killed_replay.replay(str(place))
    the_whole_log(template, place)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_killed_at_any_of_its_changes_it_loses_nothing_and_the_next_run_finishes(
    victims: Victims, case: Case, tmp_path: Path
) -> None:
    kill_each(victims, case, tmp_path, None)
