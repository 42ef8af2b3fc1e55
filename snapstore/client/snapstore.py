"""Snapstore: an open repository together with the configuration and the plug-ins it works with."""

from collections.abc import Iterable
from pathlib import Path

from snapstore.client.own_cache import scratch_folder
from snapstore.client.parts import ConfiguredBackends
from snapstore.client.restoring import RestoreVerbs
from snapstore.client.sample_places import SamplePlaces
from snapstore.errors import PluginError, SnapshotNotFoundError
from snapstore.model.report import nobody
from snapstore.model.snapshot import Description
from snapstore.operations.diff import SnapshotDiff, diff
from snapstore.operations.verify import VerifyOptions, verify
from snapstore.operations.verify_report import VerifyReport
from snapstore.ports import Listener


class Snapstore(RestoreVerbs):
    """An open repository; a context manager. Its verbs are those of the command line.

    Safe to use from one thread at a time; each verb uses several of its own.
    """

    def verify(
        self,
        refs: Iterable[str] = (),
        *,
        read_data: bool = False,
        open_store: bool = False,
        sample_percent: float = 100.0,
        seed: int | None = None,
        scratch: Path | None = None,
        listener: Listener = nobody,
    ) -> VerifyReport:
        """Look whether snapshots can be restored: those named, or all.

        A sample goes on where the last one on this host has ended, so that all is read in turn;
        with ``seed`` it is drawn by lot.
        Damage is in the report. Raises UnavailableError when the storage cannot be read, and
        SnapshotNotFoundError when all that were named have been taken out of the catalog meanwhile.
        """
        named = self._located(refs)
        listed = named or self.list().snapshots
        places = SamplePlaces(self._own_cache / "samples.json")
        of = " ".join([self.repository.marker.id, *sorted(item.id for item in named)])
        report = verify(
            self.repository,
            listed,
            backends=ConfiguredBackends(self.config, self.registry),
            listener=listener,
            unusable=self._lacks_plugin,
            options=VerifyOptions(
                read_data=read_data,
                open_store=open_store,
                sample_percent=sample_percent,
                seed=seed,
                after=places.after(of),
                scratch=scratch or scratch_folder(self.config),
                guarantee=self.config.state.guarantee,
                parallel=self.config.transfer.parallel,
                limit_bytes_per_second=self.config.transfer.limit_rate,
            ),
        )
        if report.read_up_to is not None and sample_percent < 100:
            places.note(of, report.read_up_to, listener)
        if named and not report.snapshots:
            raise SnapshotNotFoundError(
                f"snapshot {named[0].id[:12]} is not in the catalog any more", id=named[0].id
            )
        return report

    def _lacks_plugin(self, description: Description) -> str | None:
        """Say which plug-in a restore of such a snapshot lacks here; None when it has them all."""
        try:
            self.registry.options_type("layouts", description.layout)
            self.registry.options_type("backends", description.backend)
        except PluginError as error:
            return f"nothing here can restore it: {error.message}"
        return None

    def diff(self, old: str, new: str) -> SnapshotDiff:
        """Return which files two snapshots share, and which only one of them has."""
        manifests = self.repository.manifests
        return diff(manifests.load(self.locate(old).id), manifests.load(self.locate(new).id))
