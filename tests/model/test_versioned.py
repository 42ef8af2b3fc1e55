"""A versioned store answers, from its raw entries, what was put into it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapstore.errors import NotReplayableError, SourceDamagedError
from snapstore.model.changelog import ChangelogRecord
from snapstore.model.version_run import (
    Version,
    VersionRun,
    decode_run,
    deletion_at,
    encode_run,
)
from snapstore.model.versioned import VersionedOptions, VersionedReplay

EVER = VersionedOptions(history_retention_ms=10**6, segment_interval_ms=10)
SHORT = VersionedOptions(history_retention_ms=30, segment_interval_ms=10)
LATEST = b"\xff" * 8

Store = dict[bytes, bytes]

PUT = st.tuples(
    st.sampled_from([b"a", b"b"]),
    st.none() | st.binary(max_size=2),
    st.integers(min_value=0, max_value=60),
)
PUTS = st.lists(PUT, max_size=30)
PUTS_AT_UNEQUAL_TIMES = st.lists(PUT, max_size=30, unique_by=lambda put: (put[0], put[2]))


def records(puts: list[tuple[bytes, bytes | None, int]]) -> list[ChangelogRecord]:
    return [ChangelogRecord(n, key, value, ms) for n, (key, value, ms) in enumerate(puts)]


def replay(
    store: Store, tail: list[ChangelogRecord], options: VersionedOptions, take_every: int = 1000
) -> None:
    replaying = VersionedReplay(options, store.get, list(store.items()))
    for number, record in enumerate(tail):
        replaying.apply(record)
        if number % take_every == 0:
            write(replaying, store)
    write(replaying, store)


def write(replaying: VersionedReplay, store: Store) -> None:
    writes = replaying.take()
    for prefix in writes.dropped_prefixes:
        for key in [key for key in store if key.startswith(prefix)]:
            del store[key]
    for key, value in writes.entries.items():
        if value is None:
            store.pop(key, None)
        else:
            store[key] = value


def ask(store: Store, key: bytes, time_ms: int, options: VersionedOptions) -> bytes | None:
    """The value that was valid at that time, looked up as Kafka Streams does."""
    latest = store.get(LATEST + key)
    if latest is not None and int.from_bytes(latest[:8], "big") <= time_ms:
        return latest[8:]
    first = time_ms // options.segment_interval_ms
    for segment in sorted({int.from_bytes(k[:8], "big", signed=True) for k in store}, reverse=True):
        content = store.get(segment.to_bytes(8, "big", signed=True) + key)
        if segment < first or content is None:
            continue
        run = decode_run(content)
        if run.valid_to_ms <= time_ms:
            return None
        if run.oldest_ms <= time_ms:
            return run.versions[run.index_at(time_ms)].value
    return None


@given(PUTS_AT_UNEQUAL_TIMES)
def test_at_every_time_the_newest_version_up_to_then_is_found(
    puts: list[tuple[bytes, bytes | None, int]],
) -> None:
    store: Store = {}
    replay(store, records(puts), EVER)

    for key in (b"a", b"b"):
        by_time = {ms: value for k, value, ms in puts if k == key}
        for time_ms in range(62):
            earlier = [ms for ms in by_time if ms <= time_ms]
            expected = by_time[max(earlier)] if earlier else None
            assert ask(store, key, time_ms, EVER) == expected


@given(PUTS, st.integers(min_value=1, max_value=5))
def test_when_the_writes_are_taken_makes_no_difference(
    puts: list[tuple[bytes, bytes | None, int]], take_every: int
) -> None:
    at_once: Store = {}
    often: Store = {}
    replay(at_once, records(puts), SHORT)
    replay(often, records(puts), SHORT, take_every)
    assert often == at_once


@given(PUTS, st.integers(min_value=0, max_value=30))
def test_a_store_taken_up_again_goes_on_as_if_it_had_never_stopped(
    puts: list[tuple[bytes, bytes | None, int]], split: int
) -> None:
    through: Store = {}
    replay(through, records(puts), EVER)
    resumed: Store = {}
    replay(resumed, records(puts)[:split], EVER)
    replay(resumed, records(puts)[split:], EVER)
    assert resumed == through


@given(PUTS)
def test_only_live_segments_are_kept_and_the_latest_values_always(
    puts: list[tuple[bytes, bytes | None, int]],
) -> None:
    store: Store = {}
    replay(store, records(puts), SHORT)
    newest = max((ms for _, _, ms in puts), default=0)
    oldest_live = (newest - SHORT.history_retention_ms) // SHORT.segment_interval_ms
    segments = {int.from_bytes(key[:8], "big", signed=True) for key in store} - {-1}
    assert all(segment >= oldest_live for segment in segments)


def test_a_deletion_at_the_very_time_of_the_latest_version_leaves_no_trace() -> None:
    """As in Kafka Streams: what comes later with an older time is the latest again."""
    store: Store = {}
    replay(store, records([(b"a", b"v", 7), (b"a", None, 7)]), EVER)
    assert store == {}
    replay(store, records([(b"a", b"old", 3)]), EVER)
    assert ask(store, b"a", 9, EVER) == b"old"


def test_a_record_older_than_the_history_is_dropped_and_one_without_a_key_too() -> None:
    store: Store = {}
    late = [ChangelogRecord(0, b"a", b"new", 100), ChangelogRecord(1, b"b", b"late", 69)]
    replay(store, [*late, ChangelogRecord(2, None, b"v", 100)], SHORT)
    assert list(store) == [LATEST + b"a"]


RUNS = st.lists(
    st.builds(Version, st.integers(0, 99), st.none() | st.binary(max_size=3)),
    min_size=1,
    max_size=5,
    unique_by=lambda version: version.valid_from_ms,
).map(
    lambda versions: VersionRun(
        100, tuple(sorted(versions, key=lambda v: v.valid_from_ms, reverse=True))
    )
)


@given(RUNS)
def test_a_run_comes_back_from_its_bytes(run: VersionRun) -> None:
    assert decode_run(encode_run(run)) == run


def test_a_run_has_the_documented_bytes() -> None:
    run = VersionRun(9, (Version(5, b"new"), Version(4, None), Version(2, b"old")))
    assert (
        encode_run(run)
        == bytes.fromhex(
            "0000000000000009 0000000000000002"
            "0000000000000005 00000003"
            "0000000000000004 ffffffff"
            "0000000000000002 00000003"
        )
        + b"oldnew"
    )
    assert decode_run(encode_run(deletion_at(7))).degenerate


@given(RUNS, st.integers(min_value=0, max_value=60))
def test_bytes_that_are_cut_off_are_no_run(run: VersionRun, cut: int) -> None:
    content = encode_run(run)
    shorter = content[: max(len(content) - 1 - cut, 0)]
    with pytest.raises(SourceDamagedError):
        decode_run(shorter)


def test_a_segment_interval_that_the_files_contradict_is_refused() -> None:
    store: Store = {}
    replay(store, records([(b"a", b"1", 5), (b"a", b"2", 25)]), EVER)
    wrong = VersionedOptions(history_retention_ms=10**6, segment_interval_ms=7)
    with pytest.raises(NotReplayableError, match="segments of 7 ms do not fit"):
        VersionedReplay(wrong, store.get, store.items())


def test_a_store_of_another_kind_is_refused() -> None:
    with pytest.raises(SourceDamagedError):
        VersionedReplay(EVER, Store().get, [(b"key", b"value")])


@pytest.mark.parametrize(
    ("history_ms", "interval_ms"),
    [
        (3_000, 2_000),
        (60_000, 20_000),
        (90_000, 20_000),
        (300_000, 60_000),
        (600_000, 60_000),
        (3_600_000, 300_000),
        (3_600_001, 300_000),
        (86_400_000, 3_600_000),
    ],
)
def test_the_default_segment_interval_is_that_of_kafka_streams(
    history_ms: int, interval_ms: int
) -> None:
    options = VersionedOptions.with_default_interval(history_ms)
    assert options.segment_interval_ms == interval_ms
