"""Write changelog records into a store as the recovery of Quix Streams does."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from snapstore.errors import NotReplayableError
from snapstore.layouts.quix.names import partition_of
from snapstore.model.changelog import ChangelogRecord
from snapstore.model.identity import ChangelogPartition
from snapstore.model.quix_records import (
    DEFAULT,
    LOCAL_FAMILIES,
    METADATA,
    OFFSET_KEY,
    TTL_BACKUP,
    TTL_ENABLED_KEY,
    TTL_INDEX,
    TTL_PENDING,
    TTL_STAMPED,
    TTL_SYSTEM,
    TTL_UNFINISHED_KEYS,
    TTL_VERSION,
    TTL_VERSION_KEY,
    QuixChange,
    decode_offset,
    encode_number,
    index_key,
    read_change,
)
from snapstore.ports import Pair, ReplaySubject, StoreWriter


class QuixReplay:
    """Implements StoreReplay: data and offset in one batch.

    A record that comes of source records which the consumer group has not committed is refused: an
    application that starts passes over it and processes those again, and one that runs elsewhere is
    about to commit them. A store whose values are being rewritten
    for expiry is refused, since only the application knows how that ends.
    """

    def __init__(self, writer: StoreWriter, subject: ReplaySubject) -> None:
        self._writer = writer
        self._subject = subject
        self._database = subject.location.root
        self._committed: dict[str, int] = {}
        self._families = set(writer.families(self._database)) if writer.databases else set()
        metadata = self._entries(METADATA)
        self._expiring = bool(metadata.get(TTL_ENABLED_KEY))
        unfinished = [key.decode() for key in TTL_UNFINISHED_KEYS if key in metadata]
        unfinished += [name for name in (TTL_STAMPED, TTL_BACKUP) if self._holds(name)]
        if self._expiring and self._holds(TTL_PENDING):
            unfinished.append(TTL_PENDING)
        if unfinished:
            raise self._refusal(f"its values are being rewritten for expiry ({unfinished[0]})")
        noted = metadata.get(OFFSET_KEY)
        self._reached = 0 if noted is None else decode_offset(noted) + 1

    def apply(self, records: Sequence[ChangelogRecord], reached: int) -> None:
        if reached <= self._reached:
            return
        pairs: dict[str, list[Pair]] = defaultdict(list)
        for record in records:
            if record.offset < self._reached:
                continue
            change = read_change(record)
            if change.family not in LOCAL_FAMILIES:
                self._require_committed(change, record.offset)
                self._add(pairs, change, record.offset)
        pairs[METADATA].append((OFFSET_KEY, encode_number(reached - 1)))
        self._make_families(pairs)
        self._writer.write(self._database, pairs)
        self._reached = reached

    def _add(self, pairs: dict[str, list[Pair]], change: QuixChange, offset: int) -> None:
        stamped = change.family == DEFAULT and change.stamped
        if (stamped or change.family == TTL_SYSTEM) and not self._expiring:
            if self._holds(DEFAULT) or pairs.get(DEFAULT):
                raise self._refusal(f"expiry was switched on at offset {offset}")
            pairs[METADATA] += [
                (TTL_ENABLED_KEY, b"\x01"),
                (TTL_VERSION_KEY, encode_number(TTL_VERSION)),
            ]
            self._expiring = True
        if self._expiring and change.family == DEFAULT and change.value is not None:
            if not stamped:
                raise self._refusal(f"the value at offset {offset} lacks the time of its expiry")
            expiry = index_key(change)
            pairs[TTL_INDEX] += [] if expiry is None else [(expiry, b"")]
        pairs[change.family].append((change.key, change.value))

    def _require_committed(self, change: QuixChange, offset: int) -> None:
        for topic, processed in (change.processed or {}).items():
            if processed < self._committed.get(topic, 0):
                continue
            self._committed[topic] = self._ask_committed(topic)
            if processed >= self._committed[topic]:
                raise self._refusal(
                    f"the record at offset {offset} comes of offset {processed} of {topic}, which "
                    "its consumer group has not committed",
                    hint="the application will process that again: replay no farther than "
                    f"--to-offset {offset - 1}, or let it replay",
                )

    def _ask_committed(self, topic: str) -> int:
        if self._subject.committed is None:
            raise self._refusal("the offsets that its consumer group has committed are unknown")
        store = self._subject.location.store
        source = ChangelogPartition(topic, partition_of(store))
        return self._subject.committed(store.application, source) or 0

    def _make_families(self, names: Iterable[str]) -> None:
        missing = {DEFAULT, *names} - self._families
        if missing:
            self._writer.create(self._database, sorted(missing))
            self._families |= missing

    def _entries(self, family: str) -> dict[bytes, bytes]:
        if family not in self._families:
            return {}
        return dict(self._writer.entries(self._database, family))

    def _holds(self, family: str) -> bool:
        if family not in self._families:
            return False
        return next(iter(self._writer.scan(self._database, family)), None) is not None

    def _refusal(self, why: str, *, hint: str | None = None) -> NotReplayableError:
        store = self._subject.location.store
        return NotReplayableError(
            f"{store} cannot be replayed from outside: {why}",
            hint=hint or "let the application replay: it does when it starts",
            store=str(store),
        )
