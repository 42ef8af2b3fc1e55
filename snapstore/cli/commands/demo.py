"""`snapstore demo`: watch it work."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import msgspec

from snapstore.cli.lazy import Verb
from snapstore.cli.session import Session
from snapstore.errors import ConfigError


@click.command(
    "demo",
    cls=Verb,
    short_help="Watch it save and restore a store; needs no Kafka.",
    examples=("snapstore demo", "snapstore demo --keep /tmp/snapstore-demo"),
)
@click.option(
    "--keep",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Work in this new folder and leave everything there.",
)
@click.pass_obj
def command(session: Session, keep: Path | None) -> None:
    """Save a store in use to an S3 server inside this process, lose the disk, restore it.

    Takes less than a minute, touches nothing outside a temporary folder, needs no Kafka. With an
    application's real state directory; this process plays the application.
    """
    if keep is None:
        with TemporaryDirectory(prefix="snapstore-demo-") as folder:
            _tell(session, Path(folder))
        return
    try:
        keep.mkdir(parents=True)
    except FileExistsError as exc:
        raise ConfigError(f"{keep} exists", hint="name a folder that does not") from exc
    _tell(session, keep.resolve())
    session.note(f"left in {keep}: snapstore.yaml and the restored state")


def _tell(session: Session, folder: Path) -> None:
    try:
        # Imported here: the demonstration's server is an extra, and takes a second to load.
        from snapstore.cli.demo.story import Story, summary
    except ModuleNotFoundError as exc:
        raise ConfigError(
            f"the demonstration needs the module {exc.name}, which is not installed",
            hint="pip install 'moto[server]'",
        ) from exc
    silent = session.json or session.quiet

    def say(line: str) -> None:
        if not silent:
            click.echo(line)
            sys.stdout.flush()

    figures = Story(folder, session.env, say, quiet=silent).tell()
    session.done("demo", msgspec.structs.asdict(figures), summary(figures))
