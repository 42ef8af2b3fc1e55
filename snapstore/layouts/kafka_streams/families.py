"""Positions of a store that keeps its offsets in its own databases (from Kafka Streams 4.3 on)."""

from collections.abc import Mapping

from snapstore.layouts.kafka_streams.family import FAMILY, FamilyContent, read_family
from snapstore.layouts.kafka_streams.names import GLOBAL, task_partition
from snapstore.layouts.kafka_streams.noted import known_positions
from snapstore.layouts.kafka_streams.options import KafkaStreamsOptions, contradiction
from snapstore.layouts.kafka_streams.refusals import (
    ask_for_topic,
    ask_whether_any,
    exactly_once,
    unknown,
)
from snapstore.model.identity import ChangelogPartition, StoreId
from snapstore.model.offsets import store_offset
from snapstore.model.snapshot import StoreStatus
from snapstore.model.store import ChangelogPosition
from snapstore.model.units import count
from snapstore.ports import StoreView

Families = Mapping[str, FamilyContent]

_NOTHING = FamilyContent(offsets={}, status=None)


def read_families(view: StoreView) -> Families | None:
    """Return what each database says; None when none of them has the family.

    One that has not got its families yet says nothing, and counts.
    """
    names = {database: view.families(database) for database in view.databases}
    if not any(FAMILY in families for families in names.values()):
        return None
    return {
        database: read_family(view.entries(database, FAMILY), database)
        if FAMILY in families
        else _NOTHING
        for database, families in names.items()
    }


def family_positions(
    store: StoreId, families: Families, options: KafkaStreamsOptions, *, running: bool
) -> tuple[ChangelogPosition, ...]:
    """Decide from the databases: the least offset of all of them; empty without a changelog.

    Data and offsets of one database reach the disk in one atomic flush, so an offset never runs
    ahead. Under exactly-once without transactional stores the offset stands still while the
    application runs and data goes on, uncommitted writes included; the status tells: it is absent
    in transactional stores, 1 in all others until they are closed. The application itself trusts
    no database with status 1 under exactly-once, and the mark is kept in every copy.
    Raises UnknownOffsetError or ExactlyOnceHotError.
    """
    _refuse_exactly_once(store, families, options, running=running)
    topics = _topics(store, families)
    if options.has_no_changelog(store.store):
        if topics:
            raise contradiction(store, topics[0])
        return ()
    topic = options.changelogs.get(store.store)
    if topic is None:
        if len(topics) > 1:
            raise ask_for_topic(store, topics)
        if not topics:
            return _without_offsets(store, families, running=running)
        topic = topics[0]
    return known_positions(store, topic, _least(store, topic, families))


def offsets_by_database(
    store: StoreId, families: Families | None, changelog: ChangelogPartition
) -> dict[str, int | None]:
    """Return what each database has applied itself; empty where none keeps offsets.

    Of databases that were open under exactly-once it is an older offset: see ``store_status``.
    """
    if families is None:
        return {}
    ahead = 1 if store.task == GLOBAL else 0
    offsets = {name: content.offsets.get(changelog) for name, content in families.items()}
    return {name: None if at is None else at - ahead for name, at in offsets.items()}


def store_status(families: Families | None) -> StoreStatus | None:
    """Return how the databases mark themselves: open as soon as one of them is."""
    if families is None:
        return None
    statuses = {content.status for content in families.values()}
    if "open" in statuses:
        return "open"
    if "closed" in statuses:
        return "closed"
    noted = any(content.offsets for content in families.values())
    return "transactional" if noted else None


def foreign_partitions(store: StoreId, families: Families) -> tuple[ChangelogPartition, ...]:
    """Return the partitions that the databases name although the task does not read them."""
    partition = task_partition(store.task)
    named = {changelog for content in families.values() for changelog in content.offsets}
    return tuple(sorted(one for one in named if partition not in (None, one.partition)))


def _refuse_exactly_once(
    store: StoreId, families: Families, options: KafkaStreamsOptions, *, running: bool
) -> None:
    statuses = {content.status for content in families.values()}
    if not options.exactly_once or statuses == {None} or store.task == GLOBAL:
        return
    if running:
        raise exactly_once(
            store, "the application runs with exactly-once, and its stores are not transactional"
        )
    if "open" in statuses:
        raise exactly_once(store, "the application is exactly-once and was not stopped cleanly")


def _topics(store: StoreId, families: Families) -> tuple[str, ...]:
    partition = task_partition(store.task)
    named = {changelog for content in families.values() for changelog in content.offsets}
    return tuple(sorted({one.topic for one in named if partition in (None, one.partition)}))


def _without_offsets(
    store: StoreId, families: Families, *, running: bool
) -> tuple[ChangelogPosition, ...]:
    foreign = foreign_partitions(store, families)
    if foreign:
        raise unknown(store, f"they note only {foreign[0]}, which its task does not read")
    if running:
        raise ask_whether_any(store, "nothing that says so has been flushed to disk yet")
    if {content.status for content in families.values()} != {"closed"}:
        raise ask_whether_any(store, "it was not closed cleanly, and no offset had been flushed")
    return ()


def _least(store: StoreId, topic: str, families: Families) -> dict[ChangelogPartition, int | None]:
    """Combine the databases; raise UnknownOffsetError where one of them does not say."""
    partition = task_partition(store.task)
    wanted = (
        {one for content in families.values() for one in content.offsets if one.topic == topic}
        if partition is None
        else {ChangelogPartition(topic, partition)}
    )
    least: dict[ChangelogPartition, int | None] = {}
    for changelog in wanted:
        combined = store_offset(
            {database: content.offsets.get(changelog) for database, content in families.items()}
        )
        if combined.unknown:
            raise unknown(store, _silent(combined.unknown, len(families)))
        least[changelog] = combined.applied_offset
    return least


def _silent(databases: tuple[str, ...], total: int) -> str:
    shown = ", ".join(databases[:3]) + (", ..." if len(databases) > 3 else "")
    return (
        f"{len(databases)} of {count(total, 'database')} without one ({shown}); either nothing has"
        " been flushed there since it was opened, or the application is exactly-once"
    )
