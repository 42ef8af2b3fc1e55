"""Where every error ends: one line for people, one document for programs, one exit code."""

import os
import sys
from collections.abc import Callable

import click

from snapstore.cli.exit_codes import BUG, DONE, INTERRUPTED, PIPE_CLOSED, USAGE, exit_code
from snapstore.cli.narrow import fitted, width_of
from snapstore.cli.session import Session
from snapstore.cli.text import plain
from snapstore.errors import SnapstoreError

_SHOWN_ITEMS = 5
_SHOWN_CHARACTERS = 300


def guarded(session: Session, work: Callable[[], int | None]) -> int:
    """Run ``work`` and return its exit code; whatever it raises is told on stderr."""
    try:
        code = _flushed(work)
    except BrokenPipeError:
        # What is still buffered would raise again when Python closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except (KeyboardInterrupt, click.Abort):
        return _tell(session, "interrupted", "interrupted", exit_with=INTERRUPTED)
    except click.exceptions.NoArgsIsHelpError as exc:
        click.echo(exc.format_message(), err=True)
        return USAGE
    except click.ClickException as exc:
        return _tell_usage(session, exc)
    except SnapstoreError as exc:
        return tell_error(session, exc)
    except Exception as exc:
        return _tell_bug(session, exc)
    return DONE if code is None else code


def _flushed(work: Callable[[], int | None]) -> int | None:
    """Run ``work`` and write out what it printed, so that a closed pipe shows here."""
    code = None
    try:
        code = work()
    except click.exceptions.Exit as exc:
        # How --help and --version end.
        if exc.exit_code != DONE:
            raise
    sys.stdout.flush()
    return code


def tell_error(session: Session, error: SnapstoreError) -> int:
    """Tell one of our own errors and return its exit code."""
    return _tell(
        session,
        error.code,
        error.message,
        hint=error.hint,
        facts=error.facts,
        exit_with=exit_code(type(error)),
        trace=_traceback(error) if session.verbose > 1 else None,
    )


def _traceback(error: Exception) -> str:
    # Imported here: most runs have nothing to trace.
    import traceback

    return "".join(traceback.format_exception(error))


def _tell_usage(session: Session, error: click.ClickException) -> int:
    context = getattr(error, "ctx", None)
    hint = f"see {context.command_path} --help" if context is not None else None
    return _tell(session, "usage", error.format_message().rstrip("."), hint=hint, exit_with=USAGE)


def _tell_bug(session: Session, error: Exception) -> int:
    return _tell(
        session,
        "bug",
        f"unexpected {type(error).__name__}: {error}",
        hint="this is a bug in snapstore: please report it with the output of -v",
        exit_with=BUG,
        trace=_traceback(error) if session.verbose else None,
    )


def _tell(
    session: Session,
    code: str,
    message: str,
    *,
    exit_with: int,
    hint: str | None = None,
    facts: dict[str, object] | None = None,
    trace: str | None = None,
) -> int:
    session.log(
        "error",
        "error",
        f"error: {message}" + (f" (hint: {hint})" if hint else ""),
        code=code,
        exit_code=exit_with,
        hint=hint,
        error_facts=facts or {},
    )
    if session.json:
        from snapstore.cli.document import encode

        document = {
            "kind": "error",
            "version": 1,
            "code": code,
            "message": message,
            "hint": hint,
            "facts": facts or {},
            "exit_code": exit_with,
        }
        if trace is not None:
            document["traceback"] = trace
        click.echo(session.redact(encode(document)), err=True)
        return exit_with
    if trace is not None:
        click.echo(session.redact(trace), err=True, nl=False)
    width = width_of(sys.stderr, session.env)
    lines = [f"error: {plain(session.redact(message))}"]
    if hint:
        lines.append(f"  hint: {plain(session.redact(hint))}")
    if facts:
        told = " ".join(f"{name}={_fact(value, width)}" for name, value in facts.items())
        lines.append(f"  {plain(session.redact(told))}")
    text = "\n".join(fitted(lines, width))
    label = click.style("error:", fg="red", bold=True)
    click.echo(text.replace("error:", label, 1), err=True, color=session.color)
    return exit_with


def _fact(value: object, width: int | None) -> str:
    """Return a fact on one line; a terminal gets the beginning of a long one."""
    if width is None and isinstance(value, list | tuple | set | frozenset):
        return ",".join(str(item) for item in value)
    if width is None:
        return str(value)
    if isinstance(value, list | tuple | set | frozenset):
        items = [str(item) for item in value]
        shown = ", ".join(items[:_SHOWN_ITEMS])
        return shown + (f", ... ({len(items)} in all)" if len(items) > _SHOWN_ITEMS else "")
    text = str(value)
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "..."
