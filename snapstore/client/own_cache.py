"""What this host remembers from one run to the next."""

from pathlib import Path

from snapstore.config import Config
from snapstore.operations.last_runs import LastRuns


def last_runs(config: Config) -> LastRuns:
    """Return what is kept of runs, of whatever repository."""
    return LastRuns(Path(config.state.cache_dir).expanduser() / "runs")
