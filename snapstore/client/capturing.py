"""Which stores a snapshot is taken of, and where each is taken from."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from snapstore.config import Config
from snapstore.errors import ConfigError, NotReplayableError, StoreNotFoundError
from snapstore.operations.replay_layout import replay_layout
from snapstore.operations.snapshot_plan import Selection
from snapstore.ports import Discovery, Layout
from snapstore.repository import Repository

if TYPE_CHECKING:
    from snapstore.operations.capture_choice import CaptureMode, Chooser
    from snapstore.operations.changelog_snapshot import ChangelogMaker
    from snapstore.operations.fileless import Wish
    from snapstore.operations.replay import ReplayPorts


class Capturing:
    """The ways of one run. ``ports`` is None where Kafka is not configured.

    What needs Kafka is imported only with it.
    """

    def __init__(
        self,
        config: Config,
        repository: Repository,
        layout: Layout,
        ports: "ReplayPorts | None",
        folder: Path,
        mode: "CaptureMode | None",
    ) -> None:
        self._config = config
        self._repository = repository
        self._layout = layout
        self._ports = ports
        self._folder = folder
        self.mode = self._mode(mode)

    def discover(
        self, directory: Path | None, application: str | None, selection: Selection
    ) -> Discovery:
        """Find the stores below the directory, and those without files that can be made.

        Raises ConfigError and StoreNotFoundError, as the layout does; without a directory only
        the changelog way works.
        """
        found = Discovery(locations=())
        if directory is not None:
            try:
                found = self._layout.discover(directory, application)
            except StoreNotFoundError:
                if self.mode != "changelog" or application is None:
                    raise
        elif self.mode != "changelog" or application is None:
            raise ConfigError(
                "no state directory was named",
                hint="give --state-dir DIR, set SNAPSTORE_STATE_DIR, or write state.dir; with "
                "--from-changelog an --application will do",
                key="state.dir",
            )
        if self._ports is None or self.mode == "disk":
            return found
        return self._with_fileless(found, self._ports, application, selection)

    def chooser(self) -> "Chooser | None":
        """Return what chooses where each store is taken from; None where there is only the disk."""
        if self._ports is None or self.mode == "disk" or replay_layout(self._layout) is None:
            return None
        from snapstore.operations.capture_choice import CaptureOptions, Chooser

        options = CaptureOptions(
            mode=self.mode, max_lag_records=self._config.snapshot.max_lag_records
        )
        return Chooser(
            options,
            self._maker(self._ports),
            self._layout,
            self._ports.changelog,
            self._ports.clock,
        )

    def _with_fileless(
        self,
        found: Discovery,
        ports: "ReplayPorts",
        application: str | None,
        selection: Selection,
    ) -> Discovery:
        rules = replay_layout(self._layout)
        if rules is None:
            return found
        from snapstore.operations.fileless import FilelessStores, from_catalog

        folder = self._maker(ports).work_folder
        locations, notes = [*found.locations], [*found.notes]
        names = {location.store.application for location in locations}
        for name in sorted(names | ({application} if application is not None else set())):
            if self.mode == "changelog":
                locations += from_catalog(
                    self._repository.catalog, name, locations, lambda one: folder(one).absent
                )
            fileless = FilelessStores(
                name, locations, rules, ports.changelog, ports.clock, lambda one: folder(one).absent
            )
            for wish in self._wishes(selection):
                try:
                    locations += fileless.place(
                        [wish], selection.tasks, everywhere=self.mode == "changelog"
                    )
                except (ConfigError, NotReplayableError) as error:
                    if wish.store in selection.stores:
                        raise
                    notes.append(f"{wish.store} is left out: {error.message} ({error.hint})")
        made = {location.store for location in locations}
        return Discovery(
            locations=tuple(locations),
            notes=tuple(notes),
            unread=tuple(each for each in found.unread if each.store not in made),
        )

    def _wishes(self, selection: Selection) -> "Sequence[Wish]":
        """Return the configured stores that need no files: all in memory, others if they are named.

        A store that is named with a format, and has no files here, has them on another host.
        """
        from snapstore.operations.fileless import Wish

        return [
            Wish(store=name, subtopology=store.subtopology)
            for name, store in self._config.stores.items()
            if not store.skip
            and (not selection.stores or name in selection.stores)
            and (
                store.in_memory
                or (self.mode == "changelog" and (store.format is not None or store.keys))
            )
        ]

    def _maker(self, ports: "ReplayPorts") -> "ChangelogMaker":
        from snapstore.operations.changelog_snapshot import ChangelogMaker

        return ChangelogMaker(self._folder, self._repository, ports)

    def _mode(self, asked: "CaptureMode | None") -> "CaptureMode":
        mode: CaptureMode = asked or self._config.snapshot.capture
        if self._ports is not None:
            return mode
        if mode in ("roll-forward", "changelog"):
            raise ConfigError(
                f"a snapshot by {mode} reads the changelog, and Kafka is not configured",
                hint="write kafka.bootstrap, or set SNAPSTORE_KAFKA_BOOTSTRAP",
                key="kafka.bootstrap",
            )
        return "disk"
