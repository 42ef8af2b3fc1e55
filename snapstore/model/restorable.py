"""What a catalog entry alone says on whether a restore will take the snapshot."""

from snapstore.errors import ExactlyOnceHotError
from snapstore.model.guarantee import AUTO, require_committed_snapshot
from snapstore.model.horizon import dates_deletions
from snapstore.model.snapshot import Description


def why_unsure(description: Description) -> str | None:
    """Say why an entry does not prove that its snapshot can be restored; None where it does.

    The log itself may prove it all the same when it is read, and may disprove what is proved here.
    """
    for each in description.positions:
        changelog = each.position.changelog
        if each.fence is None:
            return f"nothing proves the position in {changelog}: no fence was taken"
        if not dates_deletions(each.fence):
            return f"nothing dates the deletions in {changelog} that follow it"
    try:
        require_committed_snapshot(description, AUTO)
    except ExactlyOnceHotError as error:
        return error.message
    return None
