"""A storage that fails on purpose: wraps a real one and spoils the calls that a plan names.

storage = FaultyStorage(real, [
    Fault("put", Instead(timed_out()), call=2),            # the second put never arrives
    Fault("put_file", Afterwards(slow_down()), key="blobs/"),  # stored, but the answer is lost
    Fault("read", Cut(after_bytes=1000)),                  # ends early without a word
    Fault("delete", Instead(Crash()), calls=None),         # the process dies at any delete
])
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Literal, TypeVar

import msgspec

from snapstore.errors import CredentialsError, NoSpaceError, StorageError
from snapstore.model.store import ByteSource
from snapstore.ports import ObjectStat, ObjectStorage, UnfinishedUpload

T = TypeVar("T")

Method = Literal[
    "put",
    "put_file",
    "get",
    "read",
    "stat",
    "list",
    "delete",
    "unfinished_uploads",
    "abort_upload",
    "checks_checksums",
]


class Crash(BaseException):
    """The process dies here: no ``except Exception`` and no clean-up of ours should count on it."""


def timed_out() -> StorageError:
    return StorageError("the storage did not answer in time")


def slow_down() -> StorageError:
    return StorageError("please reduce your request rate (SlowDown, HTTP 503, 5 attempts)")


def denied() -> CredentialsError:
    return CredentialsError("access denied (AccessDenied, HTTP 403)")


def disk_full() -> NoSpaceError:
    return NoSpaceError("no space left on device", needed_bytes=1, available_bytes=0)


class Instead(msgspec.Struct, frozen=True):
    """Raise ``error``; the storage never hears of the call."""

    error: BaseException


class Afterwards(msgspec.Struct, frozen=True):
    """Carry the call out, then raise ``error``: what happens when an answer is lost."""

    error: BaseException


class Delayed(msgspec.Struct, frozen=True):
    """Wait, then carry the call out."""

    seconds: float


class Cut(msgspec.Struct, frozen=True):
    """Return only the first bytes; then raise ``error``, or end without a word where it is None."""

    after_bytes: int
    error: StorageError | None = None


class Corrupt(msgspec.Struct, frozen=True):
    """Flip every bit of the byte at ``position`` of what is returned."""

    position: int = 0


class Hidden(msgspec.Struct, frozen=True):
    """Say that the object is not there."""


class Stale(msgspec.Struct, frozen=True):
    """List what was there when the wrapper was made, as a server that lags behind does."""


Effect = Instead | Afterwards | Delayed | Cut | Corrupt | Hidden | Stale

_ONLY_FOR: Final[dict[type, tuple[Method, ...]]] = {
    Cut: ("get", "read"),
    Corrupt: ("get", "read"),
    Hidden: ("stat",),
    Stale: ("list",),
}


class Fault(msgspec.Struct, frozen=True):
    """Spoil calls of ``method`` whose key (or prefix) begins with ``key``.

    They are counted from 1; ``calls`` of them from ``call`` on are spoilt, all of them where it is
    None. A ``delete`` counts as a call for its first key.
    """

    method: Method
    effect: Effect
    call: int = 1
    calls: int | None = 1
    key: str = ""

    def __post_init__(self) -> None:
        allowed = _ONLY_FOR.get(type(self.effect))
        if allowed is not None and self.method not in allowed:
            raise ValueError(f"{type(self.effect).__name__} is for {' and '.join(allowed)} only")

    def spoils(self, number: int) -> bool:
        return number >= self.call and (self.calls is None or number < self.call + self.calls)


class Call(msgspec.Struct, frozen=True):
    """A call that was made, spoilt or not."""

    method: Method
    key: str


class FaultyStorage:
    """Implements ObjectStorage by ``inner``, spoilt by a plan. Safe for several threads.

    ``calls`` holds every call in order. Of several faults for one call the first in the plan acts.
    """

    def __init__(self, inner: ObjectStorage, plan: Sequence[Fault] = ()) -> None:
        self.inner = inner
        self.url = inner.url
        self.calls: list[Call] = []
        self._counts = [0] * len(plan)
        self._plan = tuple(plan)
        self._lock = threading.Lock()
        self._first_seen: tuple[ObjectStat, ...] = ()
        if any(isinstance(fault.effect, Stale) for fault in plan):
            self._first_seen = tuple(inner.list(""))

    def put(self, key: str, body: bytes, *, if_absent: bool = False) -> None:
        self._run("put", key, lambda: self.inner.put(key, body, if_absent=if_absent))

    def put_file(self, key: str, source: ByteSource, *, sha256: str) -> bool:
        return self._run("put_file", key, lambda: self.inner.put_file(key, source, sha256=sha256))

    def get(self, key: str, *, limit_bytes: int) -> bytes:
        effect = self._noted("get", key)
        content = _spoilt(effect, lambda: self.inner.get(key, limit_bytes=limit_bytes))
        return b"".join(_altered(iter([content]), effect))

    def read(self, key: str, *, start: int, stop: int) -> Iterator[bytes]:
        effect = self._noted("read", key)
        chunks = _spoilt(effect, lambda: self.inner.read(key, start=start, stop=stop))
        yield from _altered(chunks, effect)

    def stat(self, key: str) -> ObjectStat | None:
        effect = self._noted("stat", key)
        if isinstance(effect, Hidden):
            return None
        return _spoilt(effect, lambda: self.inner.stat(key))

    def list(self, prefix: str, *, start_after: str = "") -> Iterator[ObjectStat]:
        effect = self._noted("list", prefix)
        if isinstance(effect, Stale):
            yield from (
                seen
                for seen in self._first_seen
                if seen.key.startswith(prefix) and seen.key > start_after
            )
        else:
            yield from _spoilt(effect, lambda: self.inner.list(prefix, start_after=start_after))

    def delete(self, keys: Sequence[str]) -> None:
        self._run("delete", keys[0] if keys else "", lambda: self.inner.delete(keys))

    def unfinished_uploads(self) -> Iterator[UnfinishedUpload]:
        yield from self._run("unfinished_uploads", "", self.inner.unfinished_uploads)

    def abort_upload(self, upload: UnfinishedUpload) -> None:
        self._run("abort_upload", upload.key, lambda: self.inner.abort_upload(upload))

    def checks_checksums(self, key: str) -> bool:
        return self._run("checks_checksums", key, lambda: self.inner.checks_checksums(key))

    def close(self) -> None:
        self.inner.close()

    def _run(self, method: Method, key: str, call: Callable[[], T]) -> T:
        return _spoilt(self._noted(method, key), call)

    def _noted(self, method: Method, key: str) -> Effect | None:
        """Count the call for every fault it fits; return the effect of the first that is due."""
        due = None
        with self._lock:
            self.calls.append(Call(method, key))
            for index, fault in enumerate(self._plan):
                if fault.method == method and key.startswith(fault.key):
                    self._counts[index] += 1
                    if due is None and fault.spoils(self._counts[index]):
                        due = fault.effect
        return due


def _spoilt(effect: Effect | None, call: Callable[[], T]) -> T:
    if isinstance(effect, Instead):
        raise effect.error
    if isinstance(effect, Delayed):
        time.sleep(effect.seconds)
    answer = call()
    if isinstance(effect, Afterwards):
        raise effect.error
    return answer


def _altered(chunks: Iterator[bytes], effect: Effect | None) -> Iterator[bytes]:
    """Yield the chunks, cut or corrupted at a position counted from the first byte returned."""
    position = 0
    for chunk in chunks:
        after = position + len(chunk)
        if isinstance(effect, Cut) and after >= effect.after_bytes:
            yield chunk[: effect.after_bytes - position]
            if effect.error is not None:
                raise effect.error
            return
        if isinstance(effect, Corrupt) and position <= effect.position < after:
            spoilt = bytearray(chunk)
            spoilt[effect.position - position] ^= 0xFF
            chunk = bytes(spoilt)
        yield chunk
        position = after
