"""Run programs and keep what they cost."""

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

_LAST_LINES = 20

# A program's peak memory counts that of the process which started it, so a small one starts it.
_STARTER = """
import json, os, sys, time
began = time.perf_counter()
child = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ)
_, status, usage = os.wait4(child, 0)
wall_s = time.perf_counter() - began
code = os.waitstatus_to_exitcode(status)
facts = [code, wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024]
with open(sys.argv[1], "w") as file:
    json.dump(facts, file)
"""


class Cost(msgspec.Struct, frozen=True):
    """What one run of a program took: seconds on the wall and of the processor, and memory.

    The processor's seconds are those of the program and of the children that it waited for.
    """

    wall_s: float
    cpu_s: float
    peak_bytes: int


class FailedRunError(Exception):
    """A program that is measured ended with an error."""


def run(
    command: Sequence[str | Path],
    *,
    env: Mapping[str, str],
    log: Path,
    cwd: Path | None = None,
    codes: tuple[int, ...] = (0,),
) -> Cost:
    """Run a program to its end; raises FailedRunError with its last lines unless ``codes`` fit."""
    words = [str(word) for word in command]
    facts = log.with_suffix(".facts")
    with log.open("wb") as output:
        subprocess.run(
            [sys.executable, "-I", "-S", "-c", _STARTER, str(facts), *words],
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            check=True,
        )
    code, wall_s, cpu_s, peak_bytes = json.loads(facts.read_text())
    if code not in codes:
        lines = log.read_text(errors="replace").splitlines()[-_LAST_LINES:]
        raise FailedRunError(f"{' '.join(words)}: {code}\n" + "\n".join(lines))
    return Cost(wall_s, cpu_s, peak_bytes)


Turn = Callable[[int], Cost]
"""Runs one contender once; told the number of the turn."""


def alternate(
    contenders: Mapping[str, Turn],
    turns: int,
    *,
    before_round: Callable[[int], None] | None = None,
) -> dict[str, list[Cost]]:
    """Let every contender run once, then again, ``turns`` times; the first goes last next time."""
    costs: dict[str, list[Cost]] = {name: [] for name in contenders}
    names = list(contenders)
    for number in range(turns):
        if before_round is not None:
            before_round(number)
        for name in names[number % len(names) :] + names[: number % len(names)]:
            os.sync()
            costs[name].append(contenders[name](number))
    return costs


def median(costs: Sequence[Cost]) -> Cost:
    """Return the median of each figure; of the memory the peak of all runs."""
    return Cost(
        statistics.median(cost.wall_s for cost in costs),
        statistics.median(cost.cpu_s for cost in costs),
        max(cost.peak_bytes for cost in costs),
    )
