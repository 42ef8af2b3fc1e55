"""Which catalog entries cannot be true: by themselves, beside one another, beside the logs."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

from snapstore.errors import CredentialsError, KafkaError, RefusedError
from snapstore.model.identity import StoreId
from snapstore.model.listing import ListedSnapshot
from snapstore.model.plausible import (
    Sighting,
    beyond,
    contradicted,
    doubt_of,
    doubt_of_key,
    seen_end,
)
from snapstore.model.snapshot import Position
from snapstore.operations.survey import Found, Survey
from snapstore.ports import Changelog, Clock

Doubts = dict[ListedSnapshot, str]


def doubts_among(found: Survey, *, now: datetime) -> Doubts:
    """Return the entries that contradict the clocks, their own fences, or what was seen later."""
    doubts: Doubts = {}
    credible: dict[tuple[StoreId, str], list[Sighting]] = {}
    for each in found.snapshots:
        if each.newer:
            continue
        doubt = _own_doubt(each, now)
        if doubt is not None:
            doubts[each.listed] = doubt
        elif each.description is not None:
            group = credible.setdefault((each.listed.store, each.history), [])
            end = seen_end(each.description)
            group.append(Sighting(listed=each.listed, stored_at=each.stored_at, end=end))
    for (_, history), group in credible.items():
        if history:
            doubts |= contradicted(group)
    return doubts


def doubts_by_logs(
    found: Survey,
    groups: Collection[tuple[StoreId, str]],
    changelog: Changelog,
    *,
    clock: Clock,
    notes: list[str],
) -> Doubts:
    """Return the entries of those groups whose offsets lie beyond the present end of their logs.

    A topic that is not there any more, or another of that name, says nothing. Where Kafka does not
    answer, ``notes`` gets a sentence.
    """
    ends = _Ends(changelog, clock)
    doubts: Doubts = {}
    try:
        for each in found.snapshots:
            if each.description is None or (each.listed.store, each.history) not in groups:
                continue
            known = [ends.of(position) for position in each.description.positions]
            present = [end for end in known if end is not None]
            if present and len(present) == len(known):
                doubt = beyond(each.description, present)
                if doubt is not None:
                    doubts[each.listed] = doubt
    except (KafkaError, CredentialsError) as error:
        notes.append(
            "Kafka did not answer, so no applied offset was compared with the end of its log:"
            f" {error.message}"
        )
    return doubts


def _own_doubt(each: Found, now: datetime) -> str | None:
    if each.description is None:
        return doubt_of_key(each.listed, now=now, stored_at=each.stored_at)
    return doubt_of(each.listed, each.description, now=now, stored_at=each.stored_at)


class _Ends:
    """The ends of logs, each asked for once."""

    def __init__(self, changelog: Changelog, clock: Clock) -> None:
        self._changelog = changelog
        self._clock = clock
        self._known: dict[tuple[object, str, str], int | None] = {}

    def of(self, position: Position) -> int | None:
        """Return where the log ends that the position was taken of; None where it is gone."""
        fence = position.fence
        if fence is None:
            return None
        changelog = position.position.changelog
        key = (changelog, fence.cluster_id, fence.topic_id)
        if key not in self._known:
            self._known[key] = None
            try:
                state = self._changelog.inspect(changelog, now=self._clock())
            except RefusedError:
                return None
            if (state.cluster_id, state.topic_id) == key[1:]:
                self._known[key] = max(state.log_end, state.high_watermark)
        return self._known[key]


def notes_on(doubts: Mapping[ListedSnapshot, str]) -> Iterable[str]:
    """Yield a sentence on every doubtful entry."""
    for listed, doubt in doubts.items():
        yield (
            f"snapshot {listed.id[:12]} of {listed.store} is doubtful, stays, and counts for no"
            f" rule: {doubt}"
        )
