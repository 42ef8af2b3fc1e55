"""Sight of a folder of files as if it were a database: its entries are the pieces of its files.

The key of an entry is the file's name relative to the store's folder, a zero byte and the number of
the piece (8 bytes, big-endian); the value is that piece, 1 MiB but for the last. An empty file has
one empty piece. So contents can be compared and digested like those of any other store.
"""

from collections.abc import Iterator, Mapping

from snapstore.errors import SourceDamagedError, StoreNotFoundError
from snapstore.model.store import ByteSource

FAMILY = "default"
PIECE_BYTES = 1 << 20


class FilesView:
    """Implements StoreView; ``files`` are by name relative to the store's folder."""

    def __init__(self, root: str, files: Mapping[str, ByteSource]) -> None:
        self._root = root
        self._files = files

    @property
    def databases(self) -> tuple[str, ...]:
        return (self._root,)

    def families(self, database: str) -> tuple[str, ...]:
        self._check(database, FAMILY)
        return (FAMILY,)

    def entries(self, database: str, family: str) -> Mapping[bytes, bytes]:
        return dict(self.scan(database, family))

    def scan(self, database: str, family: str) -> Iterator[tuple[bytes, bytes]]:
        self._check(database, family)
        for name, source in sorted(
            (name.encode("utf-8", "surrogateescape"), source)
            for name, source in self._files.items()
        ):
            yield from _pieces(name, source)

    def _check(self, database: str, family: str) -> None:
        if database != self._root or family != FAMILY:
            raise StoreNotFoundError(
                f"no database {database!r} with a family {family!r} in this store",
                databases=[self._root],
                families=[FAMILY],
            )


def _pieces(name: bytes, source: ByteSource) -> Iterator[tuple[bytes, bytes]]:
    number = position = 0
    while position < source.size or not number:
        wanted = min(PIECE_BYTES, source.size - position)
        piece = b""
        while len(piece) < wanted:
            more = source.pread(wanted - len(piece), position + len(piece))
            if not more:
                raise SourceDamagedError(
                    f"{name.decode('utf-8', 'replace')} ends at byte {position + len(piece)} of "
                    f"{source.size}"
                )
            piece += more
        yield name + b"\0" + number.to_bytes(8, "big"), piece
        position += wanted
        number += 1
