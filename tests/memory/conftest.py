"""A repository, and names for what is kept in it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import snapstore
from snapstore.client import Snapstore
from snapstore.model.changelog import ChangelogRecord
from snapstore.model.identity import ChangelogPartition, StoreId

STORE = StoreId("billing", "0", "balances")
CHANGELOG = ChangelogPartition("billing-balances", 0)


def record(offset: int, key: bytes, value: bytes | None) -> ChangelogRecord:
    return ChangelogRecord(offset=offset, key=key, value=value, timestamp_ms=1000 + offset)


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[Snapstore]:
    with snapstore.create(str(tmp_path / "repository"), config=snapstore.Config()) as opened:
        yield opened
