"""State that a Python program keeps in memory: a sorted map of bytes that can be snapshotted.

with MemoryStore(StoreId("billing", "0", "balances"), "/var/lib/billing") as balances:
    balances.apply(record)                  # a record of the changelog, or put() and delete()
    balances.snapshot(repository)           # writers go on meanwhile

with MemoryStore.restore(repository, store, "/var/lib/billing") as balances:
    balances.replay(changelog)              # the records after the snapshot
"""

from snapstore.memory.conversion import restore_as as restore_as
from snapstore.memory.store import MemoryStore as MemoryStore

__all__ = ["MemoryStore", "restore_as"]
