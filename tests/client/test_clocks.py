"""A host whose clock is wrong takes no snapshot that would not come back."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from snapstore import client
from snapstore.cli.exit_codes import REFUSED, exit_code
from snapstore.errors import ClockDiffersError
from snapstore.operations.clocks import later_clock, require_same_time
from snapstore.ports import ClockedStorage
from snapstore.storages.local import LocalStorage
from tests.support.fixtures import unpack

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


def off_by(ahead: timedelta) -> Callable[[], datetime]:
    return lambda: datetime.now(UTC) + ahead


class Server(LocalStorage):
    """A folder of a server that tells the time whoever asks, and is not written to for that."""

    def now(self, *, writing: bool) -> datetime | None:
        del writing
        return datetime.now(UTC)


def test_h75_a_snapshot_of_a_clock_that_is_ahead_is_refused_before_anything_is_sent(
    tmp_path: Path,
) -> None:
    unpack("ks440-alos", tmp_path / "state")
    url = (tmp_path / "repository").as_uri()
    client.create(url).close()
    before = sorted(path for path in (tmp_path / "repository").rglob("*") if path.is_file())
    with client.open(url, clock=off_by(2 * HOUR)) as ahead:
        with pytest.raises(ClockDiffersError, match="ahead of the storage's") as refused:
            ahead.snapshot(tmp_path / "state", tasks=["1_0"])
        assert abs(int(str(refused.value.facts["ahead_s"])) - 7200) < 60
        assert "set the clock right" in (refused.value.hint or "")
        assert exit_code(type(refused.value)) == REFUSED
        ahead.snapshot(tmp_path / "state", tasks=["1_0"], dry_run=True)
    after = sorted(path for path in (tmp_path / "repository").rglob("*") if path.is_file())
    assert after == before


@pytest.mark.parametrize("ahead", [59 * MINUTE, -2 * HOUR])
def test_h75_what_a_clock_within_the_margin_or_behind_it_takes_is_restored(
    tmp_path: Path, ahead: timedelta
) -> None:
    unpack("ks440-alos", tmp_path / "state")
    url = (tmp_path / "repository").as_uri()
    client.create(url).close()
    with client.open(url, clock=off_by(ahead)) as taking:
        assert not taking.snapshot(tmp_path / "state", tasks=["1_0"]).failed
    with client.open(url) as right:
        report = right.restore(
            target=tmp_path / "target",
            application="ks440-alos",
            allow_unchecked_changelog=True,
        )
    assert report.stores


def test_h75_with_fences_a_clock_that_is_behind_is_refused_as_well(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path.as_uri())
    assert isinstance(storage, ClockedStorage)
    for ahead in (59 * MINUTE, -59 * MINUTE):
        require_same_time(storage, off_by(ahead), fenced=True)
    require_same_time(storage, off_by(-2 * HOUR), fenced=False)
    with pytest.raises(ClockDiffersError, match=r"behind the storage's.*taken for younger"):
        require_same_time(storage, off_by(-2 * HOUR), fenced=True)
    assert [*storage.list("")] == []


@pytest.mark.parametrize(
    ("ahead", "later"), [(-10 * MINUTE, True), (-MINUTE, False), (10 * MINUTE, False)]
)
def test_deletions_are_given_up_by_the_later_of_the_two_clocks(
    tmp_path: Path, ahead: timedelta, later: bool
) -> None:
    clock = off_by(ahead)
    chosen = later_clock(Server(tmp_path.as_uri()), clock)
    shown = chosen() - clock()
    assert abs(shown - (-ahead if later else timedelta())) < timedelta(seconds=30)
    assert later_clock(LocalStorage(tmp_path.as_uri()), clock) is clock, "it is only read"
