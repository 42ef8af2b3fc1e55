"""What an application will do with a store at its next start, as a value."""

from collections.abc import Iterable, Mapping
from typing import Final, Literal

import msgspec

from snapstore.model.identity import ChangelogPartition, StoreId

Kind = Literal["clean", "replays", "wipes", "refuses", "loses_rows", "damaged", "unknown"]
Cause = Literal[
    "uneven",
    "unflushed",
    "no_files",
    "foreign",
    "beyond_end",
    "topic_gone",
    "topic_recreated",
    "below_start",
    "file",
    "offset_file",
    "version",
    "open",
    "topic",
    "unreadable",
    "unsupported",
    "exchanged",
]
Reader = Literal["checkpoint", "oldest", "newest"]
Guarantee = Literal["at_least_once", "exactly_once", "transactional"]

SEVERITY: Final[tuple[Kind, ...]] = (
    "clean",
    "replays",
    "wipes",
    "unknown",
    "refuses",
    "damaged",
    "loses_rows",
)
"""From harmless to worst: what is loud is better than what nobody sees."""


class LogBounds(msgspec.Struct, frozen=True, kw_only=True):
    """A changelog partition now. ``end`` is the last stable offset.

    ``expires``: records go by their age, as the rows of a window store do. ``replaced_by`` is the
    present topic's id where a fence says that the files are of another one.
    A partition that does not exist is given as None instead.
    """

    start: int
    end: int
    high_watermark: int
    expires: bool = False
    replaced_by: str | None = None


Bounds = Mapping[ChangelogPartition, LogBounds | None]


class Conditions(msgspec.Struct, frozen=True, kw_only=True):
    """Who might open the directory: every version that could, under every guarantee that may be.

    ``global_guarantees`` are those of the global stores, where they differ.
    """

    readers: tuple[Reader, ...]
    guarantees: tuple[Guarantee, ...]
    global_guarantees: tuple[Guarantee, ...] = ()

    def guarantees_of(self, *, is_global: bool) -> tuple[Guarantee, ...]:
        """Return those that a task, or the global stores, may be opened under."""
        return self.global_guarantees or self.guarantees if is_global else self.guarantees


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What will happen to one store, why, and what to do; sentences without a final stop.

    ``resume_offset`` is where the application will go on reading, ``records`` how many offsets it
    will read from there (at most so many records), ``skipped`` how many it will not read although
    the files may lack them; None where that cannot be told. ``assumed`` says for which version and
    guarantee this holds where others would fare better.
    """

    store: StoreId
    kind: Kind
    reason: str
    advice: str
    cause: Cause | None = None
    changelog: ChangelogPartition | None = None
    resume_offset: int | None = None
    records: int | None = None
    skipped: int | None = None
    assumed: str | None = None


def worst_kind(verdicts: Iterable[Verdict]) -> Kind:
    """Return the worst of several; ``clean`` for none."""
    return max((each.kind for each in verdicts), key=SEVERITY.index, default="clean")
