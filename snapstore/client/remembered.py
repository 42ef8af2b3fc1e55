"""What this host remembers of the directories that it has restored."""

from snapstore.client.own_cache import own_cache
from snapstore.config import Config
from snapstore.operations.lineage import Lineage


def lineage_of(config: Config) -> Lineage:
    """Return the notes in the cache folder."""
    return Lineage(own_cache(config, "restored"))
