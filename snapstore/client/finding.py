"""Look for stores without a repository."""

from pathlib import Path

from snapstore.client.moments import utc_now
from snapstore.client.parts import ConfiguredBackends, configured_layout, state_dir
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
    return discover_stores(
        state_dir(settings, directory),
        application or settings.state.application,
        layout=configured_layout(settings, plugins, layout),
        backends=ConfiguredBackends(settings, plugins),
        clock=clock,
    )
