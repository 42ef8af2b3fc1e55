"""Fit output to the width of a terminal; anywhere else every line stays whole."""

import os
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from typing import TextIO

from snapstore.cli.text import Row, columns_left_out

_UNKNOWN_WIDTH = 80


def width_of(stream: TextIO, env: Mapping[str, str]) -> int | None:
    """Return the columns of a terminal, ``COLUMNS`` first; None for a pipe, a file, a mail."""
    if not stream.isatty():
        return None
    given = env.get("COLUMNS", "")
    if given.isascii() and given.isdigit() and int(given) > 0:
        return int(given)
    try:
        return os.get_terminal_size(stream.fileno()).columns or _UNKNOWN_WIDTH
    except (OSError, ValueError):
        return _UNKNOWN_WIDTH


def fitted(lines: Iterable[str], width: int | None) -> Iterator[str]:
    """Yield lines that are no wider: tables lose columns, sentences break between words.

    A word is never broken, so that ids and paths can be copied. With None nothing changes.
    """
    if width is None:
        yield from lines
        return
    shown = [*lines]
    for line in shown:
        if isinstance(line, Row):
            yield line.fitted(width)
        else:
            yield from wrapped(line, width)
    if missing := columns_left_out(shown, width):
        yield from wrapped(f"(not shown for want of width: {', '.join(missing)})", width)


def wrapped(text: str, width: int | None) -> list[str]:
    """Return the lines of a text, broken between words; what follows is indented alike."""
    if width is None:
        return text.split("\n")
    return [part for line in text.split("\n") for part in _wrapped(line, width)]


def _wrapped(line: str, width: int) -> list[str]:
    if len(line) <= width:
        return [line]
    indent = " " * (len(line) - len(line.lstrip(" ")))
    return textwrap.wrap(
        line.lstrip(" "),
        width,
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
        drop_whitespace=True,
    )
