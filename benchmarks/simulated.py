"""Hash and read generated files as an upload does: ``python -m benchmarks.simulated BYTES``."""

import json
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

from snapstore.model.store import ByteSource, CapturedFile
from snapstore.operations.stopping import Stop
from snapstore.operations.upload import Known, Uploader
from snapstore.repository.blobs import BlobWriter

_FILE_BYTES = 64 << 20
_SMALL_BYTES = 256 << 10
_PIECE_BYTES = 256 << 10
_NOISE = bytes(range(256)) * (1 << 13)
_THREADS = 8


class Generated:
    """A source of so many bytes that no other has; they are nowhere until they are read."""

    def __init__(self, number: int, size: int) -> None:
        self._number = number.to_bytes(8, "big")
        self.size = size

    def pread(self, length: int, position: int) -> bytes:
        length = min(length, self.size - position, len(_NOISE))
        return (self._number + _NOISE)[:length] if position == 0 else _NOISE[:length]


class Nowhere:
    """Takes files and keeps nothing; what an upload asks beside that, it answers."""

    url = "nowhere:"

    def put_file(self, key: str, source: ByteSource, *, sha256: str) -> bool:
        del key, sha256
        position = 0
        while position < source.size:
            position += len(source.pread(_PIECE_BYTES, position))
        return True


def files(total_bytes: int) -> Iterator[CapturedFile]:
    """Yield one file of a third of it, as many small ones as large ones, and the rest."""
    left = total_bytes
    pairs = [_FILE_BYTES, _SMALL_BYTES] * (total_bytes // _FILE_BYTES + 1)
    for number, wanted in enumerate((total_bytes // 3, *pairs)):
        if left <= 0:
            return
        size = min(wanted, left)
        left -= size
        source = Generated(number, size)
        yield CapturedFile(name=f"{number:08}.sst", mode=0o644, source=source)


def main() -> None:
    """Send so many bytes and print how many files they were."""
    blobs = BlobWriter(
        Nowhere(),  # type: ignore[arg-type]
        run="simulated",
        read_back=False,
        condemned=frozenset(),
    )
    with ThreadPoolExecutor(_THREADS) as pool:
        uploader = Uploader(pool, blobs, cache=None, limit=None, clock=lambda: datetime.now(UTC))
        sent = uploader.send(
            files(int(sys.argv[1])),
            Known(),
            trust_cache=False,
            advanced=lambda _, __: None,
            stop=Stop(),
        )
        stored = [file for _, file in sent]
    assert sum(file.entry.size for file in stored) == int(sys.argv[1])
    print(json.dumps({"files": len(stored)}))


if __name__ == "__main__":
    main()
