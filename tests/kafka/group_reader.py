"""Reads what a group has committed whenever it is told to, in a process that may die of it.

    python -m tests.kafka.group_reader BOOTSTRAP GROUP TOPIC

For each line on stdin it reads once, with a client of its own, and prints `offset N` or
`error CODE`.
"""

import sys
from contextlib import closing

from snapstore.errors import SnapstoreError
from snapstore.kafka.changelog import KafkaChangelog
from snapstore.model.identity import ChangelogPartition


def answer(bootstrap: str, group: str, source: ChangelogPartition) -> str:
    try:
        with closing(KafkaChangelog(bootstrap, timeout_seconds=30)) as changelog:
            return f"offset {changelog.committed(group, source)}"
    except SnapstoreError as error:
        return f"error {error.code}"


if __name__ == "__main__":
    bootstrap, group, topic = sys.argv[1:]
    for _ in sys.stdin:
        sys.stdout.write(f"{answer(bootstrap, group, ChangelogPartition(topic, 0))}\n")
        sys.stdout.flush()
