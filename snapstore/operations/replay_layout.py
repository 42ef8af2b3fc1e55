"""Ask a layout whether it knows how its application writes records into stores."""

from typing import cast

from snapstore.errors import NotReplayableError
from snapstore.ports import Layout, ReplayLayout


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
