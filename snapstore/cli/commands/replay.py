"""`snapstore replay`: bring the stores of a stopped application forward."""

from datetime import datetime
from pathlib import Path
from typing import Any

import click

from snapstore import client
from snapstore.cli.lazy import Verb
from snapstore.cli.options import (
    application_option,
    replay_goal,
    to_offset_option,
    to_time_option,
)
from snapstore.cli.session import Session, path_override
from snapstore.cli.text import Column, count, moment, table
from snapstore.model.units import format_duration
from snapstore.operations.replay import ReplayedPartition
from snapstore.operations.replay_tasks import ReplayedTaskStore, ReplayReport


@click.command(
    "replay",
    cls=Verb,
    short_help="Apply the records after a snapshot to restored stores.",
    examples=(
        "snapstore replay /var/lib/kafka-streams",
        "snapstore replay /data/state --store counts --to-time 2026-03-01T12:00:00Z",
    ),
)
@click.argument("directory", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@application_option
@click.option("--task", "tasks", multiple=True, metavar="TASK", help="Only this task; repeatable.")
@click.option("--store", "stores", multiple=True, metavar="STORE", help="Only this; repeatable.")
@to_offset_option
@to_time_option
@click.option(
    "--allow-unchecked-changelog",
    is_flag=True,
    help="Replay although nothing proves that the files are of this changelog.",
)
@click.option(
    "--allow-missed-tombstones",
    is_flag=True,
    help="Replay although deleted keys may come back.",
)
@click.pass_obj
def command(
    session: Session,
    directory: Path | None,
    application: str | None,
    tasks: tuple[str, ...],
    stores: tuple[str, ...],
    to_offset: int | None,
    to_time: datetime | None,
    allow_unchecked_changelog: bool,
    allow_missed_tombstones: bool,
) -> None:
    """Apply the records that the stores below DIR lack, so that the application has none to read.

    The application must not run. Every task is copied beside itself and put into place as a whole,
    so a replay that fails leaves the directory as it was; one that was interrupted goes on.
    """
    config = session.config({"state.dir": (path_override(directory), "DIR")})
    with session.reporting() as reporter:
        report = client.replay(
            config=config,
            application=application,
            tasks=tasks,
            stores=stores,
            goal=replay_goal(to_offset, to_time),
            allow_unchecked_changelog=allow_unchecked_changelog,
            allow_missed_tombstones=allow_missed_tombstones,
            listener=reporter,
        )
    for note in report.notes:
        session.note(note)
    session.done("replay_report", _document(report), _lines(report, session.elapsed))


def _document(report: ReplayReport) -> dict[str, Any]:
    return {
        "items": [_store_document(store) for store in report.stores],
        "records": sum(store.records for store in report.stores),
        "notes": report.notes,
    }


def _store_document(store: ReplayedTaskStore) -> dict[str, Any]:
    return {
        "store": store.store,
        "task_dir": store.task_dir,
        "records": store.records,
        "partitions": [partition_document(each) for each in store.partitions],
    }


def partition_document(each: ReplayedPartition) -> dict[str, Any]:
    """Return what was applied of one changelog partition."""
    return {
        "topic": each.changelog.topic,
        "partition": each.changelog.partition,
        "start_offset": each.start,
        "applied_offset": each.applied_offset,
        "records": each.records,
        "seconds": each.seconds,
        "records_per_second": each.records_per_second,
        "lag_records": max(0, each.log_end - each.stop),
        "deadline": each.deadline,
    }


def _lines(report: ReplayReport, seconds: float) -> list[str]:
    columns = (
        Column("store", cut=True),
        Column("from", right=True),
        Column("applied", right=True),
        Column("records", right=True, spare=3),
        Column("per second", right=True, spare=4),
        Column("left", right=True, spare=2),
        Column("replay the rest before", spare=1),
    )
    rows = [
        (
            store.store,
            f"{each.start:,}",
            f"{each.applied_offset:,}",
            f"{each.records:,}",
            f"{each.records_per_second:,.0f}",
            f"{max(0, each.log_end - each.stop):,}",
            "" if each.deadline is None else moment(each.deadline),
        )
        for store in report.stores
        for each in store.partitions
    ]
    records = sum(store.records for store in report.stores)
    return [
        *table(columns, rows),
        f"replayed {count(records, 'record')} into {count(len(report.stores), 'store')};"
        f" {format_duration(seconds)}",
    ]
