"""Prove that a storage does what the format relies on, before anything is kept there."""

import uuid
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from snapstore.errors import ObjectExistsError, StorageError, StorageUnfitError
from snapstore.ports import ObjectStorage
from snapstore.repository import keys

_RACERS = 8
_LIMIT_BYTES = 1024


def require_conditional_puts(storage: ObjectStorage) -> None:
    """Put one key twice, then let several threads race for another.

    Raises StorageUnfitError when a key that was taken is written over. There is no way around it:
    without it two hosts cannot agree on anything. Leaves nothing behind.
    """
    probe = f"{keys.PROBES}{uuid.uuid4().hex}"
    contested = f"{probe}-race"
    try:
        if not _put_first(storage, probe):
            raise _unfit("a put-if-absent of a free key was refused")
        if _put(storage, probe, b"second") or _get(storage, probe) != b"first":
            raise _unfit("a put-if-absent wrote over an object")
        bodies = [f"racer {number}".encode() for number in range(_RACERS)]
        start = Barrier(_RACERS)

        def race(body: bytes) -> bool:
            start.wait()
            return _put(storage, contested, body)

        with ThreadPoolExecutor(_RACERS) as pool:
            won = [
                body for body, stored in zip(bodies, pool.map(race, bodies), strict=True) if stored
            ]
        if len(won) != 1 or _get(storage, contested) != won[0]:
            raise _unfit(f"{len(won)} of {_RACERS} writers won a race for one key")
    finally:
        storage.delete([probe, contested])


def require_case(storage: ObjectStorage) -> None:
    """Put a key, and look whether one that differs from it in case only is taken too.

    Raises StorageUnfitError where it is, as on disks of macOS and Windows: the names of two
    applications or stores may differ in nothing else. Leaves nothing behind.
    """
    probe = f"{keys.PROBES}{uuid.uuid4().hex}-case"
    try:
        storage.put(probe, b"lower", if_absent=True)
        if storage.stat(probe.removesuffix("case") + "CASE") is not None:
            raise StorageUnfitError(
                "the storage does not tell capital letters from small ones",
                hint="use a folder on a file system that does, or S3",
                url=storage.url,
            )
    finally:
        storage.delete([probe])


def checks_checksums(storage: ObjectStorage) -> bool:
    """Whether the storage refuses bytes that do not have the hash announced; leaves nothing."""
    probe = f"{keys.PROBES}{uuid.uuid4().hex}-sum"
    try:
        return storage.checks_checksums(probe)
    finally:
        storage.delete([probe])


def _put(storage: ObjectStorage, key: str, body: bytes) -> bool:
    try:
        storage.put(key, body, if_absent=True)
    except ObjectExistsError:
        return False
    return True


def _put_first(storage: ObjectStorage, key: str) -> bool:
    """Put, and find out whether it is the condition that a refusing storage cannot bear."""
    try:
        return _put(storage, key, b"first")
    except StorageError as error:
        storage.put(key, b"first")
        storage.delete([key])
        try:
            return _put(storage, key, b"first")
        except StorageError:
            raise _unfit(f"it refuses those, and takes plain ones: {error.message}") from error


def _get(storage: ObjectStorage, key: str) -> bytes:
    return storage.get(key, limit_bytes=_LIMIT_BYTES)


def _unfit(what: str) -> StorageUnfitError:
    return StorageUnfitError(
        f"the storage does not honour conditional puts: {what}",
        hint="use a storage that knows If-None-Match (Amazon S3, MinIO, Ceph, R2, SeaweedFS do)",
    )
