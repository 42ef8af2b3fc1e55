"""Work without a server: a local repository, and the start of the program."""

import shutil
from pathlib import Path

from benchmarks.lab import SYNC_BELOW, Lab
from benchmarks.measure import Cost, alternate, median
from benchmarks.rows import Row, Table
from benchmarks.stores import TASKS, digests, make_application

_TABLE_BYTES = 32 << 20


def measure_local(lab: Lab) -> tuple[list[Row], list[Table]]:
    """A first snapshot into a folder, against a copy that is synced afterwards."""
    source = lab.folder("local")
    make_application(source, [_TABLE_BYTES] * (lab.sizes.local_bytes // _TABLE_BYTES // TASKS))
    env = lab.local_environment()
    snapstore = lab.tools.paths["snapstore"]

    def ours(_: int) -> Cost:
        repository = lab.folder("repository")
        lab.quietly(env, snapstore, "init", "-q", "-r", repository)
        cost = lab.run(env, [snapstore, "snapshot", "-q", "-r", repository, "--state-dir", source])
        wanted = set(digests(source).values())
        stored = digests(repository / "blobs", "*")
        if {Path(name).name for name in stored} != set(stored.values()) or wanted - {
            *stored.values()
        }:
            raise AssertionError("the repository does not hold what the source holds")
        shutil.rmtree(repository)
        return cost

    def copied(_: int) -> Cost:
        target = lab.folder("copied")
        script = 'cp -r "$0" "$1" && ' + SYNC_BELOW.format("$1")
        cost = lab.run(env, ["sh", "-c", script, source, target])
        shutil.rmtree(target)
        return cost

    costs = alternate({"snapstore": ours, "cp -r, then sync": copied}, lab.turns)
    shutil.rmtree(source)
    rows = [
        Row(
            work="local repository",
            against="cp -r, then sync",
            figure="wall",
            limit=1.2,
            measured=median(costs["snapstore"]).wall_s / median(costs["cp -r, then sync"]).wall_s,
        )
    ]
    return rows, [
        Table(title=f"Local repository, {lab.sizes.local_bytes / 1e9:.2f} GB", costs=costs)
    ]


def measure_startup(lab: Lab) -> tuple[list[Row], list[Table]]:
    """The program's own start, against that of the libraries its command line is made with."""
    env = lab.local_environment()
    snapstore, python = lab.tools.paths["snapstore"], lab.tools.paths["python"]
    repository = lab.folder("repository")
    lab.quietly(env, snapstore, "init", "-q", "-r", repository)
    commands = {
        "snapstore --help": [snapstore, "--help"],
        "snapstore list": [snapstore, "list", "-r", repository],
        "python -c 'import click, rich'": [python, "-c", "import click, rich"],
    }
    turns = {
        name: (lambda _, command=command: lab.run(env, command))
        for name, command in commands.items()
    }
    costs = alternate(turns, 3 * lab.turns)
    base = median(costs["python -c 'import click, rich'"]).wall_s
    rows = [
        Row(
            work=name,
            against="python -c 'import click, rich'",
            figure="wall",
            limit=limit,
            measured=median(costs[name]).wall_s / base,
        )
        for name, limit in (("snapstore --help", 1.5), ("snapstore list", 2.0))
    ]
    return rows, [Table(title="Start of the program", costs=costs)]
