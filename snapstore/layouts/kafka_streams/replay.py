"""Find out how the application writes a store, and go on writing it like that."""

from itertools import islice

from snapstore.errors import NotReplayableError, SourceDamagedError
from snapstore.layouts.kafka_streams.names import GLOBAL
from snapstore.layouts.kafka_streams.options import KafkaStreamsOptions, StoreRules
from snapstore.layouts.kafka_streams.replay_databases import Databases, new_database
from snapstore.layouts.kafka_streams.replay_keyvalue import KeyValueReplay
from snapstore.layouts.kafka_streams.replay_segmented import SegmentedReplay
from snapstore.layouts.kafka_streams.replay_versioned import VersionedStoreReplay
from snapstore.layouts.kafka_streams.segments import find_rules
from snapstore.layouts.kafka_streams.tasks import IN_MEMORY, KEY_VALUE, SEGMENTED
from snapstore.model.changelog import PartitionState
from snapstore.model.identity import StoreId
from snapstore.model.records import FAMILIES, StoreFormat, format_of
from snapstore.model.segment_names import segment_time
from snapstore.model.segment_times import misplaced_segment
from snapstore.model.versioned import VersionedOptions
from snapstore.ports import ReplaySubject, StoreReplay, StoreView, StoreWriter

_SAMPLE = 10_000
_VERSIONED_LAG_MS = 24 * 3600 * 1000
"""By so much `min.compaction.lag.ms` exceeds the history (VersionedChangelogTopicConfig)."""

_LATEST_VERSIONS = b"\xff" * 8


def open_replay(
    writer: StoreWriter, subject: ReplaySubject, options: KafkaStreamsOptions
) -> StoreReplay:
    """Return what applies records to the store. Raises NotReplayableError."""
    location = subject.location
    require_replayable(location.store, location.store_type, options)
    given = options.rules.get(location.store.store, StoreRules())
    databases = Databases(writer, subject)
    if location.store_type == SEGMENTED:
        return _segmented(databases, given)
    return _key_value(databases, given)


def require_replayable(store: StoreId, store_type: str, options: KafkaStreamsOptions) -> None:
    """Raise NotReplayableError for a store that cannot be replayed, whatever its files hold."""
    name = store.store
    if store_type not in (KEY_VALUE, SEGMENTED, IN_MEMORY):
        raise NotReplayableError(
            f"{name} is a store of the type {store_type}: nobody but the application knows how it "
            "is written",
            hint="let the application replay",
            store=str(store),
        )
    if store.task == GLOBAL and options.rules.get(name, StoreRules()).format is None:
        raise NotReplayableError(
            f"{name} is a global store, which the application may fill by code of its own",
            hint="take the snapshot when the application is closed, or leave the store out "
            f"(stores.{name}.skip), since the application fills it from its topic; if it holds the "
            f"topic as it is, a snapshot can be replayed with stores.{name}.format",
            store=str(store),
        )


def _key_value(databases: Databases, given: StoreRules) -> StoreReplay:
    subject, writer = databases.subject, databases.writer
    root = subject.location.root
    form, families = _format(databases, given)
    versioned = _versioned_options(databases, given, form)
    if versioned is not None:
        entries = writer.scan(root, "default") if root in databases.names else ()
        return VersionedStoreReplay(databases, root, versioned, entries)
    if form == "plain" and given.format is None and root in databases.names:
        # Latest versions lie behind eight bytes 0xff; few keys of other stores do.
        for _ in writer.scan_from(root, "default", _LATEST_VERSIONS):
            raise _ask_for_format(subject, "it may be versioned")
    return KeyValueReplay(databases, root, form, families)


def _segmented(databases: Databases, given: StoreRules) -> SegmentedReplay:
    subject = databases.subject
    form, families = _format(databases, given)
    view = _shown_by(databases)
    store = subject.location.store.store
    keys = {
        database: [key for key, _ in islice(view.scan(database, FAMILIES[form]), _SAMPLE)]
        for database in view.databases
    }
    if found := misplaced_segment(store, keys):
        raise SourceDamagedError(
            f"{found[0]} holds rows of the time of {found[1]}: two segments were exchanged",
            hint="rebuild the store from its changelog, or from another snapshot",
            file=found[0],
        )
    samples = {segment_time(store, database): each for database, each in keys.items()}
    rules = find_rules(subject.location.store.store, given, subject.state, samples)
    return SegmentedReplay(databases, form, families, rules)


def _shown_by(databases: Databases) -> StoreView:
    """The files that show how the store is written: its own, or those of another copy."""
    template = databases.subject.template
    return databases.writer if databases.names or template is None else template


def _format(databases: Databases, given: StoreRules) -> tuple[StoreFormat, tuple[str, ...]]:
    """Return the format, and the families that a database of the store has.

    Raises NotReplayableError when nothing tells, or the files contradict what was configured.
    """
    subject, view = databases.subject, _shown_by(databases)
    configured: StoreFormat | None = "plain" if given.format == "versioned" else given.format
    seen = {view.families(database) for database in view.databases}
    forms = {format_of(frozenset(families)) for families in seen}
    if len(forms) > 1 or (forms and configured is not None and forms != {configured}):
        raise _ask_for_format(subject, f"its files are {' and '.join(sorted(forms))}")
    if forms:
        return next(iter(forms)), max(seen, key=len)
    if configured is None and subject.location.store_type == IN_MEMORY:
        configured = "plain"
    if configured is None:
        raise _ask_for_format(subject, "it has no files that show it")
    return configured, new_database(configured, subject.location.generation)


def _versioned_options(
    databases: Databases, given: StoreRules, form: StoreFormat
) -> VersionedOptions | None:
    state: PartitionState = databases.subject.state
    lag_ms = state.min_compaction_lag_ms
    if given.format not in (None, "versioned") or form != "plain":
        return None
    if given.format is None and (not lag_ms or databases.subject.location.store_type == IN_MEMORY):
        return None
    retention_ms = given.retention_ms or lag_ms - _VERSIONED_LAG_MS
    if retention_ms <= 0:
        raise _ask_for_format(
            databases.subject, f"its topic keeps records from compaction for {lag_ms} ms"
        )
    if given.segment_interval_ms is None:
        return VersionedOptions.with_default_interval(retention_ms)
    return VersionedOptions(
        history_retention_ms=retention_ms, segment_interval_ms=given.segment_interval_ms
    )


def _ask_for_format(subject: ReplaySubject, why: str) -> NotReplayableError:
    name = subject.location.store.store
    return NotReplayableError(
        f"snapstore cannot tell how the values of {name} are stored: {why}",
        hint=f"configure stores.{name}.format: plain, timestamped, versioned, headers or "
        "session-headers",
        store=str(subject.location.store),
    )
