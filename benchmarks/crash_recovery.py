"""Kill Kafka Streams applications under load, as often as wanted, and count what they lose.

    python -m benchmarks.crash_recovery [--runs 10] [--first 1] [--kind NAME]...
                                        [--memtable BYTES] [--seconds 7]

Each run kills an application, mends its directory, starts it, kills it again two seconds after
RUNNING, mends, and starts it to the end; a copy of the first crash is started as it is. Both are
compared with a rebuild from the same changelogs. Prints one line for each run and a table; ends
with 1 when a mended directory differed in a single row, and keeps that one. ``--memtable 0`` is
the default of Kafka Streams (16 MiB): give it more than ``--seconds 60``, or nothing is ever
flushed.
"""

import argparse
import dataclasses
import shutil
import statistics
import sys
import tempfile
from collections.abc import Collection
from contextlib import closing
from pathlib import Path

from snapstore.kafka.changelog import KafkaChangelog
from snapstore.operations.fsck import FsckOptions
from snapstore.operations.mend import mend
from tests.support.broker import Broker
from tests.support.crash_experiment import (
    Crash,
    Difference,
    Kind,
    Order,
    Outcome,
    crash_twice,
)
from tests.support.mend_lab import ports
from tests.support.streams_app import StreamsApp
from tests.support.streams_lab import StreamsLab

APPLICATIONS: tuple[tuple[str, Kind], ...] = (
    ("4.4.0", "at_least_once"),
    ("4.4.0", "transactional"),
    ("4.3.1", "at_least_once"),
    ("4.2.1", "at_least_once"),
)
ORDERS: tuple[Order, ...] = ("inorder", "late")
KINDS = {
    f"{version}-{kind}-{order}": Crash(version=version, kind=kind, order=order)
    for version, kind in APPLICATIONS
    for order in ORDERS
}


def main() -> int:
    """Run all kinds, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--first", type=int, default=1, help="number (and seed) of the first")
    parser.add_argument("--kind", action="append", choices=sorted(KINDS))
    parser.add_argument("--memtable", type=int, default=65536, metavar="BYTES")
    parser.add_argument("--seconds", type=float, default=7)
    parser.add_argument("--rate", type=int, default=4000, help="records a second")
    arguments = parser.parse_args()
    results: dict[str, list[Outcome]] = {}
    folder = Path(tempfile.mkdtemp(prefix="crash-recovery-"))
    for name in arguments.kind or KINDS:
        crash = dataclasses.replace(
            KINDS[name],
            memtable=arguments.memtable or None,
            seconds=arguments.seconds,
            rate=arguments.rate,
        )
        results[name] = [
            one_run(folder / f"{name}-{number}", name, crash, number)
            for number in range(arguments.first, arguments.first + arguments.runs)
        ]
    if not any(folder.iterdir()):
        folder.rmdir()
    print()
    print(f"{'application':32} {'runs':>5} {'lost rows':>10} {'rows lost':>28} {'mended':>10}")
    for name, outcomes in results.items():
        print(summary(name, outcomes))
    wrong = [each for outcomes in results.values() for each in outcomes if differs(each)]
    return 1 if wrong else 0


def one_run(folder: Path, name: str, crash: Crash, seed: int) -> Outcome:
    """Crash one application on a broker of its own."""
    with Broker(folder / "broker") as broker:
        lab = StreamsLab(broker, folder / "lab")
        try:
            outcome = crash_twice(lab, dataclasses.replace(crash, seed=seed), mended)
        finally:
            lab.close()
    rows = sum(outcome.rows.values())
    print(
        f"{name} {seed}: as it is {told(outcome.as_it_is.values())} of {rows:,}, "
        f"mended {told(outcome.mended.values())}",
        flush=True,
    )
    if differs(outcome):
        print(f"kept: {folder}", flush=True)
    else:
        shutil.rmtree(folder)
    return outcome


def mended(app: StreamsApp) -> None:
    """Do what ``snapstore fsck --repair`` does."""
    with closing(KafkaChangelog(app.bootstrap)) as changelog:
        options = FsckOptions(guarantee=app.guarantee, version=app.version)
        mend(app.state_dir, ports(changelog), options)


def told(differences: Collection[Difference]) -> str:
    missing = sum(each.missing for each in differences)
    stale = sum(each.stale for each in differences)
    extra = sum(each.extra for each in differences)
    return f"{missing:,} missing, {stale:,} stale, {extra:,} extra"


def differs(outcome: Outcome) -> bool:
    return any(outcome.mended.values())


def summary(name: str, outcomes: list[Outcome]) -> str:
    lost = [outcome.lost for outcome in outcomes]
    losers = sum(1 for each in lost if each)
    spread = f"{min(lost):,}, {statistics.median(lost):,.0f}, {max(lost):,}"
    wrong = sum(1 for each in outcomes if differs(each))
    return f"{name:32} {len(lost):>5} {losers:>10} {spread:>28} {f'{wrong} differ':>10}"


if __name__ == "__main__":
    sys.exit(main())
