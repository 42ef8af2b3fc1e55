"""Apply records to a key-value store: one database, each record one put or delete."""

from collections.abc import Sequence

from snapstore.layouts.kafka_streams.replay_databases import Databases
from snapstore.model.changelog import ChangelogRecord
from snapstore.model.records import FAMILIES, StoreFormat, older_families, to_pairs


class KeyValueReplay:
    """Implements StoreReplay."""

    def __init__(
        self, databases: Databases, root: str, form: StoreFormat, families: Sequence[str]
    ) -> None:
        self._databases = databases
        self._root = root
        self._family = FAMILIES[form]
        self._older = older_families(form, frozenset(families))
        self._families = families
        self._form = form

    def apply(self, records: Sequence[ChangelogRecord], reached: int) -> None:
        databases, root = self._databases, self._root
        if root not in databases.applied:
            databases.create(root, self._families)
        pairs = to_pairs(self._form, databases.fresh(root, records))
        older = databases.outdated(root, self._older)
        gone = [(key, None) for key, _ in pairs] if older else []
        databases.write(root, {**dict.fromkeys(older, gone), self._family: pairs}, reached)
