"""Which version, under which guarantee, is about to open a state directory."""

import re
from collections.abc import Iterable, Sequence

from snapstore.errors import ConfigError
from snapstore.model.snapshot import ProcessingGuarantee
from snapstore.model.state_facts import DatabaseFacts, TaskFacts
from snapstore.model.verdict import Conditions, Guarantee, Reader

_VERSION = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?(?:[.-].*)?", re.ASCII)


def reader_of(version: str) -> Reader:
    """Return where that version of Kafka Streams looks for offsets.

    A version newer than 4.4 is taken to do as 4.4 does. Raises ConfigError for a text that is no
    version.
    """
    major, minor, patch = numbers_of(version)
    if (major, minor) < (4, 3):
        return "checkpoint"
    return "oldest" if (major, minor, patch) == (4, 3, 0) else "newest"


def numbers_of(version: str) -> tuple[int, int, int | None]:
    """Return the numbers of a version of Kafka Streams, the last None where it is not given.

    Raises ConfigError for a text that is no version.
    """
    match = _VERSION.fullmatch(version.strip())
    if match is None:
        raise ConfigError(
            f"not a version of Kafka Streams: {version!r}", hint="write for instance 4.4.0"
        )
    return int(match[1]), int(match[2]), None if match[3] is None else int(match[3])


def conditions_of(
    tasks: Sequence[TaskFacts],
    *,
    guarantee: str,
    version: str | None,
    logged: ProcessingGuarantee | None = None,
) -> Conditions:
    """Return the conditions that were given, or all that the files of one application allow.

    ``guarantee`` is a value of `processing.guarantee` or ``auto``; ``logged`` is what the ends of
    the application's changelogs say of it. For global stores, whose application does not start at
    all if the wrong one is taken for granted, the marks of other stores are not enough.
    """
    known = logged or "auto" if guarantee == "auto" else guarantee
    return Conditions(
        readers=_readers(tasks) if version is None else (reader_of(version),),
        guarantees=_guarantees(tasks, known),
        global_guarantees=_of_global_stores(tasks, known),
    )


def _readers(tasks: Iterable[TaskFacts]) -> tuple[Reader, ...]:
    """Versions to 4.2 fail at the databases of newer ones, so those rule them out."""
    if any(store.keeps_offsets for task in tasks for store in task.stores):
        return ("oldest", "newest")
    return ("checkpoint", "oldest", "newest")


def _of_global_stores(tasks: Sequence[TaskFacts], given: str) -> tuple[Guarantee, ...]:
    found = _guarantees(tasks, given)
    if given == "auto" and found == ("at_least_once",):
        return ("at_least_once", "exactly_once")
    return found


def _guarantees(tasks: Sequence[TaskFacts], given: str) -> tuple[Guarantee, ...]:
    """Tell the guarantee by what the application leaves behind.

    A transactional store (4.4) notes offsets and no status. Under exactly-once any other store
    notes its offset as unknown as long as it is open, on disk or in `.checkpoint`, until its first
    clean close; at-least-once notes offsets all the time, so a known offset in an open database is
    taken for that: the verdict is no better than under the other.
    """
    if given == "at_least_once":
        return ("at_least_once",)
    databases = [each for task in tasks for store in task.stores for each in store.databases]
    if any(_notes(database) and database.status is None for database in databases):
        return ("transactional",)
    if given in ("exactly_once", "exactly_once_v2"):
        marked = any(database.status is not None for database in databases)
        return ("exactly_once",) if marked else ("exactly_once", "transactional")
    if any(_notes(database) and database.status == "open" for database in databases):
        return ("at_least_once",)
    lines = [at for task in tasks for store in task.stores for at in store.lines.values()]
    if lines and all(at is None for at in lines):
        return ("exactly_once",)
    return ("at_least_once", "exactly_once")


def _notes(database: DatabaseFacts) -> bool:
    return any(at is not None for at in database.offsets.values())
