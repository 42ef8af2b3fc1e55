"""The log that the tests of this folder read is a changelog like any other."""

import pytest

from snapstore.ports import Changelog
from snapstore.testing.changelog_contract import ChangelogContract, LogWriter
from tests.support.log_in_memory import LogInMemory


class TestLogInMemory(ChangelogContract):
    @pytest.fixture
    def both(self) -> LogInMemory:
        return LogInMemory()

    @pytest.fixture
    def changelog(self, both: LogInMemory) -> Changelog:
        return both

    @pytest.fixture
    def log(self, both: LogInMemory) -> LogWriter:
        return both
