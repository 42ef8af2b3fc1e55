"""The command line of the benchmark."""

import argparse
import os
import shutil
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from benchmarks.again import changed_unmeasured, measure_unchanged
from benchmarks.capture import measure_capture
from benchmarks.contenders import FLAGS
from benchmarks.lab import Lab, Sizes
from benchmarks.local import measure_local, measure_startup
from benchmarks.lost_disk import lost_disk_unmeasured, measure_lost_disk
from benchmarks.memory import measure_simulated, peak_row
from benchmarks.replays import measure_replay, replay_unmeasured
from benchmarks.rows import Row, Table, rows_as_markdown, table_as_markdown
from benchmarks.tools import PROJECT, Tools, find_tools, machine
from benchmarks.transfer import measure_transfer

Suite = Callable[[Lab], tuple[list[Row], list[Table]]]

SUITES: dict[str, Suite] = {
    "startup": measure_startup,
    "unchanged": measure_unchanged,
    "transfer": measure_transfer,
    "local": measure_local,
    "capture": measure_capture,
    "simulated": measure_simulated,
    "lost-disk": measure_lost_disk,
    "replay": measure_replay,
}

QUICK = Sizes(
    large_files=16,
    large_bytes=4 << 20,
    small_files=20,
    many_files=100,
    local_bytes=128 << 20,
    simulated_bytes=2 << 30,
    live_files=500,
    lost_disk_records=100_000,
    replay_records=100_000,
)


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """What one part of the work gave; kept in a file, so that parts can be measured apart."""

    rows: list[Row]
    tables: list[Table]


def main() -> None:
    """Measure, print the result, and write it to a file where one is named."""
    options = _options()
    sizes = _sized(QUICK if options.quick else Sizes(), options.gigabytes, options.records)
    work = options.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    lab = Lab(
        work=work,
        server_dir=(options.server_dir or work / "server").resolve(),
        temporary=(options.temporary or work / "tmp").resolve(),
        tools=find_tools(work, anew=not options.report),
        sizes=sizes,
        turns=options.turns,
    )
    results = work / "results"
    if options.report:
        options.keep, options.only = True, []
    if not options.keep:
        shutil.rmtree(results, ignore_errors=True)
    results.mkdir(exist_ok=True)
    for name in SUITES if options.only is None else options.only:
        print(f"measuring: {name}", file=sys.stderr, flush=True)
        rows, tables = SUITES[name](lab)
        (results / name).write_bytes(msgspec.json.encode(Measured(rows=rows, tables=tables)))
        print(rows_as_markdown(rows), file=sys.stderr, flush=True)
    measured = [
        msgspec.json.decode((results / name).read_bytes(), type=Measured)
        for name in SUITES
        if (results / name).exists()
    ]
    rows = [row for each in measured for row in each.rows]
    if not (results / "transfer").exists():
        rows += changed_unmeasured("not part of this run")
    if not (results / "lost-disk").exists():
        rows += lost_disk_unmeasured("not part of this run")
    if not (results / "replay").exists():
        rows += replay_unmeasured("not part of this run")
    tables = [table for each in measured for table in each.tables]
    peak = peak_row(tables)
    if peak is not None:
        rows.append(peak)
    text = _report(lab, rows, tables, options.note)
    print(text)
    output = options.output
    if output is None and not options.quick and options.only is None:
        output = PROJECT / "benchmarks" / "RESULTS.md"
    if output is not None:
        output.write_text(text)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=SUITES, help="these alone")
    parser.add_argument(
        "--keep", action="store_true", help="report what earlier runs in --work measured, too"
    )
    parser.add_argument(
        "--report", action="store_true", help="measure nothing; report what --work holds"
    )
    parser.add_argument("--turns", type=int, default=5, help="runs of each contender")
    parser.add_argument("--quick", action="store_true", help="little work: to try it out")
    parser.add_argument("--gigabytes", type=float, help="size of the first snapshot")
    parser.add_argument("--records", type=int, help="records of the changelogs")
    parser.add_argument(
        "--work", type=Path, default=PROJECT / ".cache" / "benchmarks", help="for all files"
    )
    parser.add_argument("--temporary", type=Path, help="TMPDIR of all contenders")
    parser.add_argument("--server-dir", type=Path, help="for the S3 server's files")
    parser.add_argument("--note", default="", help="a sentence for the head of the result")
    parser.add_argument(
        "--output",
        type=Path,
        help="a file for the result [default: RESULTS.md here, when all is measured in full]",
    )
    return parser.parse_args()


def _sized(sizes: Sizes, gigabytes: float | None, records: int | None) -> Sizes:
    if gigabytes is not None:
        size = int(gigabytes * 1e9)
        sizes = msgspec.structs.replace(
            sizes, large_bytes=size // sizes.large_files, local_bytes=size
        )
    if records is not None:
        sizes = msgspec.structs.replace(sizes, lost_disk_records=records, replay_records=records)
    return sizes


def _report(lab: Lab, rows: list[Row], tables: list[Table], note: str) -> str:
    parts = [
        "# What was measured",
        "",
        f"{datetime.now(UTC):%Y-%m-%d}, {machine()}. {lab.turns} turns, taken alternately; "
        f"ratios are those of medians. Load average at the end: {os.getloadavg()[2]:.0f}.",
        f"Files: {_kind(lab.work)}; those of the S3 server (SeaweedFS): {_kind(lab.server_dir)}; "
        f"TMPDIR: {_kind(lab.temporary)}. "
        "Plain HTTP on the loopback interface, file cache warm.",
        *(["", note] if note else []),
        "",
        rows_as_markdown(rows),
        "",
        "## Programs",
        "",
        *_programs(lab.tools),
        "",
        "## Figures",
        "",
        "\n\n".join(table_as_markdown(table) for table in tables),
        "",
    ]
    return "\n".join(parts)


def _programs(tools: Tools) -> list[str]:
    lines = ["| | version | flags |", "|---|---|---|"]
    for name, version in tools.versions.items():
        lines.append(f"| {name} | {version} | {FLAGS.get(name, '')} |")
    lines += [f"| {name} | missing: {why} | |" for name, why in tools.missing.items()]
    return lines


def _kind(folder: Path) -> str:
    """Return the type of the file system that a folder is, or will be, on."""
    while not folder.exists():
        folder = folder.parent
    best, kind = "", "unknown"
    for line in Path("/proc/mounts").read_text().splitlines():
        _, mount, found, *_ = line.split()
        if folder.is_relative_to(mount) and len(mount) > len(best):
            best, kind = mount, found
    return kind


if __name__ == "__main__":
    main()
