"""Which files of a folder are the store."""

import hashlib
import os
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapstore.errors import (
    BlobMissingError,
    CaptureError,
    ManifestInvalidError,
    StoreChangedError,
)
from snapstore.pairs.chain import chain_of, living, newest_of_each
from snapstore.pairs.decode import PairFile
from snapstore.pairs.folder import add, merged, next_number, opened, remove_leftovers
from snapstore.pairs.header import PairHeader
from tests.support.restless import restless

layers = st.lists(
    st.dictionaries(st.binary(max_size=2), st.none() | st.binary(max_size=3), max_size=8),
    min_size=1,
    max_size=5,
)


def file(number: int, previous: PairFile | None = None, tag: str = "") -> PairFile:
    header = PairHeader(
        kind="delta" if previous else "base",
        number=number,
        previous=previous.id if previous else None,
        positions=(),
    )
    name = hashlib.sha256(f"{number}{tag}".encode()).hexdigest()
    return PairFile(header=header, id=name, pairs=1, size=100)


BASE = file(1)
FIRST = file(2, BASE)
SECOND = file(3, FIRST)


def test_a_store_is_its_newest_file_and_all_that_it_builds_on() -> None:
    assert chain_of([SECOND, BASE, FIRST]) == (BASE, FIRST, SECOND)
    assert chain_of([]) == ()


def test_files_that_a_newer_base_has_replaced_are_leftovers() -> None:
    newer = file(4)
    assert chain_of([BASE, FIRST, SECOND, newer]) == (newer,)
    merged_delta = file(5, BASE)
    assert chain_of([BASE, FIRST, SECOND, merged_delta]) == (BASE, merged_delta)


def test_a_store_that_lacks_a_file_is_refused() -> None:
    with pytest.raises(BlobMissingError, match="000000000003"):
        chain_of([BASE, SECOND])
    with pytest.raises(BlobMissingError, match="000000000002"):
        chain_of([FIRST])


def test_files_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ManifestInvalidError, match="same number"):
        chain_of([BASE, file(2, BASE), file(2, BASE, tag="another")])
    odd = PairFile(header=file(1, BASE).header, id=BASE.id, pairs=0, size=1)
    with pytest.raises(ManifestInvalidError, match="newer"):
        chain_of([odd])


@given(layers)
def test_the_newest_pair_of_a_key_counts(given_layers: list[dict[bytes, bytes | None]]) -> None:
    expected: dict[bytes, bytes | None] = {}
    for layer in given_layers:
        expected |= layer
    found = list(newest_of_each([sorted(layer.items()) for layer in given_layers]))
    assert found == sorted(expected.items())
    assert list(living(found)) == [(k, v) for k, v in sorted(expected.items()) if v is not None]


def put(folder: Path, number: int, previous: PairFile | None, **pairs: str | None) -> PairFile:
    header = file(number, previous).header
    encoded = [(k.encode(), None if v is None else v.encode()) for k, v in sorted(pairs.items())]
    return add(folder, header, encoded)


def contents(folder: Path) -> dict[bytes, bytes]:
    with opened(folder) as files:
        return dict(merged(files))


def test_files_of_a_folder_are_laid_over_one_another(tmp_path: Path) -> None:
    assert contents(tmp_path) == contents(tmp_path / "missing") == {}
    base = put(tmp_path, 1, None, a="1", b="2")
    delta = put(tmp_path, 2, base, b=None, c="3")
    assert contents(tmp_path) == {b"a": b"1", b"c": b"3"}
    assert next_number(tmp_path) == 3
    newer = put(tmp_path, 3, None, z="9")
    assert contents(tmp_path) == {b"z": b"9"}
    remove_leftovers(tmp_path, [newer])
    assert [path.name for path in tmp_path.iterdir()] == [newer.header.name]
    assert delta.id != newer.id


def test_what_is_held_open_stays_readable_when_its_name_has_gone(tmp_path: Path) -> None:
    put(tmp_path, 1, None, a="1")
    with opened(tmp_path) as files:
        newer = put(tmp_path, 2, None, a="2")
        remove_leftovers(tmp_path, [newer])
        assert dict(merged(files)) == {b"a": b"1"}


def test_a_link_in_place_of_a_file_is_not_followed(tmp_path: Path) -> None:
    base = put(tmp_path, 1, None, a="1")
    path = tmp_path / base.header.name
    path.rename(tmp_path.parent / "elsewhere")
    path.symlink_to(tmp_path.parent / "elsewhere")
    with pytest.raises(CaptureError, match="it is a link"), opened(tmp_path):
        pass


def test_a_pipe_in_place_of_a_file_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / BASE.header.name)
    with pytest.raises(CaptureError, match="not a regular file"), opened(tmp_path):
        pass


def test_a_file_under_another_name_is_refused(tmp_path: Path) -> None:
    base = put(tmp_path, 1, None, a="1")
    (tmp_path / base.header.name).rename(tmp_path / FIRST.header.name)
    with pytest.raises(ManifestInvalidError, match="calls itself"), opened(tmp_path):
        pass


def test_a_store_that_is_removed_and_made_again_is_damaged_at_no_moment(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    previous = None
    for number in range(1, 40):
        header = file(number, previous).header
        previous = add(folder, header, [(b"key", b"%d" % number)])
    with restless(folder, "remaking"):
        for _ in range(1000):
            with suppress(StoreChangedError), opened(folder) as files:
                assert len(files) < 40
