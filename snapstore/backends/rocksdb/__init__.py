"""Stores that are RocksDB databases: one, or one for each segment."""

from snapstore.backends.rocksdb.backend import RocksDBBackend

__all__ = ["RocksDBBackend"]
