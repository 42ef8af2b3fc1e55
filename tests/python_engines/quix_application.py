"""The application under test: counts per key in a plain store, and sums in windows of ten seconds.

Numbers below zero are passed over.

    quix_application.py BOOTSTRAP GROUP INPUT STATE_DIR GUARANTEE REPORT

Runs until SIGTERM, then writes to REPORT, as JSON, how many records it has recovered of each
changelog partition. Run by a Python of its own that has Quix Streams, and not snapstore.
"""

import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from quixstreams import Application, State  # type: ignore[import-not-found]
from quixstreams.state.recovery import RecoveryPartition  # type: ignore[import-not-found]
from quixstreams.state.rocksdb import RocksDBOptions  # type: ignore[import-not-found]

WINDOW_MS = 10_000
SMALL_BUFFER_BYTES = 64 << 10


def count_recovered() -> Counter[str]:
    """Count the records that the library hands to its stores when it recovers them."""
    recovered: Counter[str] = Counter()
    hand_over = RecoveryPartition.recover_from_changelog_message

    def counted(partition: Any, changelog_message: Any) -> None:
        recovered[f"{changelog_message.topic()}:{changelog_message.partition()}"] += 1
        hand_over(partition, changelog_message)

    RecoveryPartition.recover_from_changelog_message = counted
    return recovered


def count(value: int, state: State) -> int:
    number = state.get("count", 0) + 1
    state.set("count", number)
    if number % 7 == 0:
        state.delete("last")
    else:
        state.set("last", value)
    return value


def main(
    bootstrap: str, group: str, source: str, state_dir: str, guarantee: str, report: str
) -> None:
    recovered = count_recovered()
    application = Application(
        broker_address=bootstrap,
        consumer_group=group,
        state_dir=state_dir,
        auto_offset_reset="earliest",
        processing_guarantee=guarantee,
        commit_interval=0.2,
        consumer_poll_timeout=0.1,
        producer_extra_config={"transaction.timeout.ms": 10_000},
        consumer_extra_config={"session.timeout.ms": 3000, "heartbeat.interval.ms": 300},
        rocksdb_options=RocksDBOptions(write_buffer_size=SMALL_BUFFER_BYTES),
    )
    topic = application.topic(source, key_deserializer="str", value_deserializer="json")
    numbers = application.dataframe(topic)
    numbers = numbers.filter(lambda value: value >= 0).apply(count, stateful=True)
    numbers.tumbling_window(WINDOW_MS).sum().current()
    application.run()
    Path(report).write_text(json.dumps(recovered))


if __name__ == "__main__":
    main(*sys.argv[1:])
    # Everything is closed; threads of the drivers may crash a Python that winds up.
    os._exit(0)
