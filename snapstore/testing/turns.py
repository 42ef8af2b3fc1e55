"""Let several programs use one storage in an order that a test decides, call by call.

    program = Program(storage, lambda storage: run_something(storage))
    program.step()                  # its next call of the storage is carried out
    program.step(Afterwards(error)) # so is this one, but the answer is lost
    program.crash()                 # it never comes back
    program.finish()                # or: it runs to its end

Between two steps the program stands still: others may act, time may pass.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

from snapstore.model.store import ByteSource
from snapstore.ports import ObjectStat, ObjectStorage, UnfinishedUpload
from snapstore.testing.faults import Afterwards, Call, Crash, Instead, Method

T = TypeVar("T")
R = TypeVar("R")

_ANSWERS_WITHIN_S = 300.0

Outcome = Instead | Afterwards | None


class _Gate:
    """Where the threads of one program wait for their turn."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[tuple[Call, object]] = deque()
        self._granted: dict[object, Outcome] = {}
        self.dead = False
        self.open = False
        self.ended = False

    def pass_through(self, call: Call, work: Callable[[], T]) -> T:
        token = object()
        with self._changed:
            self._waiting.append((call, token))
            self._changed.notify_all()
            while token not in self._granted and not self.dead and not self.open:
                self._changed.wait()
            if self.dead:
                raise Crash
            outcome = self._granted.pop(token, None)
        if isinstance(outcome, Instead):
            raise outcome.error
        answer = work()
        if isinstance(outcome, Afterwards):
            raise outcome.error
        return answer

    def next_call(self) -> Call | None:
        """Wait until the program stands at its next call; None when it has ended."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self.ended, _ANSWERS_WITHIN_S)
            if self._waiting:
                return self._waiting[0][0]
            if not self.ended:
                raise TimeoutError("the program neither calls the storage nor ends")
            return None

    def grant(self, outcome: Outcome) -> None:
        with self._changed:
            _, token = self._waiting.popleft()
            self._granted[token] = outcome
            self._changed.notify_all()

    def lift(self) -> None:
        """Hold nobody up any more."""
        with self._changed:
            self.open = True
            self._changed.notify_all()

    def kill(self) -> None:
        with self._changed:
            self.dead = True
            self._changed.notify_all()

    def end(self) -> None:
        with self._changed:
            self.ended = True
            self._changed.notify_all()


class Program(Generic[R]):
    """A program in a thread of its own. It begins at once and stops at its first call."""

    def __init__(
        self, storage: ObjectStorage, work: Callable[[ObjectStorage], R], *, name: str = "program"
    ) -> None:
        self.name = name
        self.result: R | None = None
        self.error: BaseException | None = None
        self._gate = _Gate()
        self._work = work
        self._storage = _TurnStorage(storage, self._gate)
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()
        self.at = self._gate.next_call()

    @property
    def ended(self) -> bool:
        return self.at is None

    def step(self, outcome: Outcome = None) -> None:
        """Carry out the call that it stands at; it stands at the next one then, or has ended."""
        if self.ended:
            raise ValueError(f"{self.name} has ended")
        self._gate.grant(outcome)
        self.at = self._gate.next_call()
        if self.ended:
            self._thread.join()

    def finish(self) -> R | None:
        """Let it run to its end; returns its result, None where it raised (see ``error``)."""
        self._gate.lift()
        self._join()
        return self.result

    def go_on_to(self, method: Method, prefix: str) -> bool:
        """Let it run until it stands at such a call; False when it ended before."""
        while self.at is not None:
            if self.at.method == method and self.at.key.startswith(prefix):
                return True
            self.step()
        return False

    def crash(self) -> None:
        """End it as a power cut would: no call of it is carried out any more."""
        self._gate.kill()
        self._join()

    def _join(self) -> None:
        self._thread.join(_ANSWERS_WITHIN_S)
        if self._thread.is_alive():
            raise TimeoutError(f"{self.name} does not end")
        self.at = None

    def _run(self) -> None:
        try:
            self.result = self._work(self._storage)
        except BaseException as error:
            self.error = error
        finally:
            self._gate.end()


class _TurnStorage:
    """Implements ObjectStorage by ``inner``; every call waits for its turn."""

    def __init__(self, inner: ObjectStorage, gate: _Gate) -> None:
        self.inner = inner
        self.url = inner.url
        self._gate = gate

    def put(self, key: str, body: bytes, *, if_absent: bool = False) -> None:
        self._turn("put", key, lambda: self.inner.put(key, body, if_absent=if_absent))

    def put_file(self, key: str, source: ByteSource, *, sha256: str) -> bool:
        return self._turn("put_file", key, lambda: self.inner.put_file(key, source, sha256=sha256))

    def get(self, key: str, *, limit_bytes: int) -> bytes:
        return self._turn("get", key, lambda: self.inner.get(key, limit_bytes=limit_bytes))

    def read(self, key: str, *, start: int, stop: int) -> Iterator[bytes]:
        yield from self._turn("read", key, lambda: [*self.inner.read(key, start=start, stop=stop)])

    def stat(self, key: str) -> ObjectStat | None:
        return self._turn("stat", key, lambda: self.inner.stat(key))

    def list(self, prefix: str, *, start_after: str = "") -> Iterator[ObjectStat]:
        yield from self._turn(
            "list", prefix, lambda: [*self.inner.list(prefix, start_after=start_after)]
        )

    def delete(self, keys: Sequence[str]) -> None:
        if not keys:
            return
        self._turn("delete", keys[0], lambda: self.inner.delete(keys))

    def unfinished_uploads(self) -> Iterator[UnfinishedUpload]:
        yield from self._turn("unfinished_uploads", "", lambda: [*self.inner.unfinished_uploads()])

    def abort_upload(self, upload: UnfinishedUpload) -> None:
        self._turn("abort_upload", upload.key, lambda: self.inner.abort_upload(upload))

    def checks_checksums(self, key: str) -> bool:
        return self._turn("checks_checksums", key, lambda: self.inner.checks_checksums(key))

    def close(self) -> None:
        self.inner.close()

    def _turn(self, method: Method, key: str, work: Callable[[], T]) -> T:
        return self._gate.pass_through(Call(method, key), work)
