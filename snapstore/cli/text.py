"""Text for people: tables without frames, names made harmless."""

import unicodedata
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

import click

SHORT_ID = 12


class Column(NamedTuple):
    """A column of a table; numbers stand to the right."""

    title: str
    right: bool = False


def table(columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table, the titles first; columns without any content are left out."""
    body = [[plain(cell) for cell in row] for row in rows]
    shown = [i for i in range(len(columns)) if any(row[i] for row in body)]
    widths = [max([_width(columns[i].title), *(_width(row[i]) for row in body)]) for i in shown]

    def line(cells: Sequence[str]) -> str:
        padded = [
            _padded(cells[i], width, columns[i].right)
            for i, width in zip(shown, widths, strict=True)
        ]
        return "  ".join(padded).rstrip()

    titles = click.style(line([column.title.upper() for column in columns]), bold=True)
    return [titles, *(line(row) for row in body)] if body else []


def pairs(rows: Iterable[tuple[str, str]]) -> list[str]:
    """Return lines of a name and its value, the values below one another."""
    kept = [(name, plain(value)) for name, value in rows if value]
    width = max((_width(name) for name, _ in kept), default=0)
    return [f"{_padded(name, width, right=False)}  {value}" for name, value in kept]


def plain(text: str) -> str:
    """Return the text with control and direction characters spelled out.

    Names come from disks and buckets; printed as they are they could drive a terminal.
    """
    return "".join(
        character
        if unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Zl", "Zp")
        else character.encode("unicode_escape", "surrogatepass").decode("ascii")
        for character in text
    )


def count(number: int, noun: str, plural: str | None = None) -> str:
    """Return ``1 file``, ``1,204 files``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def short(snapshot_id: str) -> str:
    return snapshot_id[:SHORT_ID]


def moment(time: datetime) -> str:
    """Return a time in UTC to the second."""
    return time.strftime("%Y-%m-%d %H:%M:%SZ")


def offset(applied_offset: int | None) -> str:
    return "-" if applied_offset is None else str(applied_offset)


def _width(text: str) -> int:
    return sum(
        2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
        if not unicodedata.combining(character)
    )


def _padded(text: str, width: int, right: bool) -> str:
    blanks = " " * (width - _width(text))
    return blanks + text if right else text + blanks
