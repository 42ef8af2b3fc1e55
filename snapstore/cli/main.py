"""The `snapstore` command: all verbs, and the way in."""

import gc
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Final

import click

from snapstore import __version__
from snapstore.cli.boundary import guarded
from snapstore.cli.lazy import VerbGroup
from snapstore.cli.session import Session
from snapstore.cli.verbs import COMMANDS, SHORT_HELPS

_COMPLETION: Final = "_SNAPSTORE_COMPLETE"


@click.group(
    cls=VerbGroup,
    late=COMMANDS,
    short_helps=SHORT_HELPS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    examples=(
        "snapstore init -r s3://bucket/prefix",
        "snapstore snapshot -r s3://bucket/prefix --state-dir /var/lib/kafka-streams",
        "snapstore list -r s3://bucket/prefix",
        "snapstore restore -r s3://bucket/prefix --application orders --target /data/state",
    ),
)
@click.version_option(__version__, prog_name="snapstore", message="%(prog)s %(version)s")
def snapstore() -> None:
    """Snapshots of Kafka Streams state stores, taken from outside the application, while it runs.

    With a snapshot an application replays only the tail of its changelog. -r, -c and the other
    options under Everywhere are accepted before and after the verb.
    """


def run(arguments: Sequence[str], env: Mapping[str, str]) -> int:
    """Run one command line and return its exit code."""
    session = Session(env)
    session.json = "--json" in arguments
    session.arguments = tuple(arguments)

    def work() -> int | None:
        # Not snapstore.main(), which ends the process by itself when stdout is closed.
        with snapstore.make_context("snapstore", list(arguments), obj=session) as context:
            code = snapstore.invoke(context)
        return code if isinstance(code, int) else None

    code = guarded(session, work)
    level = "info" if code == 0 else "error"
    session.log(level, "ended", f"ended: exit code {code}", exit_code=code, seconds=session.elapsed)
    return code


def main() -> None:
    """Run the command line of this process and exit."""
    _replace_closed_streams()
    # Looking for cycles among what the drivers have loaded takes a tenth of a run otherwise.
    gc.set_threshold(50_000, 20, 50)
    signal.signal(signal.SIGTERM, _interrupt)
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        # Whoever says nohup means it.
        signal.signal(signal.SIGHUP, _interrupt)
    if _COMPLETION in os.environ:
        from click.shell_completion import shell_complete

        sys.exit(shell_complete(snapstore, {}, "snapstore", _COMPLETION, os.environ[_COMPLETION]))
    code = run(sys.argv[1:], os.environ)
    # Python's own last search for cycles would go through all of them once more.
    gc.freeze()
    sys.exit(code)


def _replace_closed_streams() -> None:
    """Open what the caller closed: the next file that is opened would be written to as stdout."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
    # Python leaves None where it found a closed one.
    sys.stdout = sys.stdout or os.fdopen(1, "w")
    sys.stderr = sys.stderr or os.fdopen(2, "w")


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Let a termination take the way of Ctrl-C, so that what was begun is cleaned up.

    The next one is passed over: service managers and terminals send several, and one that comes
    while folders are removed would leave them.
    """
    del number, frame
    for each in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt
