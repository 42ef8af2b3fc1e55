"""Show verdicts on stores: as a table with sentences, and as JSON."""

from collections.abc import Mapping, Sequence
from typing import Final

import click

from snapstore.cli.exit_codes import DAMAGE, DONE, LOSSY_START, PARTIAL
from snapstore.cli.options import F, kafka_streams_version_option
from snapstore.cli.stores import UNSEEN
from snapstore.cli.text import Column, count, plain, table
from snapstore.model.verdict import SEVERITY, Kind, Verdict
from snapstore.operations.fsck_report import CheckedTask, FsckReport

WORDS: Final[Mapping[Kind, str]] = {
    "clean": "starts clean",
    "replays": "replays",
    "wipes": "rebuilds",
    "unknown": "unknown",
    "refuses": "refuses to start",
    "damaged": "damaged",
    "loses_rows": "LOSES ROWS",
}
_OF_SEVERAL: Final[Mapping[str, str]] = {
    "starts clean": "start clean",
    "replays": "replay",
    "rebuilds": "rebuild",
    "refuses to start": "refuse to start",
    "LOSES ROWS": "lose rows",
}
"""Where the verb has another form."""

_EXIT_CODES: Final[Mapping[Kind, int]] = {
    "clean": DONE,
    "replays": DONE,
    "wipes": DONE,
    "unknown": PARTIAL,
    "refuses": DAMAGE,
    "damaged": DAMAGE,
    "loses_rows": LOSSY_START,
}
_COLUMNS = (
    Column("application", cut=True),
    Column("task"),
    Column("store", cut=True),
    Column("at the next start"),
    Column("from", right=True, spare=2),
    Column("records", right=True, spare=1),
)


def word(verdict: Verdict) -> str:
    """Return the verdict in a few words."""
    return UNSEEN if verdict.cause == "unreadable" else WORDS[verdict.kind]


def exit_code_of(kind: Kind) -> int:
    """Return the exit code for the worst verdict of a directory."""
    return _EXIT_CODES[kind]


def start_options(function: F) -> F:
    """Add the options that say who will start, and how closely to look."""
    function = click.option("--scan", is_flag=True, help="Read every block of every table.")(
        function
    )
    function = kafka_streams_version_option(function)
    return click.option(
        "--guarantee",
        type=click.Choice(["at_least_once", "exactly_once_v2"]),
        help="The application's processing.guarantee, where the files do not tell.",
    )(function)


def verdict_lines(report: FsckReport) -> list[str]:
    """Return the table of all stores, a paragraph for each that is not right, and a total."""
    verdicts = report.verdicts
    lines = table(_COLUMNS, [_row(verdict) for verdict in verdicts])
    for verdict in verdicts:
        if verdict.kind not in ("clean", "replays"):
            lines += ["", *_sentences(verdict)]
    return [*lines, *([""] if lines else []), total(report)]


def total(report: FsckReport) -> str:
    """Return one line with the number of stores of each kind, the worst first."""
    kinds = [word(verdict) for verdict in report.verdicts]
    words = [WORDS[kind] for kind in reversed(SEVERITY)]
    words.insert(words.index(WORDS["unknown"]), UNSEEN)
    parts = [
        count(kinds.count(each), each.lower(), _OF_SEVERAL.get(each, each).lower())
        for each in words
        if each in kinds
    ]
    empty = f"no store was found below {plain(str(report.state_dir))}"
    line = f"{count(len(kinds), 'store')}: {', '.join(parts)}" if parts else empty
    if report.scanned_pairs is not None:
        line += f"; {count(report.scanned_pairs, 'pair')} read"
    return line


def task_documents(tasks: Sequence[CheckedTask]) -> list[dict[str, object]]:
    """Return tasks with the facts that were read and the verdicts."""
    return [
        {
            "application": task.facts.application,
            "task": task.facts.task,
            "path": task.facts.task_dir,
            "running": task.running,
            "assumed_readers": list(task.conditions.readers),
            "assumed_guarantees": list(task.conditions.guarantees),
            "databases": [
                {
                    "store": store.store.store,
                    "name": database.name,
                    "status": database.status,
                    "offsets": {str(one): at for one, at in database.offsets.items()},
                }
                for store in task.facts.stores
                for database in store.databases
            ],
            "stores": [verdict_document(verdict) for verdict in task.verdicts],
        }
        for task in tasks
    ]


def verdict_document(verdict: Verdict) -> dict[str, object]:
    return {
        "application": verdict.store.application,
        "task": verdict.store.task,
        "store": verdict.store.store,
        "verdict": verdict.kind,
        "cause": verdict.cause,
        "reason": verdict.reason,
        "advice": verdict.advice,
        "changelog": None if verdict.changelog is None else str(verdict.changelog),
        "resume_offset": verdict.resume_offset,
        "records": verdict.records,
        "skipped": verdict.skipped,
        "assumed": verdict.assumed,
    }


def _row(verdict: Verdict) -> tuple[str, ...]:
    return (
        verdict.store.application,
        verdict.store.task,
        verdict.store.store or "(not known)",
        word(verdict),
        "" if verdict.resume_offset is None else str(verdict.resume_offset),
        "" if verdict.records is None else f"{verdict.records:,}",
    )


def _sentences(verdict: Verdict) -> list[str]:
    lines = [f"{verdict.store}: {word(verdict)}", f"  {verdict.reason}"]
    if verdict.assumed is not None:
        lines.append(f"  assumed: {verdict.assumed}")
    lines.append(f"  {verdict.advice}")
    return [plain(line) for line in lines]
