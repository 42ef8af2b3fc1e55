"""What a prune decides on every snapshot: retention, and what is too doubtful for it."""

from collections.abc import Collection, Mapping
from datetime import datetime

import msgspec

from snapstore.model.listing import ListedSnapshot
from snapstore.model.restorable import why_unsure
from snapstore.model.retention import Candidate, Decision, RetentionPolicy, plan_retention
from snapstore.operations.doubts import doubts_among, doubts_by_logs, notes_on
from snapstore.operations.survey import Survey
from snapstore.ports import Changelog, Clock


class Decided(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on every snapshot; the doubtful ones with the reason; sentences on them."""

    decisions: tuple[Decision, ...]
    doubts: Mapping[ListedSnapshot, str]
    notes: tuple[str, ...]

    @property
    def to_remove(self) -> tuple[ListedSnapshot, ...]:
        return tuple(decision.listed for decision in self.decisions if not decision.kept)


def decide(
    found: Survey,
    policy: RetentionPolicy,
    *,
    application: str | None,
    now: datetime,
    changelog: Changelog | None,
    clock: Clock,
) -> Decided:
    """Decide on the snapshots of one application, or of all.

    The logs are asked only about stores of which something is to go: it goes because others stay.
    """
    doubts = doubts_among(found, now=now)
    notes: list[str] = []
    decisions = _retained(found, policy, application, now, doubts)
    if changelog is not None:
        gone = {decision.listed for decision in decisions if not decision.kept}
        groups = {
            (each.listed.store, each.history) for each in found.snapshots if each.listed in gone
        }
        more = doubts_by_logs(found, groups, changelog, clock=clock, notes=notes)
        if more:
            doubts = {**more, **doubts}
            decisions = _retained(found, policy, application, now, doubts)
    shown = {decision.listed for decision in decisions}
    doubts = {listed: doubt for listed, doubt in doubts.items() if listed in shown}
    return Decided(decisions=decisions, doubts=doubts, notes=(*notes_on(doubts), *notes))


def without_entry(found: Survey, removed: Collection[ListedSnapshot]) -> set[str]:
    """Return the ids of which no entry stays: somebody may have put a second one for an id."""
    out = {*removed}
    kept = {each.listed.id for each in found.snapshots if each.listed not in out}
    return {listed.id for listed in removed} - kept


def _retained(
    found: Survey,
    policy: RetentionPolicy,
    application: str | None,
    now: datetime,
    doubts: Mapping[ListedSnapshot, str],
) -> tuple[Decision, ...]:
    chosen = [
        each for each in found.snapshots if application in (None, each.listed.store.application)
    ]
    newer = [
        Decision(listed=each.listed, kept=True, reasons=("written by a newer snapstore",))
        for each in chosen
        if each.newer
    ]
    candidates = [
        Candidate(
            listed=each.listed,
            pinned=each.listed.id in found.pinned,
            damage=each.damage,
            proven=each.description is not None,
            doubt=doubts.get(each.listed),
            history=each.history,
            unsure=None if each.description is None else why_unsure(each.description),
            complete=each.description is None or each.description.complete,
        )
        for each in chosen
        if not each.newer
    ]
    return (*newer, *plan_retention(candidates, policy, now=now))
