"""Random histories of one store: put, delete, snapshot, crash, restore, replay."""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import snapstore
from snapstore.config.schema import Config, KafkaConfig, Sections
from snapstore.memory import MemoryStore
from snapstore.testing.changelog_contract import Written
from tests.memory.conftest import STORE
from tests.support.log_in_memory import LogInMemory, LogRegistry

pytestmark = pytest.mark.slow

keys = st.integers(0, 15).map(lambda n: b"%x" % n)
values = st.binary(max_size=4)


class Histories(RuleBasedStateMachine):
    """The log is the truth: at any time the store is its prefix up to the applied offset."""

    def __init__(self) -> None:
        super().__init__()
        self._scratch = TemporaryDirectory(prefix="histories-")
        self.folder = Path(self._scratch.name)
        self.log = LogInMemory()
        self.changelog = self.log.create(cleanup_policy="delete")
        self.written: list[Written] = []
        self.repository = snapstore.create(
            str(self.folder / "repository"),
            config=Config(sections=Sections(kafka=KafkaConfig(bootstrap="memory"))),
            registry=LogRegistry(self.log),
        )
        self.published: list[tuple[str, int]] = []
        self.store = self.opened()

    def opened(self) -> MemoryStore:
        return MemoryStore(STORE, self.folder / "work", changelog=self.changelog)

    @rule(key=keys, value=st.none() | values)
    def write(self, key: bytes, value: bytes | None) -> None:
        """The application writes to its changelog, and to its store where that is up to date."""
        behind = len(self.written) - 1 - self.applied
        self.log.append(self.changelog, [Written(key, value)])
        self.written.append(Written(key, value))
        if not behind:
            self.take_up()

    def take_up(self) -> None:
        offset = len(self.written) - 1
        with self.log.read(self.changelog, offset, offset + 1) as tail:
            for batch in tail:
                for record in batch:
                    assert self.store.apply(record)
                    assert not self.store.apply(record)

    @rule()
    def snapshot(self) -> None:
        taken = self.store.snapshot(self.repository)
        assert (taken.description.applied_offset or -1) in (self.applied, -1)
        self.published.append((taken.id, self.applied))

    @rule(key=keys, value=values)
    @precondition(lambda self: self.up_to_date)
    def snapshot_while_it_is_written(self, key: bytes, value: bytes) -> None:
        applied = self.applied
        future = self.store.snapshot_in_background(self.repository)
        self.write(key, value)
        self.write(key, None)
        self.published.append((future.result().id, applied))

    @rule()
    def save(self) -> None:
        self.store.save()

    @rule()
    def crash(self) -> None:
        """The process dies, and comes back on the same host."""
        self.store.close()
        self.store = self.opened()

    @rule(chosen=st.integers(0, 99))
    @precondition(lambda self: self.published)
    def restore(self, chosen: int) -> None:
        """The host dies; another one takes some snapshot and replays the rest."""
        self.store.close()
        shutil.rmtree(self.folder / "work")
        ref, applied = self.published[chosen % len(self.published)]
        self.store = MemoryStore.restore(
            self.repository, STORE, self.folder / "work", ref=ref, changelog=self.changelog
        )
        assert self.applied == applied

    @rule()
    @precondition(lambda self: not self.up_to_date)
    def replay(self) -> None:
        missing = len(self.written) - 1 - self.applied
        applied = self.store.replay(self.log, allow_unchecked_changelog=True)
        assert applied == missing
        assert self.up_to_date

    @invariant()
    def it_is_a_prefix_of_the_log(self) -> None:
        expected: dict[bytes, bytes] = {}
        for each in self.written[: self.applied + 1]:
            if each.value is None:
                expected.pop(each.key, None)
            else:
                expected[each.key] = each.value
        assert dict(self.store.range()) == expected

    @property
    def applied(self) -> int:
        return self.store.positions.get(self.changelog, -1)

    @property
    def up_to_date(self) -> bool:
        return self.applied == len(self.written) - 1

    def teardown(self) -> None:
        self.store.close()
        self.repository.close()
        self._scratch.cleanup()


Histories.TestCase.settings = settings(
    max_examples=15,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestHistories = Histories.TestCase
