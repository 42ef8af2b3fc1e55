"""How far a whole run is: over all stores of its plan, those not begun yet included."""

from collections.abc import Callable

from snapstore.model.report import Advanced, Planned, StoreFinished, StoreStarted
from snapstore.model.units import format_duration, format_size

Told = Planned | StoreStarted | Advanced | StoreFinished


class Totals:
    """Counts stores, and their bytes; the records of a replay are not counted.

    Without a plan, the stores that were begun are all that is known. A store that is begun again
    counts from its beginning.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._sizes: dict[str, int] = {}
        self._done: dict[str, int] = {}
        self._began: float | None = None
        self.stores = 0
        self.finished = 0
        self.moved = 0

    def take(self, event: Told) -> None:
        """Count an event."""
        match event:
            case Planned():
                self._sizes |= event.sizes
                self.stores = len(event.sizes)
            case StoreStarted(unit="bytes", total=int(total)):
                self._sizes[str(event.store)] = total
                self._done[str(event.store)] = 0
            case Advanced() if event.stage != "replay":
                name = str(event.store)
                self._began = self._clock() if self._began is None else self._began
                self._done[name] = self._done.get(name, 0) + event.amount
                self.moved += event.amount if event.moved else 0
            case StoreFinished():
                # It may have been unchanged, empty or failed: nothing more comes of it.
                self.finished += 1
                self._sizes[str(event.store)] = self._done.get(str(event.store), 0)

    @property
    def total(self) -> int:
        """All bytes of the run, as far as is known."""
        return sum(self._sizes.values())

    @property
    def done(self) -> int:
        """The bytes that are done."""
        return sum(self._done.values())

    def spelled(self) -> str:
        """Return how far it is, and how long it will take at the rate so far."""
        if not self.stores:
            return f"{self.finished} done"
        told = f"{self.finished} of {self.stores} stores done"
        if not self.total:
            return told
        told += f", {format_size(self.done)} of {format_size(self.total)}"
        elapsed = 0.0 if self._began is None else self._clock() - self._began
        left = self.total - self.done
        if left <= 0 or not self.moved or elapsed <= 0:
            return told
        return f"{told}, {format_duration(left * elapsed / self.moved)} to go"
