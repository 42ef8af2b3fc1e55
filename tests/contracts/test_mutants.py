"""The contract suite can fail: a backend that breaks one promise does not pass it."""

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[2]
NONE = "Mutant"
FOUND_OUT_BY = {
    "ReadsTheOffsetLast": "test_the_view_of_a_capture_sees_what_its_files_hold",
    "LeavesAFileOut": "test_a_closed_store_comes_back_whole",
    "FollowsLinks": "test_a_link_in_place_of_a_file_is_not_followed",
}
CASES = [
    (backend, mutation, test)
    for backend in ("TestRocksDB", "TestMemory", "TestFiles")
    for mutation, test in FOUND_OUT_BY.items()
]
CASES += [
    (
        "TestFiles",
        "TrustsTheFirstLook",
        "test_a_store_captured_while_it_is_written_never_lacks_what_it_notes",
    )
]
CONTROLS = [(backend, NONE, test) for backend, _, test in CASES]


def failures(report: Path) -> set[tuple[str, str, str]]:
    """Return the tests that failed, as backend, mutation and test.

    Each must have failed on its own account, not in its preparation.
    """
    found = set()
    for case in ElementTree.parse(report).iter("testcase"):
        test, _, mutation = case.attrib["name"].removesuffix("]").partition("[")
        assert case.find("error") is None, case.attrib["name"]
        if case.find("failure") is not None:
            found.add((case.attrib["classname"].rpartition(".")[2], mutation, test))
    return found


@pytest.mark.slow
def test_every_mutation_of_every_backend_is_found_out_and_no_sound_one_is(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}"]
    command += ["-p", "no:cacheprovider", f"--basetemp={tmp_path / 'base'}"]
    command += [
        f"tests/contracts/mutants.py::{backend}::{test}[{mutation}]"
        for backend, mutation, test in CASES + CONTROLS
    ]
    ended = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=800, check=False
    )
    assert ended.returncode == pytest.ExitCode.TESTS_FAILED, ended.stdout + ended.stderr
    assert failures(report) == set(CASES), ended.stdout
