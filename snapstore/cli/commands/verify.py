"""`snapstore verify`: can the snapshots be restored?"""

from pathlib import Path

import click

from snapstore import client
from snapstore.cli.lazy import Verb
from snapstore.cli.options import Percent, limit_rate_option
from snapstore.cli.session import Session
from snapstore.cli.text import Column, count, short, table
from snapstore.cli.verify_catalog import verify_catalog
from snapstore.errors import ConfigError, IntegrityError
from snapstore.model.units import format_duration, format_size
from snapstore.operations.verify_report import VerifyReport


@click.command(
    "verify",
    cls=Verb,
    short_help="Whether snapshots can be restored.",
    examples=(
        "snapstore verify",
        "snapstore verify --read-data --sample 10%",
        "snapstore verify orders/counts:3 --open",
        "snapstore verify --catalog",
    ),
)
@click.argument("refs", metavar="[REF...]", nargs=-1)
@click.option("--read-data", is_flag=True, help="Read the bytes and compare their hashes.")
@click.option(
    "--sample", type=Percent(), metavar="PERCENT", help="Read a share of them, each run the next."
)
@click.option("--seed", type=int, metavar="N", help="Draw the sample by lot instead.")
@click.option("--open", "open_store", is_flag=True, help="Open each store, read every entry.")
@click.option(
    "--scratch",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Where --open keeps a store meanwhile [default: the system's].",
)
@click.option("--catalog", is_flag=True, help="Compare catalog and storage, both ways.")
@limit_rate_option
@click.pass_obj
def command(
    session: Session,
    refs: tuple[str, ...],
    read_data: bool,
    sample: float | None,
    seed: int | None,
    open_store: bool,
    scratch: Path | None,
    catalog: bool,
    limit_rate: int | None,
) -> None:
    """Look whether snapshots can be restored, all of them or those that are named.

    Without options the presence and the size of everything they need is checked. Damage is told
    with every snapshot that it spoils (exit code 4). With --catalog the whole repository is looked
    at: also for snapshots that the catalog has lost, and for what no snapshot needs.
    """
    config = session.config({"transfer.limit_rate": (limit_rate, "--limit-rate")})
    if catalog:
        if refs or read_data or sample is not None or open_store:
            raise ConfigError("--catalog is about the whole repository, and stands alone")
        verify_catalog(session, config)
        return
    with (
        client.open(config=config, listener=session.hear) as repository,
        session.reporting() as reporter,
    ):
        report = repository.verify(
            refs,
            read_data=read_data or sample is not None,
            sample_percent=100.0 if sample is None else sample,
            seed=seed,
            open_store=open_store,
            scratch=scratch,
            listener=reporter,
        )
    body = {
        "snapshots": report.snapshots,
        "blobs": report.blobs,
        "read_blobs": report.read_blobs,
        "read_bytes": report.read_bytes,
        "opened_stores": report.opened_stores,
        "scanned_entries": report.scanned_entries,
        "sound": report.sound,
        "damage": report.damage,
        "notes": report.notes,
    }
    for note in report.notes:
        session.note(note)
    lines = [*_damage_table(report), _last_line(report, session.elapsed)]
    if report.sound:
        session.done("verification", body, lines)
        return
    session.answer("verification", body, lines)
    spoiled = {snapshot for damage in report.damage for snapshot in damage.snapshots}
    hint = "take a new snapshot while the application still has the store"
    if any(damage.kind == "corrupt" for damage in report.damage):
        # Of a blob that has its size a snapshot does not see that it is corrupt, and reuses it.
        hint = f"snapstore repair --read-data, and then {hint}"
    raise IntegrityError(
        f"{count(len(spoiled), 'snapshot')} cannot be restored: {report.damage[0].reason}",
        hint=hint,
        snapshots=sorted(short(snapshot) for snapshot in spoiled),
    )


def _damage_table(report: VerifyReport) -> list[str]:
    columns = (
        Column("damage", cut=True),
        Column("reason", below=True),
        Column("stores", cut=True),
        Column("snapshots", spare=1),
    )
    return table(
        columns,
        [
            (
                damage.kind,
                damage.reason,
                ", ".join(damage.stores),
                ", ".join(short(snapshot) for snapshot in damage.snapshots),
            )
            for damage in report.damage
        ],
    )


def _last_line(report: VerifyReport, seconds: float) -> str:
    line = f"{count(report.snapshots, 'snapshot')}, {count(report.blobs, 'blob')} looked at"
    if report.read_blobs:
        line += f", {report.read_blobs:,} read ({format_size(report.read_bytes)})"
    if report.opened_stores:
        line += (
            f", {count(report.opened_stores, 'store')} opened"
            f" ({count(report.scanned_entries, 'entry', 'entries')} read)"
        )
    found = "nothing wrong" if report.sound else count(len(report.damage), "damage", "damages")
    return f"{line}: {found}; {format_duration(seconds)}"
