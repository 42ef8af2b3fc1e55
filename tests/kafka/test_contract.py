"""The contract of changelogs, kept by a real broker."""

from snapstore.testing.changelog_contract import ChangelogContract


class TestKafkaChangelog(ChangelogContract):
    pass
