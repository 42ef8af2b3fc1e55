"""Ask a layout whether it knows how its application writes records into stores."""

from typing import cast

from snapstore.errors import NotReplayableError, RefusedError
from snapstore.model.changelog import PartitionState
from snapstore.model.store import StoreLocation
from snapstore.ports import ContentLayout, DeletingLayout, Layout, ReplayLayout, StoreView


def replay_layout(layout: Layout) -> ReplayLayout | None:
    """Return the layout as one that can replay; None where it cannot."""
    # Not isinstance: a layout may pass what it lacks on to another one.
    return cast("ReplayLayout", layout) if hasattr(layout, "open_replay") else None


def require_replay_layout(layout: Layout) -> ReplayLayout:
    """Raises NotReplayableError where the layout cannot replay."""
    found = replay_layout(layout)
    if found is None:
        raise NotReplayableError(
            f"the layout {layout.name} does not tell how its application writes records",
            hint="let the application replay",
            layout=layout.name,
        )
    return found


def deleting_layout(layout: Layout) -> DeletingLayout | None:
    """Return the layout as one that can delete keys of the changelog; None where it cannot."""
    return cast("DeletingLayout", layout) if hasattr(layout, "delete_keys") else None


def refuse_repetition(
    layout: Layout, location: StoreLocation, view: StoreView, state: PartitionState
) -> None:
    """Raise RefusedError for files of a running application whose store must see no record twice.

    Such files may hold records beyond the offset that they note. In a versioned store a late record
    that comes again makes another history, in Kafka Streams as here.
    """
    if not hasattr(layout, "content_rules"):
        return
    rules = cast("ContentLayout", layout).content_rules(location, view, state)
    if rules.latest_prefix is not None:
        raise RefusedError(
            f"{location.store} is versioned, and the files of a running application may hold "
            "records beyond their offset",
            hint="use a snapshot that was taken when it was stopped, or from the changelog",
            store=str(location.store),
        )
