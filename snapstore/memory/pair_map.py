"""A sorted map of bytes that can be read as of one moment while it is written on.

Freezing costs the same however large the map is. From then on the first change of a key puts its
old value aside; a reader of the frozen moment takes that one where there is one. Keys are read in
small groups, and only during such a group does a writer wait.
"""

import heapq
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from sortedcontainers import SortedDict

from snapstore.model.identity import ChangelogPartition
from snapstore.ports import Pair

_GROUP = 256
_RUN = 4096


class Frozen:
    """The map as it was at one moment, until it is thawed.

    ``everything_new``: nothing of it was saved before. ``changes`` counts the keys that changed
    since it was, some of them perhaps twice.
    """

    def __init__(
        self,
        live: "PairMap",
        size: int,
        positions: Mapping[ChangelogPartition, int],
        changed: Sequence[set[bytes]],
        *,
        everything_new: bool,
    ) -> None:
        self.size = size
        self.positions = positions
        self.everything_new = everything_new
        self.before: SortedDict[bytes, bytes | None] = SortedDict()
        self._live = live
        self._changed = changed

    @property
    def changes(self) -> int:
        return sum(map(len, self._changed))

    def everything(self) -> Iterator[Pair]:
        """Yield every pair in key order."""
        after: bytes | None = None
        while True:
            pairs, after = self._live.group(after, self)
            yield from pairs
            if after is None:
                return

    def changed(self) -> Iterator[Pair]:
        """Yield every key that changed since the map was last saved; None where it is gone."""
        keys = _sorted(self._changed)
        while group := list(islice(keys, _GROUP)):
            yield from self._live.values(group, self)


class PairMap:
    """The map; safe for several threads. ``positions`` are the applied offsets."""

    def __init__(
        self,
        pairs: Iterable[tuple[bytes, bytes]] = (),
        positions: Mapping[ChangelogPartition, int] | None = None,
        *,
        saved: bool = False,
    ) -> None:
        """``saved``: these pairs lie in files already."""
        self._lock = threading.Lock()
        self._data: SortedDict[bytes, bytes] = SortedDict(pairs)
        self._positions = dict(positions or {})
        self._everything_new = not saved
        self._changed: set[bytes] = set()
        self._unsaved: list[set[bytes]] = []
        self._frozen: Frozen | None = None

    def __len__(self) -> int:
        return len(self._data)

    def get(self, key: bytes) -> bytes | None:
        return self._data.get(key)

    def positions(self) -> dict[ChangelogPartition, int]:
        with self._lock:
            return dict(self._positions)

    def write(self, key: bytes, value: bytes | None) -> None:
        """Put, or delete with None."""
        with self._lock:
            self._write(key, value)

    def apply(
        self, changelog: ChangelogPartition, offset: int, key: bytes, value: bytes | None
    ) -> bool:
        """Write and move the offset in one step; False and no change where it is applied."""
        with self._lock:
            if offset <= self._positions.get(changelog, -1):
                return False
            self._write(key, value)
            self._positions[changelog] = offset
            return True

    def note(self, changelog: ChangelogPartition, offset: int) -> None:
        """Move an offset; raises ValueError backwards."""
        with self._lock:
            applied = self._positions.get(changelog, -1)
            if offset < applied:
                raise ValueError(f"{changelog} is at {applied} already, and cannot go to {offset}")
            self._positions[changelog] = offset

    def range(self, start: bytes | None, stop: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        """Yield pairs in key order from ``start`` to before ``stop``, a group at a time."""
        include = True
        while True:
            with self._lock:
                keys = self._data.irange(start, stop, inclusive=(include, False))
                pairs = [(key, self._data[key]) for key in islice(keys, _GROUP)]
            yield from pairs
            if len(pairs) < _GROUP:
                return
            start, include = pairs[-1][0], False

    def freeze(self) -> Frozen:
        """Return the map as it is now. One at a time: the caller sees to that."""
        with self._lock:
            self._unsaved.append(self._changed)
            self._changed = set()
            self._frozen = Frozen(
                self,
                len(self._data),
                dict(self._positions),
                tuple(self._unsaved),
                everything_new=self._everything_new,
            )
            return self._frozen

    def thaw(self, *, saved: bool) -> None:
        """Forget the frozen moment; with ``saved`` it lies in files now."""
        with self._lock:
            self._frozen = None
            if saved:
                self._unsaved = []
                self._everything_new = False

    def roll_back(self) -> None:
        """Go back to the frozen moment, and forget it."""
        with self._lock:
            frozen, self._frozen = self._frozen, None
            if frozen is None:
                raise ValueError("nothing is frozen")
            for key, value in frozen.before.items():
                self._write(key, value)
            self._positions = dict(frozen.positions)

    def group(
        self, after: bytes | None, frozen: Frozen
    ) -> tuple[list[tuple[bytes, bytes]], bytes | None]:
        """Return some frozen pairs with keys beyond ``after``, and the last key looked at, if any.

        None for the latter means that there are no more.
        """
        with self._lock:
            beyond = (False, True)
            keys = list(islice(self._data.irange(after, inclusive=beyond), _GROUP))
            aside = list(islice(frozen.before.irange(after, inclusive=beyond), _GROUP))
            ends = [each[-1] for each in (keys, aside) if len(each) == _GROUP]
            stop = min(ends) if ends else None
            found: dict[bytes, bytes | None] = {
                key: self._data[key] for key in keys if stop is None or key <= stop
            }
            found |= {key: frozen.before[key] for key in aside if stop is None or key <= stop}
        return [(key, value) for key, value in sorted(found.items()) if value is not None], stop

    def values(self, keys: Sequence[bytes], frozen: Frozen) -> list[Pair]:
        """Return the frozen values of some keys."""
        with self._lock:
            before, data = frozen.before, self._data
            return [(key, before[key] if key in before else data.get(key)) for key in keys]

    def _write(self, key: bytes, value: bytes | None) -> None:
        frozen = self._frozen
        if frozen is not None and key not in frozen.before:
            frozen.before[key] = self._data.get(key)
        if frozen is not None or not self._everything_new:
            self._changed.add(key)
        if value is None:
            self._data.pop(key, None)
        else:
            self._data[key] = value


def _sorted(sets: Sequence[set[bytes]]) -> Iterator[bytes]:
    """Yield each key once, in order. Sorted in short runs: a long one would stop all threads."""
    runs = []
    for each in sets:
        keys = iter(each)
        while run := sorted(islice(keys, _RUN)):
            runs.append(run)
    last: bytes | None = None
    for key in heapq.merge(*runs):
        if key != last:
            last = key
            yield key
