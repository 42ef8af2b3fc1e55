"""Bring the stores of a stopped application forward; needs no repository."""

from collections.abc import Sequence
from pathlib import Path

from snapstore.client.moments import utc_now
from snapstore.client.owner import permissions
from snapstore.client.parts import (
    ConfiguredBackends,
    configured_changelog,
    configured_layout,
    state_dir,
)
from snapstore.client.remembered import lineage_of
from snapstore.client.restoring import required
from snapstore.config import Config
from snapstore.model.report import nobody
from snapstore.model.resume import Overrides
from snapstore.operations.replay import ReplayPorts
from snapstore.operations.replay_plan import ReplayGoal
from snapstore.operations.replay_tasks import ReplayReport, replay_tasks
from snapstore.operations.snapshot_plan import Selection
from snapstore.ports import Clock, Listener
from snapstore.registry import Registry


def replay(
    directory: Path | str | None = None,
    *,
    config: Config | None = None,
    application: str | None = None,
    tasks: Sequence[str] = (),
    stores: Sequence[str] = (),
    goal: ReplayGoal | None = None,
    allow_unchecked_changelog: bool = False,
    allow_missed_tombstones: bool = False,
    listener: Listener = nobody,
    clock: Clock = utc_now,
    registry: Registry | None = None,
) -> ReplayReport:
    """Apply the records that the stores below a state directory lack, up to ``goal``.

    A directory that this host has restored is checked by the fence of its snapshot; for any other
    one ``allow_unchecked_changelog`` is needed. Raises what ``operations.replay_tasks`` names, and
    ConfigError where Kafka is not configured.
    """
    settings = config or Config()
    plugins = registry or Registry()
    application = application or settings.state.application
    with configured_changelog(settings, plugins) as changelog:
        ports = ReplayPorts(
            changelog=required(changelog),
            layout=configured_layout(settings, plugins),
            backends=ConfiguredBackends(settings, plugins),
            overrides=Overrides(
                allow_unchecked_changelog=allow_unchecked_changelog,
                allow_missed_tombstones=allow_missed_tombstones,
            ),
            clock=clock,
            listener=listener,
        )
        return replay_tasks(
            state_dir(settings, directory),
            application,
            Selection(tasks=tuple(tasks), stores=tuple(stores)),
            goal or ReplayGoal(),
            ports,
            lineage_of(settings),
            permissions(settings.restore),
        )
