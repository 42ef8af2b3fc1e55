"""`snapstore config`: what is in force, and whether it works."""

import click

from snapstore import client
from snapstore.cli.lazy import VerbGroup
from snapstore.cli.session import Session
from snapstore.cli.text import Column, table
from snapstore.config.show import settings


@click.group(
    "config",
    cls=VerbGroup,
    short_help="What is configured, where it came from, whether it works.",
    examples=("snapstore config show", "snapstore config check -c /etc/snapstore.yaml"),
)
def command() -> None:
    """Look at the configuration: option > environment > file > default."""


@command.command(
    "show", short_help="Every value in force and who set it.", examples=("snapstore config show",)
)
@click.pass_obj
def show(session: Session) -> None:
    """Show every value in force and who set it. Secrets read (hidden)."""
    config = session.config()
    found = settings(config)
    file = str(config.path) if config.path else "no file"
    lines = table(
        (Column("key"), Column("value", below=True), Column("set by", spare=1)),
        [(one.key, _spelled(one.value), one.origin) for one in found],
    )
    session.answer(
        "config", {"path": config.path, "items": found}, [*lines, f"configuration file: {file}"]
    )


@command.command(
    "check",
    short_help="Whether the configuration can be worked with.",
    examples=("snapstore config check",),
)
@click.pass_obj
def check(session: Session) -> None:
    """Check the configuration: values, plug-ins and their options. Nothing is connected to."""
    config = session.config()
    checked = client.check(config)
    session.answer(
        "config_check", {"path": config.path, "checked": checked}, [*checked, "the rest is well"]
    )


def _spelled(value: object) -> str:
    if value is None:
        return "-"
    return str(value).lower() if isinstance(value, bool) else str(value)
