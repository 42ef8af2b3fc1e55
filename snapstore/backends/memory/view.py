"""Read-only sight of a store of pair files."""

from collections.abc import Iterator, Mapping, Sequence

from snapstore.backends.memory.damage import damage_of_the_source
from snapstore.errors import StoreNotFoundError
from snapstore.model.store import ChangelogPosition
from snapstore.pairs.folder import OpenFile, merged

DEFAULT = "default"


class MemoryView:
    """One database with one family: the files laid over one another."""

    def __init__(self, root: str, files: Sequence[OpenFile]) -> None:
        self._root = root
        self._files = tuple(files)

    @property
    def databases(self) -> tuple[str, ...]:
        return (self._root,)

    @property
    def positions(self) -> tuple[ChangelogPosition, ...]:
        """How far the store has got, as its newest file says."""
        return self._files[-1].summary.header.positions

    def families(self, database: str) -> tuple[str, ...]:
        check_names(self._root, database, DEFAULT)
        return (DEFAULT,)

    def entries(self, database: str, family: str) -> Mapping[bytes, bytes]:
        return dict(self.scan(database, family))

    def scan(self, database: str, family: str) -> Iterator[tuple[bytes, bytes]]:
        check_names(self._root, database, family)
        with damage_of_the_source():
            yield from merged(self._files)


def check_names(root: str, database: str, family: str) -> None:
    """Raise StoreNotFoundError unless they name the only database and its only family."""
    if database != root or family != DEFAULT:
        raise StoreNotFoundError(
            f"no database {database!r} with a family {family!r} in this store",
            databases=[root],
            families=[DEFAULT],
        )
