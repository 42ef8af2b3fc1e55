"""Names of files, folders and topics that Kafka Streams gives."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

from snapstore.model.identity import StoreId
from snapstore.model.store import StoreLocation

CHECKPOINT = ".checkpoint"
LOCK = ".lock"
PROCESS_METADATA = "kafka-streams-process-metadata"
GLOBAL = "global"
ROCKSDB = "rocksdb"
POSITION_SUFFIX = ".position"
LOST_AND_FOUND = "lost+found"

BEFORE_4_3 = "kafka-streams-4.0"
FROM_4_3 = "kafka-streams-4.3"

NO_CHANGELOG = "none"

_CHANGELOG = "-changelog"
_TASK = re.compile(r"\d+_(\d+)", re.ASCII)
_TOPOLOGY = re.compile(r"__(.+)__")
_DATE = re.compile(r"(\d{4})(\d{2})(\d{2})(\d{2})(\d{2,6})", re.ASCII)
_DIGITS = re.compile(r"\d{1,18}", re.ASCII)


def is_task(name: str) -> bool:
    """Whether a folder of that name holds a task: ``<subtopology>_<partition>``."""
    return _TASK.fullmatch(name) is not None


def is_named_topology(name: str) -> bool:
    return _TOPOLOGY.fullmatch(name) is not None


def is_task_path(task: str) -> bool:
    """Whether a task of that name can lie below an application directory."""
    topology, slash, name = task.rpartition("/")
    if slash:
        return is_task(name) and "/" not in topology and is_named_topology(topology)
    return is_task(name) or name == GLOBAL


def task_partition(task: str) -> int | None:
    """Return the partition that a task reads and writes; None for the global one."""
    if task == GLOBAL:
        return None
    match = _TASK.fullmatch(task.rpartition("/")[2])
    if match is None:
        raise ValueError(f"not a task of Kafka Streams: {task!r}")
    return int(match.group(1))


def segment_start(store: str, name: str) -> int | None:
    """Return the time at which a segment begins, in milliseconds; None for what is no segment.

    ``name`` is that of a folder in the folder of the store. `AbstractSegments` (the same in 4.2.1,
    4.3.1 and 4.4.0) looks at what follows the length of the store's name: ``.MILLISECONDS``;
    ``:MILLISECONDS`` and ``-yyyyMMddHHmm`` in UTC are names of older versions, which it renames at
    its start and opens.
    """
    prefix, sign, rest = _cut(store, name)
    if sign == "-":
        return _date(rest)
    if not _DIGITS.fullmatch(rest):
        return None
    plain = prefix == store and rest == str(int(rest))
    return int(rest) if sign == ":" or (sign == "." and plain) else None


def segment_time(store: str, database: str) -> int:
    """Return ``segment_start`` of a database that is a segment; raises ValueError for another."""
    start = segment_start(store, database.rpartition("/")[2])
    if start is None:
        raise ValueError(f"no segment of {store}: {database!r}")
    return start


def segment_opened_instead(store: str, name: str) -> str | None:
    """Return the folder that Kafka Streams opens, or makes, where it finds one of that name.

    It reads the number after any sign, and goes on with its own way to write it.
    """
    _, sign, rest = _cut(store, name)
    if sign in ("", "-", ":") or not _DIGITS.fullmatch(rest):
        return None
    own = f"{store}.{int(rest)}"
    return own if own != name else None


def is_passed_over(store: str, name: str) -> bool:
    """Whether Kafka Streams warns of a folder in that of the store, and leaves it alone."""
    _, sign, rest = _cut(store, name)
    return sign == "-" and _date(rest) is None


def _cut(store: str, name: str) -> tuple[str, str, str]:
    length = len(store)
    return name[:length], name[length : length + 1], name[length + 1 :]


def _date(text: str) -> int | None:
    """Read a time as Java's lenient SimpleDateFormat does; what follows the digits is ignored."""
    match = _DATE.match(text)
    if match is None:
        return None
    year, month, day, hour, minute = (int(each) for each in match.groups())
    years, month = divmod(month - 1, 12)
    if not 1970 <= year + years < 9999:
        return None
    first = datetime(year + years, month + 1, 1, tzinfo=UTC)
    moment = timedelta(days=day - 1, hours=hour, minutes=minute)
    return (int(first.timestamp()) + int(moment.total_seconds())) * 1000


def own_checkpoint(store: str) -> str:
    """Name the offset file of a store that keeps none itself (from 4.3 on)."""
    return f"{CHECKPOINT}_{store}"


def conventional_topic(store: StoreId) -> str:
    """Name the changelog that Kafka Streams makes for a store (ProcessorStateManager.java)."""
    return f"{_changelog_prefix(store.application, store.task)}{store.store}{_CHANGELOG}"


def conventional_store(topic: str, application: str, task: str) -> str | None:
    """Return the store whose changelog Kafka Streams would call so; None for another form."""
    prefix = _changelog_prefix(application, task)
    if not (topic.startswith(prefix) and topic.endswith(_CHANGELOG)):
        return None
    return topic.removeprefix(prefix).removesuffix(_CHANGELOG) or None


def _changelog_prefix(application: str, task: str) -> str:
    topology = _TOPOLOGY.fullmatch(task.partition("/")[0])
    return f"{application}-{topology.group(1)}-" if topology else f"{application}-"


def is_conventional(topic: str, application: str) -> bool:
    """Whether the topic can only be the changelog of a store with a name of its own."""
    return topic.startswith(f"{application}-") and topic.endswith(_CHANGELOG)


def application_dir(location: StoreLocation) -> Path:
    """Return the folder of the application that a store belongs to."""
    return location.task_dir.parents[location.store.task.count("/")]
