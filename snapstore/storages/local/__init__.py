"""Objects as files below a local folder: ``file:///backups/orders`` or a plain path."""

from snapstore.storages.local.storage import LocalStorage

__all__ = ["LocalStorage"]
