"""Which changelog topic belongs to which store of a task."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import msgspec

from snapstore.layouts.kafka_streams.names import (
    NO_CHANGELOG,
    conventional_topic,
    is_conventional,
    task_partition,
)
from snapstore.model.identity import ChangelogPartition, StoreId


class Attribution(msgspec.Struct, frozen=True, kw_only=True):
    """Topics by store; ``unclaimed`` could be the topic of any store that has none here.

    ``foreign`` are partitions that this task does not read: they say nothing about its stores.
    """

    topics: Mapping[str, str]
    unclaimed: tuple[str, ...]
    foreign: tuple[ChangelogPartition, ...]


def attribute(
    stores: Sequence[StoreId],
    changelogs: Iterable[ChangelogPartition],
    configured: Mapping[str, str],
) -> Attribution:
    """Match the noted changelogs of one task with its stores.

    A configured topic wins, then the conventional name. With topology optimisation the source
    topic itself is the changelog: where one topic and one store are left over, they belong
    together. A topic named after another store of the application is never taken that way.
    """
    return _attribute(tuple(stores), tuple(sorted(changelogs)), tuple(sorted(configured.items())))


@lru_cache(maxsize=64)
def _attribute(
    stores: tuple[StoreId, ...],
    noted: tuple[ChangelogPartition, ...],
    settings: tuple[tuple[str, str], ...],
) -> Attribution:
    """Match once for all stores of a task: each of them asks."""
    configured = dict(settings)
    partitions = {task_partition(store.task) for store in stores}
    here = [one for one in noted if not partitions or partitions & {None, one.partition}]
    names = {one.topic for one in here}
    at_home = {*here}
    topics = {
        store.store: topic
        for store in stores
        if (topic := _claimed(store, names, configured)) is not None
    }
    applications = {store.application for store in stores}
    unclaimed = sorted(
        name
        for name in names - set(topics.values())
        if not any(is_conventional(name, application) for application in applications)
    )
    left = [one.store for one in stores if one.store not in topics and one.store not in configured]
    if len(unclaimed) == len(left) == 1:
        topics[left[0]] = unclaimed.pop()
    return Attribution(
        topics=topics,
        unclaimed=tuple(unclaimed),
        foreign=tuple(one for one in noted if one not in at_home),
    )


def _claimed(store: StoreId, names: set[str], configured: Mapping[str, str]) -> str | None:
    wanted = configured.get(store.store)
    if wanted is not None:
        return None if wanted == NO_CHANGELOG else wanted
    conventional = conventional_topic(store)
    return conventional if conventional in names else None
