"""Configuration: what can be set, where each value came from, and how it is read.

An option of the command line wins over the environment, that over the file, that over the
default. Nothing is read when this is imported.
"""

from snapstore.config.load import ENVIRONMENT, load_config
from snapstore.config.schema import Config

__all__ = ["ENVIRONMENT", "Config", "load_config"]
