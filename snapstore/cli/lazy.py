"""Commands that are imported when they are asked for, and options that fit everywhere."""

import importlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import click

if TYPE_CHECKING:
    from snapstore.cli.session import Session

_GLOBAL = "Everywhere"


class Verb(click.Command):
    """A command that also takes the global options, and shows examples in its help."""

    def __init__(self, *args: Any, examples: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = examples
        self.params = [*self.params, *global_options()]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _write_options(self, ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        _write_examples(self.examples, formatter)


class VerbGroup(click.Group):
    """A group whose commands are Verbs; some of them are named by module and imported late.

    ``short_helps`` says what the late ones do, so that the group's help imports none of them.
    """

    command_class = Verb

    def __init__(
        self,
        *args: Any,
        late: Mapping[str, str] | None = None,
        short_helps: Mapping[str, str] | None = None,
        examples: Sequence[str] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.examples = examples
        self._late = late or {}
        self._short_helps = short_helps or {}
        self.params = [*self.params, *global_options()]

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self._late, *super().list_commands(ctx)]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.list_commands(ctx) and not args[0].startswith("-"):
            from snapstore.model.strict import nearest

            close = nearest(args[0], self.list_commands(ctx))
            meant = f", did you mean {' or '.join(close)}?" if close else ""
            ctx.fail(f"no command is called {args[0]!r}{meant}")
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in self._late:
            module, _, attribute = self._late[cmd_name].partition(":")
            return cast("click.Command", getattr(importlib.import_module(module), attribute))
        return super().get_command(ctx, cmd_name)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _write_options(self, ctx, formatter)
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if not self._late or self._short_helps.keys() != self._late.keys():
            super().format_commands(ctx, formatter)
            return
        with formatter.section("Commands"):
            formatter.write_dl(list(self._short_helps.items()))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        _write_examples(self.examples, formatter)


def global_options() -> list[click.Option]:
    """Return the options that are accepted before and after every verb."""

    def keep(ctx: click.Context, param: click.Parameter, value: Any) -> None:
        if value:
            cast("Session", ctx.find_root().obj).set_global(str(param.name), value)

    def option(*names: str, **kwargs: Any) -> click.Option:
        return _GlobalOption(names, callback=keep, expose_value=False, **kwargs)

    return [
        option("-c", "--config", metavar="FILE", help="Configuration file."),
        option("-r", "--repository", metavar="URL", help="Folder or s3://bucket/prefix."),
        option("--json", is_flag=True, help="One JSON document on stdout; errors on stderr."),
        option("-q", "--quiet", is_flag=True, help="Silent on success."),
        option("-v", "--verbose", count=True, help="Say more; twice: everything."),
        option("--no-progress", is_flag=True, help="No bars and no progress lines."),
    ]


class _GlobalOption(click.Option):
    """Listed apart in the help."""


def _write_options(
    command: click.Command, ctx: click.Context, formatter: click.HelpFormatter
) -> None:
    own: list[tuple[str, str]] = []
    everywhere: list[tuple[str, str]] = []
    for param in command.get_params(ctx):
        record = param.get_help_record(ctx)
        if record is not None:
            (everywhere if isinstance(param, _GlobalOption) else own).append(record)
    for title, records in (("Options", own), (_GLOBAL, everywhere)):
        with formatter.section(title):
            formatter.write_dl(records)


def _write_examples(examples: Sequence[str], formatter: click.HelpFormatter) -> None:
    if examples:
        with formatter.section("Examples"):
            for example in examples:
                formatter.write(f"{'':>{formatter.current_indent}}{example}\n")
