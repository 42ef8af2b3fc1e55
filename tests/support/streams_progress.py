"""How far an application has got with its input, by what its group has committed."""

import time
from collections.abc import Iterable, Mapping

from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka.admin import AdminClient

from tests.support.streams_app import StreamsApp
from tests.support.topic import bounds

Ends = Mapping[tuple[str, int], int]

_PAUSE = 0.05


def wait_until_logged(app: StreamsApp, patience: float = 240) -> None:
    """Whatever the stores hold now, its records are in the changelogs when this returns.

    A commit comes after the changelog records of what it covers; so the input that was there is
    waited for, and then the repartition topics that were written from it, as long as it gets on.
    The application must run; repartition topics must hold no transaction markers.
    """
    admin = AdminClient({"bootstrap.servers": app.bootstrap, "log_level": 0})
    topics = admin.list_topics(timeout=120).topics
    prefix, suffix = f"{app.application}-", "-repartition"
    between = [name for name in topics if name.startswith(prefix) and name.endswith(suffix)]
    for topic in (app.topic, *between):
        wanted = _ends(app.bootstrap, topic, topics[topic].partitions)
        seen: Ends = {}
        while behind := _behind(admin, app.application, wanted):
            if behind != seen:
                seen, deadline = behind, time.monotonic() + patience
            assert time.monotonic() < deadline, f"stuck for {patience} s at {behind}"
            time.sleep(_PAUSE)


def wait_for_records(
    app: StreamsApp, store: str, count: int, *, partitions: int = 2, patience: float = 240
) -> None:
    """Wait until each partition of the store's changelog has so many."""
    deadline = time.monotonic() + patience
    topic = app.changelog(store)
    while min(bounds(app.bootstrap, topic, number).end for number in range(partitions)) < count:
        assert time.monotonic() < deadline, f"less than {count} records in {topic}"
        time.sleep(0.1)


def _ends(bootstrap: str, topic: str, partitions: Iterable[int]) -> Ends:
    return {(topic, number): bounds(bootstrap, topic, number).end for number in partitions}


def _behind(admin: AdminClient, group: str, wanted: Ends) -> dict[tuple[str, int], int]:
    asked = ConsumerGroupTopicPartitions(group)
    found = admin.list_consumer_group_offsets([asked])[group].result(120).topic_partitions or []
    committed = {(one.topic, one.partition): one.offset for one in found}
    return {
        one: committed.get(one, -1) for one, end in wanted.items() if committed.get(one, -1) < end
    }
