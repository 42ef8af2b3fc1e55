"""Write what changed in a map into a new pair file, and decide what kind of file that is."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Literal

import msgspec

from snapstore.memory.pair_map import Frozen
from snapstore.model.store import ChangelogPosition
from snapstore.pairs.chain import newest_of_each
from snapstore.pairs.decode import PairFile
from snapstore.pairs.folder import add, next_number, opened, sync_folder, writing
from snapstore.pairs.header import PairHeader
from snapstore.ports import Pair

SIDE_FILE = ".snapstore-position.json"
"""Where the layout ``plain`` looks for the offsets."""

MOST_DELTAS = 32

Reached = Callable[[str], None]
Step = Literal["nothing", "delta", "merged delta", "base"]


def plan_save(chain: Sequence[PairFile], frozen: Frozen) -> Step:
    """Decide what is to be written.

    A new base once the deltas hold more pairs than the store: to read them all would take twice
    as long as to read the store. One delta in place of all where there are many.
    """
    if frozen.everything_new or not chain:
        return "base"
    if not frozen.changes and _positions(frozen) == chain[-1].header.positions:
        return "nothing"
    if sum(file.pairs for file in chain[1:]) + frozen.changes > max(frozen.size, MOST_DELTAS):
        return "base"
    return "delta" if len(chain) <= MOST_DELTAS else "merged delta"


def save(
    folder: Path, chain: tuple[PairFile, ...], frozen: Frozen, reached: Reached
) -> tuple[PairFile, ...]:
    """Bring the files of a store up to the frozen moment; return those that are the store now.

    The new file is durable before the offsets beside it move, and nothing is removed: killed at any
    point, the folder holds the moment before or this one. Raises CaptureError or NoSpaceError.
    """
    step = plan_save(chain, frozen)
    if step != "nothing":
        kept = {"base": (), "delta": chain, "merged delta": chain[:1]}[step]
        header = PairHeader(
            kind="base" if step == "base" else "delta",
            number=next_number(folder),
            previous=kept[-1].id if kept else None,
            positions=_positions(frozen),
        )
        with ExitStack() as held:
            chain = (
                *kept,
                add(folder, header, _pairs(step, folder, frozen, held), reached=reached),
            )
    write_side_file(folder, chain[-1].header.positions)
    reached("offsets noted")
    return chain


def write_side_file(folder: Path, positions: Sequence[ChangelogPosition]) -> None:
    """Note the offsets for the layout ``plain``, whole or not at all."""
    content = msgspec.json.encode(
        {
            "format": 1,
            "positions": [
                {
                    "topic": position.changelog.topic,
                    "partition": position.changelog.partition,
                    "applied_offset": position.applied_offset,
                }
                for position in positions
            ],
        }
    )
    path = folder / SIDE_FILE
    if path.exists() and path.read_bytes() == content:
        return
    temporary = folder / f"{SIDE_FILE}.new"
    with writing(path):
        with temporary.open("wb") as output:
            output.write(content)
            output.flush()
            os.fsync(output.fileno())
        temporary.replace(path)
        sync_folder(folder)


def _pairs(step: Step, folder: Path, frozen: Frozen, held: ExitStack) -> Iterator[Pair]:
    if step == "base":
        return frozen.everything()
    if step == "delta":
        return frozen.changed()
    files = held.enter_context(opened(folder))
    return newest_of_each([*(file.pairs() for file in files[1:]), frozen.changed()])


def _positions(frozen: Frozen) -> tuple[ChangelogPosition, ...]:
    return tuple(
        ChangelogPosition(changelog, offset)
        for changelog, offset in sorted(frozen.positions.items())
    )
