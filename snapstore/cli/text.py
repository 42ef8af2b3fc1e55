"""Text for people: tables without frames, names made harmless."""

import textwrap
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, Self

import click

from snapstore.model.units import count as count

SHORT_ID = 12

_CUT = ".."
_READABLE = 16
_LEAST = 6


class Column(NamedTuple):
    """A column of a table; numbers stand to the right.

    On a terminal that is too narrow the texts of ``cut`` columns are shortened a little, then the
    columns with the greatest ``spare`` go first; those with 0 stay. What is ``below`` goes before
    all others, to a line of its own.
    """

    title: str
    right: bool = False
    spare: int = 0
    cut: bool = False
    below: bool = False


class Row(str):
    """A line of a table, whole; it can be laid out anew for a narrow terminal."""

    __slots__ = ("_number", "_table")

    def __new__(cls, table: "Table", number: int) -> Self:
        line = super().__new__(cls, table.line(number, None))
        line._table = table
        line._number = number
        return line

    _table: "Table"
    _number: int

    def fitted(self, width: int) -> str:
        """Return the line for a terminal of so many columns."""
        return self._table.line(self._number, width)

    def left_out(self, width: int) -> tuple[str, ...]:
        """Return the titles of the columns that do not fit."""
        return self._table.left_out(width)


class Table:
    """Cells and the way in which they are laid out."""

    def __init__(self, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
        self._columns = columns
        self._rows = [[column.title.upper() for column in columns], *rows]
        self._shown = [i for i in range(len(columns)) if any(row[i] for row in rows)]
        self._widest = {i: max(_width(row[i]) for row in self._rows) for i in self._shown}

    def line(self, number: int, width: int | None) -> str:
        """Return one line; 0 is that of the titles."""
        cells, layout = self._rows[number], self._layout(width)
        padded = [
            _padded(_shortened(cells[i], room), room, self._columns[i].right)
            for i, room in layout.items()
        ]
        line = "  ".join(padded).rstrip()
        if number == 0:
            return click.style(line, bold=True)
        beneath = [
            part
            for i in self._shown
            if i not in layout and self._columns[i].below and cells[i]
            for part in textwrap.wrap(
                cells[i],
                (width or 0) - 2,
                break_long_words=False,
                break_on_hyphens=False,
            )
        ]
        return "\n  ".join([line, *beneath])

    def left_out(self, width: int) -> tuple[str, ...]:
        """Return the titles of the columns that do not fit."""
        layout = self._layout(width)
        gone = [self._columns[i] for i in self._shown if i not in layout]
        return tuple(column.title for column in gone if not column.below)

    def _layout(self, width: int | None) -> dict[int, int]:
        """Return the room of each column that is shown."""
        room = dict(self._widest)
        if width is None:
            return room
        while True:
            fitting = self._cut(room, width, _READABLE)
            if _total(fitting) <= width:
                return fitting
            spare = max(room, key=self._spare)
            if self._spare(spare) == 0:
                return self._cut(room, width, _LEAST)
            del room[spare]

    def _spare(self, number: int) -> int:
        column = self._columns[number]
        return len(self._columns) if column.below else column.spare

    def _cut(self, room: Mapping[int, int], width: int, least: int) -> dict[int, int]:
        """Shorten the widest of the columns that may be, one after the other, until it fits."""
        cut = dict(room)
        while _total(cut) > width:
            wide = [i for i in cut if self._columns[i].cut and cut[i] > least]
            if not wide:
                break
            cut[max(wide, key=lambda i: cut[i])] -= 1
        return cut


def table(columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table, the titles first; columns without any content are left out."""
    body = [[plain(cell) for cell in row] for row in rows]
    if not body:
        return []
    laid = Table(columns, body)
    return [Row(laid, number) for number in range(len(body) + 1)]


def columns_left_out(lines: Iterable[str], width: int) -> tuple[str, ...]:
    """Return the titles of all columns that a terminal of that width has no room for."""
    rows = (line for line in lines if isinstance(line, Row))
    return tuple(dict.fromkeys(title for row in rows for title in row.left_out(width)))


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


def _total(room: Mapping[int, int]) -> int:
    return sum(room.values()) + 2 * (len(room) - 1)


def _shortened(text: str, room: int) -> str:
    """Return the text, or its beginning; of a path, its end."""
    if _width(text) <= room:
        return text
    kept = text
    while kept and _width(kept) > room - len(_CUT):
        kept = kept[1:] if text.startswith("/") else kept[:-1]
    return f"{_CUT}{kept}" if text.startswith("/") else f"{kept}{_CUT}"


def _padded(text: str, width: int, right: bool) -> str:
    blanks = " " * (width - _width(text))
    return blanks + text if right else text + blanks
