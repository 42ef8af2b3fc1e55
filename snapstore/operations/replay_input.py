"""What a consumer group has committed of the input of a store, and whether that is still there."""

from snapstore.errors import ChangelogGoneError, CredentialsError, KafkaError
from snapstore.model.identity import ChangelogPartition
from snapstore.model.report import Noted
from snapstore.ports import Changelog, Clock, Listener


class CommittedInput:
    """Asks for committed offsets, and tells where the input after them is gone.

    A replay needs the changelog alone. The application, though, goes on from that offset, and what
    the broker no longer keeps it will pass over, or stop at.
    """

    def __init__(self, changelog: Changelog, clock: Clock, listener: Listener) -> None:
        self._changelog = changelog
        self._clock = clock
        self._listener = listener

    def __call__(self, group: str, source: ChangelogPartition) -> int | None:
        """Return the offset that a group reads next; None where it has committed none."""
        offset = self._changelog.committed(group, source)
        if offset is not None:
            self._tell(source, offset)
        return offset

    def _tell(self, source: ChangelogPartition, offset: int) -> None:
        try:
            start = self._changelog.inspect(source, now=self._clock()).log_start
        except (ChangelogGoneError, CredentialsError, KafkaError) as error:
            told = f"whether the input {source} is still there cannot be told: {error.message}"
        else:
            if offset >= start:
                return
            told = (
                f"the input {source} begins at {start}: the records {offset} to {start - 1}, which"
                " the application would read next, are gone"
            )
        self._listener(Noted(message=told))
