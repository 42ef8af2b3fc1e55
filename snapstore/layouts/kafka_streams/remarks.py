"""What the operator should know about the offsets of a store although it can be taken."""

from collections.abc import Sequence

from snapstore.layouts.kafka_streams.checkpoint import Offsets, parse_checkpoint
from snapstore.layouts.kafka_streams.families import Families, foreign_partitions
from snapstore.layouts.kafka_streams.family import FAMILY
from snapstore.layouts.kafka_streams.next_offset import REMARK, notes_next_offset
from snapstore.layouts.kafka_streams.noted import attribute_noted, offset_file
from snapstore.layouts.kafka_streams.options import KafkaStreamsOptions
from snapstore.model.identity import ChangelogPartition
from snapstore.model.store import ChangelogPosition, StoreLocation
from snapstore.ports import StoreView


def remarks(
    location: StoreLocation,
    noted: bytes | None,
    view: StoreView,
    families: Families | None,
    positions: Sequence[ChangelogPosition],
) -> tuple[str, ...]:
    """Return sentences: on offsets of other tasks, and on a zero that may mean nothing."""
    told = []
    foreign = _foreign(location, noted, families)
    if foreign:
        told.append(
            f"{location.store}: left aside what is noted for {', '.join(map(str, foreign))}, "
            f"since task {location.store.task} does not read it"
        )
    if any(position.applied_offset == 0 for position in positions) and _is_empty(view):
        told.append(
            f"{location.store}: offset 0 is noted and the store is empty; if the record at 0 was "
            "never applied, it is missing: compare with a rebuild"
        )
    if families is None and positions and notes_next_offset(location.task_dir):
        told.append(f"{location.store}: {offset_file(location).name} {REMARK}")
    if families is not None and noted is not None:
        told += _conflicts(location, parse_checkpoint(noted, offset_file(location)), families)
    return tuple(told)


def _conflicts(location: StoreLocation, lines: Offsets, families: Families) -> list[str]:
    """Say where `.checkpoint`, which the application takes over, and the databases differ."""
    told = []
    for changelog, line in sorted(lines.items()):
        offsets = [
            content.offsets[changelog]
            for content in families.values()
            if changelog in content.offsets
        ]
        own = min((-1 if at is None else at for at in offsets), default=None)
        if line is None or own is None or own == line:
            continue
        shown = "not known" if own < 0 else own
        told.append(
            f"{location.store}: {offset_file(location).name} notes {line} for {changelog}, and the "
            f"least of its databases is {shown}: the lower counts here, and the application goes "
            f"by {line}"
        )
    return told


def _foreign(
    location: StoreLocation, noted: bytes | None, families: Families | None
) -> list[ChangelogPartition]:
    found = set() if families is None else set(foreign_partitions(location.store, families))
    if noted is not None:
        offsets = parse_checkpoint(noted, offset_file(location))
        found |= set(attribute_noted(location, offsets, (), KafkaStreamsOptions()).foreign)
    return sorted(found)


def _is_empty(view: StoreView) -> bool:
    return not any(
        any(True for _ in view.scan(database, family))
        for database in view.databases
        for family in view.families(database)
        if family != FAMILY
    )
