"""How a snapshot is named on the command line: the REF.

    REF  = ID | NAME | NAME@OFFSET | NAME@TIME
    ID   = the first four or more hex digits of a snapshot id
    NAME = application/task/store | application/store:partition | topic:partition

A NAME means the newest snapshot of that store: the highest applied offset, then the latest capture
time. ``@OFFSET`` means the newest at or below that applied offset, ``@TIME`` (RFC 3339, with its
zone) the newest captured at or before that time. A task may hold ``/`` itself
(``orders/__NAME__/0_1/counts``); application and store may not, they can be named by id.
"""

import re
from datetime import UTC, datetime

import msgspec

from snapstore.errors import ConfigError
from snapstore.model.identity import ChangelogPartition, StoreId
from snapstore.model.listing import ListedSnapshot

_ID_PREFIX = re.compile(r"[0-9a-fA-F]{4,64}")
_PARTITION = re.compile(r"(?P<name>.+):(?P<partition>[0-9]{1,10})")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,6})?([Zz]|[+-]\d\d:\d\d)")
_LONGEST = 4000
_FORMS = "ID, application/task/store, application/store:partition or topic:partition"


class IdPrefix(msgspec.Struct, frozen=True):
    """The beginning of a snapshot id, in lower case."""

    prefix: str


class StorePartition(msgspec.Struct, frozen=True):
    """A store by its partition: the number after the last ``_`` or ``/`` of its task."""

    application: str
    store: str
    partition: int

    def matches(self, store: StoreId) -> bool:
        of_task = re.split(r"[/_]", store.task)[-1]
        return (
            store.application == self.application
            and store.store == self.store
            and of_task == str(self.partition)
        )


Subject = IdPrefix | StoreId | StorePartition | ChangelogPartition


class Reference(msgspec.Struct, frozen=True, kw_only=True):
    """A REF as a value. At most one of ``offset`` and ``time`` is given."""

    text: str
    subject: Subject
    offset: int | None = None
    time: datetime | None = None

    def admits(self, listed: ListedSnapshot, applied_offset: int | None) -> bool:
        """Whether a snapshot of the subject is not beyond ``@OFFSET`` or ``@TIME``.

        ``applied_offset`` is the snapshot's in the changelog partition that is meant.
        """
        if self.offset is not None:
            return applied_offset is not None and applied_offset <= self.offset
        return self.time is None or listed.captured_at <= self.time


def parse_reference(text: str) -> Reference:
    """Read a REF.

    Raises ConfigError when the text has none of the forms.
    """
    if len(text) > _LONGEST:
        raise ConfigError("a reference that long names nothing", ref=text[:100])
    name, at, moment = text.rpartition("@")
    if not at:
        return Reference(text=text, subject=_subject(text, text))
    if moment.isascii() and moment.isdigit():
        offset, time = int(moment), None
    elif _TIME.fullmatch(moment):
        offset, time = None, _parse_time(moment, text)
    else:
        raise ConfigError(
            f"what follows @ is neither an offset nor a time with its zone: {moment!r}",
            hint="write @1200 or @2026-05-04T12:00:00Z",
            ref=text,
        )
    subject = _subject(name, text)
    if isinstance(subject, IdPrefix):
        raise ConfigError("an id names one snapshot already and takes no @", ref=text)
    return Reference(text=text, subject=subject, offset=offset, time=time)


def _parse_time(moment: str, text: str) -> datetime:
    try:
        return datetime.fromisoformat(moment.upper()).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ConfigError(f"no such time: {moment!r}", ref=text) from error


def _subject(name: str, text: str) -> Subject:
    parts = name.split("/")
    found = _PARTITION.fullmatch(parts[-1])
    if len(parts) >= 3 and all(parts):
        return StoreId(parts[0], "/".join(parts[1:-1]), parts[-1])
    if len(parts) == 2 and parts[0] and found:
        return StorePartition(parts[0], found["name"], int(found["partition"]))
    if len(parts) == 1 and found:
        return ChangelogPartition(found["name"], int(found["partition"]))
    if _ID_PREFIX.fullmatch(name):
        return IdPrefix(name.lower())
    raise ConfigError(f"not a reference to a snapshot: {text!r}", hint=f"write {_FORMS}", ref=text)
