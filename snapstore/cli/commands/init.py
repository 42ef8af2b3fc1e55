"""`snapstore init`: make a repository."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

import click

from snapstore import client
from snapstore.cli.lazy import Verb
from snapstore.cli.session import Session
from snapstore.errors import ConfigError, ConflictError, RepositoryExistsError


@click.command(
    "init",
    cls=Verb,
    short_help="Make a repository.",
    examples=(
        "snapstore init -r file:///backup/snapstore",
        "snapstore init -r s3://bucket/prefix --exist-ok",
        "snapstore init --write-config snapstore.yaml",
    ),
)
@click.option("--exist-ok", is_flag=True, help="A repository that is there already is no error.")
@click.option(
    "--accept-unverified-uploads",
    is_flag=True,
    default=None,
    help="Work with a storage that ignores checksums: every upload is read back and compared.",
)
@click.option(
    "--write-config",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="PATH",
    help="Write a commented configuration file first.",
)
@click.pass_obj
def command(
    session: Session,
    exist_ok: bool,
    accept_unverified_uploads: bool | None,
    write_config: Path | None,
) -> None:
    """Make a repository, after proving that the storage keeps the promises it needs.

    With --write-config and no repository named, only the configuration file is written.
    """
    with _written(write_config, session.repository):
        _make(session, exist_ok, accept_unverified_uploads, write_config)


def _make(
    session: Session,
    exist_ok: bool,
    accept_unverified_uploads: bool | None,
    write_config: Path | None,
) -> None:
    lines = [] if write_config is None else [f"wrote {write_config}"]
    config = session.config(
        {
            "repository.accept_unverified_uploads": (
                accept_unverified_uploads,
                "--accept-unverified-uploads",
            )
        }
    )
    if write_config is not None and config.repository.url is None:
        session.done("initialised", {"url": None, "config": write_config, "created": False}, lines)
        return
    created = True
    try:
        repository = client.create(config=config, listener=session.hear)
    except RepositoryExistsError:
        if not exist_ok:
            raise
        created = False
        repository = client.open(config=config, listener=session.hear)
    with repository:
        marker = repository.repository.marker
        lines.append(
            f"{'made' if created else 'found'} repository {marker.id[:12]} at {repository.url}"
        )
        if marker.uploads == "read_back":
            lines.append("its storage ignores checksums: every upload is read back and compared")
        session.done(
            "initialised",
            {
                "url": repository.url,
                "id": marker.id,
                "created": created,
                "uploads": marker.uploads,
                "config": write_config,
            },
            lines,
        )


@contextmanager
def _written(path: Path | None, url: str | None) -> Iterator[None]:
    """Write the configuration file; it goes again when the work fails, which may be repeated."""
    if path is None:
        yield
        return
    text = _starter(url)
    try:
        # A file that others could write to would not be obeyed later, whatever the umask.
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    except FileExistsError as exc:
        raise ConflictError(
            f"{path} exists", hint="choose another path; it is not written over", path=str(path)
        ) from exc
    except OSError as exc:
        raise _unwritable(path, exc) from exc
    try:
        try:
            with os.fdopen(fd, "w", encoding="utf-8") as file:
                file.write(text)
        except OSError as exc:
            raise _unwritable(path, exc) from exc
        yield
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _unwritable(path: Path, error: OSError) -> ConfigError:
    return ConfigError(f"cannot write {path}: {error.strerror}", path=str(path))


def _starter(url: str | None) -> str:
    text = files("snapstore.config").joinpath("starter.yaml").read_text(encoding="utf-8")
    if url is None:
        return text
    if any(character in url for character in "\n\r'"):
        raise ConfigError(f"not the URL of a repository: {url!r}", key="repository.url")
    return text.replace("  # url: s3://my-bucket/snapstore", f"  url: '{url}'")
