"""The store type of ``snapstore.MemoryStore``: a folder of pair files (see ``snapstore.pairs``)."""

from snapstore.backends.memory.backend import MemoryBackend as MemoryBackend

__all__ = ["MemoryBackend"]
