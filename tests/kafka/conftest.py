"""The changelogs of the shared broker, and their writer."""

from collections.abc import Iterator

import pytest

from snapstore.kafka.changelog import KafkaChangelog
from tests.kafka.writer import BrokerLogs
from tests.support.broker import Broker


@pytest.fixture
def changelog(broker: Broker) -> Iterator[KafkaChangelog]:
    opened = KafkaChangelog(broker.bootstrap, timeout_seconds=30)
    yield opened
    opened.close()


@pytest.fixture
def log(broker: Broker) -> BrokerLogs:
    return BrokerLogs(broker)
