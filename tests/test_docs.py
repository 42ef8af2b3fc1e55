"""What can be used is documented, and what is documented can be used."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec
import pytest

from snapstore import errors
from snapstore.cli.exit_codes import EXIT_CODES, exit_code
from snapstore.cli.main import snapstore
from snapstore.config import ENVIRONMENT
from snapstore.config.schema import Sections, StoreConfig
from snapstore.registry import BUILT_IN, Registry

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TEXT = {path: path.read_text() for path in PAGES}
ALL = "\n".join(TEXT.values())
README = TEXT[ROOT / "README.md"]
ERRORS = (ROOT / "docs/errors.md").read_text()
CONFIGURATION = (ROOT / "docs/configuration.md").read_text()


def commands(
    group: click.Group = snapstore, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


COMMANDS = dict(commands())


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_is_in_the_readme(path: tuple[str, ...]) -> None:
    assert f"snapstore {' '.join(path)}" in README


def test_every_exit_code_is_in_the_readme() -> None:
    documented = {int(code) for code in re.findall(r"^\| (\d+) \|", README, re.MULTILINE)}
    assert documented == {each.code for each in EXIT_CODES}


def error_classes(cls: type[errors.SnapstoreError]) -> Iterator[type[errors.SnapstoreError]]:
    yield cls
    for child in cls.__subclasses__():
        yield from error_classes(child)


def test_every_error_code_is_documented_with_its_exit_code() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (\d+) \|", ERRORS, re.MULTILINE))
    ours = {
        cls.code: str(exit_code(cls))
        for cls in error_classes(errors.SnapstoreError)
        if cls.__module__ == "snapstore.errors"
    }
    assert rows == {**ours, "usage": "2", "interrupted": "130", "bug": "1"}


def config_keys(struct: type[msgspec.Struct], prefix: str = "") -> Iterator[str]:
    for field in msgspec.structs.fields(struct):
        key = f"{prefix}{field.encode_name}"
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
            yield from config_keys(field.type, f"{key}.")
        elif key == "stores":
            yield from config_keys(StoreConfig, "stores.NAME.")
        else:
            yield key


def test_every_configuration_key_is_documented_and_no_other() -> None:
    table = CONFIGURATION.partition("## Environment")[0]
    documented = re.findall(r"^\| `([\w.]+)` \|", table, re.MULTILINE)
    assert sorted(documented) == sorted(config_keys(Sections))


def test_every_variable_is_documented() -> None:
    documented = set(re.findall(r"^\| `(SNAPSTORE_\w+)` \|", CONFIGURATION, re.MULTILINE))
    assert documented == {*ENVIRONMENT, "SNAPSTORE_CONFIG"}


@pytest.mark.parametrize(("kind", "name"), [("storages", "s3"), ("backends", "rocksdb")])
def test_every_option_of_a_built_in_plugin_is_documented(kind: str, name: str) -> None:
    section = re.split(r"^## ", CONFIGURATION, flags=re.MULTILINE)
    [text] = [each for each in section if each.startswith("Options") and name in each[:40]]
    options = Registry().options_type(kind, name)  # type: ignore[arg-type]
    documented = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", text, re.M))))
    assert documented == {field.name for field in msgspec.structs.fields(options)}


def test_every_built_in_layout_is_named() -> None:
    assert all(name in ALL for name in BUILT_IN["layouts"] if name != "plain")


def shown_commands() -> Iterator[tuple[Path, str]]:
    for path, text in TEXT.items():
        for line in re.findall(r"^    \$ (snapstore .*)$", text, re.MULTILINE):
            yield path, line


def test_every_command_line_that_is_shown_has_only_options_that_exist() -> None:
    shown = list(shown_commands())
    assert len(shown) >= 6
    for _, line in shown:
        words = shlex.split(line)[1:]
        path: tuple[str, ...] = (words[0],)
        if path not in COMMANDS:
            path = tuple(words[:2])
        known = {option for param in COMMANDS[path].params for option in param.opts}
        used = {word for word in words[len(path) :] if word.startswith("-")}
        assert used <= known, line


def test_every_option_in_the_command_table_exists() -> None:
    for row in re.findall(r"^\| (`snapstore .*) \|$", README, re.MULTILINE):
        names, _, text = row.partition(" | ")
        paths = [path for path in COMMANDS if re.search(rf"snapstore {' '.join(path)}\b", names)]
        assert paths, row
        known = {
            option for path in paths for param in COMMANDS[path].params for option in param.opts
        }
        used = set(re.findall(r"(?<![\w-])--[a-z-]+", text))
        assert used <= known, row


def test_every_link_leads_somewhere() -> None:
    for path, text in TEXT.items():
        for target in re.findall(r"\]\(([^)#]+)\)", text):
            if "://" not in target:
                assert (path.parent / target).exists(), f"{path}: {target}"


def test_every_make_target_that_is_named_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in set(re.findall(r"(?:`|^    )make\s([a-z-]+)", README, re.MULTILINE)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_the_pages_are_plain_ascii() -> None:
    assert not [path for path, text in TEXT.items() if not text.isascii()]
