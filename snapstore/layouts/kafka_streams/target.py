"""Where a restored task belongs, and whether the application there can open it."""

from pathlib import Path

from snapstore.errors import InMemoryStoreError, UnsafePathError, WrongGenerationError
from snapstore.layouts.kafka_streams.discover import is_application, tasks_of
from snapstore.layouts.kafka_streams.names import BEFORE_4_3, FROM_4_3, is_task_path
from snapstore.layouts.kafka_streams.tasks import CUSTOM, IN_MEMORY, located, read_task
from snapstore.model.identity import StoreId
from snapstore.model.snapshot import Description


def application_target(target: Path, store: StoreId) -> Path:
    """Return the application's directory: ``target`` itself where it is that one already.

    Raises UnsafePathError when a name would lead elsewhere.
    """
    name = store.application
    if name in ("", ".", "..") or "/" in name or not name.isprintable():
        raise _unsafe(store)
    if target.name == name and not (target / name).is_dir() and is_application(target):
        return target
    return target / name


def task_target(target: Path, store: StoreId) -> Path:
    """Return the task's directory below a state directory. Raises UnsafePathError."""
    if not is_task_path(store.task) or not store.task.isprintable() or ".." in store.task:
        raise _unsafe(store)
    return application_target(target, store) / store.task


def check_generation(target: Path, description: Description, layout: str) -> tuple[str, ...]:
    """Return in sentences what the target must bring along, unless its files show that it does.

    From 4.3 on every database has a family `offsets`, and an older RocksDB open fails at it
    ("Column families not opened: offsets"). Raises WrongGenerationError when all stores that are
    there were written by an older Kafka Streams, InMemoryStoreError for a store in memory.
    """
    if description.backend == "memory" or description.store_type == IN_MEMORY:
        raise InMemoryStoreError(
            f"{description.store} is a store in memory, which Kafka Streams never loads from a "
            "directory: it fills such a store from the changelog at every start",
            hint="such a snapshot is for Python programs (MemoryStore.restore), for drills and for "
            "inspection",
            store=str(description.store),
        )
    if description.generation != FROM_4_3 or description.store_type == CUSTOM:
        return ()
    generations = _generations(application_target(target, description.store), description, layout)
    if FROM_4_3 in generations:
        return ()
    if BEFORE_4_3 in generations:
        raise WrongGenerationError(
            f"the stores in {target} were written by Kafka Streams 4.2 or older, which cannot open "
            f"a snapshot taken from 4.3 or newer",
            hint="upgrade the application and let it start once, or remove its old state directory",
            store=str(description.store),
            target=str(target),
        )
    return (f"{description.store.application} needs Kafka Streams 4.3 or newer",)


def _generations(application_dir: Path, description: Description, layout: str) -> set[str]:
    application = description.store.application
    return {
        located(store, task_dir, StoreId(application, task, store.name), layout).generation
        for task, task_dir in tasks_of(application_dir)
        for store in read_task(task_dir, application, task).stores
        if store.store_type != CUSTOM
    }


def _unsafe(store: StoreId) -> UnsafePathError:
    return UnsafePathError(
        f"{str(store)!r} does not name a task of Kafka Streams",
        application=store.application,
        task=store.task,
    )
