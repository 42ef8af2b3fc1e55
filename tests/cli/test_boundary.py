"""Errors: one line, one document, one exit code, and never a secret."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from snapstore import errors
from snapstore.cli.boundary import guarded
from snapstore.cli.exit_codes import EXIT_CODES, exit_code, exit_code_of_unknown
from snapstore.cli.session import Session
from tests.cli.conftest import Cli


def error_classes(cls: type[errors.SnapstoreError]) -> Iterator[type[errors.SnapstoreError]]:
    yield cls
    for child in cls.__subclasses__():
        yield from error_classes(child)


CLASSES = sorted(set(error_classes(errors.SnapstoreError)), key=lambda cls: cls.__name__)


@pytest.mark.parametrize("cls", CLASSES)
def test_every_error_has_a_documented_exit_code(cls: type[errors.SnapstoreError]) -> None:
    code = exit_code(cls)
    assert code in {each.code for each in EXIT_CODES}
    assert code != 0
    assert (code == 1) == (cls is errors.SnapstoreError)


def test_error_codes_are_unique() -> None:
    codes = [cls.code for cls in CLASSES if "code" in vars(cls)]
    assert len(codes) == len(set(codes))


@pytest.mark.parametrize(
    ("cls", "code"),
    [
        (errors.ConfigError, 2),
        (errors.PluginError, 2),
        (errors.PartialFailureError, 3),
        (errors.BlobMissingError, 4),
        (errors.SourceDamagedError, 4),
        (errors.TombstoneHorizonError, 5),
        (errors.SnapshotNotFoundError, 10),
        (errors.TargetNotEmptyError, 11),
        (errors.KafkaError, 12),
        (errors.StoreChangedError, 12),
        (errors.NoSpaceError, 12),
        (errors.CredentialsError, 2),
        (errors.AccessDeniedError, 2),
    ],
)
def test_families_map_to_their_code(cls: type[errors.SnapstoreError], code: int) -> None:
    assert exit_code(cls) == code


@pytest.mark.parametrize(
    ("codes", "code"),
    [
        (["credentials", "credentials"], 2),
        (["credentials", "kafka"], 12),
        (["kafka"], 12),
        ([None], 12),
    ],
)
def test_what_could_not_be_found_out_is_final_only_if_every_reason_is_h39(
    codes: list[str | None], code: int
) -> None:
    assert exit_code_of_unknown(codes) == code


def test_an_error_is_one_line_with_hint_and_facts(capsys: pytest.CaptureFixture[str]) -> None:
    def work() -> None:
        raise errors.TopicRecreatedError(
            "the topic is another one", hint="take a new snapshot", topic="counts", found=[1, 2]
        )

    assert guarded(Session({}), work) == 5
    assert capsys.readouterr().err == (
        "error: the topic is another one\n  hint: take a new snapshot\n  topic=counts found=1,2\n"
    )


def test_control_characters_of_an_error_do_not_reach_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def work() -> None:
        raise errors.ConfigError("bad name \x1b[2Jx", name="a\nb")

    guarded(Session({}), work)
    assert "\x1b" not in (shown := capsys.readouterr().err)
    assert "\\x1b[2Jx" in shown
    assert "a\\nb" in shown


def test_a_bug_is_one_line_and_a_traceback_with_v(capsys: pytest.CaptureFixture[str]) -> None:
    def work() -> None:
        raise TypeError("oops")

    session = Session({})
    assert guarded(session, work) == 1
    assert "Traceback" not in (shown := capsys.readouterr().err)
    assert "unexpected TypeError: oops" in shown
    assert "please report" in shown
    session.set_global("verbose", 1)
    assert guarded(session, work) == 1
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("error", [KeyboardInterrupt(), click.Abort()])
def test_an_interrupt_is_130(error: BaseException, capsys: pytest.CaptureFixture[str]) -> None:
    def work() -> None:
        raise error

    assert guarded(Session({}), work) == 130
    assert capsys.readouterr().err == "error: interrupted\n"


def test_an_interrupt_is_a_document_with_json(capsys: pytest.CaptureFixture[str]) -> None:
    def work() -> None:
        raise KeyboardInterrupt

    session = Session({})
    session.set_global("json", True)
    guarded(session, work)
    assert '"code":"interrupted"' in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ("lst",),
        ("list", "--nope"),
        ("list", "--latest", "0"),
        ("show",),
        ("snapshot", "--tag", "novalue"),
        ("verify", "--sample", "200%"),
        ("snapshot", "--limit-rate", "64M"),
    ],
)
def test_wrong_usage_is_2_and_names_the_help(cli: Cli, arguments: tuple[str, ...]) -> None:
    result = cli(*arguments)
    assert result.code == 2
    assert result.out == ""
    assert "--help" in result.err
    as_json = cli(*arguments, "--json")
    assert as_json.code == 2
    assert as_json.error["code"] == "usage"
    assert as_json.error["exit_code"] == 2


def test_without_a_verb_the_help_is_shown_and_it_is_2(cli: Cli) -> None:
    result = cli()
    assert result.code == 2
    assert "Usage: snapstore" in result.err


def test_a_mistyped_verb_is_answered_with_the_near_one(cli: Cli) -> None:
    assert "did you mean snapshot?" in cli("snapshto").err


def test_a_missing_repository_is_10(cli: Cli, tmp_path: Path) -> None:
    result = cli("list", "-r", tmp_path / "none", "--json")
    assert result.code == 10
    assert result.out == ""
    assert result.error == {
        "kind": "error",
        "version": 1,
        "code": "repository_not_found",
        "message": result.error["message"],
        "hint": "make one: snapstore init",
        "facts": {},
        "exit_code": 10,
    }


def test_no_repository_at_all_is_2_and_says_how_to_name_one(cli: Cli) -> None:
    result = cli("list")
    assert result.code == 2
    assert "SNAPSTORE_REPOSITORY" in result.err


def test_a_damaged_marker_is_4(cli: Cli, url: str) -> None:
    Path(url, "snapstore.json").write_bytes(b"{")
    assert cli("list", "-r", url).code == 4


def test_a_newer_format_is_4_and_says_so(cli: Cli, url: str) -> None:
    marker = Path(url, "snapstore.json")
    marker.write_bytes(marker.read_bytes().replace(b'"format":1', b'"format":9'))
    result = cli("list", "-r", url)
    assert result.code == 4
    assert "upgrade" in result.err


def test_no_secret_is_printed_anywhere(cli: Cli, tmp_path: Path) -> None:
    """Not by an error that quotes it, not by -vv with its traceback, not by config show."""
    config = tmp_path / "secret.yaml"
    config.write_text(
        "repository: {url: 's3://ann:hunter2secret@x'}\n"
        "kafka: {properties: {sasl.password: hunter2secret}}\n"
        "logging: {file: log.txt, level: debug}\n"
    )
    env = {"AWS_SECRET_ACCESS_KEY": "aws-very-secret"}
    for arguments in (
        ("config", "show"),
        ("config", "show", "--json"),
        ("list", "-vv"),
        ("list", "-vv", "--json"),
        ("snapshot", "--state-dir", "hunter2secret", "-v"),
        ("snapshot", "--state-dir", "aws-very-secret", "-v", "-r", "x"),
    ):
        result = cli(*arguments, "-c", config, env=env)
        for secret in ("hunter2secret", "aws-very-secret"):
            assert secret not in result.out, arguments
            assert secret not in result.err, arguments
    assert "hunter2secret" not in Path("log.txt").read_text()


@pytest.mark.parametrize("arguments", [["config", "show"], ["--help"]])
def test_a_closed_pipe_ends_quietly(arguments: list[str], tmp_path: Path) -> None:
    program = subprocess.Popen(
        [sys.executable, "-m", "snapstore", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert program.stdout is not None
    assert program.stderr is not None
    program.stdout.close()
    told = program.stderr.read()
    program.stderr.close()
    assert program.wait(timeout=120) == 141
    assert told == b""


def test_an_answer_that_cannot_be_written_is_12_and_no_bug(url: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "snapstore", "config", "show", "-r", url],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 12
    assert "the answer could not be written: No space left on device" in done.stderr


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_streams_that_are_closed_do_not_matter(url: str, closed: str) -> None:
    command = f'"$0" -m snapstore list -r "$1" {closed}'
    done = subprocess.run(["sh", "-c", command, sys.executable, url], check=False)
    assert done.returncode == 0
