"""Leases: one holder at a time, and nothing to clear up after any end."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from threading import Barrier

import pytest

from snapstore.errors import IntegrityError, RunInProgressError, StorageError
from snapstore.repository import Leases, keys
from snapstore.storages.local import LocalStorage
from snapstore.testing.clocks import DatedStorage, Dates, HandClock
from snapstore.testing.faults import Fault, FaultyStorage, Instead, timed_out
from snapstore.testing.turns import Program

TTL = timedelta(minutes=10)


class LeaseLab:
    """Holders that share one storage and one passing time."""

    def __init__(self, folder: Path) -> None:
        self.clock = HandClock()
        self.storage = DatedStorage(LocalStorage(folder.as_uri()), Dates(self.clock))
        self._began = self.clock()

    def monotonic(self) -> float:
        return (self.clock() - self._began).total_seconds()

    def leases(self, holder: str = "a", storage: object = None) -> Leases:
        return Leases(
            storage or self.storage,  # type: ignore[arg-type]
            "upkeep",
            holder=holder,
            clock=self.clock,
            monotonic=self.monotonic,
        )

    def objects(self) -> list[str]:
        prefix = f"{keys.LEASES}upkeep/"
        return [stat.key.removeprefix(prefix).lstrip("0") for stat in self.storage.list(prefix)]


@pytest.fixture
def lab(tmp_path: Path) -> LeaseLab:
    return LeaseLab(tmp_path / "repository")


def test_a_second_holder_is_told_who_is_at_it_and_since_when(lab: LeaseLab) -> None:
    with lab.leases("process 7 on a").held():
        lab.clock.advance(timedelta(minutes=9))
        with (
            pytest.raises(RunInProgressError, match=r"process 7 on a .* 2026-05-04T12:00:00Z"),
            lab.leases("b").held(),
        ):
            pass


def test_a_lease_that_was_let_go_is_free_at_once(lab: LeaseLab) -> None:
    for holder in "abcdef":
        with lab.leases(holder).held():
            pass
    assert lab.objects() == ["6", "6.free"]


def test_a_lease_is_let_go_when_the_work_fails(lab: LeaseLab) -> None:
    with pytest.raises(IntegrityError), lab.leases().held():
        raise IntegrityError("damage")
    with lab.leases("b").held():
        pass


def test_the_lease_of_a_dead_holder_ends_by_itself(lab: LeaseLab) -> None:
    dead = lab.leases("dead").held()
    dead.__enter__()
    lab.clock.advance(TTL)
    with lab.leases("b").held() as lease:
        assert lease.former is not None
        assert lease.storage_now == lab.clock()
    assert lab.objects() == ["2", "2.free"]


def test_long_work_keeps_its_lease(lab: LeaseLab) -> None:
    with lab.leases("a").held() as lease:
        for _ in range(20):
            lab.clock.advance(timedelta(minutes=5))
            lease.keep()
            with pytest.raises(RunInProgressError), lab.leases("b").held():
                pass


def test_a_holder_that_slept_and_was_overtaken_finds_out(lab: LeaseLab) -> None:
    with lab.leases("a").held() as lease:
        lab.clock.advance(timedelta(hours=1))
        with lab.leases("b").held(), pytest.raises(RunInProgressError, match="b has been at"):
            lease.keep()
        with pytest.raises(RunInProgressError):
            lease.keep()


def test_a_holder_that_slept_and_was_not_overtaken_goes_on(lab: LeaseLab) -> None:
    with lab.leases("a").held() as lease:
        lab.clock.advance(timedelta(hours=1))
        lease.keep()
        with pytest.raises(RunInProgressError), lab.leases("b").held():
            pass


def test_one_that_was_overtaken_leaves_nothing_behind_when_it_lets_go_late(lab: LeaseLab) -> None:
    late = lab.leases("a").held()
    late.__enter__()
    lab.clock.advance(timedelta(hours=1))
    with lab.leases("b").held():
        pass
    with lab.leases("c").held():
        pass
    late.__exit__(None, None, None)
    assert lab.objects() == ["1.free", "3", "3.free"]
    with lab.leases("d").held():
        pass
    assert lab.objects() == ["4", "4.free"]


def test_of_many_that_want_it_at_once_one_gets_it(lab: LeaseLab) -> None:
    start, end = Barrier(8), Barrier(8)

    def race(number: int) -> bool:
        start.wait()
        try:
            with lab.leases(f"h{number}").held():
                end.wait()
                return True
        except RunInProgressError:
            end.wait()
            return False

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(race, range(8))) == 1


def test_a_slow_one_that_takes_a_number_of_long_ago_does_not_hold_it(lab: LeaseLab) -> None:
    dead = lab.leases("dead").held()
    dead.__enter__()
    lab.clock.advance(timedelta(hours=1))

    def take(storage: object) -> None:
        with lab.leases("slow", storage).held():
            pass

    slow = Program(lab.storage, take)
    assert slow.go_on_to("put", f"{keys.LEASES}upkeep/")
    with lab.leases("b").held():
        pass
    with lab.leases("c").held():
        slow.finish()
        assert isinstance(slow.error, RunInProgressError)
        assert "3" in lab.objects()
        assert "2" not in lab.objects()


def test_a_storage_that_fails_gives_no_lease_and_holds_nobody_up_for_long(lab: LeaseLab) -> None:
    broken = FaultyStorage(lab.storage, [Fault("list", Instead(timed_out()), call=2)])
    with pytest.raises(StorageError), lab.leases("a", broken).held():
        pass
    lab.clock.advance(TTL)
    with lab.leases("b").held():
        pass


def test_letting_go_may_fail_without_a_word_since_the_lease_ends_by_itself(lab: LeaseLab) -> None:
    deaf = FaultyStorage(lab.storage, [Fault("put", Instead(timed_out()), call=3)])
    with lab.leases("a", deaf).held():
        pass
    with pytest.raises(RunInProgressError), lab.leases("b").held():
        pass
    lab.clock.advance(TTL)
    with lab.leases("b").held():
        pass
