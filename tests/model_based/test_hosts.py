"""Writers, pruners, repairs, crashes, faults and clock jumps on several hosts, in any order.

After every step every listed snapshot can be restored; in the end nothing is left that no snapshot
needs. Programs stand still at each call of the storage, so that hours may pass, and others act,
between any two of them. A call that was on its way for more than half an hour never arrives.
"""

import os
from datetime import datetime, timedelta

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from snapstore.errors import ManifestInvalidError, SnapstoreError
from snapstore.model.retention import RetentionPolicy
from snapstore.operations.snapshot_report import SnapshotReport
from snapstore.repository import keys
from snapstore.testing.faults import Afterwards, Instead, Method, slow_down, timed_out
from snapstore.testing.turns import Program
from tests.support.fleet import Fleet, Report

STEPS_PER_EXAMPLE = 50
CONTENTS = [f"content {number} ".encode() * 20 for number in range(6)]
STORES = ("counts", "totals")
MOST_PROGRAMS = 4
PLACES: tuple[tuple[Method, str], ...] = (
    ("put", keys.CATALOG),
    ("put", keys.CATALOG),
    ("put_file", keys.BLOBS),
    ("put", keys.MANIFESTS),
    ("list", keys.BLOBS),
    ("list", keys.CATALOG),
    ("delete", keys.BLOBS),
    ("delete", keys.CONDEMNED),
    ("put", keys.CONDEMNED),
    ("put", keys.SWEPT),
)
"""Calls just before which it matters what others do."""

policies = st.builds(
    RetentionPolicy,
    keep_last=st.integers(0, 2),
    keep_within=st.sampled_from([None, timedelta(hours=1), timedelta(days=2)]),
    keep_daily=st.integers(0, 2),
)
pauses = st.sampled_from(
    [timedelta(minutes=n) for n in (1, 9, 11, 30, 90)]
    + [timedelta(hours=n) for n in (6, 12, 23, 24, 25, 26, 50)]
)
jumps = st.sampled_from(
    [timedelta(hours=n) for n in (-800, -30, 30, 800)]
    + [timedelta(minutes=n) for n in (-50, -4, 4, 50)]
    + [timedelta(0)] * 8
)
outcomes = st.sampled_from(
    [None] * 12 + [Instead(slow_down()), Instead(timed_out()), Afterwards(timed_out())]
)


class Hosts(RuleBasedStateMachine):
    """One history."""

    pruners_do_not_wait = False
    steps = 0

    def __init__(self) -> None:
        super().__init__()
        self.fleet = Fleet()
        if self.pruners_do_not_wait:
            self.fleet.disagree_on_the_longest_run()
        self.programs: list[Program[Report]] = []
        self.waiting: dict[Program[Report], datetime] = {}

    @initialize()
    def begin(self) -> None:
        for host in self.fleet.hosts:
            for store in STORES:
                self.fleet.change(host, store, {"1.sst": CONTENTS[0], "2.sst": CONTENTS[1]})

    @rule(
        host=st.integers(0, 2),
        store=st.sampled_from(STORES),
        files=st.dictionaries(
            st.sampled_from(["1.sst", "2.sst", "3.sst"]),
            st.integers(0, len(CONTENTS) - 1),
            min_size=1,
        ),
    )
    def the_application_goes_on(self, host: int, store: str, files: dict[str, int]) -> None:
        chosen = self.fleet.hosts[host]
        contents = {name: CONTENTS[number] for name, number in files.items()}
        self.fleet.change(chosen, store, contents)

    @precondition(lambda self: len(self.programs) < MOST_PROGRAMS)
    @rule(
        host=st.integers(0, 2),
        store=st.sampled_from(STORES),
        lag=st.booleans(),
        skip=st.booleans(),
    )
    def a_snapshot_begins(self, host: int, store: str, lag: bool, skip: bool) -> None:
        chosen = self.fleet.hosts[host]
        self.begun(self.fleet.save(chosen, store, lag=lag, skip_unchanged=skip))

    @rule(host=st.integers(0, 2), store=st.sampled_from(STORES))
    def a_whole_snapshot_is_taken(self, host: int, store: str) -> None:
        program = self.fleet.save(self.fleet.hosts[host], store)
        program.finish()
        self.check(program)

    @precondition(lambda self: len(self.programs) < MOST_PROGRAMS)
    @rule(host=st.integers(0, 2), policy=policies, lag=st.booleans())
    def a_prune_begins(self, host: int, policy: RetentionPolicy, lag: bool) -> None:
        self.begun(self.fleet.prune(self.fleet.hosts[host], policy, lag=lag))

    @rule(host=st.integers(0, 2), policy=policies)
    def a_whole_prune_is_done(self, host: int, policy: RetentionPolicy) -> None:
        program = self.fleet.prune(self.fleet.hosts[host], policy)
        program.finish()
        self.check(program)

    @precondition(lambda self: len(self.programs) < MOST_PROGRAMS)
    @rule(host=st.integers(0, 2), lag=st.booleans())
    def a_repair_begins(self, host: int, lag: bool) -> None:
        self.begun(self.fleet.repair(self.fleet.hosts[host], lag=lag))

    @rule(host=st.integers(0, 2), number=st.integers(0, 9))
    def somebody_deletes_a_snapshot(self, host: int, number: int) -> None:
        self.fleet.delete(self.fleet.hosts[host], number)

    @precondition(lambda self: self.programs)
    @rule(
        number=st.integers(0, MOST_PROGRAMS - 1),
        calls=st.lists(outcomes, min_size=1, max_size=12),
    )
    def a_program_goes_on(self, number: int, calls: list[Instead | Afterwards | None]) -> None:
        program = self.programs[number % len(self.programs)]
        self.arrive(program)
        for outcome in calls:
            if program.ended:
                break
            program.step(outcome)
        self.settle(program)

    @precondition(lambda self: self.programs)
    @rule(number=st.integers(0, MOST_PROGRAMS - 1), place=st.sampled_from(PLACES))
    def a_program_goes_on_to(self, number: int, place: tuple[Method, str]) -> None:
        program = self.programs[number % len(self.programs)]
        self.arrive(program)
        program.go_on_to(*place)
        self.settle(program)

    @precondition(lambda self: self.programs)
    @rule(number=st.integers(0, MOST_PROGRAMS - 1))
    def a_program_runs_to_its_end(self, number: int) -> None:
        program = self.programs[number % len(self.programs)]
        self.arrive(program)
        program.finish()
        self.settle(program)

    @precondition(lambda self: self.programs)
    @rule(number=st.integers(0, MOST_PROGRAMS - 1))
    def a_host_crashes(self, number: int) -> None:
        program = self.programs.pop(number % len(self.programs))
        program.crash()

    @rule(pause=pauses)
    def time_passes(self, pause: timedelta) -> None:
        self.fleet.clock.advance(pause)

    @rule(
        host=st.integers(0, 2),
        policy=policies,
        times=st.integers(1, 4),
        pause=st.sampled_from([timedelta(hours=2), timedelta(hours=8), timedelta(hours=26)]),
    )
    def time_passes_with_prunes(
        self, host: int, policy: RetentionPolicy, times: int, pause: timedelta
    ) -> None:
        for _ in range(times):
            self.fleet.clock.advance(pause)
            self.a_whole_prune_is_done(host, policy)
            self.fleet.require_every_snapshot_whole()

    @rule(host=st.integers(0, 2), ahead=jumps)
    def a_clock_jumps(self, host: int, ahead: timedelta) -> None:
        self.fleet.hosts[host].ahead = ahead

    @invariant()
    def every_listed_snapshot_can_be_restored(self) -> None:
        Hosts.steps += 1
        self.fleet.require_every_snapshot_whole()

    def begun(self, program: Program[Report]) -> None:
        self.programs.append(program)
        self.settle(program)

    def arrive(self, program: Program[Report]) -> None:
        """Lose the call that a program stands at if that took too long."""
        began = self.waiting.get(program, self.fleet.clock())
        if not program.ended and self.fleet.clock() - began > timedelta(minutes=30):
            program.step(Instead(timed_out()))

    def settle(self, program: Program[Report]) -> None:
        self.waiting[program] = self.fleet.clock()
        if program.ended:
            self.programs.remove(program)
            self.check(program)

    def check(self, program: Program[Report]) -> None:
        """A program ends well, or with an error of ours."""
        if program.error is not None and not isinstance(program.error, SnapstoreError):
            raise program.error

    def teardown(self) -> None:
        try:
            for program in self.programs:
                program.crash()
            self.end_well()
        finally:
            self.fleet.close()

    def end_well(self) -> None:
        """The clocks are right again, every store is saved once more, and daily prunes go on."""
        fleet = self.fleet
        for host in fleet.hosts:
            host.ahead = timedelta(0)
        for number in range(9):
            fleet.clock.advance(timedelta(days=40) if number == 0 else timedelta(hours=26))
            if number == 0:
                for store in STORES:
                    saved = fleet.save(fleet.hosts[0], store)
                    saved.finish()
                    assert saved.error is None
            pruned = fleet.prune(fleet.hosts[1], RetentionPolicy(keep_last=1))
            pruned.finish()
            assert pruned.error is None
            fleet.require_every_snapshot_whole()
        fleet.require_nothing_left_over()


def histories(count: int, *, shrink: bool = True) -> settings:
    phases = [Phase.generate, *([Phase.shrink] if shrink else [])]
    return settings(
        max_examples=count,
        stateful_step_count=STEPS_PER_EXAMPLE,
        deadline=None,
        database=None,
        print_blob=True,
        phases=phases,
        suppress_health_check=[*HealthCheck],
    )


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_no_history_loses_a_listed_snapshot_or_keeps_bytes_that_none_needs() -> None:
    before = Hosts.steps
    run_state_machine_as_test(Hosts, settings=histories(60))
    assert Hosts.steps - before >= 2000


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_no_long_history_does_either() -> None:
    examples = int(os.environ.get("SNAPSTORE_MODEL_EXAMPLES", "1500"))
    run_state_machine_as_test(Hosts, settings=histories(examples))


class HastyPruners(Hosts):
    """The same, with pruners that do not wait for those who write."""

    pruners_do_not_wait = True

    def end_well(self) -> None:
        """Nothing is asked of the end."""


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_the_model_finds_out_that_pruners_do_not_wait_for_writers() -> None:
    with pytest.raises((AssertionError, ManifestInvalidError), match=r"lost|missing"):
        run_state_machine_as_test(HastyPruners, settings=histories(5000, shrink=False))


def test_a_snapshot_of_which_bytes_were_deleted_does_not_pass_the_check() -> None:
    fleet = Fleet()
    fleet.disagree_on_the_longest_run()
    writer, pruner = fleet.hosts[:2]
    fleet.change(pruner, "counts", {"1.sst": CONTENTS[1]})
    fleet.save(pruner, "counts").finish()
    fleet.change(writer, "counts", {"1.sst": CONTENTS[0]})
    saved = fleet.save(writer, "counts")
    assert saved.go_on_to("put", keys.CATALOG)
    for _ in range(4):
        fleet.clock.advance(timedelta(hours=2))
        fleet.prune(pruner, RetentionPolicy(keep_last=1)).finish()
    saved.finish()
    with pytest.raises((AssertionError, ManifestInvalidError), match=r"lost|missing"):
        fleet.require_every_snapshot_whole()
    fleet.close()


@pytest.mark.parametrize("held_up_at", [keys.MANIFESTS, keys.CATALOG])
def test_the_same_is_refused_where_pruners_wait(held_up_at: str) -> None:
    """Also where the process slept after its last look at the clock."""
    fleet = Fleet()
    writer, pruner = fleet.hosts[:2]
    fleet.change(pruner, "counts", {"1.sst": CONTENTS[1]})
    fleet.save(pruner, "counts").finish()
    fleet.change(writer, "counts", {"1.sst": CONTENTS[0]})
    saved = fleet.save(writer, "counts")
    assert saved.go_on_to("put", held_up_at)
    for _ in range(4):
        fleet.clock.advance(timedelta(hours=26))
        fleet.prune(pruner, RetentionPolicy(keep_last=1)).finish()
    report = saved.finish()
    assert isinstance(report, SnapshotReport)
    assert [outcome.status for outcome in report.outcomes] == ["failed"]
    fleet.require_every_snapshot_whole()
    fleet.close()
