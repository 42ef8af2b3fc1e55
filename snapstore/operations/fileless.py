"""Find stores of which there are no files here: by the catalog, and by what is configured."""

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from snapstore.errors import ConfigError
from snapstore.model.identity import StoreId
from snapstore.model.listing import newest
from snapstore.model.store import StoreLocation
from snapstore.ports import Changelog, Clock, ReplayLayout
from snapstore.repository import Catalog

Absent = Callable[[StoreId], Path]
"""Names a task directory that does not exist, for a store without one."""


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """A configured store without files; ``subtopology`` is the first half of its tasks' names."""

    store: str
    subtopology: int | None = None


def from_catalog(
    catalog: Catalog, application: str, known: Sequence[StoreLocation], absent: Absent
) -> list[StoreLocation]:
    """Return the stores of an application that have snapshots, and no files here."""
    here = {location.store for location in known}
    listed = catalog.list_application(application).snapshots
    found = []
    for store in sorted({each.store for each in listed} - here, key=lambda store: store.order):
        last = newest(each for each in listed if each.store == store)
        if last is None:
            continue
        description = catalog.load(last).description
        found.append(
            StoreLocation(
                store=store,
                layout=description.layout,
                backend=description.backend,
                store_type=description.store_type,
                generation=description.generation,
                task_dir=absent(store),
                root=description.root,
            )
        )
    return found


class FilelessStores:
    """Places configured stores without files among the tasks of one application."""

    def __init__(
        self,
        application: str,
        known: Sequence[StoreLocation],
        layout: ReplayLayout,
        changelog: Changelog,
        clock: Clock,
        absent: Absent,
    ) -> None:
        self._application = application
        self._known = [each for each in known if each.store.application == application]
        self._layout = layout
        self._changelog = changelog
        self._clock = clock
        self._absent = absent

    def place(
        self, wishes: Sequence[Wish], tasks: Sequence[str], *, everywhere: bool
    ) -> list[StoreLocation]:
        """Return a location for each task of each store that has no files here.

        ``tasks`` are those that were named. Without any, ``everywhere`` means all partitions of the
        changelog, else the tasks that are here. Raises ConfigError where the subtopology of a
        store cannot be told, NotReplayableError where its kind cannot.
        """
        here = {location.store.store for location in self._known}
        return [
            location
            for wish in wishes
            if wish.store not in here
            for location in self._place(wish, tasks, everywhere=everywhere)
        ]

    def _place(self, wish: Wish, tasks: Sequence[str], *, everywhere: bool) -> list[StoreLocation]:
        known = sorted({location.store.task for location in self._known})
        prefix = self._prefix(wish, tasks or known)
        if tasks or not everywhere:
            chosen = [task for task in (tasks or known) if task.rpartition("_")[0] == prefix]
        else:
            first = StoreId(self._application, f"{prefix}_0", wish.store)
            count = sum(
                self._changelog.inspect(each, now=self._clock()).partition_count
                for each in self._layout.presumed_changelogs(first)
            )
            chosen = [f"{prefix}_{partition}" for partition in range(count)]
        generations = {location.generation for location in self._known}
        generation = max(generations, default=None)
        stores = [StoreId(self._application, task, wish.store) for task in chosen]
        return [self._layout.place(one, self._absent(one), generation) for one in stores]

    def _prefix(self, wish: Wish, tasks: Sequence[str]) -> str:
        if wish.subtopology is not None:
            return str(wish.subtopology)
        prefixes = {task.rpartition("_")[0] for task in tasks if "_" in task}
        if len(prefixes) != 1:
            raise ConfigError(
                f"nothing tells which tasks of {self._application} have the store {wish.store}",
                hint=f"configure stores.{wish.store}.subtopology, or name tasks: --task 0_3",
                key=f"stores.{wish.store}.subtopology",
            )
        return prefixes.pop()
