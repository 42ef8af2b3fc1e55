"""A memory store with its changelog on a real broker."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import snapstore
from snapstore.config.schema import Config, KafkaConfig, Sections
from snapstore.errors import TopicRecreatedError
from snapstore.kafka.changelog import KafkaChangelog
from snapstore.memory import MemoryStore
from snapstore.testing.changelog_contract import Written
from tests.kafka.writer import BrokerLogs
from tests.memory.conftest import STORE
from tests.support.broker import Broker
from tests.support.topic import fold, read_partition


@pytest.fixture
def changelog(broker: Broker) -> Iterator[KafkaChangelog]:
    opened = KafkaChangelog(broker.bootstrap, timeout_seconds=30)
    yield opened
    opened.close()


def written(first: int, count: int) -> list[Written]:
    return [
        Written(b"%03d" % (n * 7 % 500), None if n % 9 == 4 else b"value-%d" % n, 1_000 + n)
        for n in range(first, first + count)
    ]


def test_a_restored_store_replays_the_tail_and_equals_the_whole_log(
    broker: Broker, changelog: KafkaChangelog, tmp_path: Path
) -> None:
    log = BrokerLogs(broker)
    partition = log.create()
    log.append(partition, written(0, 3000))
    kafka = KafkaConfig(bootstrap=broker.bootstrap)
    config = Config(sections=Sections(kafka=kafka))
    with snapstore.create(str(tmp_path / "repository"), config=config) as repository:
        with MemoryStore(STORE, tmp_path / "work", changelog=partition) as store:
            assert store.replay(changelog) == 3000
            snapshot = store.snapshot(repository)
        fence = snapshot.description.positions[0].fence
        assert fence is not None
        assert (fence.end_offset, snapshot.description.applied_offset) == (3000, 2999)

        log.append(partition, written(3000, 400))
        log.append_in_transaction(partition, written(9000, 50), commit=False)
        log.append_in_transaction(partition, written(3400, 10), commit=True)

        with MemoryStore.restore(
            repository, STORE, tmp_path / "restored", changelog=partition
        ) as restored:
            assert restored.positions == {partition: 2999}
            assert restored.replay(changelog) == 410
            records = read_partition(broker.bootstrap, partition.topic)
            expected = {key: record.value for key, record in fold(records).items()}
            assert dict(restored.range()) == expected
            # A marker ends each of the two transactions.
            assert restored.positions == {partition: 3461}
            assert restored.snapshot(repository).description.applied_offset == 3461

        log.recreate(partition)
        log.append(partition, written(0, 5000))
        with pytest.raises(TopicRecreatedError):
            MemoryStore.restore(repository, STORE, tmp_path / "refused", changelog=partition)
