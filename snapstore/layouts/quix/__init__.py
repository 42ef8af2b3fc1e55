"""The state directory of Quix Streams."""

from snapstore.layouts.quix.layout import QuixLayout

__all__ = ["QuixLayout"]
