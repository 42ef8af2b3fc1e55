"""`snapstore drill` as an operator and a CI server see it."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from snapstore.cli.commands.drill import exit_code_of
from snapstore.cli.drills import report_lines
from snapstore.cli.junit import junit_xml
from snapstore.model.content import Difference
from snapstore.model.identity import StoreId
from snapstore.operations.drill_report import (
    OUTCOMES,
    Comparison,
    DrilledStore,
    DrillReport,
    Outcome,
    worst_outcome,
)
from tests.cli.conftest import Cli

DIFFERENCE = Difference(
    database="rocksdb/s",
    family="default",
    key="6b31",
    kind="values_differ",
    restored="01",
    rebuilt=None,
)


def report(*outcomes: Outcome, reason: str | None = "because") -> DrillReport:
    stores = tuple(
        DrilledStore(
            store=StoreId("app", f"0_{number}", "counts"),
            outcome=outcome,
            reason=reason,
            seconds=1.5,
            comparison=Comparison(
                families=(), differences=(DIFFERENCE,), different_keys=1, not_compared=()
            )
            if outcome == "differs"
            else None,
        )
        for number, outcome in enumerate(outcomes)
    )
    return DrillReport(stores=stores, candidates=len(stores), seed=0)


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        (("equal", "partly", "skipped"), 0),
        (("equal", "differs"), 4),
        (("damaged", "unavailable"), 4),
        (("equal", "refused"), 3),
        (("partly", "unavailable"), 3),
        (("refused", "skipped"), 5),
        (("skipped",), 5),
        (("refused", "unavailable"), 12),
    ],
)
def test_the_exit_code_says_what_was_proved(outcomes: tuple[Outcome, ...], code: int) -> None:
    assert exit_code_of(report(*outcomes)) == code


def test_junit_counts_failures_errors_and_skipped_ones() -> None:
    suite = ElementTree.fromstring(junit_xml(report(*OUTCOMES)))
    assert {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "7",
        "failures": "2",
        "errors": "2",
        "skipped": "1",
    }
    assert suite.get("time") == "10.500"
    failures = [case.find("failure") for case in suite]
    (text,) = [each.text for each in failures if each is not None and each.text]
    assert text == "rocksdb/s default 6b31: restored 01, rebuilt nothing"


def test_junit_spells_what_xml_cannot_hold() -> None:
    document = junit_xml(report("refused", reason="a\x00b\x1b<&\ud800"))
    error = ElementTree.fromstring(document).find("testcase/error")
    assert error is not None
    assert error.get("message") == r"a\x00b\x1b<&\xd800"


def test_the_text_shows_the_first_keys_that_differ() -> None:
    lines = report_lines(report("equal", "differs"), 3.0)
    text = "\n".join(lines)
    assert "values differ: 6b31 in rocksdb/s, default" in text
    assert lines[-1] == "2 stores: 1 differs, 1 equal; 3.0 s"


def test_the_worst_outcome_is_that_of_the_report() -> None:
    assert worst_outcome([]) == "equal"
    assert report("equal", "refused", "skipped").worst == "refused"


def test_without_kafka_there_is_no_drill(filled: str, cli: Cli) -> None:
    answer = cli("drill", "-r", filled, "--json")
    assert (answer.code, answer.error["code"]) == (2, "config")
    assert "verify" in answer.error["hint"]


def test_nothing_to_drill_is_not_found(url: str, cli: Cli, tmp_path: Path) -> None:
    assert cli("drill", "-r", url, "--json").code == 10
    assert cli("drill", "-r", url, "a/b:0", "--application", "x").code == 2
    assert tmp_path.exists()
