"""The data directory of Faust."""

from snapstore.layouts.faust.layout import FaustLayout

__all__ = ["FaustLayout"]
