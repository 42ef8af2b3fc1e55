"""Positions of a store whose offset lies in a file beside it: to Kafka Streams 4.2, and custom."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from snapstore.errors import StoreChangedError
from snapstore.layouts.kafka_streams.checkpoint import (
    Offsets,
    lines_passed_over,
    parse_checkpoint,
)
from snapstore.layouts.kafka_streams.names import (
    CHECKPOINT,
    GLOBAL,
    conventional_topic,
    own_checkpoint,
    task_partition,
)
from snapstore.layouts.kafka_streams.next_offset import notes_next_offset
from snapstore.layouts.kafka_streams.options import KafkaStreamsOptions, contradiction
from snapstore.layouts.kafka_streams.refusals import (
    ask_for_topic,
    ask_whether_any,
    exactly_once,
    unknown,
)
from snapstore.layouts.kafka_streams.topics import Attribution, attribute
from snapstore.model.identity import ChangelogPartition, StoreId
from snapstore.model.regular_file import read_source
from snapstore.model.store import ChangelogPosition, StoreLocation


def offset_file(location: StoreLocation) -> Path:
    """Return the file that notes the store's offset: its own if it has one, or the task's."""
    own = own_checkpoint(location.store.store)
    return location.task_dir / (own if own in location.side_files else CHECKPOINT)


def read_offset_file(location: StoreLocation) -> bytes | None:
    try:
        return read_source(offset_file(location))
    except (FileNotFoundError, NotADirectoryError):
        return None


def attribute_noted(
    location: StoreLocation,
    offsets: Offsets,
    task_stores: Sequence[str],
    options: KafkaStreamsOptions,
) -> Attribution:
    """Match the lines with the stores that they may be of."""
    own = own_checkpoint(location.store.store) in location.side_files
    names = {location.store.store} if own else {*task_stores, location.store.store}
    ids = [StoreId(location.store.application, location.store.task, name) for name in sorted(names)]
    return attribute(ids, offsets, options.changelogs)


def noted_positions(
    location: StoreLocation,
    noted: bytes | None,
    task_stores: Sequence[str],
    options: KafkaStreamsOptions,
    *,
    running: bool,
) -> tuple[ChangelogPosition, ...]:
    """Decide from the content that was read before the files; empty without a changelog.

    While it runs, an exactly-once application to 4.2 removes the file or notes every offset as
    unknown (StreamTask.java). A stopped one has noted every logged store, so a store without a
    line has no changelog. Raises UnknownOffsetError, ExactlyOnceHotError, and StoreChangedError
    when what was noted has been withdrawn since.
    """
    store = location.store
    offsets = _with_passed_over(noted, offset_file(location))
    matched = attribute_noted(location, offsets, task_stores, options)
    topic = matched.topics.get(store.store)
    if options.has_no_changelog(store.store):
        _refuse_contradiction(location, offsets)
        return ()
    here = [at for changelog, at in offsets.items() if changelog not in matched.foreign]
    if running:
        _refuse_exactly_once(store, here, options)
    if noted is None:
        if read_offset_file(location) is not None:
            raise _changed(location, f"{offset_file(location)} was made")
        raise _no_file(location, running=running)
    if topic is None:
        return _without_topic(location, matched, running=running)
    ahead = 1 if store.task == GLOBAL or notes_next_offset(location.task_dir) else 0
    positions = known_positions(store, topic, offsets, ahead=ahead)
    _refuse_withdrawn(location, {each.changelog: offsets[each.changelog] for each in positions})
    return positions


def known_positions(
    store: StoreId,
    topic: str,
    offsets: Mapping[ChangelogPartition, int | None],
    *,
    ahead: int | None = None,
) -> tuple[ChangelogPosition, ...]:
    """Return the positions in one topic; every partition of it for a global store.

    The offsets are ``ahead`` of the applied ones: a global store notes the one to read next. A
    partition of which nothing is applied is left out. Raises UnknownOffsetError.
    """
    if ahead is None:
        ahead = 1 if store.task == GLOBAL else 0
    partition = task_partition(store.task)
    wanted = (
        sorted(changelog for changelog in offsets if changelog.topic == topic)
        if partition is None
        else [ChangelogPartition(topic, partition)]
    )
    positions = []
    for changelog in wanted:
        offset = offsets.get(changelog)
        if offset is None:
            raise unknown(store, f"none is noted for {changelog}")
        applied = offset - ahead
        if applied >= 0:
            positions.append(ChangelogPosition(changelog, applied))
    if not positions:
        raise unknown(store, f"nothing of {topic} is applied yet")
    return tuple(positions)


def _with_passed_over(noted: bytes | None, path: Path) -> Offsets:
    """Return what is noted; as not known where Kafka Streams passes the line over.

    The store has a changelog, so it is not one without.
    """
    if noted is None:
        return {}
    skipped = [line.changelog for line in lines_passed_over(noted, path)]
    unknown = dict.fromkeys(changelog for changelog in skipped if changelog is not None)
    return {**unknown, **parse_checkpoint(noted, path)}


def _refuse_contradiction(location: StoreLocation, offsets: Offsets) -> None:
    topics = {changelog.topic for changelog in offsets}
    if offset_file(location).name == CHECKPOINT:
        topics &= {conventional_topic(location.store)}
    if topics:
        raise contradiction(location.store, min(topics))


def _refuse_exactly_once(
    store: StoreId, here: Sequence[int | None], options: KafkaStreamsOptions
) -> None:
    if options.exactly_once:
        raise exactly_once(store, "the application runs with exactly-once")
    if options.guarantee == "auto" and here and all(at is None for at in here):
        raise exactly_once(
            store,
            "it runs and notes every offset of the task as unknown, as exactly-once does all the"
            " time, and at-least-once until it notes the first",
        )


def _no_file(location: StoreLocation, *, running: bool) -> Exception:
    name = offset_file(location).name
    if running:
        why = f"there is no {name} yet, or the application is exactly-once and has removed it"
    else:
        why = f"there is no {name}: the application was not stopped cleanly"
    return ask_whether_any(location.store, why)


def _without_topic(
    location: StoreLocation, matched: Attribution, *, running: bool
) -> tuple[ChangelogPosition, ...]:
    if matched.unclaimed:
        raise ask_for_topic(location.store, matched.unclaimed)
    if running or matched.foreign:
        raise ask_whether_any(
            location.store, f"{offset_file(location).name} has no line that could be its"
        )
    return ()


def _refuse_withdrawn(location: StoreLocation, noted: Offsets) -> None:
    """Raise where an offset is gone, or lower: the files may be of a store that was begun anew."""
    now = read_offset_file(location)
    offsets = {} if now is None else parse_checkpoint(now, offset_file(location))
    for changelog, offset in noted.items():
        found = offsets.get(changelog)
        if found is None:
            raise _changed(location, f"{offset_file(location)} no longer notes {changelog}")
        if offset is not None and found < offset:
            raise _changed(
                location, f"{offset_file(location)} noted {offset} for {changelog}, and now {found}"
            )


def _changed(location: StoreLocation, what: str) -> StoreChangedError:
    return StoreChangedError(
        f"{what} while {location.store} was read",
        hint="the application has just started, or has given the task up: try again",
        store=str(location.store),
    )
