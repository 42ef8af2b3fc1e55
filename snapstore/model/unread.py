"""What could not be looked at: that is neither whole nor missing."""

from pathlib import Path

import msgspec

from snapstore.errors import SnapstoreError
from snapstore.model.identity import StoreId


class Unread(msgspec.Struct, frozen=True, kw_only=True):
    """A store that is there and could not be read, with the reason.

    An empty name of the store stands for all stores of the task, an empty task for all of the
    application: nothing tells which there are.
    """

    store: StoreId
    path: Path
    error: SnapstoreError

    @property
    def whole(self) -> bool:
        """Whether it stands for stores that nobody can name."""
        return not self.store.store
