"""Names of files, folders and topics that Kafka Streams gives."""

import re
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
