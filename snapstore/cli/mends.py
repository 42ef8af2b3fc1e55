"""Show what is mended and prepared: as sentences for people, and as JSON."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from snapstore.cli.sentences import told
from snapstore.cli.text import Column, count, plain, table
from snapstore.model.identity import StoreId
from snapstore.operations.mend import MendedTask
from snapstore.operations.mend_plan import MendPlan, StoreMend, TaskMend
from snapstore.operations.prepare import Outcome, PreparedStore, PreparePlan
from snapstore.operations.prepare_plan import Choice

_ACTIONS: Final = {
    "note_least": "least offset noted",
    "set_aside": "set aside",
    "drop_line": "line removed",
    "set_file_aside": "file set aside",
}
_OUTCOMES: Final[Mapping[Outcome, str]] = {
    "as_it_is": "starts as it is",
    "unseen": "starts as it is, not looked into",
    "mended": "mended",
    "restored": "restored",
    "rebuilds": "left to the application to fill",
    "left": "LEFT AS IT IS",
}
_OF_SEVERAL: Final[Mapping[Outcome, str]] = {
    "as_it_is": "start as they are",
    "unseen": "start as they are, not looked into",
    "left": "left as they are",
}
_CHOICES: Final[Mapping[Choice, str]] = {
    "as_it_is": "starts as it is",
    "unseen": "starts as it is, not looked into",
    "mend": "mend",
    "restore": "restore the newest usable snapshot",
    "rebuild": "leave to the application to fill",
    "left": "LEAVE AS IT IS",
}
_EMPTY = "there is nothing on the disk: the application fills its stores from their changelogs"
_COLUMNS = (Column("task"), Column("store", cut=True), Column("decision"))


def plan_lines(plan: MendPlan) -> list[str]:
    """Return what would be done, and that nothing would be where that is so."""
    lines = [line for task in plan.tasks for line in _task_lines(task)]
    lines += [plain(f"{verdict.store} is left: {verdict.reason}") for verdict in plan.left]
    stores = sum(len(task.stores) for task in plan.tasks)
    nothing = "nothing of that can be mended here" if plan.left else "there is nothing to mend"
    last = f"{count(stores, 'store')} would be mended" if stores else nothing
    return [*lines, last]


def mended_lines(tasks: Sequence[MendedTask]) -> list[str]:
    """Return what was done, and where things were set aside."""
    lines = []
    for task in tasks:
        lines += _task_lines(task.plan)
        if task.quarantine is not None:
            lines.append(plain(f"  kept in {task.quarantine}"))
    stores = sum(len(task.plan.stores) for task in tasks)
    return [*lines, f"{count(stores, 'store')} mended" if stores else "there is nothing to mend"]


def plan_document(plan: MendPlan) -> dict[str, object]:
    return {
        "tasks": [_task_document(task) for task in plan.tasks],
        "left": [
            {"store": str(verdict.store), "verdict": verdict.kind, "reason": verdict.reason}
            for verdict in plan.left
        ],
    }


def mended_documents(tasks: Iterable[MendedTask]) -> list[dict[str, object]]:
    return [{**_task_document(task.plan), "quarantine": task.quarantine} for task in tasks]


def prepared_lines(stores: Sequence[PreparedStore]) -> list[str]:
    """Return the table of all stores, and the reason for each that something was done about."""
    lines = table(
        _COLUMNS,
        [(each.store.task, each.store.store, _OUTCOMES[each.outcome]) for each in stores],
    )
    lines += _reasons((each.store, each.reason) for each in stores if each.outcome != "as_it_is")
    outcomes = [each.outcome for each in stores]
    parts = [
        count(outcomes.count(outcome), words.lower(), _OF_SEVERAL.get(outcome, words.lower()))
        for outcome, words in _OUTCOMES.items()
        if outcome in outcomes
    ]
    return [*lines, f"{count(len(stores), 'store')}: {', '.join(parts)}" if parts else _EMPTY]


def prepare_plan_lines(plan: PreparePlan) -> list[str]:
    """Return the decisions with their reasons, and which tasks would be brought back."""
    lines = table(
        _COLUMNS,
        [(each.store.task, each.store.store, _CHOICES[each.choice]) for each in plan.decisions],
    )
    lines += _reasons(
        (each.store, each.reason) for each in plan.decisions if each.choice != "as_it_is"
    )
    if plan.bring:
        lines.append(f"restore {count(len(plan.bring), 'task')}: {', '.join(plan.bring)}")
    return lines or [_EMPTY]


def _reasons(reasons: Iterable[tuple[StoreId, str]]) -> list[str]:
    lines = told(reasons)
    return ["", *lines, ""] if lines else []


def _task_lines(task: TaskMend) -> list[str]:
    lines = []
    for mend in task.stores:
        name = (
            str(mend.store) if mend.store.store else f"{mend.store.application}/{mend.store.task}"
        )
        lines += [f"{name}: {_ACTIONS[mend.action]}", f"  {mend.reason}", f"  {mend.effect}"]
    return [plain(line) for line in (*lines, *(f"  note: {note}" for note in task.notes))]


def _task_document(task: TaskMend) -> dict[str, object]:
    return {
        "application": task.facts.application,
        "task": task.facts.task,
        "path": task.facts.task_dir,
        "stores": [_store_document(mend) for mend in task.stores],
        "notes": list(task.notes),
    }


def _store_document(mend: StoreMend) -> dict[str, object]:
    return {
        "store": mend.store.store,
        "action": mend.action,
        "reason": mend.reason,
        "effect": mend.effect,
        "least": {str(changelog): applied for changelog, applied in mend.least.items()},
        "set_aside": list(mend.paths),
        "lines_removed": [str(line.changelog) for line in mend.lines],
        "records": mend.records,
    }
