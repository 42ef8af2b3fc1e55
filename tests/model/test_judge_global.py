"""What keeps an application with global stores from starting: rows seen on real applications."""

from pathlib import Path

import pytest

from snapstore.model.conditions import conditions_of
from snapstore.model.identity import ChangelogPartition, StoreId
from snapstore.model.judge import judge_task
from snapstore.model.snapshot import ProcessingGuarantee
from snapstore.model.state_facts import DatabaseFacts, StoreFacts, TaskFacts
from snapstore.model.store import StoreLocation
from snapstore.model.verdict import Bounds, Conditions, Guarantee, LogBounds, Reader, Verdict
from snapstore.operations.fsck_report import CheckedTask, FsckReport
from snapstore.operations.mend_plan import plan_mend

TOPIC = ChangelogPartition("rates", 0)
LOG: Bounds = {TOPIC: LogBounds(start=0, end=6020, high_watermark=6020)}
SHORTENED: Bounds = {TOPIC: LogBounds(start=4000, end=6020, high_watermark=6020)}


def facts(status: str | None, offset: int | str | None, task: str = "global") -> TaskFacts:
    """A store that notes that applied offset; None: -4; "none": none at all."""
    database = DatabaseFacts(
        name="rocksdb/rates",
        keeps_offsets=True,
        offsets={} if isinstance(offset, str) else {TOPIC: offset},
        status=status,  # type: ignore[arg-type]
    )
    location = StoreLocation(
        store=StoreId("orders", task, "rates"),
        layout="kafka-streams",
        backend="rocksdb",
        store_type="key-value",
        generation="kafka-streams-4.3",
        task_dir=Path("/state/orders") / task,
        root="rocksdb/rates",
    )
    store = StoreFacts(
        location=location,
        databases=(database,),
        changelogs=() if isinstance(offset, str) else (TOPIC,),
    )
    return TaskFacts(application="orders", task=task, task_dir=location.task_dir, stores=(store,))


def judge(task: TaskFacts, guarantee: Guarantee, bounds: Bounds, reader: Reader) -> Verdict:
    conditions = Conditions(readers=(reader,), guarantees=(guarantee,))
    return judge_task(task, conditions, bounds)[0]


ROWS: dict[str, tuple[str | None, int | str | None, Guarantee, Bounds, str]] = {
    "open, at-least-once": ("open", 3019, "at_least_once", LOG, "replays"),
    "open, exactly-once": ("open", 3019, "exactly_once", LOG, "refuses"),
    "open, exactly-once, no offset": ("open", "none", "exactly_once", LOG, "refuses"),
    "open, now transactional": ("open", 3019, "transactional", LOG, "refuses"),
    "killed, transactional": (None, 3019, "transactional", LOG, "replays"),
    "closed": ("closed", 6019, "exactly_once", LOG, "clean"),
    "closed, no offset: all is read": ("closed", "none", "at_least_once", LOG, "replays"),
    "closed, -4": ("closed", None, "at_least_once", LOG, "refuses"),
    "beyond the end": ("closed", 8999, "at_least_once", LOG, "refuses"),
    "beyond the end, exactly-once": ("closed", 8999, "exactly_once", LOG, "refuses"),
    "before the start": ("closed", 99, "at_least_once", SHORTENED, "refuses"),
    "behind": ("closed", 99, "exactly_once", LOG, "replays"),
}


@pytest.mark.parametrize("reader", ["oldest", "newest"])
@pytest.mark.parametrize("sentence", ROWS)
def test_h05_a_global_store_is_judged_as_its_thread_does(sentence: str, reader: Reader) -> None:
    status, offset, guarantee, bounds, kind = ROWS[sentence]
    assert judge(facts(status, offset), guarantee, bounds, reader).kind == kind


def report(task: TaskFacts, conditions: Conditions) -> FsckReport:
    checked = CheckedTask(
        facts=task,
        conditions=conditions,
        verdicts=judge_task(task, conditions, LOG),
        running=False,
    )
    return FsckReport(state_dir=Path("/state"), tasks=(checked,), notes=(), bounds=LOG)


def test_h05_what_stops_the_application_is_set_aside() -> None:
    conditions = Conditions(readers=("newest",), guarantees=("exactly_once",))
    ((mend,),) = [task.stores for task in plan_mend(report(facts("open", 9), conditions)).tasks]
    assert (mend.action, mend.paths) == ("set_aside", ("rocksdb/rates",))
    assert not plan_mend(report(facts("closed", 9), conditions)).tasks


@pytest.mark.parametrize(
    ("logged", "kind"),
    [(None, "refuses"), ("at_least_once", "replays"), ("exactly_once", "refuses")],
)
def test_h05_the_marks_of_other_stores_do_not_prove_at_least_once_for_global_ones(
    logged: ProcessingGuarantee | None, kind: str
) -> None:
    tasks = [facts("open", 9, "0_0"), facts("open", 9)]
    conditions = conditions_of(tasks, guarantee="auto", version="4.4.0", logged=logged)
    assert judge_task(tasks[1], conditions, LOG)[0].kind == kind
