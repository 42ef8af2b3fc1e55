"""The tables of faults are complete, and every test that they name exists."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CASES = [
    *(f"G{number:02}" for number in range(1, 107)),
    *(f"H{number:02}" for number in range(1, 78) if number not in (19, 29)),
]
_ROW = re.compile(r"^\| ([GH]\d{2,3}) \| (.+) \| (.+) \|$", re.MULTILINE)
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def rows() -> list[tuple[str, str, str]]:
    return _ROW.findall((ROOT / "docs" / "faults.md").read_text())


def defined_in(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_case_is_there_once_and_has_a_sentence_and_a_test() -> None:
    found = rows()
    assert [number for number, _, _ in found] == CASES
    for number, sentence, tests in found:
        assert len(sentence) > 15, number
        assert _TEST.search(tests), number


@pytest.mark.slow
def test_every_test_that_is_named_exists() -> None:
    missing = [
        f"{number}: {path}::{name}"
        for number, _, tests in rows()
        for path, name in _TEST.findall(tests)
        if not (ROOT / path).is_file() or name not in defined_in(path)
    ]
    assert not missing
