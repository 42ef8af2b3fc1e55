"""The fault wrapper spoils what its plan names, and nothing else."""

from pathlib import Path

import pytest

from snapstore.errors import CredentialsError, NoSpaceError, ObjectNotFoundError, StorageError
from snapstore.model.store import BytesSource
from snapstore.storages.local import LocalStorage
from snapstore.testing.faults import (
    Afterwards,
    Call,
    Corrupt,
    Crash,
    Cut,
    Delayed,
    Fault,
    FaultyStorage,
    Hidden,
    Instead,
    Stale,
    denied,
    disk_full,
    slow_down,
    timed_out,
)
from snapstore.testing.storage_contract import sha256_of


@pytest.fixture
def real(tmp_path: Path) -> LocalStorage:
    storage = LocalStorage(str(tmp_path / "repository"))
    storage.put("a", b"0123456789")
    return storage


def read_all(storage: FaultyStorage, key: str) -> bytes:
    return b"".join(storage.read(key, start=0, stop=10))


def test_only_the_call_that_the_plan_names_fails(real: LocalStorage) -> None:
    storage = FaultyStorage(real, [Fault("put", Instead(timed_out()), call=2)])

    storage.put("x", b"1")
    with pytest.raises(StorageError, match="did not answer"):
        storage.put("y", b"2")
    storage.put("z", b"3")

    assert [found.key for found in real.list("")] == ["a", "x", "z"]
    assert storage.calls == [Call("put", "x"), Call("put", "y"), Call("put", "z")]


def test_calls_are_counted_for_the_keys_that_the_fault_is_about(real: LocalStorage) -> None:
    storage = FaultyStorage(real, [Fault("put", Instead(slow_down()), call=2, key="blobs/")])

    storage.put("blobs/1", b"")
    storage.put("catalog/1", b"")
    with pytest.raises(StorageError, match="SlowDown"):
        storage.put("blobs/2", b"")


def test_a_fault_can_last_for_some_calls_or_for_all(real: LocalStorage) -> None:
    storage = FaultyStorage(
        real,
        [
            Fault("stat", Instead(denied()), calls=2),
            Fault("delete", Instead(disk_full()), calls=None),
        ],
    )

    for _ in range(2):
        with pytest.raises(CredentialsError):
            storage.stat("a")
    assert storage.stat("a") is not None
    for _ in range(3):
        with pytest.raises(NoSpaceError):
            storage.delete(["a"])


def test_a_lost_answer_leaves_the_object(real: LocalStorage) -> None:
    storage = FaultyStorage(real, [Fault("put_file", Afterwards(timed_out()))])

    with pytest.raises(StorageError):
        storage.put_file("f", BytesSource(b"x"), sha256=sha256_of(b"x"))

    assert real.get("f", limit_bytes=9) == b"x"
    assert storage.put_file("f", BytesSource(b"x"), sha256=sha256_of(b"x")) is False


def test_a_read_can_end_early_with_and_without_an_error(real: LocalStorage) -> None:
    storage = FaultyStorage(
        real,
        [
            Fault("read", Cut(after_bytes=4)),
            Fault("read", Cut(after_bytes=4, error=timed_out()), call=2),
            Fault("get", Cut(after_bytes=4)),
        ],
    )

    assert read_all(storage, "a") == b"0123"
    with pytest.raises(StorageError):
        read_all(storage, "a")
    assert read_all(storage, "a") == b"0123456789"
    assert storage.get("a", limit_bytes=10) == b"0123"


def test_a_byte_can_be_spoilt(real: LocalStorage) -> None:
    storage = FaultyStorage(real, [Fault("read", Corrupt(position=9)), Fault("get", Corrupt())])

    assert read_all(storage, "a") == b"012345678\xc6"
    assert storage.get("a", limit_bytes=10) == b"\xcf123456789"
    assert read_all(storage, "a") == b"0123456789"


def test_an_object_can_be_hidden_and_a_listing_can_lag_behind(real: LocalStorage) -> None:
    storage = FaultyStorage(real, [Fault("stat", Hidden()), Fault("list", Stale(), calls=2)])
    storage.put("b", b"")
    storage.delete(["a"])

    assert storage.stat("b") is None
    assert storage.stat("b") is not None
    assert [found.key for found in storage.list("")] == ["a"]
    assert [found.key for found in storage.list("b")] == []
    assert [found.key for found in storage.list("")] == ["b"]


def test_a_crash_is_no_exception_that_code_may_cure(real: LocalStorage) -> None:
    storage = FaultyStorage(real, [Fault("put", Afterwards(Crash()))])

    with pytest.raises(Crash):
        storage.put("x", b"")

    assert not issubclass(Crash, Exception)
    assert real.stat("x") is not None


def test_a_call_can_be_slow(real: LocalStorage) -> None:
    storage = FaultyStorage(real, [Fault("get", Delayed(seconds=0.01))])

    assert storage.get("a", limit_bytes=10) == b"0123456789"
    with pytest.raises(ObjectNotFoundError):
        storage.get("gone", limit_bytes=10)


@pytest.mark.parametrize("effect", [Cut(after_bytes=1), Corrupt(), Hidden(), Stale()])
def test_an_effect_that_a_call_cannot_have_is_refused(effect: Cut | Corrupt) -> None:
    with pytest.raises(ValueError, match="is for"):
        Fault("put", effect)
