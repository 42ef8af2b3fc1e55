"""Which snapshots of each store stay, and the reason for each."""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from snapstore.model.identity import StoreId
from snapstore.model.listing import ListedSnapshot
from snapstore.model.units import spell_duration


class RetentionPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Rules that are each applied to every store; what any of them keeps is kept.

    ``keep_last`` counts snapshots. The others count hours, days, ISO weeks, months and years in UTC
    that have a snapshot, and keep the newest of each.
    """

    keep_last: int = 0
    keep_within: timedelta | None = None
    keep_hourly: int = 0
    keep_daily: int = 0
    keep_weekly: int = 0
    keep_monthly: int = 0
    keep_yearly: int = 0


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot to be judged.

    ``damage`` says why it cannot be restored; None if nothing is known against it. ``proven``: its
    manifest is there and describes the same. ``doubt`` says what of it cannot be true. ``history``
    tells changelogs of one name apart: a topic that was made anew counts its offsets from 0.
    ``unsure`` says why its entry does not prove that a restore will take it; ``complete``: see
    ``Description``.
    """

    listed: ListedSnapshot
    pinned: bool = False
    damage: str | None = None
    proven: bool = True
    doubt: str | None = None
    history: str = ""
    unsure: str | None = None
    complete: bool = True


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of one snapshot; ``reasons`` are sentences, at least one."""

    listed: ListedSnapshot
    kept: bool
    reasons: tuple[str, ...]


def plan_retention(
    candidates: Iterable[Candidate], policy: RetentionPolicy, *, now: datetime
) -> tuple[Decision, ...]:
    """Decide on every candidate; by application, task and store, the newest of each first.

    The newest is the one with the highest applied offset; the clock decides only between equals.
    Stays regardless of all rules: what is pinned; the newest usable snapshot of a store; the one
    captured last, even where its offset is not the highest (the clock or the topic may have been
    set back, and only one of the two snapshots is worth anything). A damaged snapshot takes the
    place of no other; it stays as long as the rules would keep it if it were whole. A doubtful one
    takes the place of no other either, and stays until somebody deletes it. An incomplete one takes
    the place of no complete one. Where no newer one is sure to be restored, the newest that is
    stays, whatever the rules say.
    """
    groups: dict[tuple[StoreId, str], list[Candidate]] = {}
    for candidate in candidates:
        groups.setdefault((candidate.listed.store, candidate.history), []).append(candidate)
    decisions = [
        decision for group in groups.values() for decision in _of_history(group, policy, now)
    ]
    decisions.sort(key=lambda decision: decision.listed.age_order, reverse=True)
    return tuple(sorted(decisions, key=lambda decision: decision.listed.store.order))


def _of_history(
    group: Sequence[Candidate], policy: RetentionPolicy, now: datetime
) -> list[Decision]:
    ordered = sorted(group, key=lambda candidate: candidate.listed.age_order, reverse=True)
    credible = [candidate for candidate in ordered if candidate.doubt is None]
    usable = [candidate for candidate in credible if candidate.damage is None]
    complete = [candidate for candidate in usable if candidate.complete]
    reasons = _reasons(usable, policy, now)
    if complete:
        beside = {each.listed for each in usable if not each.complete}
        reasons = _reasons(complete, policy, now) | {
            listed: ["incomplete, and takes the place of no complete one", *why]
            for listed, why in reasons.items()
            if listed in beside
        }
    as_if_whole = _rules([candidate.listed for candidate in credible], policy, now)
    as_if_whole |= _rules([each.listed for each in credible if each.proven], policy, now)
    decisions = []
    for candidate in ordered:
        found = reasons.get(candidate.listed, [])
        if candidate.doubt is not None:
            found, kept = [f"doubtful, and counts for no rule: {candidate.doubt}"], True
        elif candidate.damage is not None:
            found = [f"damaged, and counts for no rule: {candidate.damage}"]
            kept = not usable or candidate.listed in as_if_whole
            if not usable:
                found.append("its store has no usable snapshot")
        else:
            kept = bool(found)
        if candidate.pinned:
            found, kept = ["pinned", *found], True
        decisions.append(
            Decision(
                listed=candidate.listed,
                kept=kept,
                reasons=tuple(found) or ("no rule keeps it",),
            )
        )
    return decisions


def _reasons(
    usable: Sequence[Candidate], policy: RetentionPolicy, now: datetime
) -> dict[ListedSnapshot, list[str]]:
    """Return why usable snapshots stay: by the rules, and so that one is left to be restored."""
    reasons = _rules([each.listed for each in usable], policy, now)
    if not usable:
        return reasons
    if not reasons:
        reasons[usable[0].listed] = ["the last usable snapshot of its store"]
    latest = max(
        (each.listed for each in usable),
        key=lambda listed: (listed.captured_at, *listed.age_order),
    )
    reasons.setdefault(latest, ["captured last, though its offset is not the highest"])
    sure = next((each.listed for each in usable if each.unsure is None), usable[0].listed)
    if sure != usable[0].listed:
        reasons.setdefault(sure, []).append(
            f"the newest that is sure to be restored: the last one is not, {usable[0].unsure}"
        )
    return reasons


def _rules(
    newest_first: Sequence[ListedSnapshot], policy: RetentionPolicy, now: datetime
) -> dict[ListedSnapshot, list[str]]:
    """Return the rules that keep each snapshot."""
    reasons: dict[ListedSnapshot, list[str]] = {}
    for number, listed in enumerate(newest_first[: policy.keep_last], start=1):
        reasons.setdefault(listed, []).append(f"last {number} of {policy.keep_last}")
    if policy.keep_within is not None:
        for listed in newest_first:
            if now - listed.captured_at <= policy.keep_within:
                within = f"within {spell_duration(policy.keep_within)}"
                reasons.setdefault(listed, []).append(within)
    for name, count, period_of in _periods(policy):
        seen: list[str] = []
        for listed in newest_first:
            period = period_of(listed.captured_at.astimezone(UTC))
            if period in seen or len(seen) == count:
                continue
            seen.append(period)
            reasons.setdefault(listed, []).append(f"{name} {period}")
    return reasons


def _periods(
    policy: RetentionPolicy,
) -> tuple[tuple[str, int, Callable[[datetime], str]], ...]:
    return (
        ("hourly", policy.keep_hourly, lambda time: f"{time:%Y-%m-%dT%H}"),
        ("daily", policy.keep_daily, lambda time: f"{time:%Y-%m-%d}"),
        ("weekly", policy.keep_weekly, lambda time: f"{time:%G-W%V}"),
        ("monthly", policy.keep_monthly, lambda time: f"{time:%Y-%m}"),
        ("yearly", policy.keep_yearly, lambda time: f"{time:%Y}"),
    )
