"""Where stores are, when the folder that was named is a wrong one near by."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from snapstore.errors import SnapstoreError, StoreNotFoundError
from snapstore.ports import Layout

_LEVELS = 2
_FOLDERS = 200


def stores_near(folder: Path, layout: Layout, application: str | None = None) -> Path | None:
    """Return a folder above or below in which the layout finds stores; None where none is near.

    Looks two levels up and down, and at 200 folders at most. Above counts what holds a store that
    the folder is a part of, or that is a part of the folder.
    """
    place = folder.absolute()
    for above in [*place.parents][: _LEVELS + 1]:
        if any(
            path.is_relative_to(place) or place.is_relative_to(path)
            for path in _stores(above, layout, application)
            if path != above
        ):
            return above
    for below in _below(place):
        if _stores(below, layout, application):
            return below
    return None


@contextmanager
def pointing(folder: Path | None, layout: Layout, application: str | None) -> Iterator[None]:
    """Let a StoreNotFoundError say where stores are near by."""
    try:
        yield
    except StoreNotFoundError as error:
        near = None
        if folder is not None and not _stores(folder, layout, None):
            near = stores_near(folder, layout, application)
        if near is not None:
            raise StoreNotFoundError(
                error.message, hint=f"there are stores in {near}: name that folder", **error.facts
            ) from error
        raise


def _stores(folder: Path, layout: Layout, application: str | None) -> list[Path]:
    # Whatever is wrong with a folder that nobody named is no matter here.
    with suppress(SnapstoreError, OSError):
        return [each.path for each in layout.discover(folder, application).locations]
    return []


def _below(folder: Path) -> Iterator[Path]:
    level, seen = [folder], 0
    for _ in range(_LEVELS):
        inner: list[Path] = []
        for parent in level:
            with suppress(OSError):
                inner += sorted(path for path in parent.iterdir() if _is_visible(path))
            if seen + len(inner) > _FOLDERS:
                break
        yield from inner[: _FOLDERS - seen]
        seen += len(inner)
        level = inner


def _is_visible(path: Path) -> bool:
    return not path.name.startswith(".") and path.is_dir() and not path.is_symlink()
