"""The verbs that keep a repository small and whole."""

import os
import socket

from snapstore.client.moments import run_id
from snapstore.client.parts import configured_changelog
from snapstore.client.taking import SnapshotVerbs
from snapstore.config.schema import RetentionConfig
from snapstore.model.report import nobody
from snapstore.model.retention import RetentionPolicy
from snapstore.operations.prune import PruneOptions, plan_prune, prune
from snapstore.operations.prune_report import PruneReport
from snapstore.operations.repair import RepairOptions, propose_repair, repair
from snapstore.operations.repair_plan import RepairReport, RepositoryReport
from snapstore.operations.upkeep import Actor
from snapstore.operations.verify_repository import verify_repository
from snapstore.ports import Listener


class UpkeepVerbs(SnapshotVerbs):
    """Verbs that change what is stored, one host at a time."""

    def prune(
        self,
        policy: RetentionPolicy | None = None,
        *,
        application: str | None = None,
        accept_earlier_clock: bool = False,
        listener: Listener = nobody,
        dry_run: bool = False,
    ) -> PruneReport:
        """Remove what retention does not keep, and free bytes that nothing names.

        Without ``policy`` the configuration's is taken; ``application`` limits the retention, not
        the sweep. With Kafka configured an applied offset beyond the end of its log is told. With
        ``dry_run`` nothing is changed. Look at ``report.failed``, ``report.unjudged`` and
        ``report.doubtful``. Raises RunInProgressError, RefusedError when a clock went back.
        """
        options = PruneOptions(
            policy=policy or policy_of(self.config.retention),
            grace=self.config.retention.grace,
            application=application,
            accept_earlier_clock=accept_earlier_clock,
            parallel=self.config.transfer.parallel,
        )
        with configured_changelog(self.config, self.registry) as changelog:
            if dry_run:
                return plan_prune(self.repository, options, clock=self.clock, changelog=changelog)
            return prune(
                self.repository,
                options,
                self._actor(),
                clock=self.clock,
                listener=listener,
                changelog=changelog,
            )

    def verify_repository(self) -> RepositoryReport:
        """Compare catalog and storage, both ways; nothing is written.

        Raises UnavailableError when the storage cannot be read.
        """
        return verify_repository(
            self.repository, clock=self.clock, parallel=self.config.transfer.parallel
        )

    def repair(
        self,
        *,
        read_data: bool = False,
        accept_earlier_clock: bool = False,
        listener: Listener = nobody,
        dry_run: bool = False,
    ) -> RepairReport:
        """Rebuild lost catalog entries, and take out snapshots whose bytes are gone.

        Look at ``report.quarantined``: those snapshots are lost. With ``dry_run`` nothing is
        changed. Raises RunInProgressError, RefusedError when a clock went back.
        """
        options = RepairOptions(
            read_data=read_data,
            accept_earlier_clock=accept_earlier_clock,
            parallel=self.config.transfer.parallel,
            limit_bytes_per_second=self.config.transfer.limit_rate,
        )
        if dry_run:
            return propose_repair(self.repository, options, clock=self.clock, listener=listener)
        return repair(self.repository, options, self._actor(), clock=self.clock, listener=listener)

    def _actor(self) -> Actor:
        instance = self.config.state.instance or socket.gethostname()
        return Actor(run=run_id(self.clock()), holder=f"process {os.getpid()} on {instance}")


def policy_of(config: RetentionConfig) -> RetentionPolicy:
    """Return the rules that the configuration asks for."""
    return RetentionPolicy(
        keep_last=config.keep_last,
        keep_within=config.keep_within,
        keep_hourly=config.keep_hourly,
        keep_daily=config.keep_daily,
        keep_weekly=config.keep_weekly,
        keep_monthly=config.keep_monthly,
        keep_yearly=config.keep_yearly,
    )
