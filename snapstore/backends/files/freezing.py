"""Take all files of a folder as they were at one moment."""

import hashlib
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import msgspec

from snapstore.backends.files.descriptors import about_to_open
from snapstore.backends.files.looking import Look, UnsettledError, look
from snapstore.backends.files.options import FilesOptions
from snapstore.backends.files.own_file import OwnFile
from snapstore.errors import NoSpaceError
from snapstore.model.folder_name import child
from snapstore.model.pinned import PinnedFile
from snapstore.model.store import ByteSource, BytesSource, FileIdentity

_CHUNK_BYTES = 1 << 20
_IN_MEMORY_BYTES = 64 << 10
_IN_MEMORY_TOTAL_BYTES = 16 << 20


class FrozenFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of the moment; ``pinned`` is None for one whose bytes were copied."""

    name: str
    mode: int
    source: ByteSource
    pinned: PinnedFile | None = None


def freeze(
    root_fd: int, root: str, room: Path, options: FilesOptions, stack: ExitStack
) -> tuple[FrozenFile, ...]:
    """Read the folder twice, and return its files if both times agree; else raise UnsettledError.

    Between the end of the first pass and the beginning of the second lies a moment at which every
    file was as it was taken. Contents are compared as well as times: a store that is mapped into
    memory is written to without its times changing, and a time stamp is no finer than a tick.
    """
    before = look(root_fd, root, options)
    immutable = {name for name in before if options.treatment(name) == "immutable"}
    files: list[FrozenFile] = []
    hashes: dict[str, str] = {}
    in_memory = 0
    with about_to_open(len(immutable)) as pinning:
        for name, identity in before.items():
            try:
                pinned = PinnedFile(name, dir_fd=root_fd, shown=child(root, name))
            except FileNotFoundError as error:
                raise UnsettledError(f"{name} vanished") from error
            stack.callback(pinned.close)
            if pinned.identity != identity:
                raise UnsettledError(f"{name} was replaced or written to")
            if pinning and name in immutable:
                files.append(FrozenFile(name=name, mode=pinned.mode, source=pinned, pinned=pinned))
                continue
            small = pinned.size <= min(_IN_MEMORY_BYTES, _IN_MEMORY_TOTAL_BYTES - in_memory)
            if small:
                in_memory += pinned.size
                copy, hashes[name] = _read(pinned)
            else:
                copy, hashes[name] = _copy(pinned, room / str(len(files)), options)
            files.append(FrozenFile(name=name, mode=pinned.mode, source=copy))
            pinned.close()
    _require_same(before, look(root_fd, root, options))
    for name, sha256 in hashes.items():
        if _hash(root_fd, root, name, before[name]) != sha256:
            raise UnsettledError(f"{name} was written to")
    _require_same(before, look(root_fd, root, options))
    return tuple(files)


def _read(pinned: PinnedFile) -> tuple[ByteSource, str]:
    """Copy the bytes of a file into memory; return their hash, too."""
    content = pinned.pread(pinned.size, 0)
    if len(content) != pinned.size:
        raise UnsettledError(f"{pinned.name} was cut")
    return BytesSource(content), hashlib.sha256(content).hexdigest()


def _copy(pinned: PinnedFile, target: Path, options: FilesOptions) -> tuple[ByteSource, str]:
    """Copy the bytes of a file to ``target``; return their hash, too."""
    _require_space(target.parent, pinned.size + options.min_free_bytes)
    digest = hashlib.sha256()
    with target.open("wb") as output:
        for chunk in _chunks(pinned):
            digest.update(chunk)
            output.write(chunk)
    return OwnFile(target, pinned.size), digest.hexdigest()


def _hash(root_fd: int, root: str, name: str, identity: FileIdentity) -> str:
    digest = hashlib.sha256()
    try:
        with closing(PinnedFile(name, dir_fd=root_fd, shown=child(root, name))) as pinned:
            if pinned.identity != identity:
                raise UnsettledError(f"{name} was replaced or written to")
            for chunk in _chunks(pinned):
                digest.update(chunk)
    except FileNotFoundError as error:
        raise UnsettledError(f"{name} vanished") from error
    return digest.hexdigest()


def _chunks(pinned: PinnedFile) -> Iterator[bytes]:
    position = 0
    while position < pinned.size:
        chunk = pinned.pread(_CHUNK_BYTES, position)
        if not chunk:
            raise UnsettledError(f"{pinned.name} was cut")
        yield chunk
        position += len(chunk)


def _require_same(before: Look, after: Look) -> None:
    if after == before:
        return
    changed = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    raise UnsettledError(f"{min(changed)} came, went or was written to")


def _require_space(folder: Path, needed_bytes: int) -> None:
    free_bytes = shutil.disk_usage(folder).free
    if free_bytes < needed_bytes:
        raise NoSpaceError(
            f"too little space left on the disk of {folder}",
            hint="free space, name another staging_dir, or lower min_free_bytes",
            path=str(folder),
            free_bytes=free_bytes,
            needed_bytes=needed_bytes,
        )
