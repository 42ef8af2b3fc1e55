"""Every text that calms the reader is in the list of docs/trust.md, with what proves it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
_PROMISES = re.compile(
    r"nothing is lost|\bstarts? clean\b|\brebuilds\b|\busable\b|\bequal\b|nothing wrong"
    r"|there is no snapshot|nothing to do\b|up to date|nothing to mend|nothing on the disk"
)
_VALUES = frozenset({"usable", "equal", "rebuilds"})
"""Values of enumerations: only the command line shows them, in words of its own."""

_HEADING = "## What the words promise"
_ROW = re.compile(r"^\| (`.+`) \| (.+) \| (.+) \|$", re.MULTILINE)
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
_TEXT = re.compile(r"`([^`]+)`")


def rows() -> list[tuple[list[str], str, list[tuple[str, str]]]]:
    _, _, section = (ROOT / "docs" / "trust.md").read_text().partition(_HEADING)
    return [
        (_TEXT.findall(texts), where, _TEST.findall(tests))
        for texts, where, tests in _ROW.findall(section)
    ]


def printed() -> Iterator[tuple[str, str]]:
    """Yield the texts in the package that hold such words; not those in documentation."""
    for path in sorted((ROOT / "snapstore").rglob("*.py")):
        tree = ast.parse(path.read_text())
        documentation = {
            id(statement.value) for statement in ast.walk(tree) if isinstance(statement, ast.Expr)
        }
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
                continue
            is_value = node.value in _VALUES and "cli" not in path.parts
            if id(node) not in documentation and not is_value and _PROMISES.search(node.value):
                yield f"{path.relative_to(ROOT)}:{node.lineno}", node.value


def test_every_calming_text_is_in_the_list() -> None:
    listed = {text for texts, _, _ in rows() for text in texts}
    missing = [
        f"{place}: {text!r}"
        for place, text in printed()
        for match in _PROMISES.finditer(text)
        if not any(match[0] in each and each in text for each in listed)
    ]
    assert not missing


def test_no_text_is_listed_that_is_printed_nowhere() -> None:
    texts = [text for _, text in printed()]
    stale = [each for found, _, _ in rows() for each in found if not any(each in t for t in texts)]
    assert not stale


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0][0])
def test_every_row_names_an_experiment_that_exists(
    row: tuple[list[str], str, list[tuple[str, str]]],
) -> None:
    _, where, tests = row
    assert len(where) > 15
    assert tests
    for path, name in tests:
        tree = ast.parse((ROOT / path).read_text())
        assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
