"""What holds for every command: global options anywhere, JSON, help, quiet, colour."""

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from snapstore import __version__
from snapstore.cli.lazy import Verb, global_options
from snapstore.cli.main import snapstore
from snapstore.cli.session import Session
from snapstore.cli.verbs import COMMANDS, SHORT_HELPS
from tests.cli.conftest import Cli

GLOBAL_NAMES = {option.name for option in global_options()}


def every_command(
    group: click.Group = snapstore, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from every_command(command, (*path, name))


EVERY = [pytest.param(path, command, id=" ".join(path)) for path, command in every_command()]


@pytest.mark.parametrize(("path", "command"), EVERY)
def test_every_command_takes_the_global_options(
    path: tuple[str, ...], command: click.Command
) -> None:
    assert {param.name for param in command.params} >= GLOBAL_NAMES


@pytest.mark.parametrize(("path", "command"), EVERY)
def test_every_command_has_help_with_an_example(
    cli: Cli, path: tuple[str, ...], command: click.Command
) -> None:
    result = cli(*path, "--help")
    assert result.code == 0
    assert result.err == ""
    assert f"Usage: snapstore {' '.join(path)}" in result.out
    assert f"  snapstore {path[0]}" in result.out.partition("Examples:")[2]
    assert "--json" in result.out
    assert all(param.help for param in command.params if isinstance(param, click.Option)), (
        "an option without help"
    )
    assert command.get_short_help_str(limit=200).endswith(".")


def test_the_help_lists_every_command(cli: Cli) -> None:
    listed = cli("--help").out
    assert all(f"  {name} " in listed for name in COMMANDS)


def test_the_version_is_told(cli: Cli) -> None:
    assert cli("--version").out == f"snapstore {__version__}\n"


@pytest.mark.parametrize("position", ["before", "after", "both"])
def test_global_options_are_taken_before_and_after_the_verb(
    cli: Cli, filled: str, position: str
) -> None:
    options = ("--json", "-r", filled)
    arguments = {
        "before": (*options, "list"),
        "after": ("list", *options),
        "both": ("--json", "list", "-r", filled),
    }[position]
    result = cli(*arguments)
    assert result.code == 0
    assert len(result.document["items"]) == 1


def test_global_options_are_taken_by_nested_commands(cli: Cli) -> None:
    for arguments in (
        ("--json", "config", "show"),
        ("config", "--json", "show"),
        ("config", "show", "--json"),
    ):
        assert cli(*arguments).document["kind"] == "config"


def test_the_later_of_two_repositories_wins(cli: Cli, filled: str, tmp_path: Path) -> None:
    assert cli("-r", tmp_path / "none", "list", "-r", filled).code == 0


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        (("list",), "snapshot_list"),
        (("show", "ks440-alos/count:0"), "snapshot"),
        (("diff", "ks440-alos/count:0", "ks440-alos/count:0"), "snapshot_diff"),
        (("verify",), "verification"),
        (("pin", "ks440-alos/count:0"), "pinned"),
        (("unpin", "ks440-alos/count:0"), "unpinned"),
        (("delete", "ks440-alos/count:0", "--dry-run"), "deleted"),
        (("config", "show"), "config"),
        (("config", "check"), "config_check"),
        (("plugins",), "plugin_list"),
        (("init", "--exist-ok"), "initialised"),
        (("discover", "--state-dir", "STATE"), "store_list"),
        (("snapshot", "--state-dir", "STATE", "--dry-run"), "snapshot_plan"),
        (("snapshot", "--state-dir", "STATE", "count"), "snapshot_report"),
        (
            ("restore", "ks440-alos/count:0", "--target", "new", "--allow-unchecked-changelog"),
            "restore_report",
        ),
        (
            (
                "restore",
                "ks440-alos/count:0",
                "--target",
                "new",
                "--allow-unchecked-changelog",
                "--dry-run",
            ),
            "restore_plan",
        ),
    ],
)
def test_json_is_one_document_of_its_kind(
    cli: Cli, filled: str, state_dir: Path, arguments: tuple[str, ...], kind: str
) -> None:
    given = [state_dir if each == "STATE" else each for each in arguments]
    result = cli(*given, "--json", "-r", filled)
    assert result.code == 0, result.err
    assert result.err == ""
    assert result.out.count("\n") == 1
    assert result.document["kind"] == kind
    assert result.document["version"] == 1


def test_an_empty_list_is_a_document_too(cli: Cli, url: str) -> None:
    assert cli("list", "-r", url, "--json").document == {
        "kind": "snapshot_list",
        "version": 1,
        "items": [],
    }


def test_quiet_says_nothing_on_success_but_answers_questions(
    cli: Cli, url: str, state_dir: Path
) -> None:
    taken = cli("snapshot", "-q", "-r", url, "--state-dir", state_dir, "--task", "1_0")
    assert (taken.code, taken.out, taken.err) == (0, "", "")
    assert "count" in cli("list", "-q", "-r", url).out


def test_nothing_is_coloured_off_a_terminal(cli: Cli, filled: str) -> None:
    assert "\x1b" not in cli("list", "-r", filled).out
    assert "\x1b" not in cli("show", "ffff", "-r", filled).err


def test_verbose_json_tells_events_on_stderr_only(cli: Cli, url: str, state_dir: Path) -> None:
    result = cli("snapshot", "count", "-r", url, "--state-dir", state_dir, "--json", "-v")
    assert result.document["kind"] == "snapshot_report"
    assert '"kind":"event"' in result.err


def test_every_verb_is_a_verb() -> None:
    for _, command in every_command():
        assert isinstance(command, Verb | click.Group)


def test_the_group_s_help_says_of_each_command_what_the_command_says_itself() -> None:
    context = snapstore.make_context("snapstore", ["list"], obj=Session({}))
    told = {}
    for name in COMMANDS:
        command = snapstore.get_command(context, name)
        assert command is not None
        told[name] = command.short_help
    assert told == dict(SHORT_HELPS)
