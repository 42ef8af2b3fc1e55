"""Every option, key and command that a message or a hint names is one that there is."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec
import pytest

import snapstore
from snapstore.cli.main import snapstore as program
from snapstore.cli.verbs import COMMANDS
from snapstore.config.load import ENVIRONMENT, GONE
from snapstore.config.schema import Sections, StoreConfig
from snapstore.registry import BUILT_IN, Registry

PACKAGE = Path(snapstore.__file__).parent
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z](?![\w-])")
COMMAND = re.compile(r"(?:: |`|\$ )snapstore ([a-z]+)")
VARIABLE = re.compile(r"\bSNAPSTORE_[A-Z_]+\b")
PAGES = [PACKAGE.parent / "README.md", *sorted((PACKAGE.parent / "docs").glob("*.md"))]
_OF_OTHERS = {"--user", "--privileged"}
"""Options of programs that are not ours, told as such."""

_NO_KEYS = {"retention.ms", "state.tar.xz"}
"""A topic's configuration, and a file."""


def texts() -> Iterator[tuple[str, str]]:
    """Yield every text of the source but docstrings of modules, with where it is."""
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield f"{path.relative_to(PACKAGE)}:{node.lineno}", node.value


def commands(group: click.Group) -> Iterator[click.Command]:
    yield group
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command)
        else:
            yield command


def known_options() -> set[str]:
    found = {"--help", "--version"}
    for command in commands(program):
        for param in command.params:
            found.update(param.opts)
            found.update(param.secondary_opts)
    return found


def keys(struct: type[msgspec.Struct], prefix: str = "") -> Iterator[str]:
    for field in msgspec.structs.fields(struct):
        yield f"{prefix}{field.encode_name}"
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
            yield from keys(field.type, f"{prefix}{field.encode_name}.")


def known_keys() -> set[str]:
    found = {*keys(Sections), *GONE, *_NO_KEYS}
    found.update(f"stores.{field.encode_name}" for field in msgspec.structs.fields(StoreConfig))
    registry = Registry()
    for name in BUILT_IN["storages"]:
        options = registry.options_type("storages", name)
        found.update(f"repository.options.{each.name}" for each in msgspec.structs.fields(options))
    for name in BUILT_IN["backends"]:
        options = registry.options_type("backends", name)
        found.add(f"backends.{name}")
        found.update(f"backends.{name}.{each.name}" for each in msgspec.structs.fields(options))
    for name in BUILT_IN["layouts"]:
        options = registry.options_type("layouts", name)
        found.update(f"state.options.{each.name}" for each in msgspec.structs.fields(options))
    return found


def test_every_option_that_is_named_exists_h70() -> None:
    known = known_options() | _OF_OTHERS
    wrong = [
        (at, name) for at, text in texts() for name in OPTION.findall(text) if name not in known
    ]
    assert not wrong


def test_every_command_that_is_named_exists_h70() -> None:
    wrong = [
        (at, text) for at, text in texts() for name in COMMAND.findall(text) if name not in COMMANDS
    ]
    assert not wrong
    examples = [each for command in commands(program) for each in getattr(command, "examples", ())]
    assert len(examples) > 20
    for example in examples:
        assert example.split()[0] == "snapstore", example
        assert example.split()[1] in COMMANDS, example


def test_every_variable_that_is_named_exists_h70() -> None:
    known = {*ENVIRONMENT, "SNAPSTORE_CONFIG"}
    wrong = [
        (at, name) for at, text in texts() for name in VARIABLE.findall(text) if name not in known
    ]
    assert not wrong


def test_every_key_that_is_named_exists_h70() -> None:
    sections = "|".join(field.encode_name for field in msgspec.structs.fields(Sections))
    key = re.compile(rf"(?<![\w./-])(?:{sections})(?:\.[a-z][a-z_]*[a-z])+(?![\w(/-])")
    known = known_keys()
    wrong = [
        (at, name)
        for at, text in texts()
        for name in key.findall(text)
        if name not in known and not name.startswith("kafka.properties.")
    ]
    assert not wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_option_that_the_documentation_gives_to_snapstore_exists_h70(page: Path) -> None:
    known = known_options()
    text = page.read_text("utf-8")
    wrong = [
        option
        for line in re.findall(r"snapstore [a-z]+ [^`\n]*", text)
        for option in OPTION.findall(line)
        if option not in known
    ]
    assert not wrong
