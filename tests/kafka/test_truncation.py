"""A log whose end was lost and written again, as after an election of a replica that lagged."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from snapstore.errors import LogDivergedError
from snapstore.kafka.changelog import KafkaChangelog
from snapstore.model.resume import Overrides, ResumePlan
from snapstore.model.snapshot import Fence
from snapstore.model.store import ChangelogPosition
from snapstore.operations.fence import check_fence, take_fence
from snapstore.testing.changelog_contract import numbered, read_all
from tests.kafka.writer import BrokerLogs
from tests.support.broker import Broker

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(tmp_path / "broker") as running:
        yield running


def lose_the_end(broker: Broker, topic: str) -> None:
    """Take half of the first log segment away while the broker is down."""
    broker.stop()
    root = broker.directory / "data"
    for name in (
        ".kafka_cleanshutdown",
        "recovery-point-offset-checkpoint",
        "replication-offset-checkpoint",
    ):
        (root / name).unlink(missing_ok=True)
    folder = root / f"{topic}-0"
    segment = folder / "00000000000000000000.log"
    with segment.open("r+b") as file:
        file.truncate(segment.stat().st_size // 2)
    for snapshot in folder.glob("*.snapshot"):
        snapshot.unlink()
    broker.start()


def test_what_took_the_place_of_lost_records_is_never_replayed_onto_the_store(
    own_broker: Broker,
) -> None:
    log = BrokerLogs(own_broker)
    changelog = KafkaChangelog(own_broker.bootstrap, timeout_seconds=60)
    partition = log.create()
    for number in range(30):
        log.append(partition, numbered(1, number))
    position = ChangelogPosition(partition, 29)
    behind = ChangelogPosition(partition, 5)
    fence = take_fence(changelog, position, now=NOW)
    fence_of_behind = take_fence(changelog, behind, now=NOW)

    lose_the_end(own_broker, partition.topic)
    shorter = changelog.inspect(partition, now=NOW)
    assert 5 < shorter.log_end < 29
    with pytest.raises(LogDivergedError, match="is shorter than the snapshot"):
        check(changelog, position, fence)
    with pytest.raises(LogDivergedError, match="was cut back: it ended before 30"):
        check(changelog, behind, fence_of_behind)

    log.append(partition, numbered(40, 100))
    with pytest.raises(LogDivergedError, match="another record at offset 29"):
        check(changelog, position, fence)
    with pytest.raises(LogDivergedError, match="another record at offset 29"):
        check(changelog, behind, fence_of_behind)
    unmarked = msgspec.structs.replace(fence_of_behind, last=None)
    with pytest.raises(LogDivergedError, match="cut back below offset 30"):
        check(changelog, behind, unmarked)
    with pytest.raises(LogDivergedError, match="cut back below offset 30"):
        read_all(changelog, partition, 30, 40, fence.end_leader_epoch)
    untouched = ChangelogPosition(partition, shorter.log_end - 1)
    assert check(changelog, untouched, take_fence(changelog, untouched, now=NOW)).offsets == 40
    changelog.close()


def check(changelog: KafkaChangelog, position: ChangelogPosition, fence: Fence) -> ResumePlan:
    return check_fence(changelog, position, fence, now=NOW, overrides=Overrides())
