"""Say where a restore replaces what holds more records than the snapshot does."""

from collections.abc import Mapping, Sequence

import msgspec

from snapstore.errors import SnapstoreError
from snapstore.model.identity import ChangelogPartition
from snapstore.model.snapshot import Description
from snapstore.model.store import StoreLocation
from snapstore.model.units import count
from snapstore.ports import Layout, StoreBackend


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One changelog partition of a store in the target, and of the snapshot that replaces it.

    ``there`` is the applied offset of the target, None where its files do not say.
    """

    store: str
    changelog: ChangelogPartition
    there: int | None
    snapshot: int

    @property
    def back(self) -> int:
        """How many offsets the target is ahead; 0 where it is not known to be."""
        return 0 if self.there is None else max(0, self.there - self.snapshot)

    def __str__(self) -> str:
        there = "an unknown offset" if self.there is None else f"offset {self.there:,}"
        return f"{self.store}: {there} in the target, {self.snapshot:,} in the snapshot"


def steps(
    present: Sequence[StoreLocation],
    restored: Sequence[Description],
    layout: Layout,
    backends: Mapping[str, StoreBackend],
) -> tuple[Step, ...]:
    """Compare the restored stores of one task with those that lie there already.

    What is to be replaced need not be readable: its offset is not known then.
    """
    locations = {each.store.store: each for each in present}
    found = []
    for description in restored:
        location = locations.get(description.store.store)
        if location is None:
            continue
        there = _applied(location, layout, backends)
        found += [
            Step(
                store=str(description.store),
                changelog=each.position.changelog,
                there=there.get(each.position.changelog),
                snapshot=each.position.applied_offset,
            )
            for each in description.positions
        ]
    return tuple(found)


def notes_on(compared: Sequence[Step]) -> list[str]:
    """Return a sentence for each store that goes back."""
    return [
        f"{step.store} goes back: the target has applied {step.changelog} up to {step.there:,}, "
        f"and the snapshot up to {step.snapshot:,}, {count(step.back, 'offset')} less"
        for step in compared
        if step.back
    ]


def _applied(
    location: StoreLocation, layout: Layout, backends: Mapping[str, StoreBackend]
) -> dict[ChangelogPartition, int]:
    try:
        noted = layout.noted_offsets(location)
        backend = backends[location.backend]
        with backend.open_view(location.task_dir, location.root) as view:
            positions = layout.positions(location, noted, view, running=False)
    except (SnapstoreError, OSError):
        return {}
    return {each.changelog: each.applied_offset for each in positions}
