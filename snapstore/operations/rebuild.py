"""Build a store anew from its changelog alone."""

from collections.abc import Collection, Sequence

import msgspec

from snapstore.model.changelog import PartitionState
from snapstore.model.identity import ChangelogPartition
from snapstore.model.resume import plan_rebuild
from snapstore.model.store import StoreLocation
from snapstore.operations.replay import ReplayedPartition, ReplayPorts, replay_store
from snapstore.operations.replay_plan import PlannedReplay
from snapstore.ports import Changelog, StoreView


class Rebuilt(msgspec.Struct, frozen=True, kw_only=True):
    """The partitions as they were when the rebuild began, and what was read of them."""

    states: tuple[PartitionState, ...]
    replayed: tuple[ReplayedPartition, ...]

    @property
    def complete(self) -> bool:
        """Whether the logs still had every record from the first on."""
        return all(
            each.start == 0 and each.records == each.stop - each.start for each in self.replayed
        )

    @property
    def start_is_gone(self) -> bool:
        return any(each.start > 0 for each in self.replayed)


def rebuild(
    location: StoreLocation,
    stops: Sequence[tuple[ChangelogPartition, int]],
    ports: ReplayPorts,
    *,
    template: StoreView,
) -> Rebuilt:
    """Fill the store in ``location.task_dir``, where nothing is yet, up to before each ``stop``.

    ``template`` is another copy of the store. Raises what ``replay_store`` raises.
    """
    states, planned = [], []
    for changelog, stop in stops:
        state = ports.changelog.inspect(changelog, now=ports.clock())
        plan = plan_rebuild(state)
        states.append(state)
        planned.append(PlannedReplay(position=None, plan=plan, stop=max(stop, plan.start)))
    replayed = replay_store(location, planned, ports, template=template)
    return Rebuilt(states=tuple(states), replayed=replayed)


def logged_keys(
    changelog: Changelog, replayed: Sequence[ReplayedPartition], keys: Collection[bytes]
) -> Collection[bytes]:
    """Return those keys of which the ranges that were rebuilt from hold any record."""
    found = set()
    for each in replayed:
        with changelog.read(each.changelog, each.start, each.stop) as tail:
            for records in tail:
                found |= {
                    record.key
                    for record in records
                    if record.key is not None and record.key in keys
                }
    return found
