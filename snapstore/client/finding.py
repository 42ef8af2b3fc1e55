"""Look for stores without a repository."""

from pathlib import Path

from snapstore.client.moments import utc_now
from snapstore.client.parts import ConfiguredBackends, configured_layout, state_dir, watching_locks
from snapstore.config import Config
from snapstore.operations.discover import DiscoverReport
from snapstore.operations.discover import discover as discover_stores
from snapstore.ports import Clock
from snapstore.registry import Registry


def discover(
    directory: Path | str | None = None,
    *,
    config: Config | None = None,
    application: str | None = None,
    layout: str | None = None,
    clock: Clock = utc_now,
    registry: Registry | None = None,
) -> DiscoverReport:
    """Look at every store below a state directory, by reading only.

    Raises ConfigError when none is named, StoreNotFoundError when it is not there.
    """
    settings = config or Config()
    plugins = registry or Registry()
    chosen = configured_layout(settings, plugins, layout)
    place = state_dir(settings, directory)
    with watching_locks(chosen):
        return discover_stores(
            place,
            application or settings.state.application,
            layout=chosen,
            backends=ConfiguredBackends(settings, plugins),
            clock=clock,
        )
