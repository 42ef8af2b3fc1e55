"""Hold a restored store against one that was rebuilt from its changelog."""

from collections.abc import Callable, Collection, Iterator

import msgspec

from snapstore.model.content import (
    ContentRules,
    Difference,
    Pair,
    Side,
    Unequal,
    difference,
    unequal,
)
from snapstore.model.digest import EntriesHash
from snapstore.model.units import count
from snapstore.operations.drill_report import Comparison, FamilyDigest
from snapstore.ports import StoreView

StillLogged = Callable[[Collection[bytes]], Collection[bytes]]
"""Of these keys, returns those of which the log that was rebuilt from has any record."""


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """What of the two copies must be equal.

    ``latest_only`` leaves the history of a versioned store out. ``still_logged`` is given where the
    start of the log is gone: a key of which it has no record any more is not missed in a rebuild.
    """

    rules: ContentRules
    latest_only: bool = False
    still_logged: StillLogged | None = None
    shown: int = 10


def compare(restored: StoreView, rebuilt: StoreView, scope: Scope) -> Comparison:
    """Return digests of all column families, and the first keys that differ.

    Raises SourceDamagedError at a block that cannot be read.
    """
    before_upgrade = _keys_of_older_families(restored, scope.rules)
    found = _Findings(scope, before_upgrade)
    families = []
    for database, family in _families(restored, rebuilt):
        if family in scope.rules.left_out | scope.rules.older:
            continue
        one, other = EntriesHash(), EntriesHash()
        for each in unequal(
            one.passing(_pairs(restored, database, family, scope)),
            other.passing(_pairs(rebuilt, database, family, scope)),
        ):
            found.add(database, family, each)
        families.append(
            FamilyDigest(
                database=database,
                family=family,
                restored_pairs=one.count,
                rebuilt_pairs=other.count,
                restored_sha256=one.hexdigest(),
                rebuilt_sha256=other.hexdigest(),
            )
        )
    return found.told(tuple(families))


class _Findings:
    """Sorts what differs into what is wrong and what a rebuild need not have."""

    def __init__(self, scope: Scope, before_upgrade: Collection[bytes]) -> None:
        self._scope = scope
        self._before_upgrade = before_upgrade
        self._wrong: list[Difference] = []
        self._count = 0
        self._old_format = 0
        self._alone: list[tuple[str, str, Unequal]] = []

    def add(self, database: str, family: str, found: Unequal) -> None:
        if found.side is Side.REBUILT and found.key in self._before_upgrade:
            self._old_format += 1
        elif found.side is Side.RESTORED and self._scope.still_logged is not None:
            self._alone.append((database, family, found))
        else:
            self._note(database, family, found)

    def told(self, families: tuple[FamilyDigest, ...]) -> Comparison:
        unlogged = self._sort_out_alone()
        not_compared = []
        if self._scope.latest_only:
            not_compared.append(
                "the history of the versioned store: older versions depend on where the snapshot"
                " was cut and on what compaction has left"
            )
        if self._before_upgrade:
            not_compared.append(
                f"{count(len(self._before_upgrade), 'pair')} from before the store's format was"
                " upgraded"
            )
        if unlogged:
            not_compared.append(
                f"{count(unlogged, 'pair')} of which the changelog has no record any more: its"
                " start is gone"
            )
        return Comparison(
            families=families,
            differences=tuple(
                sorted(self._wrong, key=lambda each: (each.database, each.family, each.key))
            )[: self._scope.shown],
            different_keys=self._count,
            not_compared=tuple(not_compared),
        )

    def _sort_out_alone(self) -> int:
        """Note those that the log should have brought back; return how many it cannot have."""
        if self._scope.still_logged is None or not self._alone:
            return 0
        prefix = self._scope.rules.latest_prefix or b""
        logged = self._scope.still_logged(
            {each.key.removeprefix(prefix) for _, _, each in self._alone}
        )
        unlogged = 0
        for database, family, each in self._alone:
            if each.key.removeprefix(prefix) in logged:
                self._note(database, family, each)
            else:
                unlogged += 1
        return unlogged

    def _note(self, database: str, family: str, found: Unequal) -> None:
        self._count += 1
        if len(self._wrong) < 2 * self._scope.shown:
            self._wrong.append(difference(database, family, found))


def _families(restored: StoreView, rebuilt: StoreView) -> list[tuple[str, str]]:
    return sorted(
        {
            (database, family)
            for view in (restored, rebuilt)
            for database in view.databases
            for family in view.families(database)
        }
    )


def _pairs(view: StoreView, database: str, family: str, scope: Scope) -> Iterator[Pair]:
    """Yield what is to be compared; nothing where the database or family is not there."""
    if database not in view.databases or family not in view.families(database):
        return
    prefix = scope.rules.latest_prefix
    for key, value in view.scan(database, family):
        if scope.latest_only and prefix is not None and not key.startswith(prefix):
            continue
        yield key, value


def _keys_of_older_families(view: StoreView, rules: ContentRules) -> Collection[bytes]:
    return {
        key
        for database in view.databases
        for family in view.families(database)
        if family in rules.older
        for key, _ in view.scan(database, family)
    }
