"""Judge only what stood still: a task that changed while it was read is no damaged one."""

from collections.abc import Sequence

import msgspec

from snapstore.errors import StoreChangedError
from snapstore.model.identity import StoreId, natural_order
from snapstore.model.state_facts import TaskFacts
from snapstore.model.unread import Unread


class ReadTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task as it was read; ``running``: an application has it open. ``pairs`` were scanned."""

    facts: TaskFacts
    running: bool
    pairs: int = 0

    @property
    def key(self) -> tuple[str, str]:
        return (self.facts.application, self.facts.task)


class Settling:
    """Gathers the tasks that were the same before and after their stores were read."""

    def __init__(self) -> None:
        self._settled: dict[tuple[str, str], ReadTask] = {}
        self._still: dict[tuple[str, str], ReadTask] = {}
        self._seen: dict[tuple[str, str], ReadTask] = {}
        self._now: dict[tuple[str, str], ReadTask] = {}

    def has(self, task: ReadTask) -> bool:
        return task.key in self._settled

    def add(
        self, before: Sequence[ReadTask], read: Sequence[ReadTask], now: Sequence[ReadTask]
    ) -> None:
        """Take tasks as they were seen, and then with their stores; ``now`` are all that are there
        afterwards."""
        self._now = {task.key: task for task in now}
        self._seen |= {task.key: task for task in before}
        same = {
            task.key
            for task in before
            if task.key in self._now and _shape(task) == _shape(self._now[task.key])
        }
        self._still = {task.key: task for task in read if task.key in same}
        for key, task in self._still.items():
            if not any(isinstance(each.error, StoreChangedError) for each in task.facts.unread):
                self._settled[key] = task

    @property
    def done(self) -> bool:
        """Whether all that is there has stood still once."""
        return self._now.keys() <= self._settled.keys()

    def tasks(self) -> list[ReadTask]:
        """Return the tasks in their order; of those that never stood still nothing is told."""
        left = [self._last(task) for key, task in self._now.items() if key not in self._settled]
        tasks = [*self._settled.values(), *left]
        return sorted(tasks, key=lambda task: (task.key[0], natural_order(task.key[1])))

    def notes(self) -> tuple[str, ...]:
        """Name the tasks that went away before they had stood still."""
        gone = self._seen.keys() - self._settled.keys() - self._now.keys()
        return tuple(
            f"{self._seen[key].facts.task_dir} went away while it was read" for key in sorted(gone)
        )

    def _last(self, now: ReadTask) -> ReadTask:
        """Return what can be said of a task of which a store, or which itself, kept changing."""
        task = self._still.get(now.key)
        if task is None:
            return msgspec.structs.replace(now, facts=_unread(now.facts))
        # A line without files may be of the store that is moving.
        return msgspec.structs.replace(task, facts=msgspec.structs.replace(task.facts, orphans=()))


def _unread(task: TaskFacts) -> TaskFacts:
    error = StoreChangedError(
        f"{task.task_dir} kept changing while it was read",
        hint="try again when the application neither starts nor stops nor gives tasks up",
        path=str(task.task_dir),
    )
    whole = StoreId(task.application, task.task, "")
    return TaskFacts(
        application=task.application,
        task=task.task,
        task_dir=task.task_dir,
        unread=(Unread(store=whole, path=task.task_dir, error=error),),
    )


def _shape(task: ReadTask) -> object:
    """Return what must be the same before and after.

    An application that runs notes offsets, and makes and drops segments, all the time.
    """
    facts = task.facts
    shape = (
        task.running,
        {each.store for each in facts.stores},
        {each.store for each in facts.unread},
        {(each.store, each.changelog, each.file) for each in facts.orphans},
        (facts.has_offset_file, facts.offset_file_fault, facts.unreadable_files),
    )
    if task.running:
        return shape
    lines = {each.store: each.lines for each in facts.stores}
    return (*shape, lines, facts.orphans, facts.foreign_lines)
