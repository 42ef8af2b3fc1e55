"""Against Kafka Streams itself: a disk is lost, and the application is wanted back."""

import shutil
import statistics
from pathlib import Path

from benchmarks.changelogs import Start, application, start, store_folder, write_changelog
from benchmarks.entries import entries_digest
from benchmarks.lab import BUCKET, Lab
from benchmarks.measure import Cost
from benchmarks.rows import Row, Table
from tests.support.jars import missing_tools

_WORK = "a lost disk: restore from S3 and start until RUNNING, tail 1 %"
_PEER = "Kafka Streams' own rebuild until RUNNING"
_LIMIT = 10.0


def measure_lost_disk(lab: Lab) -> tuple[list[Row], list[Table]]:
    """From an empty disk until RUNNING: everything from the changelog, or a snapshot and a tail.

    The changelog has each key once, and then the tail: it is as short as it can be. The first
    rebuild makes the store that the snapshot is of, so it has no tail to read; the last one has.
    """
    if missing_tools():
        return lost_disk_unmeasured(f"missing: {', '.join(missing_tools())}"), []
    records = lab.sizes.lost_disk_records
    rebuilds: list[Start] = []
    restores: list[Cost] = []
    starts: list[Start] = []
    with application(lab, partitions=1) as app, lab.server() as server:
        env = {**server, "SNAPSTORE_KAFKA_BOOTSTRAP": app.bootstrap}
        write_changelog(app, 0, records=records, keys=records, seed=1)

        def rebuild() -> None:
            shutil.rmtree(app.state_dir)
            rebuilds.append(start(app))

        def restore() -> None:
            shutil.rmtree(app.state_dir)
            restores.append(lab.run(env, command))
            starts.append(start(app))

        rebuild()
        place: list[str | Path] = ["-r", f"s3://{BUCKET}/streams"]
        snapstore = lab.tools.paths["snapstore"]
        lab.quietly(env, snapstore, "init", "-q", *place)
        lab.quietly(env, snapstore, "snapshot", "-q", *place, "--state-dir", app.state_dir)
        store_bytes = _bytes_below(app.directory)
        write_changelog(app, 0, records=records // 100, keys=records, seed=2)
        command: list[str | Path] = [snapstore, "restore", "-q", "--replay", *place]
        command += ["--application", app.application, "--target", app.state_dir]
        restore()
        restore()
        contents = entries_digest(store_folder(app.state_dir, app, 0))
        rebuild()
        if contents != entries_digest(store_folder(app.state_dir, app, 0)):
            raise AssertionError("the contents of the stores differ")
    if {each.records for each in starts} != {0} or rebuilds[-1].records < records * 1.01:
        raise AssertionError(f"not what was to be read: {[*starts, *rebuilds]}")
    return _told(records, store_bytes, rebuilds, restores, starts)


def lost_disk_unmeasured(why: str) -> list[Row]:
    """Return the target with the reason why nothing was measured."""
    return [_row(None, why)]


def _told(
    records: int,
    store_bytes: int,
    rebuilds: list[Start],
    restores: list[Cost],
    starts: list[Start],
) -> tuple[list[Row], list[Table]]:
    theirs = statistics.median(each.seconds for each in rebuilds)
    began = statistics.median(each.seconds for each in starts)
    ours = [cost.wall_s + each.seconds for cost, each in zip(restores, starts, strict=True)]
    row = _row(theirs / statistics.median(ours), f"{len(starts)} turns")
    table = Table(
        title=f"A lost disk: {store_bytes / 1e9:.2f} GB of store",
        costs={"snapstore restore --replay": restores},
        notes=(
            f"{records:,} records of 112 bytes in the changelog, each key once, then "
            f"{records // 100:,} more. Every entry is the same on both sides; after the restore "
            "the application had nothing to read.",
            "",
            f"- rebuild: {theirs:.1f} s until RUNNING ({_spread(rebuilds)}), of these "
            f"{statistics.median(_reading_s(each) for each in rebuilds):.1f} s for the records",
            f"- start after the restore: {began:.1f} s until RUNNING ({_spread(starts)}): no "
            "restore can take less than that off",
        ),
    )
    return [row], [table]


def _reading_s(each: Start) -> float:
    return max(each.milliseconds.values()) / 1000


def _spread(starts: list[Start]) -> str:
    seconds = sorted(each.seconds for each in starts)
    return f"{seconds[0]:.1f} to {seconds[-1]:.1f}"


def _bytes_below(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _row(measured: float | None, note: str) -> Row:
    return Row(
        work=_WORK,
        against=_PEER,
        figure="times quicker",
        limit=_LIMIT,
        measured=measured,
        wanted="at least",
        note=note,
    )
